/* Reading a ring record by record, with every lost one counted. A cursor's `next` is the place in its epoch (0 = the first
 * record that the broker published), `attach` names the epoch. got + lost == next - where it began, always. */
#include <string.h>

#include "client/samples.h"

int gputap_cursor_init(gputap *tap, gputap_cursor *cursor, int device, int start)
{
    if (!tap || !cursor)
        return GPUTAP_EINVAL;
    if (start != GPUTAP_FROM_NEWEST && start != GPUTAP_FROM_OLDEST)
        return client_fail(tap, GPUTAP_EINVAL, "%d is not a place to start from", start);
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        struct pass pass;
        int error = GPUTAP_OK;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        struct track *track = pass_track(tap, &pass, device, &error);
        uint64_t attach = word_get(&pass.mapping->attach), published = 0, depth = 0;
        if (track) {
            struct ring ring = track_ring(track);
            published = ring_published(&ring);
            depth = ring.mask + 1;
        }
        if (!pass_held(tap, &pass))
            continue;
        if (!track)
            return client_fail_device(tap, error, device);
        memset(cursor, 0, sizeof *cursor);
        cursor->device = device;
        cursor->attach = attach;
        cursor->next = start == GPUTAP_FROM_NEWEST ? published : published > depth ? published - depth : 0;
        return GPUTAP_OK;
    }
    return client_fail_busy(tap);
}

/* The record at next, or how many were lost before one can be had again. */
static int read_at(const struct ring *ring, uint64_t next, uint64_t *out, uint64_t *lost)
{
    uint64_t depth = ring->mask + 1;
    *lost = 0;
    words_prefetch(ring_slot(ring, ring->first + next + 2), ring->stride * 8);
    int result = ring_read(ring, ring->first + next, out);
    if (result != RING_OVERRUN)
        return result;
    uint64_t published = ring_published(ring);
    int64_t behind = ring_distance(next, published);
    if (behind >= (int64_t)depth) /* at exactly one lap the slot is just being overwritten */
        *lost = published - depth / 2 - next;
    return result;
}

int gputap_next(gputap *tap, gputap_cursor *cursor, gputap_snapshot *out)
{
    union sample_words raw;
    if (!tap || !cursor || !out)
        return GPUTAP_EINVAL;
    uint64_t now = clock_mono_ns();
    handle_tick(tap, now);
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        struct pass pass;
        int error = GPUTAP_OK, result = RING_EMPTY;
        uint64_t lost = 0;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        struct track *track = pass_track(tap, &pass, cursor->device, &error);
        uint64_t attach = word_get(&pass.mapping->attach);
        bool same_clock = word_get(&pass.mapping->same_clock) != 0;
        if (track && attach == cursor->attach) {
            struct ring ring = track_ring(track);
            result = read_at(&ring, cursor->next, raw.words, &lost);
        }
        if (!pass_held(tap, &pass))
            continue;
        if (!track)
            return client_fail_device(tap, error, cursor->device);
        if (attach != cursor->attach) { /* another epoch: from its beginning, with counts of its own */
            cursor->restarts++;
            cursor->attach = attach;
            cursor->got = cursor->lost = cursor->next = 0;
            attempt = -1;
            continue;
        }
        if (result == RING_EMPTY)
            return 0;
        cursor->lost += lost;
        cursor->next += lost;
        if (result != RING_OK)
            continue;
        result = sample_deliver(tap, &raw.sample, cursor->next + 1, sample_age(same_clock, &raw.sample, now), out);
        if (result != GPUTAP_OK)
            return result;
        cursor->got++;
        cursor->next++;
        return 1;
    }
    return client_fail_busy(tap);
}
