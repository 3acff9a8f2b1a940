#include "client/samples.h"

#include <string.h>

void sample_public(const struct layout_snapshot *sample, uint64_t sequence, gputap_snapshot *out)
{
    uint32_t state = (uint32_t)(sample->state & 0xFF);
    out->state = state < DEVICE_STATE_COUNT ? state : (uint32_t)DEVICE_HUNG;
    out->generation = (uint32_t)(sample->state >> 32);
    out->reserved = 0;
    out->sequence = sequence;
    out->tick = sample->tick;
    out->mono_ns = sample->mono_ns;
    out->real_ns = sample->real_ns;
    out->cost_ns = sample->cost_ns;
    out->valid[0] = sample->valid[0];
    out->valid[1] = sample->valid[1];
    memcpy(out->values, sample->metrics, sizeof out->values);
    memcpy(&out->sums, sample->sums, sizeof out->sums);
}

int sample_deliver(const gputap *tap, const struct layout_snapshot *sample, uint64_t sequence, uint64_t age, gputap_snapshot *out)
{
    if (out->size == sizeof *out) {
        sample_public(sample, sequence, out);
        out->age_ns = age;
        return GPUTAP_OK;
    }
    gputap_snapshot known;
    sample_public(sample, sequence, &known);
    known.age_ns = age;
    return client_copy_sized(tap, out, out->size, &known, sizeof known);
}

double gputap_snapshot_value(const gputap_snapshot *snapshot, int host, int metric)
{
    int count;
    const struct metric_info *table = metrics_table(host != 0, &count);
    size_t end = offsetof(gputap_snapshot, values) + ((size_t)metric + 1) * sizeof(gputap_value);
    if (!snapshot || metric < 0 || metric >= count || snapshot->size < end || !metrics_valid(snapshot->valid, metric))
        return (double)NAN;
    return sample_number(table[metric].type, snapshot->values[metric].u64);
}
