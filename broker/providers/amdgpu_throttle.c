/* Why clocks are held down, in the bits that are the same for every maker's GPUs. */
#include <math.h>

#include "broker/providers/amdgpu.h"

/* amdgpu's bits for every ASIC (SMU_THROTTLER_*_BIT in amdgpu_smu.h), in groups of 16 by kind. */
static const struct {
    uint64_t bits;
    uint64_t means;
} groups[] = {
    {UINT64_C(0x000000000000ffff), THROTTLE_POWER},    /* PPT0 to PPT3, SPL, FPPT, SPPT */
    {UINT64_C(0x00000000ffff0000), THROTTLE_CURRENT},  /* TDC, EDC, APCC */
    {UINT64_C(0x00003fff00000000), THROTTLE_THERMAL},  /* TEMP, VRHOT */
    {UINT64_C(0x0000c00000000000), THROTTLE_HARDWARE}, /* PROCHOT: a pin of the chip */
    {UINT64_C(0xffff000000000000), THROTTLE_OTHER},    /* PPM, FIT */
};
static const uint64_t HOTSPOT_BIT = UINT64_C(1) << 36;
enum { COOL_HOTSPOT = 90, BELOW_LIMIT = 10 /* degrees */ };

/* RDNA 3 shows the hotspot's bit nearly always, at 54 degrees as well: it counts where the hotspot is warm, or not known. */
static bool is_cool(double hotspot, double limit) { return hotspot < (limit > 0 ? limit - BELOW_LIMIT : COOL_HOTSPOT); }

static uint64_t meaning(uint64_t bits)
{
    uint64_t means = 0;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        means |= bits & groups[i].bits ? groups[i].means : 0;
    return means;
}

/* Counters that have moved since the last look. One that went back says nothing. True if any could be compared. */
static bool moved(struct amdgpu_throttle *throttle, const struct gpu_metrics *table, uint64_t *means)
{
    static const uint64_t by[GM_BY_CPU_HEAT + 1] = {
        [GM_BY_PROCHOT] = THROTTLE_HARDWARE,    [GM_BY_POWER] = THROTTLE_POWER,     [GM_BY_FAST_POWER] = THROTTLE_POWER,
        [GM_BY_SLOW_POWER] = THROTTLE_POWER,    [GM_BY_HEAT] = THROTTLE_THERMAL,    [GM_BY_OTHER_HEAT] = THROTTLE_THERMAL,
        [GM_BY_MEMORY_HEAT] = THROTTLE_THERMAL, [GM_BY_CPU_HEAT] = THROTTLE_THERMAL};
    bool compared = false;
    for (int i = 0; i <= GM_BY_CPU_HEAT; i++) {
        bool now = table->known[GM_THROTTLE_TIMES + i];
        /* 32 bits wide, and going on past their end. */
        uint32_t step = (uint32_t)(table->bits[GM_THROTTLE_TIMES + i] - throttle->times[i]);
        if (now && throttle->seen[i] && step <= INT32_MAX) {
            compared = true;
            *means |= step ? by[i] : 0;
        }
        throttle->seen[i] = now;
        throttle->times[i] = table->bits[GM_THROTTLE_TIMES + i];
    }
    return compared;
}

static bool counts(const struct gpu_metrics *table)
{
    for (int i = 0; i <= GM_BY_CPU_HEAT; i++)
        if (table->known[GM_THROTTLE_TIMES + i])
            return true;
    return false;
}

void amdgpu_throttle_sample(struct amdgpu_throttle *throttle, const struct gpu_metrics *table, double hotspot, double limit,
                            struct sample *sample)
{
    uint64_t means = 0;
    bool compared = moved(throttle, table, &means);
    if (table->known[GM_THROTTLE]) {
        uint64_t bits = table->bits[GM_THROTTLE];
        sample_u64(sample, METRIC_THROTTLE_RAW, bits);
        sample_u64(sample, METRIC_THROTTLE, meaning(is_cool(hotspot, limit) ? bits & ~HOTSPOT_BIT : bits));
    } else if (table->known[GM_THROTTLE_ASIC]) {
        /* Which bit is what differs from ASIC to ASIC; that there is one does not. */
        sample_u64(sample, METRIC_THROTTLE_RAW, table->bits[GM_THROTTLE_ASIC]);
        sample_u64(sample, METRIC_THROTTLE, table->bits[GM_THROTTLE_ASIC] ? THROTTLE_OTHER : 0);
    } else if (compared) {
        sample_u64(sample, METRIC_THROTTLE, means);
    } else if (counts(table)) {
        sample_unknown(sample, METRIC_THROTTLE, REASON_NOT_SAMPLED); /* it takes two looks */
    }
}
