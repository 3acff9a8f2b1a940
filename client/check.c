/* Looking after a handle: done by whichever thread comes by when it is due, by one at a time, and for the price of a few loads
 * while all is well. System calls are made only when the segment says that it is over, or its beat stands still. */
#include "client/handle.h"
#include "shm/text.h"

#define MS UINT64_C(1000000)

uint64_t mapping_period(const struct mapping *mapping)
{
    uint64_t period = word_get(&mapping->view.header->period_ns);
    if (period < MS)
        return MS;
    return period > 60000 * MS ? 60000 * MS : period;
}

static uint64_t since(uint64_t then, uint64_t now) { return (int64_t)(now - then) > 0 ? now - then : 0; }

static void watch_beat(gputap *tap, const struct mapping *mapping, uint64_t now)
{
    uint64_t beat = word_get(&mapping->view.header->beat);
    if (beat == word_get(&tap->beat))
        return;
    word_set(&tap->beat, beat);
    word_set(&tap->beat_seen, now);
}

static void watch_devices(gputap *tap, struct mapping *mapping)
{
    uint64_t changes = word_get(&mapping->view.header->changes);
    bool changed = changes != word_get(&tap->changes);
    word_set(&tap->changes, changes);
    if (mapping->adopted < view_device_count(&mapping->view))
        changed = devices_adopt(tap, mapping) || changed;
    if (changed)
        word32_or(&tap->pending, GPUTAP_STATUS_CHANGED);
}

static void look(gputap *tap, uint64_t now, bool thorough)
{
    struct mapping *mapping = handle_current(tap);
    uint64_t interval = 50 * MS;
    bool attach = true;
    if (mapping) {
        uint64_t period = mapping_period(mapping);
        watch_beat(tap, mapping, now);
        watch_devices(tap, mapping);
        interval = period / 2 > 100 * MS ? 100 * MS : period / 2 > 50 * MS ? period / 2 : 50 * MS;
        attach = thorough || word32_get(&mapping->view.header->state) != SEGMENT_LIVE ||
                 since(word_get(&tap->beat_seen), now) > period + period / 4 + 50 * MS;
    }
    if (attach) {
        int result = handle_attach(tap, now, NULL, 0);
        word32_set(&tap->problem, (uint32_t)-result);
    }
    word_set(&tap->next_check, now + interval);
}

void handle_check(gputap *tap, uint64_t now, bool thorough)
{
    if (word32_swap(&tap->busy, 1) != 0)
        return;
    look(tap, now, thorough);
    word32_set(&tap->busy, 0);
}

/* RUNNING, STALE or DEAD. The lock decides between life and death; a lock that may not be asked leaves the beat. */
static int liveness(gputap *tap, const struct mapping *mapping, uint64_t now)
{
    int held = lock_held(tap->places[word_get(&mapping->place)].path);
    if (held == 0 || held == REGION_ENOENT || word32_get(&mapping->view.header->state) == SEGMENT_DEAD)
        return GPUTAP_STATUS_DEAD;
    uint64_t period = mapping_period(mapping);
    return since(word_get(&tap->beat_seen), now) > 2 * period + period / 2 + 100 * MS ? GPUTAP_STATUS_STALE : GPUTAP_STATUS_RUNNING;
}

int gputap_status(gputap *tap)
{
    if (!tap)
        return GPUTAP_EINVAL;
    uint64_t now = clock_mono_ns();
    handle_check(tap, now, true);
    struct pass pass;
    int bits = 0;
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        pass_begin(tap, &pass);
        if (!pass.mapping) {
            bits = GPUTAP_STATUS_DEAD;
            break;
        }
        bits = liveness(tap, pass.mapping, now);
        if (word32_get(&pass.mapping->view.header->state) == SEGMENT_SUPERSEDED)
            bits = GPUTAP_STATUS_SUPERSEDED | GPUTAP_STATUS_STALE;
        if (pass.mapping->view.header->simulated)
            bits |= GPUTAP_STATUS_SIMULATED;
        if (pass_held(tap, &pass))
            break;
    }
    if (word32_get(&tap->problem) == (uint32_t)-GPUTAP_EPERM)
        bits |= GPUTAP_STATUS_NOPERM;
    return bits | (int)word32_swap(&tap->pending, 0);
}

int gputap_epoch(gputap *tap, uint8_t out[16])
{
    struct pass pass;
    if (!tap || !out)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        uint64_t words[2] = {word_get(&pass.mapping->epoch[0]), word_get(&pass.mapping->epoch[1])};
        if (!pass_held(tap, &pass))
            continue;
        for (int i = 0; i < 16; i++)
            out[i] = (uint8_t)(words[i / 8] >> (i % 8 * 8));
        return GPUTAP_OK;
    }
    return client_fail_busy(tap);
}

static uint64_t header_word(gputap *tap, size_t offset)
{
    struct pass pass;
    if (!tap)
        return 0;
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return 0;
        uint64_t value = word_get((const shm_word *)(const void *)(pass.mapping->view.memory + offset));
        if (pass_held(tap, &pass))
            return value;
    }
    return 0;
}

uint64_t gputap_period(gputap *tap) { return header_word(tap, offsetof(struct layout_header, period_ns)); }
uint64_t gputap_tick(gputap *tap) { return header_word(tap, offsetof(struct layout_header, tick)); }

/* Sleeps on the wake word, at most until the slice ends. A wake-up that brings nothing new may be another reader's doing, or a
 * range that was just retired, where waiting fails at once; so a run of them is slowed down. */
static void wait_slice(gputap *tap, const struct pass *pass, uint32_t wake, uint64_t slice, int *idle)
{
    static shm_word32 never;
    bool healthy = pass->mapping && word32_get(&pass->mapping->view.header->state) == SEGMENT_LIVE &&
                   since(word_get(&tap->beat_seen), clock_mono_ns()) <= 2 * mapping_period(pass->mapping) + 100 * MS;
    if (!healthy && slice > 50 * MS)
        slice = 50 * MS;
    if (!pass->mapping || ++*idle > 64) {
        *idle = 0;
        wake_wait(&never, 0, pass->mapping && slice > 5 * MS ? 5 * MS : slice);
        return;
    }
    wake_wait(&pass->mapping->view.header->wake, wake, slice);
}

/* What a waiter waits for to change, from the mapping and its wake word; 0 = there is nothing yet. */
typedef uint64_t (*wait_mark)(const struct mapping *mapping, uint32_t wake);

static uint64_t mark_of_tick(const struct mapping *mapping, uint32_t wake)
{
    (void)wake;
    return word_get(&mapping->view.header->tick);
}

static uint64_t mark_of_change(const struct mapping *mapping, uint32_t wake) { return word_get(&mapping->attach) << 32 | wake; }

static int wait_for(gputap *tap, wait_mark mark, uint64_t *known, int timeout_ms)
{
    uint64_t start = clock_mono_ns(), limit = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * MS;
    uint64_t attach = 0;
    int idle = 0;
    for (;;) {
        struct pass pass;
        uint64_t now = clock_mono_ns(), seen = 0, attached = 0;
        uint32_t wake = 0;
        handle_tick(tap, now);
        pass_begin(tap, &pass);
        if (pass.mapping) {
            wake = word32_get(&pass.mapping->view.header->wake);
            seen = mark(pass.mapping, wake);
            attached = word_get(&pass.mapping->attach);
        }
        if (!pass_held(tap, &pass))
            continue;
        bool other_epoch = attach != 0 && attached != attach;
        if (seen != 0 && (seen != *known || other_epoch)) {
            *known = seen;
            return GPUTAP_OK;
        }
        if (attach == 0 || attached == 0)
            attach = attached;
        if (!pass.mapping && timeout_ms == 0)
            return client_fail_absent(tap);
        uint64_t passed = since(start, clock_mono_ns());
        if (passed >= limit)
            return client_fail(tap, GPUTAP_ETIMEDOUT, "nothing new in %d ms", timeout_ms);
        uint64_t left = limit - passed;
        wait_slice(tap, &pass, wake, left < 500 * MS ? left : 500 * MS, &idle);
    }
}

int gputap_wait(gputap *tap, uint64_t *tick, int timeout_ms)
{
    return tap && tick ? wait_for(tap, mark_of_tick, tick, timeout_ms) : GPUTAP_EINVAL;
}

int gputap_wait_change(gputap *tap, uint64_t *change, int timeout_ms)
{
    return tap && change ? wait_for(tap, mark_of_change, change, timeout_ms) : GPUTAP_EINVAL;
}
