/* Which processes hold which GPU, by what the drivers tell of their DRM clients. One provider for all drivers: it lists every
 * display device and says nothing of it but its processes, and how busy they keep its engines.
 *
 * Reading the file of a client asks only the driver's books. The exception is xe, which powers the device up to read its engines'
 * ticks (xe_drm_client.c): its clients are left alone while it sleeps, and while it is let go to sleep. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/providers/all.h"
#include "broker/providers/display_set.h"
#include "broker/providers/kfd.h"
#include "broker/providers/process_scan.h"
#include "broker/providers/sleep_gate.h"
#include "shm/text.h"

#define MS UINT64_C(1000000)
static const uint64_t LOOK_BUDGET_NS = 3 * MS;
static const uint64_t TELL_SOONEST_NS = 250 * MS;
static const uint64_t TELL_LATEST_NS = 1000 * MS;

/* Drivers whose clients' files have both memory and engines (gputop and nvtop read the same ones). With others, no client is not
 * the same as no use. */
static bool tells_all(const char *driver)
{
    return strcmp(driver, "amdgpu") == 0 || strcmp(driver, "i915") == 0 || strcmp(driver, "xe") == 0;
}

struct processes_device {
    struct sleep_gate gate;
    bool complete; /* the driver tells of every client */
    bool wakes;    /* to read a client wakes the device */
    bool asleep;   /* and so neither busy nor idle */
    bool amd;
    struct layout_process_table table, told;
    struct device_load load;
    uint64_t told_ns;
};

struct processes_state {
    struct display_set set;
    struct process_scan scan;
    struct scan_device devices[SCAN_DEVICES];
    uint64_t ran_tick;
    bool told;           /* the list of devices */
    bool compute_driver; /* amdgpu's clients may use their GPU through kfd, which no client's file shows */
};

static void *processes_open(struct provider_context *context, const struct pci_display *display)
{
    (void)context;
    struct processes_device *device = calloc(1, sizeof *device);
    if (!device)
        return NULL;
    device->complete = tells_all(display->driver);
    device->wakes = strcmp(display->driver, "xe") == 0;
    device->amd = strcmp(display->driver, "amdgpu") == 0;
    sleep_gate_init(&device->gate, display->path);
    return device;
}

static void processes_close(struct provider_context *context, void *state)
{
    struct processes_device *device = state;
    sleep_gate_close(&device->gate, context->io);
    free(device);
}

static const struct display_hooks hooks = {.driver = NULL, .open = processes_open, .close = processes_close};

static bool take_card(void *context, const char *name)
{
    int *minor = context;
    char *end;
    long number = strncmp(name, "card", 4) == 0 ? strtol(name + 4, &end, 10) : -1;
    if (number >= 0 && number < 1 << 20 && *end == '\0')
        *minor = (int)number;
    return *minor < 0;
}

/* What the compute driver calls the device: a number, or several where it is divided. */
static void set_compute(struct scan_device *device, struct io *io, const struct pci_display *display)
{
    struct kfd_partition parts[KFD_MOST_PARTITIONS];
    int count = kfd_partitions(io, display, parts, KFD_MOST_PARTITIONS);
    if (count == 0 && kfd_find(io, display, &parts[0].facts))
        count = 1;
    for (int i = 0; i < count; i++) {
        if (parts[i].facts.gpu_id)
            device->kfd_gpus[device->kfd_gpu_count++] = parts[i].facts.gpu_id;
        device->compute_units += parts[i].facts.compute_units;
    }
}

static void set_devices(struct processes_state *state, struct io *io)
{
    for (int i = 0; i < state->set.count; i++) {
        const struct pci_display *display = &state->set.entries[i].display;
        struct scan_device *device = &state->devices[i];
        char path[272];
        memset(device, 0, sizeof *device);
        memcpy(device->id, display->id, sizeof device->id);
        device->minors[0] = display->render_minor;
        device->minors[1] = -1;
        if (strcmp(display->driver, "amdgpu") == 0)
            set_compute(device, io, display);
        text_format(path, sizeof path, "%.255s/drm", display->path);
        (void)io->operations->list(io, path, take_card, &device->minors[1]);
    }
    scan_set_devices(&state->scan, state->devices, state->set.count);
}

static int processes_start(struct provider_context *context)
{
    struct processes_state *state = calloc(1, sizeof *state);
    if (!state)
        return -ENOMEM;
    scan_init(&state->scan, context->io);
    state->scan.own_parent = context->io->root[0] ? 0 : (uint32_t)getppid();
    context->state = state;
    if (display_set_refresh(&state->set, context, &hooks), state->set.count == 0 && !io_exists(context->io, "/sys/class/drm")) {
        text_format(context->message, sizeof context->message, "no display device");
        free(state);
        context->state = NULL;
        return -ENODEV;
    }
    set_devices(state, context->io);
    state->ran_tick = UINT64_MAX;
    return 0;
}

static void describe(struct processes_state *state, struct provider_context *context)
{
    if (state->scan.hidden > 0)
        text_format(context->message, sizeof context->message, "%u processes of other users may not be looked into",
                    state->scan.hidden);
    else
        text_format(context->message, sizeof context->message, "looks into every process");
}

static int processes_discover(struct provider_context *context, struct layout_device *devices, int capacity)
{
    struct processes_state *state = context->state;
    bool changed = display_set_refresh(&state->set, context, &hooks);
    if (changed)
        set_devices(state, context->io);
    describe(state, context);
    if (!changed && state->told)
        return -EAGAIN;
    state->told = true;
    int count = state->set.count < capacity ? state->set.count : capacity;
    for (int i = 0; i < count; i++) {
        pci_describe(context->io, &state->set.entries[i].display, &devices[i]);
        devices[i].generation = state->set.entries[i].generation;
    }
    return count;
}

static void run(struct processes_state *state, const struct provider_context *context, uint64_t now_ns)
{
    struct io *io = context->io;
    for (int i = 0; i < state->set.count; i++) {
        struct processes_device *device = state->set.entries[i].state;
        enum sleep_verdict verdict = sleep_gate_check(&device->gate, io, now_ns);
        device->asleep = verdict == SLEEP_ASLEEP;
        state->devices[i].unreadable = device->wakes && (verdict == SLEEP_ASLEEP || verdict == SLEEP_LETTING);
    }
    scan_run(&state->scan, now_ns, LOOK_BUDGET_NS);
    state->compute_driver = state->scan.compute_count > 0;
    for (int i = 0; i < state->set.count; i++) {
        struct processes_device *device = state->set.entries[i].state;
        process_table_fill(&state->scan, i, now_ns, &device->table, &device->load);
        if (device->wakes && !state->devices[i].unreadable)
            sleep_gate_report(&device->gate, io, now_ns,
                              device->load.busy[FDINFO_GFX] > 0 || device->load.busy[FDINFO_COMPUTE] > 0 || context->at_work);
    }
    state->ran_tick = context->tick;
}

static double larger(double a, double b) { return isnan(a) || b > a ? b : a; }

static void put_busy(struct sample *sample, int metric, double busy, bool idle_is_known)
{
    if (!isnan(busy))
        sample_f64(sample, metric, busy);
    else if (idle_is_known)
        sample_f64(sample, metric, 0);
}

/* What no client keeps busy is idle only where every client was seen, and each tells of the engine. */
static void put_loads(const struct processes_state *state, const struct processes_device *device, struct sample *sample)
{
    const struct device_load *load = &device->load;
    bool all = device->complete && state->scan.complete && state->scan.hidden == 0 && load->processes == 0;
    if (device->amd && state->compute_driver)
        return; /* the compute driver's work is in no client's account */
    put_busy(sample, METRIC_GFX_BUSY, larger(load->busy[FDINFO_GFX], load->busy[FDINFO_COMPUTE]), all);
    put_busy(sample, METRIC_ENCODE_BUSY, load->busy[FDINFO_ENCODE], false);
    put_busy(sample, METRIC_DECODE_BUSY, load->busy[FDINFO_DECODE], false);
    put_busy(sample, METRIC_MEDIA_BUSY, load->busy[FDINFO_MEDIA], false);
    if (state->scan.hidden > 0)
        sample_flag(sample, QUALITY_ESTIMATED);
}

static void put_processes(const struct processes_state *state, const struct processes_device *device, struct sample *sample)
{
    const struct device_load *load = &device->load;
    if (!state->scan.complete) {
        unsigned reason = state->scan.listed_ns && !state->scan.listed ? REASON_NOT_SUPPORTED : REASON_NOT_SAMPLED;
        sample_unknown(sample, METRIC_PROCESS_COUNT, reason);
        sample_unknown(sample, METRIC_PROCESS_VRAM, reason);
        return;
    }
    if (device->complete || load->processes > 0)
        sample_u64(sample, METRIC_PROCESS_COUNT, load->processes);
    if (load->vram_known || (device->complete && load->processes == 0))
        sample_u64(sample, METRIC_PROCESS_VRAM, load->vram);
}

static int processes_sample(struct provider_context *context, int index, struct sample *sample)
{
    struct processes_state *state = context->state;
    if (index < 0 || index >= state->set.count)
        return -ENODEV;
    struct display_entry *entry = &state->set.entries[index];
    struct processes_device *device = entry->state;
    sample->mono_ns = context->io->operations->mono_ns(context->io);
    if (!pci_present(context->io, &entry->display)) {
        entry->lost = true;
        return -ENODEV;
    }
    if (state->ran_tick != context->tick)
        run(state, context, sample->mono_ns);
    if (device->asleep || state->devices[index].unreadable)
        sample_all_unknown(sample, device->asleep ? REASON_ASLEEP : REASON_LETTING_SLEEP);
    else
        put_loads(state, device, sample);
    put_processes(state, device, sample);
    return 0;
}

static bool same_table(const struct layout_process_table *a, const struct layout_process_table *b)
{
    size_t from = sizeof a->updated_ns, used = offsetof(struct layout_process_table, rows) + a->count * sizeof a->rows[0];
    return a->count == b->count && memcmp((const char *)a + from, (const char *)b + from, used - from) == 0;
}

static bool processes_table(struct provider_context *context, int index, struct layout_process_table *table)
{
    struct processes_state *state = context->state;
    if (index < 0 || index >= state->set.count || !state->scan.complete)
        return false;
    struct processes_device *device = state->set.entries[index].state;
    uint64_t age = device->table.updated_ns - device->told_ns;
    bool changed = !same_table(&device->table, &device->told);
    if (device->told_ns && age < (changed ? TELL_SOONEST_NS : TELL_LATEST_NS))
        return false;
    device->told = *table = device->table;
    device->told_ns = device->table.updated_ns;
    return true;
}

static void processes_stop(struct provider_context *context)
{
    struct processes_state *state = context->state;
    if (!state)
        return;
    scan_free(&state->scan);
    display_set_close(&state->set, context, &hooks);
    free(state);
    context->state = NULL;
}

const struct provider provider_processes = {.name = "processes",
                                            .aside = true,
                                            .start = processes_start,
                                            .discover = processes_discover,
                                            .sample = processes_sample,
                                            .processes = processes_table,
                                            .stop = processes_stop};
