/* Means over slices of time, in one walk from old to new: seconds from the coarse ring as long as the fine ring does not reach
 * back, then every sample. What is written down as means would lie for two kinds: of a counter the last value is given, of bits
 * all that were set. */
#include <string.h>

#include "client/samples.h"

enum { HISTORY_METRICS = 64 };

struct slices {
    const struct metric_info *table;
    const int *metrics;
    int count;
    uint64_t start_ns; /* broker's clock; not itself in the window, so that the newest sample is and all slices are alike */
    uint64_t end_ns;
    uint64_t window_ns;
    int points;
    int64_t *times_ms;
    double *rows;
    int used;  /* rows finished */
    int slice; /* being filled, -1 = none */
    uint64_t real_ns;
    double sum[HISTORY_METRICS];
    double weight[HISTORY_METRICS];
};

static void slices_flush(struct slices *s)
{
    if (s->slice < 0)
        return;
    for (int i = 0; i < s->count; i++)
        s->rows[(size_t)s->used * (size_t)s->count + (size_t)i] = s->weight[i] > 0 ? s->sum[i] / s->weight[i] : (double)NAN;
    s->times_ms[s->used++] = (int64_t)(s->real_ns / 1000000);
    s->slice = -1;
}

/* Opens the slice that a record's time falls into. False if it lies outside, or before one that is done: time never goes back. */
static bool slices_enter(struct slices *s, uint64_t mono_ns, uint64_t real_ns)
{
    if (mono_ns <= s->start_ns || mono_ns > s->end_ns)
        return false;
    int slice = (int)((mono_ns - s->start_ns - 1) * (uint64_t)s->points / s->window_ns); /* an hour times 4096 fits */
    slice = slice >= s->points ? s->points - 1 : slice;
    if (slice < s->slice)
        return false;
    if (slice != s->slice) {
        slices_flush(s);
        memset(s->sum, 0, sizeof s->sum);
        memset(s->weight, 0, sizeof s->weight);
        s->slice = slice;
    }
    s->real_ns = real_ns;
    return true;
}

static void slices_add(struct slices *s, int place, double value, double weight)
{
    const struct metric_info *info = &s->table[s->metrics[place]];
    if (!isfinite(value))
        return;
    if (info->semantics == METRIC_GAUGE) {
        s->sum[place] += value * weight;
        s->weight[place] += weight;
        return;
    }
    if (info->semantics == METRIC_BITS && s->weight[place] > 0 && value >= 0 && value < 9e15 && s->sum[place] < 9e15)
        value = (double)((uint64_t)value | (uint64_t)s->sum[place]);
    s->sum[place] = value;
    s->weight[place] = 1;
}

static void add_coarse(struct slices *s, const struct layout_coarse *record)
{
    double weight = record->samples > 0 && record->samples < 1000000 ? (double)record->samples : 1;
    if (!slices_enter(s, record->end_mono_ns, record->end_real_ns))
        return;
    for (int i = 0; i < s->count; i++) {
        int place = s->table[s->metrics[i]].coarse;
        if (place >= 0 && place < LAYOUT_COARSE_SLOTS && ((record->valid >> place) & 1))
            slices_add(s, i, record->mean[place], weight);
    }
}

static void add_sample(struct slices *s, const struct layout_snapshot *sample)
{
    if (!slices_enter(s, sample->mono_ns, sample->real_ns))
        return;
    for (int i = 0; i < s->count; i++)
        if (metrics_valid(sample->valid, s->metrics[i]))
            slices_add(s, i, sample_number(s->table[s->metrics[i]].type, sample->metrics[s->metrics[i]].u64), 1);
}

static uint64_t newest_time(const struct ring *ring)
{
    union sample_words raw;
    uint64_t last = 0;
    return ring_latest_words(ring, raw.words, SNAPSHOT_PAYLOAD, &last, 0) == RING_OK ? raw.sample.mono_ns : 0;
}

/* Place of the oldest record that can still be read, and its time. False for an empty ring. */
static bool oldest_sample(const struct ring *ring, uint64_t *place, union sample_words *raw)
{
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        uint64_t published = ring_published(ring), depth = ring->mask + 1;
        *place = published > depth ? published - depth : 0;
        int result = ring_read(ring, ring->first + *place, raw->words);
        if (result != RING_OVERRUN)
            return result == RING_OK;
    }
    return false;
}

static void walk_coarse(struct slices *s, const struct ring *ring, uint64_t before_ns)
{
    union {
        struct layout_coarse record;
        uint64_t words[LAYOUT_COARSE_WORDS - 1];
    } raw;
    uint64_t published = ring_published(ring), depth = ring->mask + 1;
    for (uint64_t place = published > depth ? published - depth : 0; place != published; place++)
        if (ring_read(ring, ring->first + place, raw.words) == RING_OK && raw.record.end_mono_ns < before_ns)
            add_coarse(s, &raw.record);
}

static void walk(struct slices *s, const struct ring *ring, const struct ring *coarse, uint64_t window_ns, uint64_t host_ns)
{
    union sample_words raw;
    uint64_t place, newest = newest_time(ring);
    s->used = 0;
    s->slice = -1;
    s->end_ns = newest > host_ns ? newest : host_ns;
    s->window_ns = window_ns;
    s->start_ns = s->end_ns > window_ns ? s->end_ns - window_ns : 0;
    if (s->end_ns == 0 || !oldest_sample(ring, &place, &raw))
        return;
    if (place > 0 && raw.sample.mono_ns > s->start_ns)
        walk_coarse(s, coarse, raw.sample.mono_ns);
    uint64_t published = ring_published(ring);
    for (uint64_t left = ring->mask + 1; left > 0 && place != published; left--, place++)
        if (ring_read(ring, ring->first + place, raw.words) == RING_OK)
            add_sample(s, &raw.sample);
    slices_flush(s);
}

static int check_request(gputap *tap, int device, const int *metrics, int count, int seconds, int points)
{
    if (count < 1 || count > HISTORY_METRICS || seconds < 1 || seconds > 3600 || points < 1 || points > 4096)
        return client_fail(tap, GPUTAP_EINVAL, "out of range: %d metrics (1 to 64), %d seconds (1 to 3600), %d points (1 to 4096)",
                           count, seconds, points);
    for (int i = 0; i < count; i++)
        if (!gputap_metric_info(device, metrics[i]))
            return client_fail(tap, GPUTAP_EINVAL, "%d is not a metric of device %d", metrics[i], device);
    return GPUTAP_OK;
}

int gputap_history(gputap *tap, int device, const int *metrics, int count, int seconds, int points, int64_t *times_ms, double *rows)
{
    if (!tap || !metrics || !times_ms || !rows)
        return GPUTAP_EINVAL;
    int error = check_request(tap, device, metrics, count, seconds, points), known;
    if (error != GPUTAP_OK)
        return error;
    struct slices slices = {.table = metrics_table(device == GPUTAP_HOST, &known),
                            .metrics = metrics,
                            .count = count,
                            .points = points,
                            .times_ms = times_ms,
                            .rows = rows};
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        struct pass pass;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        struct track *track = pass_track(tap, &pass, device, &error);
        if (track) {
            struct ring ring = track_ring(track), coarse = track_coarse(track);
            struct ring host = track_ring(&pass.mapping->tracks[pass.mapping->view.device_slots]);
            walk(&slices, &ring, &coarse, (uint64_t)seconds * 1000000000u, newest_time(&host));
        }
        if (!pass_held(tap, &pass))
            continue;
        return track ? slices.used : client_fail_device(tap, error, device);
    }
    return client_fail_busy(tap);
}
