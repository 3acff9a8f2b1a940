/* What ended spans took, once the sample after their end is in. */
#include <math.h>
#include <string.h>

#include "broker/sessions.h"
#include "shm/usage.h"

static const int walks_a_session = 16;
static const uint64_t at_once_ns = 4000000;

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

/* Sums up what can be, at most `budget` devices of it; returns how many. */
static int sum_up_some(struct sessions *sessions, const struct devices *devices, struct ended_span *ended, int budget, bool *more,
                       uint64_t now_ns, uint64_t gap_ns)
{
    bool give_up = now_ns > ended->give_up_ns;
    int done = 0;
    for (uint32_t device = 0; ended->pending && device < LAYOUT_SPAN_DEVICES; device++) {
        uint64_t bit = UINT64_C(1) << device;
        if (!(ended->pending & bit))
            continue;
        uint32_t state = devices->items[device].facts.state;
        bool sampled = state == DEVICE_OK || state == DEVICE_SETTLING; /* else no sample is to be waited for */
        if (!give_up && sampled && newest_sample(&sessions->publisher->devices[device].series.ring) < ended->end_ns)
            continue;
        if (done == budget) {
            *more = true;
            break;
        }
        sum_up(sessions, ended, device, devices->items[device].facts.pool, now_ns, gap_ns);
        ended->pending &= ~bit;
        done++;
    }
    return done;
}

/* Every session has its share, and the turn goes on where the last one stopped: who has much to be summed up waits for himself. */
void sessions_sum_up(struct sessions *sessions, const struct devices *devices, uint64_t now_ns, uint64_t gap_ns)
{
    int kept = 0, count = sessions->ended_count, share[LAYOUT_SESSION_SLOTS];
    uint64_t until_ns = clock_mono_ns() + at_once_ns;
    for (int slot = 0; slot < LAYOUT_SESSION_SLOTS; slot++)
        share[slot] = walks_a_session;
    bool more = false, late = false;
    for (int turn = 0; turn < count && !late; turn++) {
        sessions->turn = (sessions->turn + 1) % count;
        struct ended_span *ended = &sessions->ended[sessions->turn];
        int *left = &share[ended->event.slot];
        *left -= sum_up_some(sessions, devices, ended, *left, &more, now_ns, gap_ns);
        late = clock_mono_ns() > until_ns;
    }
    sessions->backlog = more || late;
    for (int i = 0; i < count; i++)
        if (sessions->ended[i].pending)
            sessions->ended[kept++] = sessions->ended[i];
    sessions->ended_count = kept;
}
