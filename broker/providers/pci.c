#include "broker/providers/pci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/specs.h"
#include "shm/text.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

/* --- which are displays ------------------------------------------------------------------------------------------------- */

/* Management controllers show a console and nothing else (ASPEED, Matrox G200, Huawei iBMC, Silicon Motion); the virtual ones
 * of hypervisors (QEMU, VirtIO, VMware, Hyper-V, QXL, VirtualBox, Cirrus) have no GPU behind them to tell of. */
static bool is_console_only(uint32_t vendor)
{
    static const uint32_t vendors[] = {0x1a03, 0x102b, 0x19e5, 0x126f, 0x1234, 0x1af4, 0x15ad, 0x1414, 0x1b36, 0x80ee, 0x1013};
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
        if (vendors[i] == vendor)
            return true;
    return false;
}

/* 0x03: display controllers. Instinct modules without a display engine are "processing accelerators", 0x12, as are the NPUs
 * of other vendors, which are not meant. */
static bool is_display(const struct pci_display *display)
{
    uint32_t base = display->class_code >> 16;
    return (base == 0x03 || (base == 0x12 && display->vendor == PCI_VENDOR_AMD)) && !is_console_only(display->vendor);
}

static uint32_t read_hex(struct io *io, const char *folder, const char *name)
{
    char path[320];
    uint64_t value = 0;
    (void)snprintf(path, sizeof path, "%.255s/%.48s", folder, name);
    return io_read_u64(io, path, 16, &value) == 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* A pair such as "PCI_ID=1002:6818" fills what is still 0; the second word is optional. */
static void uevent_pair(const char *text, const char *key, uint32_t *first, uint32_t *second)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0 || line[length] != '=')
            continue;
        char *end;
        unsigned long a = strtoul(line + length + 1, &end, 16);
        unsigned long b = second && *end == ':' ? strtoul(end + 1, NULL, 16) : 0;
        if (*first == 0)
            *first = (uint32_t)a;
        if (second && *second == 0)
            *second = (uint32_t)b;
        return;
    }
}

static void uevent_text(const char *text, const char *key, char *out, size_t size)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            text_copy(out, size, line + length + 1, strcspn(line + length + 1, "\n"));
            return;
        }
    }
}

static void read_identity(struct io *io, struct pci_display *display)
{
    char path[320], uevent[1024];
    display->class_code = read_hex(io, display->path, "class");
    display->vendor = read_hex(io, display->path, "vendor");
    display->device = read_hex(io, display->path, "device");
    display->subvendor = read_hex(io, display->path, "subsystem_vendor");
    display->subdevice = read_hex(io, display->path, "subsystem_device");
    display->revision = read_hex(io, display->path, "revision");
    (void)snprintf(path, sizeof path, "%.255s/driver", display->path);
    if (io_link_name(io, path, display->driver, sizeof display->driver) < 0)
        display->driver[0] = '\0';
    (void)snprintf(path, sizeof path, "%.255s/uevent", display->path);
    if (io_read_text(io, path, uevent, sizeof uevent) < 0)
        return;
    uevent_pair(uevent, "PCI_CLASS", &display->class_code, NULL);
    uevent_pair(uevent, "PCI_ID", &display->vendor, &display->device);
    uevent_pair(uevent, "PCI_SUBSYS_ID", &display->subvendor, &display->subdevice);
    if (!display->driver[0])
        uevent_text(uevent, "DRIVER", display->driver, sizeof display->driver);
}

static bool take_render(void *context, const char *name)
{
    int *minor = context;
    if (strncmp(name, "renderD", 7) != 0)
        return true;
    *minor = (int)strtol(name + 7, NULL, 10);
    return false;
}

static void read_render_minor(struct io *io, struct pci_display *display)
{
    char path[320];
    display->render_minor = -1;
    (void)snprintf(path, sizeof path, "%.255s/drm", display->path);
    (void)io->operations->list(io, path, take_render, &display->render_minor);
}

/* --- listing ---------------------------------------------------------------------------------------------------------- */

struct display_search {
    struct io *io;
    const char *driver;
    struct pci_display *out;
    int count, capacity;
    bool beyond;
};

static void keep_display(struct display_search *search, const struct pci_display *display)
{
    if (search->driver && strcmp(search->driver, display->driver) != 0)
        return;
    if (search->count < search->capacity)
        search->out[search->count++] = *display;
    else
        search->beyond = true;
}

static bool take_pci(void *context, const char *name)
{
    struct display_search *search = context;
    struct pci_display display = {.render_minor = -1};
    if (strlen(name) > 15)
        return true;
    (void)snprintf(display.id, sizeof display.id, "%.15s", name);
    (void)snprintf(display.path, sizeof display.path, PCI_DEVICES "/%.15s", name);
    read_identity(search->io, &display);
    if (!is_display(&display))
        return true;
    read_render_minor(search->io, &display);
    keep_display(search, &display);
    return !search->beyond;
}

/* GPUs of a SoC have no PCI address. Of these only such with a render node count: the rest are bare screens. amdgpu_xcp.N are
 * partitions of a PCI device. */
static bool take_card(void *context, const char *name)
{
    struct display_search *search = context;
    struct pci_display display = {.platform = true, .render_minor = -1};
    char path[320], bus[32], device[64];
    if (strncmp(name, "card", 4) != 0 || strspn(name + 4, "0123456789") != strlen(name + 4) || strlen(name) > 16)
        return true;
    (void)snprintf(display.path, sizeof display.path, "/sys/class/drm/%.16s/device", name);
    (void)snprintf(path, sizeof path, "%.255s/subsystem", display.path);
    if (io_link_name(search->io, path, bus, sizeof bus) < 0 || strcmp(bus, "platform") != 0)
        return true;
    if (io_link_name(search->io, display.path, device, sizeof device) < 0 || strncmp(device, "amdgpu_xcp", 10) == 0)
        return true;
    (void)snprintf(display.id, sizeof display.id, "platform:%.38s", device);
    read_identity(search->io, &display);
    read_render_minor(search->io, &display);
    if (display.render_minor >= 0)
        keep_display(search, &display);
    return !search->beyond;
}

static int by_id(const void *a, const void *b)
{
    const struct pci_display *x = a, *y = b;
    return strcmp(x->id, y->id);
}

/* A machine may lack either folder; any other error hides what is there. */
static int list_displays(struct io *io, bool (*pci)(void *, const char *), bool (*card)(void *, const char *), void *context)
{
    int first = io->operations->list(io, PCI_DEVICES, pci, context);
    int second = io->operations->list(io, "/sys/class/drm", card, context);
    int error = first < 0 && first != -ENOENT ? first : second;
    return error < 0 && error != -ENOENT ? error : 0;
}

int pci_displays(struct io *io, const char *driver, struct pci_display *out, int capacity, bool *beyond)
{
    struct display_search search = {.io = io, .driver = driver, .out = out, .capacity = capacity};
    int error = list_displays(io, take_pci, take_card, &search);
    if (error < 0)
        return error;
    *beyond = search.beyond;
    qsort(out, (size_t)search.count, sizeof *out, by_id);
    return search.count;
}

static void mix(uint64_t *hash, const char *text)
{
    *hash = (*hash ^ metrics_hash(text, strlen(text) + 1)) * UINT64_C(1099511628211);
}

static bool mix_name(void *context, const char *name)
{
    mix(context, name);
    return true;
}

bool pci_present(struct io *io, const struct pci_display *display)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%.255s/uevent", display->path);
    return io_exists(io, path);
}

int pci_fingerprint(struct io *io, const struct pci_display *known, int count, uint64_t *out)
{
    uint64_t hash = 1;
    int error = list_displays(io, mix_name, mix_name, &hash);
    if (error < 0)
        return error;
    for (int i = 0; i < count; i++) {
        char path[320], driver[32];
        (void)snprintf(path, sizeof path, "%.255s/driver", known[i].path);
        mix(&hash, io_link_name(io, path, driver, sizeof driver) < 0 ? "" : driver);
    }
    *out = hash;
    return 0;
}

/* --- description ------------------------------------------------------------------------------------------------------ */

const char *pci_vendor_name(uint32_t vendor)
{
    switch (vendor) {
    case PCI_VENDOR_AMD:
    case 0x1022: return "amd";
    case PCI_VENDOR_NVIDIA: return "nvidia";
    case PCI_VENDOR_INTEL: return "intel";
    default: return "other";
    }
}

void pci_describe(struct io *io, const struct pci_display *display, struct layout_device *device)
{
    char path[320], text[128];
    memset(device, 0, sizeof *device);
    provider_text(device->id, sizeof device->id, display->id);
    if (!display->platform)
        provider_text(device->pci, sizeof device->pci, display->id);
    provider_text(device->vendor, sizeof device->vendor, pci_vendor_name(display->vendor));
    provider_text(device->driver, sizeof device->driver, display->driver);
    (void)snprintf(path, sizeof path, "/sys/module/%.24s/version", display->driver);
    if (display->driver[0] && io_read_text(io, path, text, sizeof text) > 0)
        provider_text(device->driver_version, sizeof device->driver_version, text);
    (void)snprintf(path, sizeof path, "%.255s/product_name", display->path);
    bool named = io_read_text(io, path, text, sizeof text) > 0;
    if (named)
        provider_text(device->name, sizeof device->name, text);
    else
        pci_name(io, display, device->name, sizeof device->name);
    device->vendor_id = display->vendor;
    device->device_id = display->device;
    device->subvendor_id = display->subvendor;
    device->subdevice_id = display->subdevice;
    device->revision = display->revision;
    device->generation = 1;
    device->kfd_index = -1;
    device->nvml_index = -1;
    if (!named)
        specs_name(device);
    specs_complete(device);
}
