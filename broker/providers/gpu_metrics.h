/* The binary table `gpu_metrics` that amdgpu's firmware fills, in every version that is known. No I/O.
 *
 * A version is a table of rows (gpu_metrics_tables.c): where a field lies, how wide it is, what one of it is worth. All versions go
 * through one decoder. A field is unknown where it is all ones at its own width, or zero where zero means "none". */
#ifndef GPUTAP_BROKER_PROVIDERS_GPU_METRICS_H
#define GPUTAP_BROKER_PROVIDERS_GPU_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpu_metrics_field {
    GM_TEMPERATURE_EDGE, /* degrees C; on APUs that of the graphics part */
    GM_TEMPERATURE_HOTSPOT,
    GM_TEMPERATURE_MEMORY,
    GM_TEMPERATURE_SOC,
    GM_TEMPERATURE_SKIN,
    GM_GFX_BUSY, /* % */
    GM_MEMORY_BUSY,
    GM_MEDIA_BUSY,
    GM_NPU_BUSY,
    GM_POWER_NOW,     /* W, of the socket */
    GM_POWER_AVERAGE, /* W, of the socket */
    GM_POWER_CPU,     /* W, parts of an APU */
    GM_POWER_SOC,
    GM_POWER_GFX,
    GM_POWER_APU,
    GM_POWER_ALL_CORES,
    GM_ENERGY,    /* J, a counter */
    GM_GFX_CLOCK, /* MHz, now */
    GM_MEMORY_CLOCK,
    GM_SOC_CLOCK,
    GM_MEDIA_CLOCK,
    GM_GFX_CLOCK_AVERAGE, /* MHz, filtered by the firmware */
    GM_MEMORY_CLOCK_AVERAGE,
    GM_SOC_CLOCK_AVERAGE,
    GM_MEDIA_CLOCK_AVERAGE,
    GM_FABRIC_CLOCK,
    GM_FAN_RPM,
    GM_VOLTAGE_GFX, /* mV */
    GM_LINK_WIDTH,  /* lanes */
    GM_LINK_SPEED,  /* GT/s */
    GM_REPLAYS,     /* a counter */
    GM_DRAM_READ,   /* B/s */
    GM_DRAM_WRITE,
    GM_DRIVER_CLOCK,   /* ns, when the driver took the table */
    GM_THROTTLE,       /* bits that mean the same for every ASIC (amdgpu's indep_throttle_status) */
    GM_THROTTLE_ASIC,  /* bits that mean something else for every ASIC */
    GM_THROTTLE_TIMES, /* how often each of enum gpu_metrics_throttler has throttled: counters, from here on */
    GM_THROTTLE_TIMES_END = GM_THROTTLE_TIMES + 8,
    GM_FIELD_COUNT = GM_THROTTLE_TIMES_END
};

/* Who throttles, of the versions that count. The order is that of the fields from GM_THROTTLE_TIMES on. */
enum gpu_metrics_throttler {
    GM_BY_PROCHOT,
    GM_BY_POWER,
    GM_BY_FAST_POWER,
    GM_BY_SLOW_POWER,
    GM_BY_HEAT,
    GM_BY_OTHER_HEAT, /* of voltage regulators, on APUs of the SoC */
    GM_BY_MEMORY_HEAT,
    GM_BY_CPU_HEAT
};

enum { GM_MOST_PARTITIONS = 8, GM_MOST_BYTES = 8192 };

/* A count of GM_ENERGY: 2^-16 J, which drivers round to 15.3 microjoules (amdsmi issue 38). */
#define GM_JOULE (1.0 / 65536)

struct gpu_metrics {
    unsigned format, content; /* 1.3 is format 1, content 3 */
    bool known[GM_FIELD_COUNT];
    double values[GM_FIELD_COUNT];
    uint64_t bits[GM_FIELD_COUNT];                   /* of bits and counters, whole */
    unsigned partitions;                             /* 0 = not told */
    double partition_busy[GM_MOST_PARTITIONS];       /* %, NaN = unknown */
    double partition_media_busy[GM_MOST_PARTITIONS]; /* likewise */
};

/* Decodes `size` bytes as read from the file, which may be padded. `smc_firmware` is the version in fw_version/smc_fw_version, 0 =
 * unknown. 0, or -EPROTO for bytes that are no such table, -EOPNOTSUPP for a version (or a size of one) that is not known: a
 * stranger's offsets are never guessed. */
int gpu_metrics_parse(const void *bytes, size_t size, uint32_t smc_firmware, struct gpu_metrics *out);

/* How many bytes the table has, seen from its first `got`; while that cannot be said, more than those. For io_file_bytes. */
size_t gpu_metrics_size(const void *bytes, size_t got);

/* --- the tables ------------------------------------------------------------------------------------------------------- */

enum gpu_metrics_type { GM_U8, GM_S8, GM_U16, GM_S16, GM_U32, GM_S32, GM_U64, GM_S64, GM_TYPE_COUNT };
enum gpu_metrics_rule {
    GM_PLAIN,
    GM_ZERO_UNKNOWN, /* the firmware leaves zero where it measures nothing */
    GM_HIGHEST       /* of several instances the highest, and only where the field is not known yet */
};

struct gpu_metrics_row {
    uint8_t field;
    uint8_t type;
    uint8_t rule;
    uint8_t count; /* instances side by side */
    uint16_t offset;
    double worth; /* of one */
};

/* Per-partition records, one after the other. */
struct gpu_metrics_partitions {
    uint16_t count_at, first, stride; /* first 0 = this version has none */
    uint16_t gfx_count, media_at, media_count;
};

struct gpu_metrics_version {
    uint8_t format, content;
    uint16_t size;
    const struct gpu_metrics_row *groups[3]; /* each ends with a row of count 0 */
    struct gpu_metrics_partitions partitions;
};

extern const struct gpu_metrics_version gpu_metrics_versions[];
extern const int gpu_metrics_version_count;
/* Version 1.9 names its fields: the row of an attribute's id, or NULL. Its offset and type are the record's. */
const struct gpu_metrics_row *gpu_metrics_attribute(unsigned id);

/* One field of a row, `at` its first byte. Used for tables and for the list of 1.9. */
void gpu_metrics_take(const struct gpu_metrics_row *row, const unsigned char *at, struct gpu_metrics *out);
size_t gpu_metrics_width(enum gpu_metrics_type type);
/* Version 1.9, a list of named attributes (gpu_metrics_list.c). `size` is the table's own. 0 or -EPROTO. */
int gpu_metrics_parse_list(const unsigned char *bytes, size_t size, struct gpu_metrics *out);

#endif
