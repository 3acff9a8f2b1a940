/* What an interval took, for a reader; the arithmetic is in shm/usage.c. And the clock that intervals are told by. */
#include <math.h>
#include <string.h>

#include "client/sessions.h"

#define SECOND UINT64_C(1000000000)

uint64_t pass_now(const struct pass *pass)
{
    enum { TICK, MONO, REAL, WORDS };
    _Static_assert(offsetof(struct layout_snapshot, mono_ns) == 8 * MONO && offsetof(struct layout_snapshot, real_ns) == 8 * REAL,
                   "words of a sample");
    if (word_get(&pass->mapping->same_clock))
        return clock_mono_ns();
    /* Another monotonic clock: the newest sample of the host ties it to the one clock that all share. */
    struct ring host = track_ring(&pass->mapping->tracks[pass->mapping->view.device_slots]);
    uint64_t words[WORDS], last = 0;
    if (ring_latest_words(&host, words, WORDS, &last, 0) != RING_OK)
        return 0;
    uint64_t real = clock_real_ns();
    return words[MONO] + (real > words[REAL] ? real - words[REAL] : 0);
}

uint64_t gputap_now(gputap *tap)
{
    if (!tap)
        return 0;
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        struct pass pass;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return 0;
        uint64_t now = pass_now(&pass);
        if (pass_held(tap, &pass))
            return now;
    }
    return 0;
}

static double clean(double value) { return isfinite(value) && value >= 0 ? value : (double)NAN; }

void usage_public(const struct layout_usage *usage, int device, gputap_usage *out)
{
    const uint32_t known = GPUTAP_USAGE_PARTIAL | GPUTAP_USAGE_ESTIMATED | GPUTAP_USAGE_SHARED | GPUTAP_USAGE_UNIFIED;
    memset(out, 0, sizeof *out);
    out->device = device;
    out->flags = usage->flags & known;
    out->samples = usage->samples;
    out->seconds = clean(usage->seconds);
    out->sampled_seconds = clean(usage->sampled_seconds);
    out->energy = clean(usage->energy);
    out->net_energy = clean(usage->net_energy);
    out->busy_mean = clean(usage->busy_mean);
    out->busy_peak = clean(usage->busy_peak);
    out->throttled_seconds = clean(usage->throttled_seconds);
    out->vram_mean = clean(usage->vram_mean);
    out->vram_peak = clean(usage->vram_peak);
    out->unified_peak = clean(usage->unified_peak);
    out->own_vram_peak = clean(usage->own_vram_peak);
    out->temperature_peak = isfinite(usage->temperature_peak) ? usage->temperature_peak : (double)NAN;
}

/* Idle power and kind of memory, from the device's entry. */
static int read_facts(const struct pass *pass, uint32_t slot, struct usage_request *request)
{
    union {
        struct layout_device entry;
        uint64_t words[sizeof(struct layout_device) / 8];
    } raw;
    struct ring ring;
    uint64_t last = 0;
    view_entry(&pass->mapping->view, REGION_DEVICE, slot, &ring);
    if (ring_latest_words(&ring, raw.words, sizeof raw.words / 8, &last, 0) != RING_OK)
        return GPUTAP_EAGAIN;
    request->idle_watts = raw.entry.idle_watts;
    request->unified = raw.entry.pool == POOL_UNIFIED;
    return GPUTAP_OK;
}

static int usage_in(gputap *tap, const struct pass *pass, int device, struct usage_request request, struct layout_usage *out)
{
    int slot = device_slot(tap, pass->mapping, device);
    if (slot < 0)
        return slot;
    struct ring ring = track_ring(&pass->mapping->tracks[slot]), coarse = track_coarse(&pass->mapping->tracks[slot]);
    if (request.end_ns == 0) {
        uint64_t now = pass_now(pass);
        request.end_ns = now > request.start_ns ? now : request.start_ns;
    }
    uint64_t gap = 3 * mapping_period(pass->mapping);
    request.gap_ns = gap > 2 * SECOND ? gap : 2 * SECOND;
    int result = read_facts(pass, (uint32_t)slot, &request);
    if (result == GPUTAP_OK && ring_published(&ring) == 0)
        result = GPUTAP_EEMPTY;
    if (result == GPUTAP_OK)
        usage_between(&ring, &coarse, &request, out);
    return result;
}

int gputap_usage_between(gputap *tap, int device, uint64_t start_ns, uint64_t end_ns, gputap_usage *out)
{
    struct layout_usage usage = {0};
    if (!tap || !out)
        return GPUTAP_EINVAL;
    if (end_ns != 0 && end_ns < start_ns)
        return client_fail(tap, GPUTAP_EINVAL, "the interval ends before it starts");
    handle_tick(tap, clock_mono_coarse_ns());
    int result = GPUTAP_EAGAIN;
    for (int attempt = 0; attempt < HANDLE_RETRIES && result == GPUTAP_EAGAIN; attempt++) {
        struct pass pass;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        result = usage_in(tap, &pass, device, (struct usage_request){.start_ns = start_ns, .end_ns = end_ns}, &usage);
        if (!pass_held(tap, &pass))
            result = GPUTAP_EAGAIN;
    }
    switch (result) {
    case GPUTAP_OK: usage_public(&usage, device, out); return GPUTAP_OK;
    case GPUTAP_EAGAIN: return client_fail_busy(tap);
    case GPUTAP_EEMPTY: return client_fail(tap, result, "device %d was not sampled yet", device);
    default: return client_fail_device(tap, result, device);
    }
}
