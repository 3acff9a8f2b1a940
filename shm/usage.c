/* Both rings are walked from new to old, until a record lies before the start. What the interval took is the difference of two
 * running sums, each interpolated between the records on its two sides; peaks are of the records inside.
 *
 * A record's step of the sums covers the time since the record before it. So what is known of the interval is told by the records
 * after its start, up to the one that closes it; the record before the start says nothing about it. */
#include "shm/usage.h"

#include <math.h>
#include <string.h>

#include "shm/metrics.h"

/* However deep the rings say they are. */
enum { MOST_RECORDS = 65536 };

/* One record of either ring, as far as it concerns us. Levels are NaN where unknown. */
struct mark {
    bool known;
    bool sampling; /* the device was being sampled then */
    uint64_t mono_ns;
    double sums[ACCUMULATE_COUNT];
    double power, busy, vram, unified, temperature, throttle;
    bool energy_known;
};

struct walk {
    const struct usage_request *request;
    struct mark start_before, start_after, end_before, end_after;
    uint64_t oldest_ns; /* of the fine ring; 0 = it is empty */
    uint64_t samples;
    uint64_t newest_inside_ns; /* 0 = no sample lies inside */
    bool energy_known, busy_known, throttle_known, vram_known, unified_known;
    double busy_peak, vram_peak, unified_peak, temperature_peak;
};

static double level(const struct layout_snapshot *sample, int metric)
{
    int count;
    if (!metrics_valid(sample->valid, metric))
        return (double)NAN;
    double value = metrics_as_double(&metrics_table(false, &count)[metric], sample->metrics[metric]);
    return isfinite(value) ? value : (double)NAN;
}

static double either(double first, double second) { return isnan(first) ? second : first; }

static void mark_of_sample(const struct layout_snapshot *sample, struct mark *out)
{
    unsigned state = (unsigned)(sample->state & 0xFF);
    *out = (struct mark){.known = true,
                         .sampling = state == DEVICE_OK || state == DEVICE_SETTLING,
                         .mono_ns = sample->mono_ns,
                         .power = either(level(sample, METRIC_POWER_NOW), level(sample, METRIC_POWER_AVERAGE)),
                         .busy = level(sample, METRIC_GFX_BUSY),
                         .vram = level(sample, METRIC_VRAM_USED),
                         .unified = level(sample, METRIC_UNIFIED_USED),
                         .temperature = either(level(sample, METRIC_TEMPERATURE_EDGE), level(sample, METRIC_TEMPERATURE_JUNCTION)),
                         .throttle = level(sample, METRIC_THROTTLE)};
    out->energy_known = !isnan(out->power) || metrics_valid(sample->valid, METRIC_ENERGY);
    memcpy(out->sums, sample->sums, sizeof out->sums);
}

static double coarse_level(const struct layout_coarse *second, int metric)
{
    int count;
    int place = metrics_table(false, &count)[metric].coarse;
    bool known = place >= 0 && ((second->valid >> place) & 1) && isfinite(second->maximum[place]);
    return known ? second->maximum[place] : (double)NAN;
}

static void mark_of_second(const struct layout_coarse *second, struct mark *out)
{
    unsigned state = (unsigned)(second->state & 0xFF);
    *out = (struct mark){
        .known = true,
        .sampling = state == DEVICE_OK || state == DEVICE_SETTLING,
        .mono_ns = second->end_mono_ns,
        .power = either(coarse_level(second, METRIC_POWER_NOW), coarse_level(second, METRIC_POWER_AVERAGE)),
        .busy = coarse_level(second, METRIC_GFX_BUSY),
        .vram = coarse_level(second, METRIC_VRAM_USED),
        .unified = coarse_level(second, METRIC_UNIFIED_USED),
        .temperature = either(coarse_level(second, METRIC_TEMPERATURE_EDGE), coarse_level(second, METRIC_TEMPERATURE_JUNCTION)),
        .throttle = (double)NAN};
    out->energy_known = !isnan(out->power);
    memcpy(out->sums, second->sums, sizeof out->sums);
}

static void raise_peak(double *peak, double value)
{
    if (!isnan(value) && (isnan(*peak) || value > *peak))
        *peak = value;
}

static void add_peaks(struct walk *walk, const struct mark *mark)
{
    raise_peak(&walk->busy_peak, mark->busy);
    raise_peak(&walk->vram_peak, mark->vram);
    raise_peak(&walk->unified_peak, mark->unified);
    raise_peak(&walk->temperature_peak, mark->temperature);
}

static void add_knowledge(struct walk *walk, const struct mark *mark)
{
    walk->energy_known |= mark->energy_known;
    walk->busy_known |= !isnan(mark->busy);
    walk->throttle_known |= !isnan(mark->throttle);
    walk->vram_known |= !isnan(mark->vram) || !isnan(mark->unified);
    walk->unified_known |= !isnan(mark->unified);
}

/* Records come from new to old. True when this was the last one needed. */
static bool step(struct walk *walk, const struct mark *mark)
{
    uint64_t start = walk->request->start_ns, end = walk->request->end_ns;
    if (mark->mono_ns >= end)
        walk->end_after = *mark;
    if (mark->mono_ns <= end && !walk->end_before.known)
        walk->end_before = *mark;
    if (mark->mono_ns >= start)
        walk->start_after = *mark;
    if (mark->mono_ns > start && mark->mono_ns <= end)
        add_knowledge(walk, mark);
    if (mark->mono_ns > start)
        return false;
    walk->start_before = *mark;
    return true;
}

static uint64_t reach(const struct ring *ring) { return ring->mask < MOST_RECORDS ? ring->mask + 1 : MOST_RECORDS; }

/* False when the fine ring does not reach back to the start. */
static bool walk_samples(struct walk *walk, const struct ring *ring)
{
    union {
        struct layout_snapshot sample;
        uint64_t words[LAYOUT_SNAPSHOT_WORDS - 1];
    } raw;
    struct mark mark;
    uint64_t head = ring_head(ring);
    for (uint64_t back = 1; back <= reach(ring); back++) {
        if (ring_read(ring, head - back, raw.words) != RING_OK)
            return false;
        mark_of_sample(&raw.sample, &mark);
        walk->oldest_ns = mark.mono_ns;
        if (mark.mono_ns >= walk->request->start_ns && mark.mono_ns <= walk->request->end_ns) {
            if (walk->newest_inside_ns == 0)
                walk->newest_inside_ns = mark.mono_ns;
            walk->samples += mark.sampling;
            add_peaks(walk, &mark);
        }
        if (step(walk, &mark))
            return true;
    }
    return false;
}

static void walk_seconds(struct walk *walk, const struct ring *coarse)
{
    union {
        struct layout_coarse second;
        uint64_t words[LAYOUT_COARSE_WORDS - 1];
    } raw;
    struct mark mark;
    uint64_t head = ring_head(coarse);
    for (uint64_t back = 1; back <= reach(coarse); back++) {
        if (ring_read(coarse, head - back, raw.words) != RING_OK)
            return;
        mark_of_second(&raw.second, &mark);
        bool inside = raw.second.start_mono_ns >= walk->request->start_ns && mark.mono_ns <= walk->request->end_ns;
        bool told = walk->oldest_ns != 0 && mark.mono_ns >= walk->oldest_ns; /* better, by the samples */
        bool told_whole = told && raw.second.start_mono_ns >= walk->oldest_ns;
        if (inside && !told_whole)
            add_peaks(walk, &mark);
        if (inside && !told && raw.second.samples < 1000000)
            walk->samples += raw.second.samples;
        if (!told && step(walk, &mark))
            return;
    }
}

/* The sums as they will be at `when`, if what the record says goes on. */
static void carry_on(const struct mark *from, const struct usage_request *request, uint64_t when, double sums[ACCUMULATE_COUNT])
{
    uint64_t step_ns = when > from->mono_ns ? when - from->mono_ns : 0;
    double seconds = from->sampling ? (double)(step_ns < request->gap_ns ? step_ns : request->gap_ns) / 1e9 : 0;
    double memory = request->unified ? either(from->unified, from->vram) : from->vram;
    memcpy(sums, from->sums, sizeof from->sums);
    sums[ACCUMULATE_SAMPLED] += seconds;
    sums[ACCUMULATE_ENERGY] += isnan(from->power) ? 0 : from->power * seconds;
    sums[ACCUMULATE_BUSY] += isnan(from->busy) ? 0 : from->busy / 100 * seconds;
    sums[ACCUMULATE_VRAM] += isnan(memory) ? 0 : memory * seconds;
    sums[ACCUMULATE_THROTTLED] += from->throttle > 0 ? seconds : 0;
}

static void sums_at(const struct usage_request *request, uint64_t when, const struct mark *before, const struct mark *after,
                    double sums[ACCUMULATE_COUNT])
{
    if (!before->known) {
        memcpy(sums, after->sums, sizeof after->sums);
    } else if (!after->known) {
        carry_on(before, request, when, sums);
    } else {
        uint64_t span = after->mono_ns - before->mono_ns;
        double part = span > 0 ? (double)(when - before->mono_ns) / (double)span : 0;
        for (int i = 0; i < ACCUMULATE_COUNT; i++)
            sums[i] = before->sums[i] + part * (after->sums[i] - before->sums[i]);
    }
}

/* Sums only grow, but for what interpolation rounds. */
static double growth(double from, double to)
{
    double grown = to - from;
    if (!isfinite(grown) || grown < -1e-9 * fabs(to))
        return (double)NAN;
    return grown > 0 ? grown : 0;
}

/* A sum that has grown is known by that. One that has not is known to be nothing only where samples told of it. */
static double sum_or_nan(double grown, bool told, double sampled)
{
    return grown > 0 || (told && sampled > 0) ? grown : (double)NAN;
}

static double mean_or_nan(double grown, bool told, double sampled)
{
    return sampled > 0 ? sum_or_nan(grown, told, sampled) / sampled : (double)NAN;
}

static double above(double value, double base) { return isnan(value) || value > base ? value - base : 0; }

/* Where no sample lies inside, its neighbours say what they can, unless they are too far away. */
static void peaks_of_neighbours(struct walk *walk, bool of_after_alone)
{
    const struct usage_request *request = walk->request;
    const struct mark *before = &walk->start_before, *after = &walk->end_after;
    if (!of_after_alone && before->known && request->start_ns - before->mono_ns <= request->gap_ns)
        add_peaks(walk, before);
    if (after->known && after->mono_ns - request->end_ns <= request->gap_ns)
        add_peaks(walk, after);
}

/* Is more than half of the interval told by the record after its end alone? Then the samples inside are too few for its peaks. */
static bool told_from_outside(const struct walk *walk)
{
    uint64_t length = walk->request->end_ns - walk->request->start_ns;
    return walk->newest_inside_ns != 0 && walk->request->end_ns - walk->newest_inside_ns > length / 2;
}

/* The record after the end has a share in the means. A level that it shows may be of what came next, so that no mean level is above
 * what was seen inside; a load that it shows is one of the time before it, so that what it makes the mean was reached. */
static double mean_level(double mean, double peak) { return peak >= 0 && mean > peak ? peak : mean; }
static double peak_load(double peak, double mean) { return mean > peak ? mean : peak; }

static void conclude(struct walk *walk, struct layout_usage *out)
{
    const struct usage_request *request = walk->request;
    double from[ACCUMULATE_COUNT], to[ACCUMULATE_COUNT], took[ACCUMULATE_COUNT];
    sums_at(request, request->start_ns, &walk->start_before, &walk->start_after, from);
    sums_at(request, request->end_ns, &walk->end_before, &walk->end_after, to);
    for (int i = 0; i < ACCUMULATE_COUNT; i++)
        took[i] = growth(from[i], to[i]);
    add_knowledge(walk, walk->end_after.known ? &walk->end_after : &walk->end_before);
    bool thin = told_from_outside(walk);
    if (walk->samples == 0 || thin)
        peaks_of_neighbours(walk, walk->samples > 0);
    double sampled = took[ACCUMULATE_SAMPLED], idle = request->idle_watts * sampled;
    out->samples = walk->samples;
    out->sampled_seconds = sampled;
    out->energy = sum_or_nan(took[ACCUMULATE_ENERGY], walk->energy_known, sampled);
    out->net_energy = isfinite(idle) && request->idle_watts > 0 ? above(out->energy, idle) : (double)NAN;
    out->throttled_seconds = sum_or_nan(took[ACCUMULATE_THROTTLED], walk->throttle_known, sampled);
    out->busy_mean = 100 * mean_or_nan(took[ACCUMULATE_BUSY], walk->busy_known, sampled);
    out->vram_mean = mean_or_nan(took[ACCUMULATE_VRAM], walk->vram_known, sampled);
    bool unified = request->unified && walk->unified_known;
    out->vram_mean = mean_level(out->vram_mean, unified ? walk->unified_peak : walk->vram_peak);
    out->busy_peak = peak_load(walk->busy_peak, out->busy_mean);
    out->vram_peak = walk->vram_peak;
    out->unified_peak = walk->unified_peak;
    out->temperature_peak = walk->temperature_peak;
    out->flags |= walk->start_before.known ? 0 : (uint32_t)USAGE_PARTIAL;
    out->flags |= walk->samples > 0 && walk->end_after.known && !thin ? 0 : (uint32_t)USAGE_ESTIMATED;
    out->flags |= unified ? (uint32_t)USAGE_UNIFIED : 0;
}

void usage_between(const struct ring *ring, const struct ring *coarse, const struct usage_request *request,
                   struct layout_usage *out)
{
    const double unknown = (double)NAN;
    struct walk walk = {
        .request = request, .busy_peak = unknown, .vram_peak = unknown, .unified_peak = unknown, .temperature_peak = unknown};
    uint64_t length = request->end_ns > request->start_ns ? request->end_ns - request->start_ns : 0;
    *out = (struct layout_usage){.device = out->device,
                                 .seconds = (double)length / 1e9,
                                 .sampled_seconds = unknown,
                                 .energy = unknown,
                                 .net_energy = unknown,
                                 .busy_mean = unknown,
                                 .busy_peak = unknown,
                                 .throttled_seconds = unknown,
                                 .vram_mean = unknown,
                                 .vram_peak = unknown,
                                 .unified_peak = unknown,
                                 .own_vram_peak = unknown,
                                 .temperature_peak = unknown};
    if (!walk_samples(&walk, ring))
        walk_seconds(&walk, coarse);
    if (walk.end_before.known) /* else all that is known came later */
        conclude(&walk, out);
    else
        out->flags |= USAGE_PARTIAL | USAGE_ESTIMATED;
}
