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

struct kfd_search {
    struct io *io;
    const struct pci_display *display;
    struct kfd_facts *out;
    int gpus;
    bool found;
};

/* By PCI place where there is one (bus << 8 | device << 3 | function, and a domain that old kernels do not tell), else by
 * render node. */
static bool is_node_of(const struct pci_display *display, const char *text)
{
    unsigned domain, bus, device, function;
    if (!display->platform && sscanf(display->id, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4 &&
        property(text, "location_id") == (bus << 8 | device << 3 | function) && property(text, "domain") == domain)
        return true;
    return display->render_minor >= 0 && property(text, "drm_render_minor") == (uint64_t)display->render_minor &&
           property(text, "device_id") == display->device;
}

static void read_bank(struct io *io, int node, struct kfd_facts *out)
{
    char path[128], text[512];
    (void)snprintf(path, sizeof path, KFD_NODES "/%d/mem_banks/0/properties", node);
    if (io_read_text(io, path, text, sizeof text) < 0)
        return;
    out->memory_bytes = property(text, "size_in_bytes");
    out->memory_bus_bits = (uint32_t)property(text, "width");
}

/* Looks at node `number`; -errno where the topology ends. */
static int look_at(struct kfd_search *search, int number)
{
    char path[128], text[4096];
    (void)snprintf(path, sizeof path, KFD_NODES "/%d/properties", number);
    long got = io_read_text(search->io, path, text, sizeof text);
    if (got < 0)
        return got == -ENOENT ? -ENOENT : 0; /* EPERM: a node that this container may not use */
    uint64_t simds = property(text, "simd_count"), simds_per_cu = property(text, "simd_per_cu");
    if (simds == 0)
        return 0; /* a CPU */
    int index = search->gpus++;
    if (!is_node_of(search->display, text))
        return 0;
    *search->out = (struct kfd_facts){.index = index, .gfx_target_version = (uint32_t)property(text, "gfx_target_version")};
    search->out->compute_units = simds_per_cu ? (uint32_t)(simds / simds_per_cu) : 0;
    read_bank(search->io, number, search->out);
    uint64_t gpu_id = 0;
    (void)snprintf(path, sizeof path, KFD_NODES "/%d/gpu_id", number);
    if (io_read_u64(search->io, path, 10, &gpu_id) == 0)
        search->out->gpu_id = (uint32_t)gpu_id;
    search->found = true;
    return 0;
}

bool kfd_find(struct io *io, const struct pci_display *display, struct kfd_facts *out)
{
    struct kfd_search search = {.io = io, .display = display, .out = out};
    for (int number = 0; number < KFD_MOST_NODES && !search.found && look_at(&search, number) == 0;)
        number++;
    return search.found;
}

void kfd_arch(uint32_t gfx_target_version, char *out, size_t size)
{
    unsigned major = gfx_target_version / 10000, minor = gfx_target_version / 100 % 100, step = gfx_target_version % 100;
    char text[32] = "";
    if (gfx_target_version)
        text_format(text, sizeof text, "gfx%u%x%x", major, minor, step);
    text_copy(out, size, text, sizeof text);
}
