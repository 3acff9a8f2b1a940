/* AMD GPUs under the driver amdgpu, by its sysfs files.
 *
 * pcie_bw is never read: it makes the reader wait for a second (msleep in *_get_pcie_usage). /dev/kfd is never opened. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/all.h"
#include "broker/providers/amdgpu.h"
#include "broker/providers/display_set.h"
#include "shm/text.h"

/* What a device's number stands for: a card, or a partition of one. */
struct amdgpu_place {
    int entry;
    int partition; /* -1 = the card */
};

struct amdgpu_state {
    struct display_set set;
    struct amdgpu_place places[PROVIDER_MAX_DEVICES];
    int place_count;
    bool told;
};

static void *amdgpu_open(struct provider_context *context, const struct pci_display *display)
{
    struct amdgpu_device *device = calloc(1, sizeof *device);
    if (!device)
        return NULL;
    device->display = *display;
    sleep_gate_init(&device->gate, display->path);
    amdgpu_read_init(device);
    amdgpu_drm_init(device);
    amdgpu_describe_asleep(device, context->io);
    return device;
}

static void amdgpu_close(struct provider_context *context, void *state)
{
    struct amdgpu_device *device = state;
    sleep_gate_close(&device->gate, context->io);
    amdgpu_read_close(device, context->io);
    amdgpu_drm_close(device, context->io);
    free(device);
}

static const struct display_hooks hooks = {.driver = "amdgpu", .open = amdgpu_open, .close = amdgpu_close};

/* Where the driver is loaded, a card may still be plugged in; where it is not, there is nothing to wait for. */
static int amdgpu_start(struct provider_context *context)
{
    struct amdgpu_state *state = calloc(1, sizeof *state);
    if (!state)
        return -ENOMEM;
    context->state = state;
    (void)display_set_refresh(&state->set, context, &hooks);
    if (state->set.count > 0 || io_exists(context->io, "/sys/module/amdgpu"))
        return 0;
    text_format(context->message, sizeof context->message, "no device with the driver amdgpu");
    free(state);
    context->state = NULL;
    return -ENODEV;
}

static void add_place(struct amdgpu_state *state, int entry, int partition, struct layout_device *devices, int capacity)
{
    const struct amdgpu_device *card = state->set.entries[entry].state;
    if (state->place_count >= capacity || state->place_count >= PROVIDER_MAX_DEVICES)
        return;
    struct layout_device *out = &devices[state->place_count];
    if (partition < 0)
        *out = card->facts;
    else
        amdgpu_partition_describe(card, partition, out);
    out->generation = state->set.entries[entry].generation;
    state->places[state->place_count++] = (struct amdgpu_place){.entry = entry, .partition = partition};
}

/* Each card, and after it its partitions, so that their samples follow the card's. */
static int list_places(const struct provider_context *context, struct amdgpu_state *state, struct layout_device *devices,
                       int capacity)
{
    state->place_count = 0;
    for (int i = 0; i < state->set.count; i++) {
        const struct amdgpu_device *card = state->set.entries[i].state;
        add_place(state, i, -1, devices, capacity);
        for (int n = 0; n < card->partition_count && !context->only; n++)
            add_place(state, i, n, devices, capacity);
    }
    return state->place_count;
}

static int amdgpu_discover(struct provider_context *context, struct layout_device *devices, int capacity)
{
    struct amdgpu_state *state = context->state;
    bool changed = display_set_refresh(&state->set, context, &hooks) || !state->told;
    int unified = 0, partitions = 0;
    for (int i = 0; i < state->set.count; i++) {
        struct amdgpu_device *device = state->set.entries[i].state;
        changed = amdgpu_partitions_find(device, context->io) || device->facts_changed || changed;
        device->facts_changed = false;
        unified += device->facts.pool == POOL_UNIFIED;
        partitions += device->partition_count;
    }
    if (!changed)
        return -EAGAIN;
    state->told = true;
    text_format(context->message, sizeof context->message, "%d with memory of their own, %d with a unified pool%s",
                state->set.count - unified, unified, partitions ? ", some of them in partitions" : "");
    return list_places(context, state, devices, capacity);
}

static void sample_asleep(struct amdgpu_device *device, struct io *io, struct sample *sample)
{
    sample_begin(sample, sample->mono_ns);
    sleep_gate_mark(SLEEP_ASLEEP, sample);
    amdgpu_read_memory(device, io, sample);
    for (int i = 0; i < METRIC_COUNT; i++)
        if (sample->reasons[i] == REASON_ERROR)
            sample->reasons[i] = REASON_ASLEEP; /* some kernels refuse even these then */
}

static bool has_errors(const struct sample *sample) { return memchr(sample->reasons, REASON_ERROR, METRIC_COUNT) != NULL; }

static void sample_awake(const struct provider_context *context, struct amdgpu_device *device, enum sleep_verdict verdict,
                         struct sample *sample)
{
    struct io *io = context->io;
    sample_flag(sample, 0); /* no doubt so far */
    sleep_gate_mark(verdict, sample);
    amdgpu_read_all(device, io, sample);
    /* EPERM and EBUSY are what a card answers that fell asleep meanwhile, or that is being reset (amdgpu_pm.c). */
    if (has_errors(sample) && sleep_gate_check(&device->gate, io, sample->mono_ns) == SLEEP_ASLEEP) {
        sample_asleep(device, io, sample);
        return;
    }
    if (!device->facts_complete)
        amdgpu_describe_awake(device, io);
    amdgpu_drm_fill(device, io, sample);
    sleep_gate_report(&device->gate, io, sample->mono_ns, amdgpu_is_busy(sample) || context->at_work);
}

static int amdgpu_sample(struct provider_context *context, int index, struct sample *sample)
{
    struct amdgpu_state *state = context->state;
    struct io *io = context->io;
    if (index < 0 || index >= state->place_count || state->places[index].entry >= state->set.count)
        return -ENODEV;
    struct display_entry *entry = &state->set.entries[state->places[index].entry];
    struct amdgpu_device *device = entry->state;
    sample->mono_ns = io->operations->mono_ns(io);
    if (state->places[index].partition >= 0) {
        if (state->places[index].partition >= device->partition_count || entry->lost)
            return -ENODEV;
        amdgpu_partition_sample(device, state->places[index].partition, sample);
        return 0;
    }
    if (!pci_present(io, &device->display)) {
        entry->lost = true;
        return -ENODEV;
    }
    enum sleep_verdict verdict = sleep_gate_check(&device->gate, io, sample->mono_ns);
    if (verdict == SLEEP_ASLEEP || verdict == SLEEP_LETTING)
        amdgpu_drm_close(device, io); /* an open node may keep the card awake */
    if (verdict == SLEEP_ASLEEP)
        sample_asleep(device, io, sample);
    else if (verdict == SLEEP_LETTING)
        sleep_gate_mark(verdict, sample);
    else
        sample_awake(context, device, verdict, sample);
    device->state = sample->state;
    return 0;
}

static void amdgpu_stop(struct provider_context *context)
{
    struct amdgpu_state *state = context->state;
    if (!state)
        return;
    display_set_close(&state->set, context, &hooks);
    free(state);
    context->state = NULL;
}

const struct provider provider_amdgpu = {
    .name = "amdgpu", .start = amdgpu_start, .discover = amdgpu_discover, .sample = amdgpu_sample, .stop = amdgpu_stop};
