#include "broker/providers/kfd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/text.h"

#define KFD_NODES "/sys/class/kfd/kfd/topology/nodes"
enum { KFD_MOST_NODES = 256 };

/* "key value" a line; 0 if the key is not there. */
static uint64_t property(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return strtoull(line + length + 1, NULL, 10);
    }
    return 0;
}

/* A node of the topology that is a GPU, or a partition of one. */
struct kfd_node {
    uint64_t location, domain, render_minor, device;
    struct kfd_facts facts;
};

static void read_bank(struct io *io, int number, struct kfd_facts *out)
{
    char path[128], text[512];
    (void)snprintf(path, sizeof path, KFD_NODES "/%d/mem_banks/0/properties", number);
    if (io_read_text(io, path, text, sizeof text) < 0)
        return;
    out->memory_bytes = property(text, "size_in_bytes");
    out->memory_bus_bits = (uint32_t)property(text, "width");
}

/* Reads node `number`: 1 for a GPU, 0 for another or one that may not be read (EPERM: a node that this container may not use),
 * -ENOENT where the topology ends. `gpus` counts those before it. */
static int read_node(struct io *io, int number, int *gpus, struct kfd_node *out)
{
    char path[128], text[4096];
    uint64_t gpu_id = 0;
    (void)snprintf(path, sizeof path, KFD_NODES "/%d/properties", number);
    long got = io_read_text(io, path, text, sizeof text);
    if (got < 0)
        return got == -ENOENT ? -ENOENT : 0;
    uint64_t simds = property(text, "simd_count"), simds_per_cu = property(text, "simd_per_cu");
    if (simds == 0)
        return 0; /* a CPU */
    *out = (struct kfd_node){.location = property(text, "location_id"),
                             .domain = property(text, "domain"),
                             .render_minor = property(text, "drm_render_minor"),
                             .device = property(text, "device_id"),
                             .facts = {.index = (*gpus)++, .gfx_target_version = (uint32_t)property(text, "gfx_target_version")}};
    out->facts.compute_units = simds_per_cu ? (uint32_t)(simds / simds_per_cu) : 0;
    read_bank(io, number, &out->facts);
    (void)snprintf(path, sizeof path, KFD_NODES "/%d/gpu_id", number);
    if (io_read_u64(io, path, 10, &gpu_id) == 0)
        out->facts.gpu_id = (uint32_t)gpu_id;
    return 1;
}

/* bus << 8 | device << 3 | function, and a domain that old kernels do not tell. */
static bool place_of(const struct pci_display *display, uint64_t *domain, uint64_t *place)
{
    unsigned parts[4];
    if (display->platform || sscanf(display->id, "%x:%x:%x.%x", &parts[0], &parts[1], &parts[2], &parts[3]) != 4)
        return false;
    *domain = parts[0];
    *place = parts[1] << 8 | parts[2] << 3 | parts[3];
    return true;
}

static bool is_node_of(const struct pci_display *display, const struct kfd_node *node)
{
    uint64_t domain, place;
    if (place_of(display, &domain, &place) && node->location == place && node->domain == domain)
        return true;
    return display->render_minor >= 0 && node->render_minor == (uint64_t)display->render_minor && node->device == display->device;
}

bool kfd_find(struct io *io, const struct pci_display *display, struct kfd_facts *out)
{
    struct kfd_node node;
    int gpus = 0, kind = 0;
    for (int number = 0; number < KFD_MOST_NODES && kind != -ENOENT; number++) {
        kind = read_node(io, number, &gpus, &node);
        if (kind == 1 && is_node_of(display, &node)) {
            *out = node.facts;
            return true;
        }
    }
    return false;
}

/* The partition's number stands in bits 28 to 31 of the location; in kernels before that, it was added to the function
 * (kfd_topology.c, "Add partition id field to location_id"). -1: a node of another card. */
static int partition_of(const struct pci_display *display, const struct kfd_node *node)
{
    uint64_t domain, place, within = node->location & 0x0fffffff;
    if (!place_of(display, &domain, &place) || node->domain != domain || node->device != display->device)
        return -1;
    if (within == place)
        return (int)(node->location >> 28 & 0xf);
    return (place & 7) == 0 && (within & ~UINT64_C(7)) == place && node->location == within ? (int)(within & 7) : -1;
}

int kfd_partitions(struct io *io, const struct pci_display *display, struct kfd_partition *out, int capacity)
{
    struct kfd_node node;
    int gpus = 0, kind = 0, count = 0;
    for (int number = 0; number < KFD_MOST_NODES && kind != -ENOENT && count < capacity; number++) {
        kind = read_node(io, number, &gpus, &node);
        int partition = kind == 1 ? partition_of(display, &node) : -1;
        if (partition >= 0)
            out[count++] = (struct kfd_partition){.number = partition, .render_minor = (int)node.render_minor, .facts = node.facts};
    }
    return count > 1 ? count : 0;
}

void kfd_arch(uint32_t gfx_target_version, char *out, size_t size)
{
    unsigned major = gfx_target_version / 10000, minor = gfx_target_version / 100 % 100, step = gfx_target_version % 100;
    char text[32] = "";
    if (gfx_target_version)
        text_format(text, sizeof text, "gfx%u%x%x", major, minor, step);
    text_copy(out, size, text, sizeof text);
}
