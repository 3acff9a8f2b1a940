/* Simulated devices: off unless asked for, and called simulated wherever they appear.
 *
 * For tests of the workers, and for nothing else: GPUTAP_SIM_FAULT="INDEX:KIND" makes the device with that place among all
 * simulated ones misbehave when it is sampled. KIND is
 *   hang      never comes back
 *   crash     aborts the process
 *   error     every metric unknown, by error
 *   slow=MS   answers after so many milliseconds */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "broker/providers/all.h"
#include "broker/providers/sim_table.h"
#include "shm/text.h"

enum fault_kind { FAULT_NONE, FAULT_HANG, FAULT_CRASH, FAULT_ERROR, FAULT_SLOW };

struct sim_device {
    const struct sim_model *model;
    int index; /* among all simulated devices, also those of other workers */
    char id[48];
    struct layout_process_table processes; /* as of the last sample */
    uint64_t told_ns;
};

static const uint64_t PROCESSES_NS = 250000000;

struct sim_override {
    const char *variable;
    double low, high;
    double value; /* NaN = not set */
};
enum { OVERRIDE_GFX, OVERRIDE_POWER, OVERRIDE_TEMPERATURE, OVERRIDE_VRAM, OVERRIDE_COUNT };

struct sim_state {
    struct sim_device devices[PROVIDER_MAX_DEVICES];
    int count;
    bool announced;
    enum sim_load load;
    struct sim_override overrides[OVERRIDE_COUNT];
    enum fault_kind fault;
    int fault_index;
    long fault_ms;
};

static const struct sim_override no_overrides[OVERRIDE_COUNT] = {
    [OVERRIDE_GFX] = {"GPUTAP_SIM_GFX_ACTIVITY", 0, 100, NAN},
    [OVERRIDE_POWER] = {"GPUTAP_SIM_POWER_W", 0, 10000, NAN},
    [OVERRIDE_TEMPERATURE] = {"GPUTAP_SIM_TEMP_C", -40, 150, NAN},
    [OVERRIDE_VRAM] = {"GPUTAP_SIM_VRAM_USED_FRACTION", 0, 1, NAN},
};

static void read_override(struct sim_override *override)
{
    const char *text = getenv(override->variable);
    if (!text || !*text)
        return;
    char *end;
    double value = strtod(text, &end);
    if (end != text && !*end && value >= override->low && value <= override->high)
        override->value = value;
    else
        (void)fprintf(stderr, "gputapd: %s=%s is not a number of %g to %g, using the model's\n", override->variable, text,
                      override->low, override->high);
}

static void read_fault(struct sim_state *state)
{
    const char *text = getenv("GPUTAP_SIM_FAULT");
    if (!text || !*text)
        return;
    char *end;
    state->fault_index = (int)strtol(text, &end, 10);
    const char *kind = *end == ':' ? end + 1 : "";
    if (strcmp(kind, "hang") == 0)
        state->fault = FAULT_HANG;
    else if (strcmp(kind, "crash") == 0)
        state->fault = FAULT_CRASH;
    else if (strcmp(kind, "error") == 0)
        state->fault = FAULT_ERROR;
    else if (strncmp(kind, "slow=", 5) == 0 && (state->fault_ms = strtol(kind + 5, NULL, 10)) > 0)
        state->fault = FAULT_SLOW;
    else
        (void)fprintf(stderr, "gputapd: GPUTAP_SIM_FAULT=%s is ignored: INDEX:hang, crash, error or slow=MS\n", text);
}

/* --- discovery -------------------------------------------------------------------------------------------------------- */

/* By id, with the number at its end read as a number. */
static int model_order(const void *a, const void *b)
{
    const struct sim_model *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* All devices asked for, by model name, each model counted from 0; the same in every worker, so that an index means one device. */
static int expand_specs(struct provider_context *context, const struct sim_model *models[PROVIDER_MAX_DEVICES])
{
    int total = 0;
    for (int i = 0; i < context->simulate_count; i++) {
        uint32_t count = 0;
        const struct sim_model *model = sim_parse_spec(context->simulate[i], &count);
        for (uint32_t n = 0; model && n < count; n++)
            if (total < PROVIDER_MAX_DEVICES)
                models[total++] = model;
            else
                context->beyond = true;
    }
    qsort(models, (size_t)total, sizeof *models, model_order);
    return total;
}

static void choose_devices(struct provider_context *context, struct sim_state *state)
{
    const struct sim_model *models[PROVIDER_MAX_DEVICES];
    int total = expand_specs(context, models);
    for (int i = 0, number = 0; i < total; i++) {
        number = i > 0 && models[i] == models[i - 1] ? number + 1 : 0;
        struct sim_device *device = &state->devices[state->count];
        *device = (struct sim_device){.model = models[i], .index = i};
        text_format(device->id, sizeof device->id, "sim:%s:%d", models[i]->name, number);
        if (provider_wants(context, device->id))
            state->count++;
    }
}

static int sim_start(struct provider_context *context)
{
    int load = sim_parse_load(context->sim_load);
    if (context->simulate_count == 0) {
        text_format(context->message, sizeof context->message, "off; asked for by --simulate MODEL");
        return -ENOENT;
    }
    struct sim_state *state = calloc(1, sizeof *state);
    if (!state)
        return -ENOMEM;
    state->load = load < 0 ? SIM_LOAD_STATIC : (enum sim_load)load;
    memcpy(state->overrides, no_overrides, sizeof no_overrides);
    for (int i = 0; i < OVERRIDE_COUNT; i++)
        read_override(&state->overrides[i]);
    read_fault(state);
    choose_devices(context, state);
    context->state = state;
    text_format(context->message, sizeof context->message, "simulated, load %s", context->sim_load ? context->sim_load : "static");
    return 0;
}

static void describe(const struct sim_device *from, struct layout_device *to)
{
    const struct sim_model *model = from->model;
    memset(to, 0, sizeof *to);
    provider_text(to->id, sizeof to->id, from->id);
    provider_text(to->vendor, sizeof to->vendor, model->vendor);
    char name[sizeof to->name];
    text_format(name, sizeof name, "%s (simulated)", model->title);
    provider_text(to->name, sizeof to->name, name);
    provider_text(to->driver, sizeof to->driver, "sim");
    provider_text(to->arch, sizeof to->arch, model->arch);
    provider_text(to->vram_type, sizeof to->vram_type, model->vram_type);
    to->vendor_id = model->vendor_id;
    to->device_id = model->device_id;
    to->pool = model->pool;
    to->simulated = 1;
    to->state = DEVICE_OK;
    to->generation = 1;
    to->compute_units = model->compute_units;
    to->vram_bus_bits = model->vram_bus_bits;
    to->kfd_index = -1;
    to->nvml_index = -1;
    to->tgp = model->tgp;
    memcpy(to->limits, model->limits, sizeof to->limits);
}

static int sim_discover(struct provider_context *context, struct layout_device *devices, int capacity)
{
    struct sim_state *state = context->state;
    if (state->announced)
        return -EAGAIN;
    state->announced = true;
    int count = state->count < capacity ? state->count : capacity;
    for (int i = 0; i < count; i++)
        describe(&state->devices[i], &devices[i]);
    return count;
}

/* --- sampling --------------------------------------------------------------------------------------------------------- */

static void sim_misbehave(const struct sim_state *state, struct sample *sample)
{
    if (state->fault == FAULT_CRASH)
        abort();
    while (state->fault == FAULT_HANG)
        (void)pause();
    if (state->fault == FAULT_ERROR)
        sample_all_unknown(sample, REASON_ERROR);
    struct timespec wait = {state->fault_ms / 1000, state->fault_ms % 1000 * 1000000};
    if (state->fault == FAULT_SLOW)
        (void)nanosleep(&wait, NULL);
}

static void sample_broken(struct sample *sample)
{
    static const uint8_t turn[] = {REASON_NOT_SUPPORTED, REASON_NO_PERMISSION, REASON_ASLEEP, REASON_LETTING_SLEEP,
                                   REASON_ERROR,         REASON_IMPLAUSIBLE,   REASON_STALE,  REASON_NOT_SAMPLED};
    for (int metric = 0; metric < METRIC_COUNT; metric++)
        sample_unknown(sample, metric, turn[(size_t)metric % sizeof turn]);
}

static bool overridden(const struct sim_state *state, int which, double *value)
{
    bool set = !isnan(state->overrides[which].value);
    if (set)
        *value = state->overrides[which].value;
    return set;
}

/* The value set is that of the temperature which people look at: edge, else junction. Others keep their distance from it. */
static double temperature(const struct sim_state *state, const struct sim_model *model, int metric, double warmth)
{
    int leading = model->metrics[METRIC_TEMPERATURE_EDGE].known ? METRIC_TEMPERATURE_EDGE : METRIC_TEMPERATURE_JUNCTION;
    double set;
    if (!overridden(state, OVERRIDE_TEMPERATURE, &set))
        return model->metrics[metric].value * warmth;
    return set + model->metrics[metric].value - model->metrics[leading].value;
}

/* Fills one metric that the model knows; what does not move is the table's. */
static double metric_now(const struct sim_state *state, const struct sim_model *model, const struct sim_moment *now, int metric)
{
    double value = model->metrics[metric].value;
    switch (metric) {
    case METRIC_GFX_BUSY: return now->gfx_busy;
    case METRIC_MEMORY_BUSY: return now->memory_busy;
    case METRIC_POWER_NOW: return now->power;
    case METRIC_POWER_AVERAGE:
        return state->load == SIM_LOAD_STATIC && isnan(state->overrides[OVERRIDE_POWER].value) ? value : now->power;
    case METRIC_ENERGY: return now->energy;
    case METRIC_TEMPERATURE_EDGE:
    case METRIC_TEMPERATURE_JUNCTION:
    case METRIC_TEMPERATURE_MEMORY: return temperature(state, model, metric, now->warmth);
    case METRIC_GFX_CLOCK: return state->load == SIM_LOAD_STATIC ? value : value * (0.4 + 0.006 * now->gfx_busy);
    default: return value;
    }
}

static void sample_value(struct sample *sample, int metric, double value)
{
    int count;
    if (metrics_table(false, &count)[metric].type == METRIC_F64)
        sample_f64(sample, metric, value);
    else
        sample_u64(sample, metric, (uint64_t)value);
}

static void sample_memories(const struct sim_model *model, double fraction, struct sample *sample)
{
    static const int pairs[][2] = {{METRIC_VRAM_TOTAL, METRIC_VRAM_USED},
                                   {METRIC_VRAM_VISIBLE_TOTAL, METRIC_VRAM_VISIBLE_USED},
                                   {METRIC_GTT_TOTAL, METRIC_GTT_USED}};
    uint64_t total[3] = {0}, used[3] = {0};
    for (int i = 0; i < 3; i++)
        if (model->metrics[pairs[i][0]].known) {
            /* Beside a full pool of its own, a discrete card maps little of the host's memory. */
            double share = i == 2 && model->pool == POOL_DISCRETE ? fraction / 32 : fraction;
            total[i] = (uint64_t)model->metrics[pairs[i][0]].value;
            used[i] = (uint64_t)(share * (double)total[i]);
            sample_memory(sample, pairs[i][0], total[i], pairs[i][1], used[i]);
        }
    if (model->pool == POOL_UNIFIED)
        sample_memory(sample, METRIC_UNIFIED_TOTAL, total[0] + total[2], METRIC_UNIFIED_USED, used[0] + used[2]);
}

static double known_or_nan(const struct sample *sample, int metric)
{
    return metrics_valid(sample->valid, metric) ? (double)sample->values[metric].u64 : (double)NAN;
}

static void sample_processes(const struct sim_device *device, struct sample *sample, struct layout_process_table *table)
{
    sim_processes_fill(device->index, known_or_nan(sample, METRIC_VRAM_USED), known_or_nan(sample, METRIC_GTT_USED),
                       sample->values[METRIC_GFX_BUSY].f64, sample->mono_ns, table);
    uint64_t held = 0;
    for (uint32_t i = 0; i < table->count; i++)
        held += table->rows[i].vram;
    sample_u64(sample, METRIC_PROCESS_COUNT, table->count);
    if (metrics_valid(sample->valid, METRIC_VRAM_USED))
        sample_u64(sample, METRIC_PROCESS_VRAM, held);
}

static int sim_sample(struct provider_context *context, int index, struct sample *sample)
{
    struct sim_state *state = context->state;
    if (index < 0 || index >= state->count)
        return -ENODEV;
    const struct sim_device *device = &state->devices[index];
    if (state->fault != FAULT_NONE && device->index == state->fault_index) {
        sim_misbehave(state, sample);
        if (state->fault == FAULT_ERROR)
            return 0;
    }
    if (device->model->broken) {
        sample_broken(sample);
        return 0;
    }
    uint64_t mono_ns = context->io->operations->mono_ns(context->io);
    struct sim_moment now;
    sim_moment_at(device->model, state->load, device->index, mono_ns, &now);
    (void)overridden(state, OVERRIDE_GFX, &now.gfx_busy);
    (void)overridden(state, OVERRIDE_VRAM, &now.memory_fraction);
    if (overridden(state, OVERRIDE_POWER, &now.power))
        now.energy = now.power * (double)mono_ns / 1e9;
    sample->mono_ns = mono_ns;
    for (int metric = 0; metric < METRIC_COUNT; metric++)
        if (device->model->metrics[metric].known)
            sample_value(sample, metric, metric_now(state, device->model, &now, metric));
    sample_memories(device->model, now.memory_fraction, sample);
    sample_processes(&state->devices[index], sample, &state->devices[index].processes);
    return 0;
}

/* As often as their numbers change to the eye. */
static bool sim_processes(struct provider_context *context, int index, struct layout_process_table *table)
{
    struct sim_state *state = context->state;
    struct sim_device *device = index >= 0 && index < state->count ? &state->devices[index] : NULL;
    if (!device || device->processes.updated_ns < device->told_ns + PROCESSES_NS)
        return false;
    device->told_ns = device->processes.updated_ns;
    *table = device->processes;
    return true;
}

static void sim_stop(struct provider_context *context)
{
    free(context->state);
    context->state = NULL;
}

const struct provider provider_sim = {.name = "sim",
                                      .start = sim_start,
                                      .discover = sim_discover,
                                      .sample = sim_sample,
                                      .processes = sim_processes,
                                      .stop = sim_stop};
