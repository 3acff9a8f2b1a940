#include "shm/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shm/layout.h"

#define F64 METRIC_F64
#define U64 METRIC_U64
#define I64 METRIC_I64
#define GAUGE METRIC_GAUGE
#define COUNTER METRIC_COUNTER
#define BITS METRIC_BITS
#define NONE METRIC_SET_NONE
#define CAPSULE METRIC_SET_CAPSULE
#define HISTORY METRIC_SET_HISTORY

/* The place in a coarse record counts the HISTORY rows before: a row that has none gives its number to the next. */
#define COARSE_PLACE(ID, name, type, unit, semantics, decimals, sets, ...)                                                         \
    COARSE_##ID, COARSE_END_##ID = COARSE_##ID - (((sets)&HISTORY) == 0),
enum device_coarse {
#define GPU_METRIC COARSE_PLACE
#include "shm/metrics.def"
    DEVICE_COARSE_COUNT
};
enum host_coarse {
#define HOST_METRIC COARSE_PLACE
#include "shm/metrics.def"
    HOST_COARSE_COUNT
};
_Static_assert((int)DEVICE_COARSE_COUNT <= LAYOUT_COARSE_SLOTS && (int)HOST_COARSE_COUNT <= LAYOUT_COARSE_SLOTS, "coarse slots");

#define ROW(ID, name, type, unit, semantics, decimals, sets, ladder, help)                                                         \
    {#ID, #name, type, unit, semantics, decimals, sets, ladder, help, ((sets)&HISTORY) ? (int)COARSE_##ID : -1},

static const struct metric_info device_table[METRIC_COUNT] = {
#define GPU_METRIC ROW
#include "shm/metrics.def"
};
static const struct metric_info host_table[HOST_METRIC_COUNT] = {
#define HOST_METRIC ROW
#include "shm/metrics.def"
};

static const char *const reason_texts[REASON_COUNT] = {
    [REASON_NONE] = "known",
    [REASON_NOT_SAMPLED] = "not sampled yet",
    [REASON_NOT_SUPPORTED] = "not supported",
    [REASON_NO_PERMISSION] = "no permission",
    [REASON_ASLEEP] = "asleep",
    [REASON_LETTING_SLEEP] = "letting sleep",
    [REASON_ERROR] = "error",
    [REASON_IMPLAUSIBLE] = "implausible",
    [REASON_STALE] = "stale",
};
static const char *const state_texts[DEVICE_STATE_COUNT] = {"ok", "asleep", "settling", "hung", "gone"};
static const char *const pool_texts[] = {"unknown", "discrete", "unified"};
static const char *const type_texts[] = {"f64", "u64", "i64"};
static const char *const semantics_texts[] = {"gauge", "counter", "bits"};

const struct metric_info *metrics_table(bool host, int *count)
{
    *count = host ? (int)HOST_METRIC_COUNT : (int)METRIC_COUNT;
    return host ? host_table : device_table;
}

int metrics_find(bool host, const char *name)
{
    int count;
    const struct metric_info *table = metrics_table(host, &count);
    for (int i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

double metrics_as_double(const struct metric_info *info, union metric_value value)
{
    switch (info->type) {
    case METRIC_U64: return (double)value.u64;
    case METRIC_I64: return (double)value.i64;
    default: return value.f64;
    }
}

union metric_value metrics_from_double(const struct metric_info *info, double value)
{
    union metric_value word = {.f64 = value};
    if (info->type == METRIC_U64)
        word.u64 = value >= 18446744073709549568.0 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
    else if (info->type == METRIC_I64)
        word.i64 = value >= 9223372036854774784.0 ? INT64_MAX : value <= -9223372036854774784.0 ? INT64_MIN : (int64_t)value;
    return word;
}

static const char *text_at(const char *const *texts, size_t count, size_t index)
{
    return index < count ? texts[index] : "unknown";
}

const char *metrics_reason_text(unsigned reason) { return text_at(reason_texts, REASON_COUNT, reason); }
const char *metrics_state_text(unsigned state) { return text_at(state_texts, DEVICE_STATE_COUNT, state); }
const char *metrics_pool_text(unsigned pool) { return text_at(pool_texts, 3, pool); }
const char *metrics_type_text(enum metric_type type) { return text_at(type_texts, 3, (size_t)type); }
const char *metrics_semantics_text(enum metric_semantics semantics) { return text_at(semantics_texts, 3, (size_t)semantics); }

struct text_sink {
    char *out;
    size_t size;
    size_t length;
};

static void put(struct text_sink *sink, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = sink->length < sink->size ? sink->size - sink->length : 0;
    int wrote = vsnprintf(room ? sink->out + sink->length : NULL, room, format, args);
    va_end(args);
    if (wrote > 0)
        sink->length += (size_t)wrote;
}

/* Table texts hold no character that JSON would escape; a unit test parses the result. */
static void put_table(struct text_sink *sink, const char *key, bool host)
{
    int count;
    const struct metric_info *table = metrics_table(host, &count);
    put(sink, "\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        const struct metric_info *m = &table[i];
        put(sink, "%s{\"name\":\"%s\",\"index\":%d,\"type\":\"%s\",\"unit\":\"%s\",\"semantics\":\"%s\",\"decimals\":%d,",
            i ? "," : "", m->name, i, metrics_type_text(m->type), m->unit, metrics_semantics_text(m->semantics), m->decimals);
        put(sink, "\"capsule\":%s,\"coarse\":%d,\"help\":\"%s\"}", m->sets & METRIC_SET_CAPSULE ? "true" : "false", m->coarse,
            m->help);
    }
    put(sink, "]");
}

size_t metrics_schema_json(char *out, size_t size)
{
    struct text_sink sink = {out, size, 0};
    put(&sink,
        "{\"abi\":[%d,%d],\"metric_slots\":%d,\"sums\":[\"energy\",\"busy\",\"throttled\",\"sampled\",\"vram\"],\"reasons\":[",
        LAYOUT_ABI_MAJOR, LAYOUT_ABI_MINOR, LAYOUT_METRIC_SLOTS);
    for (unsigned i = 0; i < REASON_COUNT; i++)
        put(&sink, "%s\"%s\"", i ? "," : "", metrics_reason_text(i));
    put(&sink, "],\"states\":[");
    for (unsigned i = 0; i < DEVICE_STATE_COUNT; i++)
        put(&sink, "%s\"%s\"", i ? "," : "", metrics_state_text(i));
    put(&sink, "],");
    put_table(&sink, "gpu", false);
    put(&sink, ",");
    put_table(&sink, "host", true);
    put(&sink, "}\n");
    return sink.length;
}

uint64_t metrics_hash(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}
