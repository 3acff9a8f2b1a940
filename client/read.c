/* The newest sample of a device or of the host. */
#include <string.h>

#include "client/samples.h"

/* `last` of a track: the attachment in the high bits, so that a thread that was overtaken by two restarts cannot leave a number
 * of the old segment as the mark of a new one. */
#define SEQUENCE_MASK ((UINT64_C(1) << 48) - 1)

/* Marks a sequence as returned. False if a later one was returned meanwhile, or the mapping serves another segment by now. */
static inline bool keep_order(struct track *track, uint64_t seen, uint64_t sequence)
{
    uint64_t mark = (seen & ~SEQUENCE_MASK) | (sequence & SEQUENCE_MASK);
    while (seen != mark) {
        if ((seen ^ mark) > SEQUENCE_MASK || seen > mark)
            return false;
        if (word_replace(&track->last, &seen, mark))
            return true;
    }
    return true;
}

/* What a newest-read fetches: the whole payload, or a few words of it. */
struct request {
    uint64_t *out;
    uint32_t count;
    const uint32_t *offsets; /* NULL: payload words 0 .. count-1 */
    uint64_t sequence;       /* of the sample that was read */
    bool same_clock;
};

static inline int read_newest(gputap *tap, int device, struct request *request)
{
    int error = GPUTAP_EAGAIN;
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        struct pass pass;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        struct track *track = pass_track(tap, &pass, device, &error);
        if (!track) {
            if (pass_held(tap, &pass))
                return client_fail_device(tap, error, device);
            error = GPUTAP_EAGAIN;
            continue;
        }
        uint64_t seen = word_get(&track->last);
        struct ring ring = track_ring(track);
        uint64_t ticket = ring.first + (seen & SEQUENCE_MASK) - 1;
        int have = (seen & SEQUENCE_MASK) != 0;
        int result = request->offsets ? ring_latest_fields(&ring, request->offsets, request->count, request->out, &ticket, have)
                                      : ring_latest_words(&ring, request->out, request->count, &ticket, have);
        request->same_clock = word_get(&pass.mapping->same_clock) != 0;
        request->sequence = ticket - ring.first + 1;
        if (!pass_held(tap, &pass))
            continue;
        if (result == RING_EMPTY)
            return client_fail(tap, GPUTAP_EEMPTY, "device %d was not sampled yet", device);
        if (result == RING_OK && keep_order(track, seen, request->sequence))
            return GPUTAP_OK;
    }
    return client_fail_busy(tap);
}

int gputap_latest(gputap *tap, int device, gputap_snapshot *out)
{
    if (!tap || !out)
        return GPUTAP_EINVAL;
    union sample_words raw;
    struct request request = {.out = raw.words, .count = SNAPSHOT_PAYLOAD};
    uint64_t now = clock_mono_ns();
    handle_tick(tap, now);
    int result = read_newest(tap, device, &request);
    if (result != GPUTAP_OK)
        return result;
    return sample_deliver(tap, &raw.sample, request.sequence, sample_age(request.same_clock, &raw.sample, now), out);
}

int gputap_host_latest(gputap *tap, gputap_snapshot *out) { return gputap_latest(tap, GPUTAP_HOST, out); }

int gputap_read(gputap *tap, int device, const int *metrics, int count, double *out)
{
    enum { MOST = 64 };
    uint32_t offsets[MOST + 2];
    uint64_t words[MOST + 2];
    int known;
    if (!tap || !metrics || !out)
        return GPUTAP_EINVAL;
    if (count < 1 || count > MOST)
        return client_fail(tap, GPUTAP_EINVAL, "%d metrics asked for, not 1 to %d", count, MOST);
    const struct metric_info *table = metrics_table(device == GPUTAP_HOST, &known);
    for (int i = 0; i < count; i++) {
        if (metrics[i] < 0 || metrics[i] >= known)
            return client_fail(tap, GPUTAP_EINVAL, "%d is not a metric", metrics[i]);
        offsets[i + 2] = (uint32_t)(SAMPLE_METRICS + metrics[i]);
        words[i + 2] = 0;
    }
    words[0] = words[1] = 0;
    offsets[0] = SAMPLE_VALID;
    offsets[1] = SAMPLE_VALID + 1;
    struct request request = {.out = words, .count = (uint32_t)count + 2, .offsets = offsets};
    handle_tick(tap, clock_mono_coarse_ns());
    int result = read_newest(tap, device, &request);
    if (result != GPUTAP_OK)
        return result;
    for (int i = 0; i < count; i++)
        out[i] = metrics_valid(words, metrics[i]) ? sample_number(table[metrics[i]].type, words[i + 2]) : (double)NAN;
    return GPUTAP_OK;
}
