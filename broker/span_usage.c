/* What ended spans took, once the sample after their end is in. */
#include <math.h>
#include <string.h>

#include "broker/sessions.h"
#include "shm/usage.h"

static uint64_t newest_sample(const struct ring *ring)
{
    union {
        struct layout_snapshot sample;
        uint64_t words[LAYOUT_SNAPSHOT_WORDS - 1];
    } raw;
    uint64_t last = 0;
    return ring_latest_words(ring, raw.words, 2, &last, 0) == RING_OK ? raw.sample.mono_ns : 0;
}

static double own_peak(const struct ended_span *ended, uint32_t device)
{
    double peak = (double)NAN;
    for (int i = 0; i < LAYOUT_SESSION_GAUGES; i++)
        if (ended->own[i].updated_ns > 0 && ended->own[i].device == device && ended->own[i].reserved > 0)
            peak = (double)ended->own[i].reserved;
    return peak;
}

static void sum_up(struct sessions *sessions, struct ended_span *ended, uint32_t device, uint32_t pool, uint64_t now_ns,
                   uint64_t gap_ns)
{
    const struct published_device *published = &sessions->publisher->devices[device];
    struct usage_request request = {.start_ns = ended->start_ns,
                                    .end_ns = ended->end_ns,
                                    .gap_ns = gap_ns,
                                    .idle_watts = published->last.idle_watts,
                                    .unified = pool == POOL_UNIFIED};
    struct layout_event event = ended->event;
    event.mono_ns = now_ns;
    event.end_ticket = ended->end_ticket;
    event.usage.device = device;
    usage_between(&published->series.ring, &published->series.coarse, &request, &event.usage);
    event.usage.own_vram_peak = own_peak(ended, device);
    if ((ended->shared >> device) & 1)
        event.usage.flags |= USAGE_SHARED;
    sessions_publish_usage(sessions, &event, now_ns);
}

void sessions_sum_up(struct sessions *sessions, const struct devices *devices, uint64_t now_ns, uint64_t gap_ns)
{
    int kept = 0;
    for (int i = 0; i < sessions->ended_count; i++) {
        struct ended_span *ended = &sessions->ended[i];
        bool give_up = now_ns > ended->give_up_ns;
        for (uint32_t device = 0; ended->pending && device < LAYOUT_SPAN_DEVICES; device++) {
            uint64_t bit = UINT64_C(1) << device;
            if (!(ended->pending & bit))
                continue;
            if (!give_up && newest_sample(&sessions->publisher->devices[device].series.ring) < ended->end_ns)
                continue;
            sum_up(sessions, ended, device, devices->items[device].facts.pool, now_ns, gap_ns);
            ended->pending &= ~bit;
        }
        if (ended->pending)
            sessions->ended[kept++] = *ended;
    }
    sessions->ended_count = kept;
}
