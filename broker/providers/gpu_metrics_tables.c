/* Where each version keeps what. Offsets are those of the structs in amdgpu's kgd_pp_interface.h, laid out by a C compiler for a
 * little-endian machine with natural alignment; sizes are those of the whole structs. */
#include "broker/providers/gpu_metrics.h"

#define PLAIN(field, type, offset, worth)                                                                                          \
    {                                                                                                                              \
        field, type, GM_PLAIN, 1, offset, worth                                                                                    \
    }
#define NONZERO(field, type, offset, worth)                                                                                        \
    {                                                                                                                              \
        field, type, GM_ZERO_UNKNOWN, 1, offset, worth                                                                             \
    }
#define MEAN(field, type, offset, count, worth)                                                                                    \
    {                                                                                                                              \
        field, type, GM_PLAIN, count, offset, worth                                                                                \
    }
#define HIGHEST(field, type, offset, count, worth)                                                                                 \
    {                                                                                                                              \
        field, type, GM_HIGHEST, count, offset, worth                                                                              \
    }
#define END                                                                                                                        \
    {                                                                                                                              \
        0, 0, 0, 0, 0, 0                                                                                                           \
    }

#define CENTI 0.01
#define MILLI 0.001
#define MEGA 1e6
#define TIMES(throttler) (GM_THROTTLE_TIMES + (throttler))

/* 1.0: Vega 12 and 20. Its energy has no documented unit. Width and speed of the link are bytes. */
static const struct gpu_metrics_row rows_1_0[] = {PLAIN(GM_DRIVER_CLOCK, GM_U64, 8, 1),
                                                  PLAIN(GM_TEMPERATURE_EDGE, GM_U16, 16, 1),
                                                  PLAIN(GM_TEMPERATURE_HOTSPOT, GM_U16, 18, 1),
                                                  PLAIN(GM_TEMPERATURE_MEMORY, GM_U16, 20, 1),
                                                  NONZERO(GM_TEMPERATURE_SOC, GM_U16, 24, 1),
                                                  PLAIN(GM_GFX_BUSY, GM_U16, 28, 1),
                                                  PLAIN(GM_MEMORY_BUSY, GM_U16, 30, 1),
                                                  PLAIN(GM_MEDIA_BUSY, GM_U16, 32, 1),
                                                  PLAIN(GM_POWER_AVERAGE, GM_U16, 34, 1),
                                                  PLAIN(GM_GFX_CLOCK_AVERAGE, GM_U16, 40, 1),
                                                  PLAIN(GM_SOC_CLOCK_AVERAGE, GM_U16, 42, 1),
                                                  PLAIN(GM_MEMORY_CLOCK_AVERAGE, GM_U16, 44, 1),
                                                  PLAIN(GM_MEDIA_CLOCK_AVERAGE, GM_U16, 46, 1),
                                                  PLAIN(GM_GFX_CLOCK, GM_U16, 54, 1),
                                                  PLAIN(GM_SOC_CLOCK, GM_U16, 56, 1),
                                                  PLAIN(GM_MEMORY_CLOCK, GM_U16, 58, 1),
                                                  PLAIN(GM_MEDIA_CLOCK, GM_U16, 60, 1),
                                                  PLAIN(GM_THROTTLE_ASIC, GM_U32, 68, 1),
                                                  PLAIN(GM_FAN_RPM, GM_U16, 72, 1),
                                                  NONZERO(GM_LINK_WIDTH, GM_U8, 74, 1),
                                                  NONZERO(GM_LINK_SPEED, GM_U8, 75, 0.1),
                                                  END};

/* 1.1 to 1.3: Navi, MI100 (1.1), MI200 (1.2), RDNA 2 to 4 (1.3). */
static const struct gpu_metrics_row rows_1_1[] = {PLAIN(GM_TEMPERATURE_EDGE, GM_U16, 4, 1),
                                                  PLAIN(GM_TEMPERATURE_HOTSPOT, GM_U16, 6, 1),
                                                  PLAIN(GM_TEMPERATURE_MEMORY, GM_U16, 8, 1),
                                                  NONZERO(GM_TEMPERATURE_SOC, GM_U16, 12, 1),
                                                  PLAIN(GM_GFX_BUSY, GM_U16, 16, 1),
                                                  PLAIN(GM_MEMORY_BUSY, GM_U16, 18, 1),
                                                  PLAIN(GM_MEDIA_BUSY, GM_U16, 20, 1),
                                                  PLAIN(GM_POWER_AVERAGE, GM_U16, 22, 1),
                                                  NONZERO(GM_ENERGY, GM_U64, 24, GM_JOULE),
                                                  PLAIN(GM_DRIVER_CLOCK, GM_U64, 32, 1),
                                                  PLAIN(GM_GFX_CLOCK_AVERAGE, GM_U16, 40, 1),
                                                  PLAIN(GM_SOC_CLOCK_AVERAGE, GM_U16, 42, 1),
                                                  PLAIN(GM_MEMORY_CLOCK_AVERAGE, GM_U16, 44, 1),
                                                  PLAIN(GM_MEDIA_CLOCK_AVERAGE, GM_U16, 46, 1),
                                                  PLAIN(GM_GFX_CLOCK, GM_U16, 54, 1),
                                                  PLAIN(GM_SOC_CLOCK, GM_U16, 56, 1),
                                                  PLAIN(GM_MEMORY_CLOCK, GM_U16, 58, 1),
                                                  PLAIN(GM_MEDIA_CLOCK, GM_U16, 60, 1),
                                                  PLAIN(GM_THROTTLE_ASIC, GM_U32, 68, 1),
                                                  PLAIN(GM_FAN_RPM, GM_U16, 72, 1),
                                                  NONZERO(GM_LINK_WIDTH, GM_U16, 74, 1),
                                                  NONZERO(GM_LINK_SPEED, GM_U16, 76, 0.1),
                                                  END};
/* Where temperature_mem is unknown, the stacks tell. */
static const struct gpu_metrics_row rows_hbm[] = {HIGHEST(GM_TEMPERATURE_MEMORY, GM_U16, 88, 4, 1), END};
static const struct gpu_metrics_row rows_1_3[] = {NONZERO(GM_VOLTAGE_GFX, GM_U16, 106, 1), /* 0 while the graphics part is off */
                                                  PLAIN(GM_THROTTLE, GM_U64, 112, 1), END};

/* 1.4 and 1.5: early MI300. */
static const struct gpu_metrics_row rows_mi300_head[] = {PLAIN(GM_TEMPERATURE_HOTSPOT, GM_U16, 4, 1),
                                                         PLAIN(GM_TEMPERATURE_MEMORY, GM_U16, 6, 1),
                                                         NONZERO(GM_TEMPERATURE_SOC, GM_U16, 8, 1),
                                                         PLAIN(GM_POWER_NOW, GM_U16, 10, 1),
                                                         PLAIN(GM_GFX_BUSY, GM_U16, 12, 1),
                                                         PLAIN(GM_MEMORY_BUSY, GM_U16, 14, 1),
                                                         END};
static const struct gpu_metrics_row rows_1_4[] = {
    MEAN(GM_MEDIA_BUSY, GM_U16, 16, 4, 1),   NONZERO(GM_ENERGY, GM_U64, 24, GM_JOULE), PLAIN(GM_DRIVER_CLOCK, GM_U64, 32, 1),
    PLAIN(GM_THROTTLE_ASIC, GM_U32, 40, 1),  NONZERO(GM_LINK_WIDTH, GM_U16, 48, 1),    NONZERO(GM_LINK_SPEED, GM_U16, 50, 0.1),
    PLAIN(GM_REPLAYS, GM_U64, 88, 1),        MEAN(GM_GFX_CLOCK, GM_U16, 240, 8, 1),    MEAN(GM_SOC_CLOCK, GM_U16, 256, 4, 1),
    MEAN(GM_MEDIA_CLOCK, GM_U16, 264, 4, 1), PLAIN(GM_MEMORY_CLOCK, GM_U16, 280, 1),   END};
static const struct gpu_metrics_row rows_1_5[] = {
    MEAN(GM_MEDIA_BUSY, GM_U16, 16, 4, 1),   NONZERO(GM_ENERGY, GM_U64, 88, GM_JOULE), PLAIN(GM_DRIVER_CLOCK, GM_U64, 96, 1),
    PLAIN(GM_THROTTLE_ASIC, GM_U32, 104, 1), NONZERO(GM_LINK_WIDTH, GM_U16, 112, 1),   NONZERO(GM_LINK_SPEED, GM_U16, 114, 0.1),
    PLAIN(GM_REPLAYS, GM_U64, 152, 1),       MEAN(GM_GFX_CLOCK, GM_U16, 312, 8, 1),    MEAN(GM_SOC_CLOCK, GM_U16, 328, 4, 1),
    MEAN(GM_MEDIA_CLOCK, GM_U16, 336, 4, 1), PLAIN(GM_MEMORY_CLOCK, GM_U16, 352, 1),   END};

/* 1.6: MI300X. 1.7 and 1.8: MI300X, MI325X, MI350, with mem_max_bandwidth before the energy. */
static const struct gpu_metrics_row rows_1_6[] = {NONZERO(GM_ENERGY, GM_U64, 16, GM_JOULE),
                                                  PLAIN(GM_DRIVER_CLOCK, GM_U64, 24, 1),
                                                  PLAIN(TIMES(GM_BY_PROCHOT), GM_U32, 36, 1),
                                                  PLAIN(TIMES(GM_BY_POWER), GM_U32, 40, 1),
                                                  PLAIN(TIMES(GM_BY_HEAT), GM_U32, 44, 1),
                                                  PLAIN(TIMES(GM_BY_OTHER_HEAT), GM_U32, 48, 1),
                                                  PLAIN(TIMES(GM_BY_MEMORY_HEAT), GM_U32, 52, 1),
                                                  NONZERO(GM_LINK_WIDTH, GM_U16, 60, 1),
                                                  NONZERO(GM_LINK_SPEED, GM_U16, 62, 0.1),
                                                  PLAIN(GM_REPLAYS, GM_U64, 104, 1),
                                                  MEAN(GM_GFX_CLOCK, GM_U16, 264, 8, 1),
                                                  MEAN(GM_SOC_CLOCK, GM_U16, 280, 4, 1),
                                                  MEAN(GM_MEDIA_CLOCK, GM_U16, 288, 4, 1),
                                                  PLAIN(GM_MEMORY_CLOCK, GM_U16, 304, 1),
                                                  END};
static const struct gpu_metrics_row rows_1_7[] = {NONZERO(GM_ENERGY, GM_U64, 24, GM_JOULE),
                                                  PLAIN(GM_DRIVER_CLOCK, GM_U64, 32, 1),
                                                  PLAIN(TIMES(GM_BY_PROCHOT), GM_U32, 44, 1),
                                                  PLAIN(TIMES(GM_BY_POWER), GM_U32, 48, 1),
                                                  PLAIN(TIMES(GM_BY_HEAT), GM_U32, 52, 1),
                                                  PLAIN(TIMES(GM_BY_OTHER_HEAT), GM_U32, 56, 1),
                                                  PLAIN(TIMES(GM_BY_MEMORY_HEAT), GM_U32, 60, 1),
                                                  NONZERO(GM_LINK_WIDTH, GM_U16, 68, 1),
                                                  NONZERO(GM_LINK_SPEED, GM_U16, 70, 0.1),
                                                  PLAIN(GM_REPLAYS, GM_U64, 112, 1),
                                                  MEAN(GM_GFX_CLOCK, GM_U16, 296, 8, 1),
                                                  MEAN(GM_SOC_CLOCK, GM_U16, 312, 4, 1),
                                                  MEAN(GM_MEDIA_CLOCK, GM_U16, 320, 4, 1),
                                                  PLAIN(GM_MEMORY_CLOCK, GM_U16, 336, 1),
                                                  END};

/* 2.x: APUs up to Phoenix, in hundredths and milliwatts. 2.0 has the driver's clock first, so that all else lies elsewhere. */
static const struct gpu_metrics_row rows_2_0[] = {
    PLAIN(GM_DRIVER_CLOCK, GM_U64, 8, 1),         PLAIN(GM_TEMPERATURE_EDGE, GM_U16, 16, CENTI),
    PLAIN(GM_TEMPERATURE_SOC, GM_U16, 18, CENTI), PLAIN(GM_GFX_BUSY, GM_U16, 40, CENTI),
    PLAIN(GM_MEDIA_BUSY, GM_U16, 42, CENTI),      PLAIN(GM_POWER_AVERAGE, GM_U16, 44, MILLI),
    PLAIN(GM_POWER_CPU, GM_U16, 46, MILLI),       PLAIN(GM_POWER_SOC, GM_U16, 48, MILLI),
    PLAIN(GM_POWER_GFX, GM_U16, 50, MILLI),       PLAIN(GM_GFX_CLOCK_AVERAGE, GM_U16, 68, 1),
    PLAIN(GM_SOC_CLOCK_AVERAGE, GM_U16, 70, 1),   PLAIN(GM_MEMORY_CLOCK_AVERAGE, GM_U16, 72, 1),
    PLAIN(GM_FABRIC_CLOCK, GM_U16, 74, 1),        PLAIN(GM_MEDIA_CLOCK_AVERAGE, GM_U16, 76, 1),
    PLAIN(GM_GFX_CLOCK, GM_U16, 80, 1),           PLAIN(GM_SOC_CLOCK, GM_U16, 82, 1),
    PLAIN(GM_MEMORY_CLOCK, GM_U16, 84, 1),        PLAIN(GM_MEDIA_CLOCK, GM_U16, 88, 1),
    PLAIN(GM_THROTTLE_ASIC, GM_U32, 112, 1),      END};
static const struct gpu_metrics_row rows_2_1[] = {
    PLAIN(GM_TEMPERATURE_EDGE, GM_U16, 4, CENTI), PLAIN(GM_TEMPERATURE_SOC, GM_U16, 6, CENTI),
    PLAIN(GM_GFX_BUSY, GM_U16, 28, CENTI),        PLAIN(GM_MEDIA_BUSY, GM_U16, 30, CENTI),
    PLAIN(GM_DRIVER_CLOCK, GM_U64, 32, 1),        PLAIN(GM_POWER_AVERAGE, GM_U16, 40, MILLI),
    PLAIN(GM_POWER_CPU, GM_U16, 42, MILLI),       PLAIN(GM_POWER_SOC, GM_U16, 44, MILLI),
    PLAIN(GM_POWER_GFX, GM_U16, 46, MILLI),       PLAIN(GM_GFX_CLOCK_AVERAGE, GM_U16, 64, 1),
    PLAIN(GM_SOC_CLOCK_AVERAGE, GM_U16, 66, 1),   PLAIN(GM_MEMORY_CLOCK_AVERAGE, GM_U16, 68, 1),
    PLAIN(GM_FABRIC_CLOCK, GM_U16, 70, 1),        PLAIN(GM_MEDIA_CLOCK_AVERAGE, GM_U16, 72, 1),
    PLAIN(GM_GFX_CLOCK, GM_U16, 76, 1),           PLAIN(GM_SOC_CLOCK, GM_U16, 78, 1),
    PLAIN(GM_MEMORY_CLOCK, GM_U16, 80, 1),        PLAIN(GM_MEDIA_CLOCK, GM_U16, 84, 1),
    PLAIN(GM_THROTTLE_ASIC, GM_U32, 108, 1),      END};
static const struct gpu_metrics_row rows_2_2[] = {PLAIN(GM_THROTTLE, GM_U64, 120, 1), END};
static const struct gpu_metrics_row rows_2_4[] = {PLAIN(GM_THROTTLE, GM_U64, 120, 1), NONZERO(GM_VOLTAGE_GFX, GM_U16, 156, 1), END};

/* 3.0: Strix and later. average_sys_power is left out: a real table had a negative number there. The video engine is told in
 * hundredths although the header says percent (smu_v14_0_0_ppt.c). All clocks are filtered ones. */
static const struct gpu_metrics_row rows_3_0[] = {
    PLAIN(GM_TEMPERATURE_EDGE, GM_U16, 4, CENTI),    PLAIN(GM_TEMPERATURE_SOC, GM_U16, 6, CENTI),
    NONZERO(GM_TEMPERATURE_SKIN, GM_U16, 40, CENTI), PLAIN(GM_GFX_BUSY, GM_U16, 42, 1),
    PLAIN(GM_MEDIA_BUSY, GM_U16, 44, CENTI),         MEAN(GM_NPU_BUSY, GM_U16, 46, 8, 1),
    PLAIN(GM_DRAM_READ, GM_U16, 94, MEGA),           PLAIN(GM_DRAM_WRITE, GM_U16, 96, MEGA),
    PLAIN(GM_DRIVER_CLOCK, GM_U64, 104, 1),          PLAIN(GM_POWER_AVERAGE, GM_U32, 112, MILLI),
    PLAIN(GM_POWER_APU, GM_U32, 120, MILLI),         PLAIN(GM_POWER_GFX, GM_U32, 124, MILLI),
    PLAIN(GM_POWER_ALL_CORES, GM_U32, 132, MILLI),   PLAIN(GM_GFX_CLOCK_AVERAGE, GM_U16, 174, 1),
    PLAIN(GM_SOC_CLOCK_AVERAGE, GM_U16, 176, 1),     PLAIN(GM_FABRIC_CLOCK, GM_U16, 182, 1),
    PLAIN(GM_MEDIA_CLOCK_AVERAGE, GM_U16, 184, 1),   PLAIN(GM_MEMORY_CLOCK_AVERAGE, GM_U16, 186, 1),
    PLAIN(TIMES(GM_BY_PROCHOT), GM_U32, 228, 1),     PLAIN(TIMES(GM_BY_POWER), GM_U32, 232, 1),
    PLAIN(TIMES(GM_BY_FAST_POWER), GM_U32, 236, 1),  PLAIN(TIMES(GM_BY_SLOW_POWER), GM_U32, 240, 1),
    PLAIN(TIMES(GM_BY_CPU_HEAT), GM_U32, 244, 1),    PLAIN(TIMES(GM_BY_HEAT), GM_U32, 248, 1),
    PLAIN(TIMES(GM_BY_OTHER_HEAT), GM_U32, 252, 1),  END};

/* An early 1.6 of 384 bytes was never shipped with a driver of its own: it is too short for this one, and so unknown. */
const struct gpu_metrics_version gpu_metrics_versions[] = {
    {1, 0, 80, {rows_1_0}, {0}},
    {1, 1, 96, {rows_1_1, rows_hbm}, {0}},
    {1, 2, 104, {rows_1_1, rows_hbm}, {0}},
    {1, 3, 120, {rows_1_1, rows_hbm, rows_1_3}, {0}},
    {1, 4, 288, {rows_mi300_head, rows_1_4}, {0}},
    {1, 5, 360, {rows_mi300_head, rows_1_5}, {0}},
    {1, 6, 1664, {rows_mi300_head, rows_1_6}, {306, 312, 168, 8, 32 + 64, 4}},
    {1, 7, 2208, {rows_mi300_head, rows_1_7}, {338, 344, 232, 8, 32 + 64, 4}},
    {1, 8, 3872, {rows_mi300_head, rows_1_7}, {338, 344, 440, 8, 32 + 80, 4}},
    {2, 0, 120, {rows_2_0}, {0}},
    {2, 1, 120, {rows_2_1}, {0}},
    {2, 2, 128, {rows_2_1, rows_2_2}, {0}},
    {2, 3, 152, {rows_2_1, rows_2_2}, {0}},
    {2, 4, 168, {rows_2_1, rows_2_4}, {0}},
    {3, 0, 264, {rows_3_0}, {0}},
};
const int gpu_metrics_version_count = sizeof gpu_metrics_versions / sizeof gpu_metrics_versions[0];

/* 1.9 (enum amdgpu_metrics_attr_id), by id. */
static const struct {
    uint8_t id;
    struct gpu_metrics_row row;
} attributes[] = {
    {0, PLAIN(GM_TEMPERATURE_HOTSPOT, 0, 0, 1)},
    {1, PLAIN(GM_TEMPERATURE_MEMORY, 0, 0, 1)},
    {2, NONZERO(GM_TEMPERATURE_SOC, 0, 0, 1)},
    {3, PLAIN(GM_POWER_NOW, 0, 0, 1)},
    {4, PLAIN(GM_GFX_BUSY, 0, 0, 1)},
    {5, PLAIN(GM_MEMORY_BUSY, 0, 0, 1)},
    {7, NONZERO(GM_ENERGY, 0, 0, GM_JOULE)},
    {8, PLAIN(GM_DRIVER_CLOCK, 0, 0, 1)},
    {10, PLAIN(TIMES(GM_BY_PROCHOT), 0, 0, 1)},
    {11, PLAIN(TIMES(GM_BY_POWER), 0, 0, 1)},
    {12, PLAIN(TIMES(GM_BY_HEAT), 0, 0, 1)},
    {13, PLAIN(TIMES(GM_BY_OTHER_HEAT), 0, 0, 1)},
    {14, PLAIN(TIMES(GM_BY_MEMORY_HEAT), 0, 0, 1)},
    {16, NONZERO(GM_LINK_WIDTH, 0, 0, 1)},
    {17, NONZERO(GM_LINK_SPEED, 0, 0, 0.1)},
    {25, PLAIN(GM_REPLAYS, 0, 0, 1)},
    {33, PLAIN(GM_GFX_CLOCK, 0, 0, 1)},
    {34, PLAIN(GM_SOC_CLOCK, 0, 0, 1)},
    {35, PLAIN(GM_MEDIA_CLOCK, 0, 0, 1)},
    {37, PLAIN(GM_MEMORY_CLOCK, 0, 0, 1)},
    {40, PLAIN(GM_GFX_BUSY, 0, 0, 1)}, /* of each engine: later in the list than 4, which it stands for where both are told */
    {42, PLAIN(GM_MEDIA_BUSY, 0, 0, 1)},
    {48, HIGHEST(GM_TEMPERATURE_MEMORY, 0, 0, 1, 1)},
    {50, HIGHEST(GM_TEMPERATURE_HOTSPOT, 0, 0, 1, 1)},
};

const struct gpu_metrics_row *gpu_metrics_attribute(unsigned id)
{
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].id == id)
            return &attributes[i].row;
    return NULL;
}
