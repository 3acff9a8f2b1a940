/* Intel GPUs under the drivers i915 and xe, by their sysfs files and memory queries.
 *
 * Nothing is read of one that sleeps: every file of sensors, clocks and throttling resumes it (xe_hwmon.c, xe_gt_freq.c,
 * i915_hwmon.c take runtime references), and so does every request to its node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/all.h"
#include "broker/providers/display_set.h"
#include "broker/providers/intel.h"
#include "shm/text.h"

struct intel_state {
    struct display_set set;
    bool told;
};

/* NULL for the displays of others. */
static void *intel_open(struct provider_context *context, const struct pci_display *display)
{
    struct intel_device *device = intel_is_driver(display->driver) ? calloc(1, sizeof *device) : NULL;
    if (!device)
        return NULL;
    sleep_gate_init(&device->gate, display->path);
    hwmon_init(&device->hwmon, display->path);
    intel_gt_init(&device->gts);
    intel_describe_asleep(device, context->io, display);
    return device;
}

static void intel_close(struct provider_context *context, void *state)
{
    struct intel_device *device = state;
    sleep_gate_close(&device->gate, context->io);
    hwmon_close(&device->hwmon, context->io);
    intel_gt_close(&device->gts, context->io);
    free(device);
}

static const struct display_hooks hooks = {.driver = NULL, .open = intel_open, .close = intel_close};

/* Where a driver is loaded, a card may still be plugged in. */
static int intel_start(struct provider_context *context)
{
    struct intel_state *state = calloc(1, sizeof *state);
    if (!state)
        return -ENOMEM;
    context->state = state;
    (void)display_set_refresh(&state->set, context, &hooks);
    if (state->set.count > 0 || io_exists(context->io, "/sys/module/i915") || io_exists(context->io, "/sys/module/xe"))
        return 0;
    text_format(context->message, sizeof context->message, "no device with the driver i915 or xe");
    free(state);
    context->state = NULL;
    return -ENODEV;
}

static int intel_discover(struct provider_context *context, struct layout_device *devices, int capacity)
{
    struct intel_state *state = context->state;
    bool changed = display_set_refresh(&state->set, context, &hooks) || !state->told;
    int count = state->set.count < capacity ? state->set.count : capacity, xe = 0;
    for (int i = 0; i < count; i++) {
        struct intel_device *device = state->set.entries[i].state;
        changed = changed || device->facts_changed;
        device->facts_changed = false;
        devices[i] = device->facts;
        devices[i].generation = state->set.entries[i].generation;
        xe += strcmp(state->set.entries[i].display.driver, "xe") == 0;
    }
    if (!changed)
        return -EAGAIN;
    state->told = true;
    text_format(context->message, sizeof context->message, "%d under xe, %d under i915", xe, count - xe);
    return count;
}

static void sample_awake(const struct provider_context *context, struct display_entry *entry, enum sleep_verdict verdict,
                         struct sample *sample)
{
    struct intel_device *device = entry->state;
    sample_flag(sample, 0); /* no doubt so far */
    sleep_gate_mark(verdict, sample);
    bool busy = intel_read_all(device, context->io, &entry->display, sample);
    if (!device->facts_complete)
        intel_describe_awake(device, context->io);
    sleep_gate_report(&device->gate, context->io, sample->mono_ns, busy || context->at_work);
}

static int intel_sample(struct provider_context *context, int index, struct sample *sample)
{
    struct intel_state *state = context->state;
    struct io *io = context->io;
    if (index < 0 || index >= state->set.count)
        return -ENODEV;
    struct display_entry *entry = &state->set.entries[index];
    struct intel_device *device = entry->state;
    sample->mono_ns = io->operations->mono_ns(io);
    if (!pci_present(io, &entry->display)) {
        entry->lost = true;
        return -ENODEV;
    }
    enum sleep_verdict verdict = sleep_gate_check(&device->gate, io, sample->mono_ns);
    if (verdict == SLEEP_ASLEEP || verdict == SLEEP_LETTING)
        sleep_gate_mark(verdict, sample);
    else
        sample_awake(context, entry, verdict, sample);
    return 0;
}

static void intel_stop(struct provider_context *context)
{
    struct intel_state *state = context->state;
    if (!state)
        return;
    display_set_close(&state->set, context, &hooks);
    free(state);
    context->state = NULL;
}

const struct provider provider_intel = {
    .name = "intel", .start = intel_start, .discover = intel_discover, .sample = intel_sample, .stop = intel_stop};
