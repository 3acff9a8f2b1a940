/* From the words of a slot to the public snapshot. */
#ifndef GPUTAP_CLIENT_SAMPLES_H
#define GPUTAP_CLIENT_SAMPLES_H

#include <math.h>

#include "client/handle.h"

union sample_words {
    struct layout_snapshot sample;
    uint64_t words[SNAPSHOT_PAYLOAD];
};

enum { SAMPLE_VALID = offsetof(struct layout_snapshot, valid) / 8, SAMPLE_METRICS = offsetof(struct layout_snapshot, metrics) / 8 };

/* A word by its type; not finite is unknown too. */
static inline double sample_number(enum metric_type type, uint64_t word)
{
    union metric_value value = {.u64 = word};
    switch (type) {
    case METRIC_U64: return (double)value.u64;
    case METRIC_I64: return (double)value.i64;
    default: return isfinite(value.f64) ? value.f64 : (double)NAN;
    }
}

static inline uint64_t sample_age(bool same_clock, const struct layout_snapshot *sample, uint64_t now_mono)
{
    uint64_t now = same_clock ? now_mono : clock_real_ns();
    uint64_t then = same_clock ? sample->mono_ns : sample->real_ns;
    return now > then ? now - then : 0;
}

/* Everything but age_ns. */
void sample_public(const struct layout_snapshot *sample, uint64_t sequence, gputap_snapshot *out);
/* Hands it to a caller whose struct may be of another size. */
int sample_deliver(const gputap *tap, const struct layout_snapshot *sample, uint64_t sequence, uint64_t age, gputap_snapshot *out);

#endif
