/* Any display-class device, whatever its driver: who it is, its link, and sensors that carry a label. The ground floor of every
 * ladder. A device whose driver has a provider of its own is only described here: two readers of one card would cost twice, and
 * this one cannot tell whether the card is idle and should be let go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/all.h"
#include "broker/providers/display_set.h"
#include "broker/providers/hwmon.h"
#include "broker/providers/intel.h"
#include "broker/providers/sleep_gate.h"
#include "shm/text.h"

struct drm_device {
    struct sleep_gate gate;
    struct hwmon hwmon;
    bool described; /* only: the driver has its own provider */
    bool limits_told;
    uint64_t link_due_ns;
    int link_error;
    double link_speed;
    uint64_t link_width;
};

struct drm_state {
    struct display_set set;
    bool dirty; /* limits became known */
};

static bool has_own_provider(const char *driver) { return strcmp(driver, "amdgpu") == 0 || intel_is_driver(driver); }

static void *drm_open(struct provider_context *context, const struct pci_display *display)
{
    (void)context;
    struct drm_device *device = calloc(1, sizeof *device);
    if (!device)
        return NULL;
    device->described = has_own_provider(display->driver);
    sleep_gate_init(&device->gate, display->path);
    hwmon_init(&device->hwmon, display->path);
    return device;
}

static void drm_close(struct provider_context *context, void *state)
{
    struct drm_device *device = state;
    sleep_gate_close(&device->gate, context->io);
    hwmon_close(&device->hwmon, context->io);
    free(device);
}

static const struct display_hooks hooks = {.driver = NULL, .open = drm_open, .close = drm_close};

static int drm_start(struct provider_context *context)
{
    struct drm_state *state = calloc(1, sizeof *state);
    if (!state)
        return -ENOMEM;
    context->state = state;
    if (display_set_refresh(&state->set, context, &hooks), state->set.count == 0 && !io_exists(context->io, "/sys/class/drm")) {
        text_format(context->message, sizeof context->message, "no display device on the PCI bus and no /sys/class/drm");
        free(state);
        context->state = NULL;
        return -ENODEV;
    }
    state->dirty = true;
    return 0;
}

static int drm_discover(struct provider_context *context, struct layout_device *devices, int capacity)
{
    struct drm_state *state = context->state;
    bool changed = display_set_refresh(&state->set, context, &hooks);
    if (!changed && !state->dirty)
        return -EAGAIN;
    state->dirty = false;
    int count = state->set.count < capacity ? state->set.count : capacity, described = 0;
    for (int i = 0; i < count; i++) {
        const struct display_entry *entry = &state->set.entries[i];
        const struct drm_device *device = entry->state;
        pci_describe(context->io, &entry->display, &devices[i]);
        devices[i].generation = entry->generation;
        memcpy(devices[i].limits, device->hwmon.limits, sizeof devices[i].limits);
        described += device->described;
    }
    text_format(context->message, sizeof context->message, "%d read here, %d left to a provider of their own", count - described,
                described);
    return count;
}

/* The link changes with the load, but slowly; walking the bridges opens files. */
static void sample_link(struct drm_device *device, struct io *io, const struct pci_display *display, struct sample *sample)
{
    if (sample->mono_ns >= device->link_due_ns) {
        device->link_due_ns = sample->mono_ns + UINT64_C(1000000000);
        device->link_error = pci_link(io, display, &device->link_speed, &device->link_width);
    }
    pci_link_sample(device->link_error, device->link_speed, device->link_width, sample);
}

static int drm_sample(struct provider_context *context, int index, struct sample *sample)
{
    struct drm_state *state = context->state;
    struct io *io = context->io;
    if (index < 0 || index >= state->set.count)
        return -ENODEV;
    struct display_entry *entry = &state->set.entries[index];
    struct drm_device *device = entry->state;
    sample->mono_ns = io->operations->mono_ns(io);
    if (!pci_present(io, &entry->display)) {
        entry->lost = true;
        return -ENODEV;
    }
    enum sleep_verdict verdict = sleep_gate_check(&device->gate, io, sample->mono_ns);
    if (device->described) {
        if (verdict == SLEEP_ASLEEP)
            sleep_gate_mark(verdict, sample);
        return 0;
    }
    sleep_gate_mark(verdict, sample);
    if (verdict == SLEEP_ASLEEP || verdict == SLEEP_LETTING)
        return 0;
    hwmon_sample(&device->hwmon, io, sample);
    sample_link(device, io, &entry->display, sample);
    if (!device->limits_told && device->hwmon.folder[0]) {
        device->limits_told = true;
        state->dirty = true;
    }
    sleep_gate_report(&device->gate, io, sample->mono_ns, context->at_work);
    return 0;
}

static void drm_stop(struct provider_context *context)
{
    struct drm_state *state = context->state;
    if (!state)
        return;
    display_set_close(&state->set, context, &hooks);
    free(state);
    context->state = NULL;
}

const struct provider provider_drm = {
    .name = "drm", .start = drm_start, .discover = drm_discover, .sample = drm_sample, .stop = drm_stop};
