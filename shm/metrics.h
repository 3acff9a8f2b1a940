/* Metrics, reasons and states as the rest of the project sees them; the rows are in metrics.def. */
#ifndef GPUTAP_SHM_METRICS_H
#define GPUTAP_SHM_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum metric_type { METRIC_F64, METRIC_U64, METRIC_I64 };
enum metric_semantics { METRIC_GAUGE, METRIC_COUNTER, METRIC_BITS };
enum metric_sets { METRIC_SET_NONE = 0, METRIC_SET_CAPSULE = 1, METRIC_SET_HISTORY = 2 };

enum metric_id {
#define GPU_METRIC(ID, ...) METRIC_##ID,
#include "shm/metrics.def"
    METRIC_COUNT
};

enum host_metric_id {
#define HOST_METRIC(ID, ...) HOST_METRIC_##ID,
#include "shm/metrics.def"
    HOST_METRIC_COUNT
};

/* Why a value is unknown. Values are part of the layout. */
enum reason {
    REASON_NONE = 0, /* it is known */
    REASON_NOT_SAMPLED = 1,
    REASON_NOT_SUPPORTED = 2,
    REASON_NO_PERMISSION = 3,
    REASON_ASLEEP = 4,
    REASON_LETTING_SLEEP = 5,
    REASON_ERROR = 6,
    REASON_IMPLAUSIBLE = 7,
    REASON_STALE = 8,
    REASON_COUNT
};

/* Values are part of the layout. */
enum device_state { DEVICE_OK = 0, DEVICE_ASLEEP = 1, DEVICE_SETTLING = 2, DEVICE_HUNG = 3, DEVICE_GONE = 4, DEVICE_STATE_COUNT };
enum device_pool { POOL_UNKNOWN = 0, POOL_DISCRETE = 1, POOL_UNIFIED = 2 };

enum quality_bits { QUALITY_SETTLING = 1, QUALITY_INCONSISTENT = 2, QUALITY_IMPLAUSIBLE = 4, QUALITY_ESTIMATED = 8 };
enum throttle_bits {
    THROTTLE_POWER = 1,
    THROTTLE_THERMAL = 2,
    THROTTLE_CURRENT = 4,
    THROTTLE_VOLTAGE = 8,
    THROTTLE_HARDWARE = 16,
    THROTTLE_OTHER = 32
};

struct metric_info {
    const char *id;   /* "GFX_BUSY" */
    const char *name; /* "gfx_busy" */
    enum metric_type type;
    const char *unit;
    enum metric_semantics semantics;
    int decimals;
    unsigned sets;
    const char *ladder;
    const char *help;
    int coarse; /* place in a coarse record, -1 where it has none */
};

/* A 64-bit word of a snapshot, read by the metric's type. */
union metric_value {
    uint64_t u64;
    int64_t i64;
    double f64;
};

/* One table: devices (host false) or host (host true). Never fails; `*count` is its length. */
const struct metric_info *metrics_table(bool host, int *count);

/* Place of a name in its table, or -1. */
int metrics_find(bool host, const char *name);

/* The value as a double; exact up to 2^53. */
double metrics_as_double(const struct metric_info *info, union metric_value value);
union metric_value metrics_from_double(const struct metric_info *info, double value);

const char *metrics_reason_text(unsigned reason);
const char *metrics_state_text(unsigned state);
const char *metrics_pool_text(unsigned pool);
const char *metrics_type_text(enum metric_type type);
const char *metrics_semantics_text(enum metric_semantics semantics);

static inline bool metrics_valid(const uint64_t valid[2], int metric) { return (valid[metric >> 6] >> (metric & 63)) & 1; }
static inline void metrics_set_valid(uint64_t valid[2], int metric) { valid[metric >> 6] |= UINT64_C(1) << (metric & 63); }
static inline void metrics_clear_valid(uint64_t valid[2], int metric) { valid[metric >> 6] &= ~(UINT64_C(1) << (metric & 63)); }

/* The table as JSON text for the SCHEMA region and for documentation. Returns the length without the final NUL; writes at most
 * `size` bytes. Call with size 0 to learn the length. */
size_t metrics_schema_json(char *out, size_t size);

/* FNV-1a of a byte string: names a schema, so that a client may cache what it parsed. */
uint64_t metrics_hash(const void *bytes, size_t length);

#endif
