#include "broker/track.h"

#include <string.h>

/* More than any one board draws: a counter's step above this is a fault of the counter. */
static const double watts_limit = 10000.0;
static const double idle_busy_percent = 3.0;

static bool known(const struct merged *merged, int metric) { return metrics_valid(merged->valid, metric); }

/* By the hardware's counter where there is one, since it also counts what lies between samples; else power times time. */
static double energy_step(struct track *track, const struct merged *merged, double seconds)
{
    double joules = -1;
    if (known(merged, METRIC_ENERGY)) {
        double now = merged->values[METRIC_ENERGY].f64;
        double span = track->energy_known ? (double)(merged->mono_ns - track->energy_mono_ns) / 1e9 : 0;
        if (track->energy_known && now >= track->energy_last && now - track->energy_last <= watts_limit * (span + 1))
            joules = now - track->energy_last;
        track->energy_last = now;
        track->energy_mono_ns = merged->mono_ns;
        track->energy_known = true;
        if (joules >= 0)
            return joules;
    }
    if (known(merged, METRIC_POWER_NOW))
        joules = merged->values[METRIC_POWER_NOW].f64 * seconds;
    else if (known(merged, METRIC_POWER_AVERAGE))
        joules = merged->values[METRIC_POWER_AVERAGE].f64 * seconds;
    return joules > 0 ? joules : 0;
}

void track_sums(struct track *track, const struct merged *merged, uint32_t pool, uint64_t gap_ns)
{
    bool sampling = merged->state == DEVICE_OK || merged->state == DEVICE_SETTLING;
    if (!sampling || merged->mono_ns == 0) {
        track->last_mono_ns = 0;
        return;
    }
    if (merged->mono_ns <= track->last_mono_ns)
        return;
    uint64_t step = track->last_mono_ns ? merged->mono_ns - track->last_mono_ns : 0;
    double seconds = step <= gap_ns ? (double)step / 1e9 : 0;
    track->last_mono_ns = merged->mono_ns;
    track->sums[ACCUMULATE_ENERGY] += energy_step(track, merged, seconds);
    track->sums[ACCUMULATE_SAMPLED] += seconds;
    if (known(merged, METRIC_GFX_BUSY))
        track->sums[ACCUMULATE_BUSY] += merged->values[METRIC_GFX_BUSY].f64 / 100 * seconds;
    if (known(merged, METRIC_THROTTLE) && merged->values[METRIC_THROTTLE].u64 != 0)
        track->sums[ACCUMULATE_THROTTLED] += seconds;
    int memory = pool == POOL_UNIFIED && known(merged, METRIC_UNIFIED_USED) ? METRIC_UNIFIED_USED : METRIC_VRAM_USED;
    if (known(merged, memory))
        track->sums[ACCUMULATE_VRAM] += (double)merged->values[memory].u64 * seconds;
}

static void second_begin(struct track *track, uint64_t number, const struct merged *merged)
{
    memset(&track->second, 0, sizeof track->second);
    memset(track->counts, 0, sizeof track->counts);
    track->second_number = number;
    track->second.start_mono_ns = merged->mono_ns;
}

static void second_add(struct layout_coarse *second, uint32_t *counts, int place, double value)
{
    if (!((second->valid >> place) & 1)) {
        second->valid |= UINT64_C(1) << place;
        second->minimum[place] = second->maximum[place] = value;
    }
    if (value < second->minimum[place])
        second->minimum[place] = value;
    if (value > second->maximum[place])
        second->maximum[place] = value;
    counts[place]++;
    second->mean[place] += (value - second->mean[place]) / counts[place];
}

bool track_coarse(struct track *track, bool host, const struct merged *merged, uint64_t real_ns, uint64_t packed_state,
                  struct layout_coarse *closed)
{
    struct layout_coarse *second = &track->second;
    if (merged->mono_ns == 0 || merged->mono_ns <= second->end_mono_ns)
        return false;
    uint64_t number = merged->mono_ns / 1000000000u;
    bool closes = second->samples > 0 && number != track->second_number;
    if (closes)
        *closed = *second;
    if (second->samples == 0 || closes)
        second_begin(track, number, merged);
    int count;
    const struct metric_info *table = metrics_table(host, &count);
    for (int metric = 0; metric < count; metric++)
        if (table[metric].coarse >= 0 && known(merged, metric))
            second_add(second, track->counts, table[metric].coarse, metrics_as_double(&table[metric], merged->values[metric]));
    second->samples++;
    second->end_mono_ns = merged->mono_ns;
    second->end_real_ns = real_ns;
    second->state = packed_state;
    if (!host && known(merged, METRIC_THROTTLE))
        second->throttle |= merged->values[METRIC_THROTTLE].u64;
    memcpy(second->sums, track->sums, sizeof second->sums);
    return closes;
}

static double coarse_mean(const struct layout_coarse *second, int metric)
{
    int count;
    int place = metrics_table(false, &count)[metric].coarse;
    return place >= 0 && ((second->valid >> place) & 1) ? second->mean[place] : -1;
}

/* Falls fast and rises slowly: a second in which something ran without being seen counts little. */
void track_idle(struct track *track, const struct layout_coarse *second, bool at_work)
{
    double busy = coarse_mean(second, METRIC_GFX_BUSY), watts = coarse_mean(second, METRIC_POWER_NOW);
    if (watts <= 0)
        watts = coarse_mean(second, METRIC_POWER_AVERAGE);
    if (at_work || busy < 0 || busy > idle_busy_percent || watts <= 0)
        return;
    if (track->idle_watts <= 0)
        track->idle_watts = watts;
    else
        track->idle_watts += (watts - track->idle_watts) * (watts < track->idle_watts ? 0.5 : 0.03);
    double change = track->idle_watts - track->idle_watts_told;
    if (change > 0.02 * track->idle_watts || change < -0.02 * track->idle_watts)
        track->idle_watts_told = track->idle_watts;
}
