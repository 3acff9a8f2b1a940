#include "broker/devices.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OFF_LADDER = 255, FALLS_ACCEPTED = 5 };

static uint8_t ladder_place(const char *ladder, const char *provider)
{
    size_t length = strlen(provider);
    uint8_t place = 0;
    for (const char *at = ladder; at; place++) {
        size_t rung = strcspn(at, ">");
        if (rung == length && memcmp(at, provider, length) == 0)
            return place;
        at = at[rung] ? at + rung + 1 : NULL;
    }
    return OFF_LADDER;
}

void devices_init(struct devices *devices, uint32_t capacity)
{
    int count;
    const struct metric_info *table = metrics_table(false, &count);
    memset(devices, 0, sizeof *devices);
    devices->capacity = capacity;
    devices->items = calloc(capacity, sizeof devices->items[0]);
    if (!devices->items)
        abort();
    for (int provider = 0; provider < provider_count && provider < DEVICES_MAX_SOURCES; provider++) {
        for (int metric = 0; metric < count; metric++)
            devices->rank[metric][provider] = ladder_place(table[metric].ladder, providers[provider]->name);
        devices->fact_rank[provider] = devices->rank[METRIC_VRAM_TOTAL][provider];
    }
}

void devices_free(struct devices *devices)
{
    free(devices->items);
    memset(devices, 0, sizeof *devices);
}

struct device *devices_find(const struct devices *devices, const char *id)
{
    for (uint32_t i = 0; i < devices->count; i++)
        if (strncmp(devices->items[i].id, id, sizeof devices->items[i].id) == 0)
            return &devices->items[i];
    return NULL;
}

struct device *devices_add(struct devices *devices, const char *id)
{
    if (devices->count >= devices->capacity)
        return NULL;
    struct device *device = &devices->items[devices->count++];
    memset(device, 0, sizeof *device);
    provider_text(device->id, sizeof device->id, id);
    device->generation = 1;
    return device;
}

int devices_compare_ids(const void *a, const void *b)
{
    const char *left = ((const struct device *)a)->id, *right = ((const struct device *)b)->id;
    size_t left_head = strlen(left), right_head = strlen(right);
    while (left_head > 0 && isdigit((unsigned char)left[left_head - 1]))
        left_head--;
    while (right_head > 0 && isdigit((unsigned char)right[right_head - 1]))
        right_head--;
    if (left_head == right_head && strncmp(left, right, left_head) == 0) {
        unsigned long long l = strtoull(left + left_head, NULL, 10), r = strtoull(right + right_head, NULL, 10);
        return (l > r) - (l < r);
    }
    return strcmp(left, right);
}

void devices_sort(struct devices *devices) { qsort(devices->items, devices->count, sizeof devices->items[0], devices_compare_ids); }

void devices_take_facts(struct device *device, int provider, const struct layout_device *facts)
{
    struct source *source = &device->sources[provider];
    if (device->gone || (source->present && facts->generation > source->facts.generation)) {
        device->generation++;
        memset(device->last_known, 0, sizeof device->last_known);
        device->gone = false;
    }
    source->present = true;
    source->gone = 0;
    source->facts = *facts;
}

static bool listed(const char *id, const char (*ids)[48], int count)
{
    for (int i = 0; i < count; i++)
        if (strncmp(ids[i], id, 48) == 0)
            return true;
    return false;
}

static bool any_present(const struct device *device)
{
    for (int i = 0; i < DEVICES_MAX_SOURCES; i++)
        if (device->sources[i].present)
            return true;
    return false;
}

void devices_take_list(struct devices *devices, int provider, const char *only, const char (*ids)[48], int count)
{
    for (uint32_t i = 0; i < devices->count; i++) {
        struct device *device = &devices->items[i];
        struct source *source = &device->sources[provider];
        bool own_worker = only && only[0];
        /* A device that hung is missing from its provider's main list on purpose. */
        bool concerned = own_worker ? strncmp(device->id, only, sizeof device->id) == 0 : !source->isolated;
        if (!source->present || !concerned || listed(device->id, ids, count))
            continue;
        source->present = source->sampled = false;
        device->gone = !any_present(device);
    }
}

void devices_take_sample(struct device *device, int provider, int gone, const struct sample *sample)
{
    struct source *source = &device->sources[provider];
    source->gone = gone;
    source->hung = false;
    source->sampled = true;
    source->sample = *sample;
    if (source->sample.state >= DEVICE_STATE_COUNT)
        source->sample.state = DEVICE_OK;
}

void devices_take_hung(struct device *device, int provider)
{
    device->sources[provider].hung = device->sources[provider].isolated = true;
}

/* A field is taken from the best provider that fills it. */
#define TAKE_TEXT(field)                                                                                                           \
    do {                                                                                                                           \
        if (!out->field[0] && text_ok(from->field, sizeof from->field))                                                            \
            memcpy(out->field, from->field, sizeof out->field);                                                                    \
    } while (0)
#define TAKE_NUMBER(field, unset)                                                                                                  \
    do {                                                                                                                           \
        if (out->field unset)                                                                                                      \
            out->field = from->field;                                                                                              \
    } while (0)

static bool text_ok(const char *field, size_t size) { return field[0] && memchr(field, '\0', size); }

static void take_facts(struct layout_device *out, const struct layout_device *from)
{
    TAKE_TEXT(pci);
    TAKE_TEXT(uuid);
    TAKE_TEXT(vendor);
    TAKE_TEXT(name);
    TAKE_TEXT(driver);
    TAKE_TEXT(driver_version);
    TAKE_TEXT(arch);
    TAKE_TEXT(vram_type);
    TAKE_NUMBER(vendor_id, == 0);
    TAKE_NUMBER(device_id, == 0);
    TAKE_NUMBER(subvendor_id, == 0);
    TAKE_NUMBER(subdevice_id, == 0);
    TAKE_NUMBER(revision, == 0);
    TAKE_NUMBER(pool, == POOL_UNKNOWN);
    TAKE_NUMBER(simulated, == 0);
    TAKE_NUMBER(compute_units, == 0);
    TAKE_NUMBER(vram_bus_bits, == 0);
    TAKE_NUMBER(kfd_index, < 0);
    TAKE_NUMBER(nvml_index, < 0);
    if (!(out->tgp > 0))
        out->tgp = from->tgp;
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (!(out->limits[i] > 0))
            out->limits[i] = from->limits[i];
}

/* Present providers, best first. */
static int by_rank(const struct devices *devices, const struct device *device, int order[DEVICES_MAX_SOURCES])
{
    int count = 0;
    for (int rank = 0; rank <= OFF_LADDER; rank++)
        for (int i = 0; i < provider_count && i < DEVICES_MAX_SOURCES; i++)
            if (device->sources[i].present && devices->fact_rank[i] == rank)
                order[count++] = i;
    return count;
}

static void merge_facts(const struct devices *devices, const struct device *device, struct layout_device *out)
{
    int order[DEVICES_MAX_SOURCES];
    int count = by_rank(devices, device, order);
    memset(out, 0, sizeof *out);
    out->kfd_index = out->nvml_index = -1;
    memcpy(out->id, device->id, sizeof out->id);
    for (int i = 0; i < count; i++)
        take_facts(out, &device->sources[order[i]].facts);
    out->generation = device->generation;
    if (count == 0) { /* gone: what it was stays readable */
        *out = device->facts;
        out->generation = device->generation;
    }
}

/* A source that does not know the device itself is heard on its state and time only where there is no other. */
static bool stands_aside(const struct device *device, int provider)
{
    for (int i = 0; providers[provider]->aside && i < provider_count && i < DEVICES_MAX_SOURCES; i++)
        if (device->sources[i].present && !providers[i]->aside)
            return true;
    return false;
}

static uint32_t merge_state(const struct devices *devices, const struct device *device)
{
    int order[DEVICES_MAX_SOURCES];
    int count = by_rank(devices, device, order);
    uint32_t state = DEVICE_OK;
    bool known = false;
    if (count == 0)
        return DEVICE_GONE;
    for (int i = 0; i < count; i++) {
        const struct source *source = &device->sources[order[i]];
        if (stands_aside(device, order[i]))
            continue;
        if (source->hung)
            return DEVICE_HUNG;
        if (source->gone)
            return DEVICE_GONE;
        if (!known && source->sampled) {
            state = source->sample.state;
            known = true;
        }
    }
    return state;
}

static bool finite_word(const struct metric_info *info, union metric_value value)
{
    return info->type != METRIC_F64 || isfinite(value.f64);
}

/* What is asked for every metric of a merge: who lists the device, and whose sample is too old. */
struct rungs {
    int providers[DEVICES_MAX_SOURCES];
    bool stale[DEVICES_MAX_SOURCES];
    int count;
};

static void find_rungs(const struct device *device, uint64_t now_ns, uint64_t stale_ns, struct rungs *out)
{
    out->count = 0;
    for (int i = 0; i < provider_count && i < DEVICES_MAX_SOURCES; i++) {
        const struct source *from = &device->sources[i];
        if (!from->present)
            continue;
        out->providers[out->count] = i;
        out->stale[out->count++] = !from->sampled || (now_ns > from->sample.mono_ns && now_ns - from->sample.mono_ns > stale_ns);
    }
}

/* The highest rung that knows the metric; `reason` and `source` are set either way. */
static bool climb(const struct devices *devices, const struct device *device, const struct rungs *rungs,
                  const struct metric_info *info, int metric, union metric_value *value, uint8_t *reason, uint8_t *source)
{
    int best = -1, best_reason_rank = OFF_LADDER;
    bool best_informed = false;
    *reason = REASON_NOT_SUPPORTED;
    *source = OFF_LADDER;
    for (int rung = 0; rung < rungs->count; rung++) {
        int i = rungs->providers[rung];
        const struct source *from = &device->sources[i];
        int rank = devices->rank[metric][i];
        if (rank == OFF_LADDER)
            continue;
        bool stale = rungs->stale[rung];
        bool known = !stale && metrics_valid(from->sample.valid, metric) && finite_word(info, from->sample.values[metric]);
        if (known) {
            if (best < 0 || rank < devices->rank[metric][best])
                best = i;
            continue;
        }
        uint8_t why = !from->sampled ? (uint8_t)(from->hung ? REASON_STALE : REASON_NOT_SAMPLED)
                      : stale        ? (uint8_t)REASON_STALE
                                     : from->sample.reasons[metric];
        bool broken = !stale && metrics_valid(from->sample.valid, metric); /* claims to know, but it is no number */
        if (broken || why == REASON_NONE || why >= REASON_COUNT)
            why = REASON_ERROR;
        /* "Not supported" is the answer of every provider that never knows it: one that says more is heard before. */
        bool informed = why != REASON_NOT_SUPPORTED;
        if ((informed && !best_informed) || (informed == best_informed && rank < best_reason_rank)) {
            *reason = why;
            best_reason_rank = rank;
            best_informed = informed;
        }
    }
    if (best < 0)
        return false;
    *value = device->sources[best].sample.values[metric];
    *reason = REASON_NONE;
    *source = (uint8_t)best;
    return true;
}

/* A counter that falls is dropped; if it stays below, the source has been reset, which is a new generation. */
static bool counter_sound(struct device *device, const struct metric_info *info, int metric, union metric_value value)
{
    bool fell =
        metrics_valid(device->last_known, metric) && metrics_as_double(info, value) < metrics_as_double(info, device->last[metric]);
    if (fell && ++device->falls[metric] < FALLS_ACCEPTED)
        return false;
    if (fell)
        device->generation++;
    device->falls[metric] = 0;
    device->last[metric] = value;
    metrics_set_valid(device->last_known, metric);
    return true;
}

static bool counts_processes(int metric)
{
    return metric == METRIC_PROCESS_COUNT || metric == METRIC_PROCESS_VRAM || metric == METRIC_EXTERNAL_VRAM ||
           metric == METRIC_QUALITY;
}

/* Doubts of a source count unless all that it knows beside processes was taken from better ones. */
static bool doubts_count(const struct device *device, const struct layout_device *facts, int provider)
{
    bool knows = false;
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        if (counts_processes(metric) || !metrics_valid(device->sources[provider].sample.valid, metric))
            continue;
        if (facts->sources[metric] == provider)
            return true;
        knows = true;
    }
    return !knows;
}

/* What is in use and no known process holds. */
static void merge_external(struct merged *merged, struct layout_device *facts)
{
    uint64_t used = merged->values[METRIC_VRAM_USED].u64, held = merged->values[METRIC_PROCESS_VRAM].u64;
    if (!metrics_valid(merged->valid, METRIC_VRAM_USED) || !metrics_valid(merged->valid, METRIC_PROCESS_VRAM) ||
        metrics_valid(merged->valid, METRIC_EXTERNAL_VRAM))
        return;
    merged->values[METRIC_EXTERNAL_VRAM].u64 = used > held ? used - held : 0;
    metrics_set_valid(merged->valid, METRIC_EXTERNAL_VRAM);
    facts->reasons[METRIC_EXTERNAL_VRAM] = REASON_NONE;
    facts->sources[METRIC_EXTERNAL_VRAM] = facts->sources[METRIC_PROCESS_VRAM];
}

static void merge_quality(struct merged *merged, const struct device *device, const struct layout_device *facts, uint64_t now_ns,
                          uint64_t stale_ns, uint64_t extra)
{
    if (!metrics_valid(merged->valid, METRIC_QUALITY))
        return;
    uint64_t bits = extra;
    for (int i = 0; i < DEVICES_MAX_SOURCES; i++) {
        const struct source *from = &device->sources[i];
        bool fresh = from->present && from->sampled && now_ns <= from->sample.mono_ns + stale_ns;
        if (fresh && metrics_valid(from->sample.valid, METRIC_QUALITY) && doubts_count(device, facts, i))
            bits |= from->sample.values[METRIC_QUALITY].u64;
    }
    merged->values[METRIC_QUALITY].u64 = bits;
}

bool devices_merge(struct devices *devices, struct device *device, uint64_t now_ns, uint64_t stale_ns, struct merged *merged)
{
    struct layout_device facts;
    struct rungs rungs;
    uint64_t dropped = 0;
    int count;
    const struct metric_info *table = metrics_table(false, &count);
    find_rungs(device, now_ns, stale_ns, &rungs);
    memset(merged, 0, sizeof *merged);
    merge_facts(devices, device, &facts);
    facts.state = merged->state = merge_state(devices, device);
    for (int metric = 0; metric < count; metric++) {
        uint8_t *reason = &facts.reasons[metric];
        union metric_value value;
        bool known = climb(devices, device, &rungs, &table[metric], metric, &value, reason, &facts.sources[metric]);
        if (known && table[metric].semantics == METRIC_COUNTER && !counter_sound(device, &table[metric], metric, value)) {
            known = false;
            *reason = REASON_IMPLAUSIBLE;
            dropped = QUALITY_IMPLAUSIBLE;
        }
        if (!known)
            continue;
        merged->values[metric] = value;
        metrics_set_valid(merged->valid, metric);
    }
    for (int i = 0; i < DEVICES_MAX_SOURCES; i++) {
        const struct source *source = &device->sources[i];
        if (!source->present || !source->sampled)
            continue;
        merged->cost_ns += source->sample.cost_ns;
        if (!stands_aside(device, i) && source->sample.mono_ns > merged->mono_ns && source->sample.mono_ns <= now_ns)
            merged->mono_ns = source->sample.mono_ns;
    }
    merge_external(merged, &facts);
    merge_quality(merged, device, &facts, now_ns, stale_ns, dropped);
    facts.generation = device->generation;
    bool changed = memcmp(&facts, &device->facts, offsetof(struct layout_device, reasons)) != 0;
    device->facts = facts;
    return changed;
}
