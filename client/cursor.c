#include "client/cursor.h"

#include "client/samples.h"

static int fail_source(gputap *tap, int error, int device)
{
    return error == GPUTAP_EINVAL || error == GPUTAP_ENODEV ? client_fail_device(tap, error, device) : error;
}

int cursor_start(gputap *tap, gputap_cursor *cursor, cursor_source source, int start)
{
    if (start != GPUTAP_FROM_NEWEST && start != GPUTAP_FROM_OLDEST)
        return client_fail(tap, GPUTAP_EINVAL, "%d is not a place to start from", start);
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        struct pass pass;
        struct ring ring;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        uint64_t attach = word_get(&pass.mapping->attach), published = 0, depth = 0;
        int result = source(tap, &pass, cursor->device, &ring);
        if (result > 0) {
            published = ring_published(&ring);
            depth = ring.mask + 1;
        }
        if (!pass_held(tap, &pass))
            continue;
        if (result < 0)
            return fail_source(tap, result, cursor->device);
        cursor->restarts = 0;
        cursor->got = cursor->lost = 0;
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

int cursor_find(gputap *tap, gputap_cursor *cursor, cursor_source source, uint64_t *out, struct cursor_found *found)
{
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        int result = RING_EMPTY;
        uint64_t lost = 0;
        pass_begin(tap, &found->pass);
        struct mapping *mapping = found->pass.mapping;
        if (!mapping)
            return client_fail_absent(tap);
        int there = source(tap, &found->pass, cursor->device, &found->ring);
        uint64_t attach = word_get(&mapping->attach);
        found->same_clock = word_get(&mapping->same_clock) != 0;
        if (there > 0 && attach == cursor->attach)
            result = read_at(&found->ring, cursor->next, out, &lost);
        if (!pass_held(tap, &found->pass))
            continue;
        if (there < 0)
            return fail_source(tap, there, cursor->device);
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
        if (result == RING_OK)
            return 1;
    }
    return client_fail_busy(tap);
}

/* --- samples ---------------------------------------------------------------------------------------------------------- */

static int sample_ring(gputap *tap, const struct pass *pass, int device, struct ring *out)
{
    int error = GPUTAP_OK;
    struct track *track = pass_track(tap, pass, device, &error);
    if (!track)
        return error;
    *out = track_ring(track);
    return 1;
}

int gputap_cursor_init(gputap *tap, gputap_cursor *cursor, int device, int start)
{
    gputap_cursor fresh = {.device = device};
    if (!tap || !cursor)
        return GPUTAP_EINVAL;
    int result = cursor_start(tap, &fresh, sample_ring, start);
    if (result == GPUTAP_OK)
        *cursor = fresh;
    return result;
}

int gputap_next(gputap *tap, gputap_cursor *cursor, gputap_snapshot *out)
{
    union sample_words raw = {0};
    struct cursor_found found = {.same_clock = false};
    if (!tap || !cursor || !out)
        return GPUTAP_EINVAL;
    uint64_t now = clock_mono_ns();
    handle_tick(tap, now);
    int result = cursor_find(tap, cursor, sample_ring, raw.words, &found);
    if (result != 1)
        return result;
    result = sample_deliver(tap, &raw.sample, cursor->next + 1, sample_age(found.same_clock, &raw.sample, now), out);
    if (result != GPUTAP_OK)
        return result;
    cursor_advance(cursor);
    return 1;
}
