/* Snapshots in which every word follows from the tick and from a number that names the epoch: a reader can tell a torn one, a
 * mixed one and one of another epoch from its bytes alone. */
#ifndef GPUTAP_TESTS_PATTERN_H
#define GPUTAP_TESTS_PATTERN_H

#include <string.h>

#include "gputap.h"
#include "shm/layout.h"

static inline uint64_t pattern_word(uint64_t seed, uint64_t tick, uint64_t place)
{
    uint64_t x = seed ^ (tick * UINT64_C(0x9E3779B97F4A7C15)) ^ (place << 56);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    return x ^ (x >> 27);
}

static inline void pattern_fill(struct layout_snapshot *sample, uint64_t seed, uint64_t tick)
{
    sample->tick = tick;
    sample->mono_ns = seed;
    sample->real_ns = pattern_word(seed, tick, 1);
    sample->cost_ns = pattern_word(seed, tick, 2);
    sample->valid[0] = pattern_word(seed, tick, 3);
    sample->valid[1] = pattern_word(seed, tick, 4);
    sample->state = (pattern_word(seed, tick, 5) << 32) | (tick % DEVICE_STATE_COUNT);
    for (uint64_t i = 0; i < LAYOUT_METRIC_SLOTS; i++)
        sample->metrics[i].u64 = pattern_word(seed, tick, 8 + i);
    for (uint64_t i = 0; i < ACCUMULATE_COUNT; i++) {
        uint64_t word = pattern_word(seed, tick, 80 + i);
        memcpy(&sample->sums[i], &word, sizeof word);
    }
}

static inline int pattern_holds(const gputap_snapshot *got)
{
    struct layout_snapshot want;
    memset(&want, 0, sizeof want);
    pattern_fill(&want, got->mono_ns, got->tick);
    return got->real_ns == want.real_ns && got->cost_ns == want.cost_ns && got->valid[0] == want.valid[0] &&
           got->valid[1] == want.valid[1] && got->state == (want.state & 0xFF) && got->generation == (uint32_t)(want.state >> 32) &&
           memcmp(got->values, want.metrics, sizeof want.metrics) == 0 && memcmp(&got->sums, want.sums, sizeof want.sums) == 0;
}

#endif
