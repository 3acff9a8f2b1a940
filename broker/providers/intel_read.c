#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/providers/intel.h"

#define SECOND UINT64_C(1000000000)

/* --- memory ----------------------------------------------------------------------------------------------------------- */

static void put_pool(struct sample *sample, int total_metric, uint64_t total, int used_metric, uint64_t used, bool used_known,
                     unsigned why_not)
{
    sample_memory(sample, total_metric, total, used_metric, used_known ? used : 0);
    if (!used_known && total > 0)
        sample_unknown(sample, used_metric, why_not);
}

/* A processor's graphics have no memory of their own: what they may map of the host's is all there is. */
static void put_memory(const struct intel_memory *memory, bool is_xe, struct sample *sample)
{
    unsigned system_reason = is_xe ? REASON_NO_PERMISSION : REASON_NOT_SUPPORTED;
    put_pool(sample, METRIC_GTT_TOTAL, memory->system_total, METRIC_GTT_USED, memory->system_used, memory->system_used_known,
             system_reason);
    if (memory->has_vram) {
        put_pool(sample, METRIC_VRAM_TOTAL, memory->vram_total, METRIC_VRAM_USED, memory->vram_used, memory->used_known,
                 REASON_NO_PERMISSION);
        put_pool(sample, METRIC_VRAM_VISIBLE_TOTAL, memory->visible_total, METRIC_VRAM_VISIBLE_USED, memory->visible_used,
                 memory->used_known, REASON_NO_PERMISSION);
    } else {
        put_pool(sample, METRIC_UNIFIED_TOTAL, memory->system_total, METRIC_UNIFIED_USED, memory->system_used,
                 memory->system_used_known, system_reason);
    }
}

/* Who is told nothing, or only what never changes, asks again after a while: rights may be given later. */
static void sample_memory_regions(struct intel_device *device, struct io *io, const struct pci_display *display,
                                  struct sample *sample)
{
    static const int metrics[] = {METRIC_VRAM_TOTAL, METRIC_VRAM_USED, METRIC_VRAM_VISIBLE_TOTAL, METRIC_VRAM_VISIBLE_USED,
                                  METRIC_GTT_TOTAL,  METRIC_GTT_USED,  METRIC_UNIFIED_TOTAL,      METRIC_UNIFIED_USED};
    if (sample->mono_ns >= device->memory_due_ns) {
        device->memory_error = intel_memory_query(io, display, &device->memory);
        bool telling = !device->memory_error && (device->memory.used_known || device->memory.system_used_known);
        device->memory_due_ns = telling ? 0 : sample->mono_ns + 10 * SECOND;
    }
    if (!device->memory_error)
        put_memory(&device->memory, strcmp(display->driver, "xe") == 0, sample);
    for (size_t i = 0; device->memory_error && i < sizeof metrics / sizeof metrics[0]; i++)
        sample_unknown(sample, metrics[i], io_reason(device->memory_error));
}

/* --- link ------------------------------------------------------------------------------------------------------------- */

/* The card's own switch is two bridges by its maker, and above them is a port of the machine. */
static bool sees_own_switch(struct io *io, const struct pci_display *display)
{
    char target[512], path[320];
    uint64_t vendor = 0;
    int depth = 0, got = io->operations->readlink(io, display->path, target, sizeof target);
    const char *tail = got < 0 ? NULL : strstr(target, "devices/pci");
    for (const char *at = tail ? tail + strlen("devices/") : ""; (at = strchr(at, '/')) != NULL; at++)
        depth++;
    (void)snprintf(path, sizeof path, "%.255s/../vendor", display->path);
    return depth >= 4 && io_read_u64(io, path, 16, &vendor) == 0 && vendor == display->vendor;
}

/* An endpoint behind such a switch says 2.5 GT/s x1, whatever the card's link is: where the switch cannot be seen (a virtual
 * machine that was given the endpoint alone), that is no answer. */
static int read_link(struct io *io, const struct pci_display *display, double *speed, uint64_t *width)
{
    int error = pci_link(io, display, speed, width);
    return !error && *speed <= 2.5 && *width == 1 && !sees_own_switch(io, display) ? -ENODATA : error;
}

static void sample_link(struct intel_device *device, struct io *io, const struct pci_display *display, struct sample *sample)
{
    if (sample->mono_ns >= device->link_due_ns) {
        device->link_due_ns = sample->mono_ns + SECOND;
        device->link_error = read_link(io, display, &device->link_speed, &device->link_width);
    }
    pci_link_sample(device->link_error, device->link_speed, device->link_width, sample);
}

/* --- all of it -------------------------------------------------------------------------------------------------------- */

/* How busy the engines are is told to perf and, a process at a time, in fdinfo, where the provider "processes" reads it. */
bool intel_read_all(struct intel_device *device, struct io *io, const struct pci_display *display, struct sample *sample)
{
    sample_memory_regions(device, io, display, sample);
    hwmon_sample(&device->hwmon, io, sample);
    intel_gt_sample(&device->gts, io, display, sample);
    sample_link(device, io, display, sample);
    return intel_gt_is_busy(&device->gts, io, sample->mono_ns);
}
