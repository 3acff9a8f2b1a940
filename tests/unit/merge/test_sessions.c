/* What the broker makes of clients' memory: honest, lossy and hostile. */
#include <math.h>

#include "shm/usage.h"
#include "tests/unit/check.h"
#include "tests/unit/merge/sessions_fixture.h"

#define SECOND UINT64_C(1000000000)

static struct sessions_fixture f;
static struct fake_client a, b;

static uint64_t now(void) { return clock_mono_ns(); }

static void merge(const struct fake_client *client) { sessions_merge(&f.sessions, client->slot, now()); }

static struct layout_event next_of_type(enum event_type type)
{
    struct layout_event event;
    while (sessions_event(&f, &event))
        if (event.type == (uint32_t)type)
            return event;
    return (struct layout_event){0};
}

static int count_of_type(enum event_type type)
{
    struct layout_event event;
    int count = 0;
    while (sessions_event(&f, &event))
        count += event.type == (uint32_t)type;
    return count;
}

static void span_is_seen_while_open_and_told_when_over(void)
{
    struct layout_session mirror;
    sessions_start(&f, 2);
    fake_attach(&f, &a, "label");
    struct layout_span span = fake_span(33, "KSampler", now());
    span.devices = 1;
    fake_show(&a, 0, &span);
    fake_say(&a, EVENT_BEGIN, &span, span.start_ns);
    merge(&a);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.state, SESSION_OPEN);
    CU_ASSERT_EQUAL(mirror.pid, 77);
    CU_ASSERT_STRING_EQUAL(mirror.label, "label");
    CU_ASSERT_EQUAL(mirror.span_count, 1);
    CU_ASSERT_EQUAL(mirror.spans[0].id, 33);
    CU_ASSERT_EQUAL(mirror.spans[0].devices, 1);
    CU_ASSERT_STRING_EQUAL(mirror.spans[0].name, "KSampler");
    struct layout_event event = next_of_type(EVENT_BEGIN);
    CU_ASSERT_EQUAL(event.span, 33);
    CU_ASSERT_EQUAL(event.slot, (uint32_t)a.slot);
    CU_ASSERT_EQUAL(event.generation, mirror.generation);

    span.value = 3, span.max = 20;
    fake_show(&a, 0, &span);
    sessions_merge(&f.sessions, a.slot, now() + SECOND);
    event = next_of_type(EVENT_STEP);
    CU_ASSERT_EQUAL(event.value, 3);
    CU_ASSERT_EQUAL(event.max, 20);

    uint64_t end = now();
    fake_say(&a, EVENT_END, &span, end);
    merge(&a);
    event = next_of_type(EVENT_END);
    CU_ASSERT_EQUAL(event.span, 33);
    CU_ASSERT_EQUAL(event.mono_ns, end);
    CU_ASSERT_EQUAL(event.flags, 0);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.span_count, 0);
    CU_ASSERT_EQUAL(mirror.ended, 1);
    sessions_end(&f);
}

static void usage_follows_the_sample_after_the_end(void)
{
    uint64_t start = now() - 4 * SECOND;
    sessions_start(&f, 2);
    for (int i = 0; i <= 30; i++)
        sessions_sample(&f, start + (uint64_t)i * SECOND / 10, 100, 5000);
    fake_attach(&f, &a, "x");
    struct layout_span span = fake_span(32, "node", start + SECOND);
    span.devices = 2;
    fake_show(&a, 0, &span);
    fake_say(&a, EVENT_BEGIN, &span, span.start_ns);
    fake_say(&a, EVENT_END, &span, start + 3 * SECOND + SECOND / 20);
    merge(&a);
    sessions_sum_up(&f.sessions, &f.devices, now(), 2 * SECOND);
    CU_ASSERT_EQUAL(count_of_type(EVENT_USAGE), 0); /* the newest sample is of before its end */
    sessions_sample(&f, start + 3 * SECOND + SECOND / 10, 100, 9000);
    sessions_sum_up(&f.sessions, &f.devices, now(), 2 * SECOND);
    struct layout_event event = next_of_type(EVENT_USAGE);
    CU_ASSERT_EQUAL(event.span, 32);
    CU_ASSERT_EQUAL(event.usage.device, 1);
    CU_ASSERT_DOUBLE_EQUAL(event.usage.seconds, 2.05, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(event.usage.energy, 205, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(event.usage.vram_peak, 5000, 0);
    CU_ASSERT(isnan(event.usage.busy_mean));
    CU_ASSERT_EQUAL(event.usage.flags, 0);
    struct layout_event end;
    uint64_t words[sizeof end / 8];
    CU_ASSERT_EQUAL(ring_read(&f.sessions.events, event.end_ticket, words), RING_OK);
    memcpy(&end, words, sizeof end);
    CU_ASSERT_EQUAL(end.type, EVENT_END);
    CU_ASSERT_STRING_EQUAL(end.name, "node");
    CU_ASSERT_EQUAL(count_of_type(EVENT_USAGE), 0); /* of that one device, once */
    sessions_end(&f);
}

static void device_without_samples_is_summed_up_after_some_patience(void)
{
    sessions_start(&f, 1);
    fake_attach(&f, &a, "x");
    struct layout_span span = fake_span(32, "n", now());
    fake_say(&a, EVENT_BEGIN, &span, span.start_ns);
    fake_say(&a, EVENT_END, &span, now());
    merge(&a);
    sessions_sum_up(&f.sessions, &f.devices, now() + 4 * SECOND, 2 * SECOND);
    CU_ASSERT_EQUAL(count_of_type(EVENT_USAGE), 0);
    sessions_sum_up(&f.sessions, &f.devices, now() + 6 * SECOND, 2 * SECOND);
    struct layout_event event = next_of_type(EVENT_USAGE);
    CU_ASSERT_EQUAL(event.usage.flags, USAGE_ESTIMATED | USAGE_PARTIAL);
    CU_ASSERT(isnan(event.usage.energy));
    CU_ASSERT_EQUAL(f.sessions.ended_count, 0);
    sessions_end(&f);
}

static void hung_device_is_not_waited_for(void)
{
    sessions_start(&f, 2);
    f.devices.items[0].facts.state = DEVICE_HUNG;
    fake_attach(&f, &a, "x");
    struct layout_span span = fake_span(32, "n", now());
    fake_say(&a, EVENT_BEGIN, &span, span.start_ns);
    fake_say(&a, EVENT_END, &span, now());
    merge(&a);
    sessions_sum_up(&f.sessions, &f.devices, now(), 2 * SECOND);
    CU_ASSERT_EQUAL(next_of_type(EVENT_USAGE).usage.device, 0);
    CU_ASSERT_EQUAL(count_of_type(EVENT_USAGE), 0); /* the other one will have a sample */
    sessions_end(&f);
}

static void spans_of_a_client_that_goes_are_abandoned(void)
{
    struct layout_session mirror;
    sessions_start(&f, 1);
    fake_attach(&f, &a, "x");
    for (uint64_t id = 1; id <= 3; id++) {
        struct layout_span span = fake_span(id, "n", now());
        fake_show(&a, (int)id, &span);
        fake_say(&a, EVENT_BEGIN, &span, span.start_ns);
    }
    sessions_close(&f.sessions, a.slot, now()); /* what was said last is heard */
    struct layout_event event;
    int begun = 0, abandoned = 0, detached = 0;
    while (sessions_event(&f, &event)) {
        begun += event.type == EVENT_BEGIN;
        abandoned += event.type == EVENT_END && event.flags == EVENT_ABANDONED;
        detached += event.type == EVENT_DETACH && strcmp(event.name, "x") == 0;
    }
    CU_ASSERT_EQUAL(begun, 3);
    CU_ASSERT_EQUAL(abandoned, 3);
    CU_ASSERT_EQUAL(detached, 1);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.state, SESSION_FREE);
    CU_ASSERT_EQUAL(mirror.span_count, 0);
    CU_ASSERT_EQUAL(f.sessions.span_count, 0);
    sessions_end(&f);
}

static void slot_rests_a_second_and_its_generation_grows(void)
{
    sessions_start(&f, 1);
    fake_attach(&f, &a, "x");
    int slot = a.slot;
    uint32_t generation = f.sessions.items[slot].mirror.generation;
    sessions_close(&f.sessions, slot, now());
    for (int i = 0; i < LAYOUT_SESSION_SLOTS - 1; i++) {
        fake_attach(&f, &b, "y");
        CU_ASSERT_NOT_EQUAL(b.slot, slot);
    }
    CU_ASSERT_EQUAL(sessions_free_slot(&f.sessions, now()), -1);
    CU_ASSERT_EQUAL(sessions_free_slot(&f.sessions, now() + SECOND), slot);
    sessions_open(&f.sessions, slot, &(struct layout_session){.pid = 1}, a.memory, now() + SECOND);
    CU_ASSERT_EQUAL(f.sessions.items[slot].mirror.generation, generation + 1);
    sessions_end(&f);
}

static void overlap_of_two_sessions_on_a_device_is_told_to_both(void)
{
    struct layout_session mirror;
    sessions_start(&f, 3);
    fake_attach(&f, &a, "x");
    fake_attach(&f, &b, "y");
    struct layout_span one = fake_span(1, "one", now()), two = fake_span(1, "two", now()), own = fake_span(2, "own", now());
    one.devices = 1;
    two.devices = 3;
    own.devices = 1;
    fake_say(&a, EVENT_BEGIN, &one, one.start_ns);
    merge(&a);
    fake_say(&a, EVENT_BEGIN, &own, own.start_ns);
    merge(&a);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.spans[0].shared, 0); /* its own session's spans do not count */
    fake_say(&b, EVENT_BEGIN, &two, two.start_ns);
    merge(&b);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.spans[0].shared, 1);
    sessions_mirror(&f, b.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.spans[0].shared, 1);
    fake_say(&b, EVENT_END, &two, now());
    merge(&b);
    sessions_sum_up(&f.sessions, &f.devices, now() + 10 * SECOND, SECOND);
    CU_ASSERT_EQUAL(next_of_type(EVENT_USAGE).usage.flags & USAGE_SHARED, USAGE_SHARED); /* slot 0 */
    CU_ASSERT_EQUAL(next_of_type(EVENT_USAGE).usage.flags & USAGE_SHARED, 0);            /* slot 1 */
    sessions_end(&f);
}

static void say_whole(struct fake_client *client, uint64_t id, uint64_t start_ns, uint64_t end_ns)
{
    struct layout_span span = fake_span(id, "n", start_ns);
    fake_say(client, EVENT_BEGIN, &span, start_ns);
    fake_say(client, EVENT_END, &span, end_ns);
}

static bool told_shared(const struct fake_client *client, uint64_t id)
{
    bool shared = false;
    struct layout_event event;
    uint64_t place = f.next_event;
    while (sessions_event(&f, &event))
        if (event.type == EVENT_USAGE && event.slot == (uint32_t)client->slot && event.span == id)
            shared = (event.usage.flags & USAGE_SHARED) != 0;
    f.next_event = place;
    return shared;
}

/* Clients are read one after the other, and late: what is shared must not depend on that. */
static void times_and_not_the_order_of_reading_say_what_is_shared(void)
{
    sessions_start(&f, 1);
    fake_attach(&f, &a, "x");
    fake_attach(&f, &b, "y");
    uint64_t t = now() - SECOND, ms = SECOND / 1000;
    say_whole(&a, 1, t + 0 * ms, t + 10 * ms); /* in turns */
    say_whole(&b, 1, t + 11 * ms, t + 20 * ms);
    say_whole(&a, 2, t + 21 * ms, t + 30 * ms);
    say_whole(&b, 2, t + 31 * ms, t + 40 * ms);
    say_whole(&a, 3, t + 50 * ms, t + 60 * ms); /* one ends in the other */
    say_whole(&b, 3, t + 59 * ms, t + 70 * ms);
    say_whole(&b, 4, t + 80 * ms, t + 81 * ms); /* one inside the other */
    say_whole(&a, 4, t + 79 * ms, t + 90 * ms);
    merge(&b);
    merge(&a);
    sessions_sum_up(&f.sessions, &f.devices, now() + 10 * SECOND, SECOND);
    for (uint64_t id = 1; id <= 2; id++) {
        CU_ASSERT_FALSE(told_shared(&a, id));
        CU_ASSERT_FALSE(told_shared(&b, id));
    }
    for (uint64_t id = 3; id <= 4; id++) {
        CU_ASSERT(told_shared(&a, id));
        CU_ASSERT(told_shared(&b, id));
    }
    sessions_end(&f);
}

static void span_whose_devices_are_gone_is_not_of_all(void)
{
    struct layout_session mirror;
    sessions_start(&f, 2);
    fake_attach(&f, &a, "x");
    struct layout_event event = {.mono_ns = now(), .type = EVENT_BEGIN, .flags = EVENT_NO_DEVICE, .span = 32, .start_ns = now()};
    uint64_t words[sizeof event / 8];
    memcpy(words, &event, sizeof words);
    ring_publish(&a.view.events, words);
    merge(&a);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.spans[0].flags, SPAN_NO_DEVICE);
    CU_ASSERT_EQUAL(next_of_type(EVENT_BEGIN).flags, EVENT_NO_DEVICE);
    sessions_end(&f);
}

static void lost_events_are_counted_and_concluded_from_the_state(void)
{
    struct layout_session mirror;
    sessions_start(&f, 1);
    fake_attach(&f, &a, "x");
    struct layout_span early = fake_span(32, "early", now()), late = fake_span(64 * 32 + 1, "late", now());
    fake_show(&a, 0, &early);
    fake_say(&a, EVENT_BEGIN, &early, early.start_ns);
    merge(&a);
    for (int i = 0; i < 200; i++) {
        struct layout_span point = fake_span(0, "instant", now());
        fake_say(&a, EVENT_INSTANT, &point, now());
        if (i == 50) { /* both of these are overwritten before they are read */
            struct layout_span none = {0};
            fake_show(&a, 0, &none);
            fake_say(&a, EVENT_END, &early, now());
            fake_show(&a, 1, &late);
            fake_say(&a, EVENT_BEGIN, &late, late.start_ns);
        }
    }
    merge(&a);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.lost, 202 - CLIENT_EVENT_DEPTH / 2);
    CU_ASSERT_EQUAL(mirror.span_count, 1);
    CU_ASSERT_EQUAL(mirror.spans[0].id, late.id);
    struct layout_event event, end = {0}, begin = {0};
    while (sessions_event(&f, &event)) {
        end = event.type == EVENT_END ? event : end;
        begin = event.type == EVENT_BEGIN ? event : begin;
    }
    CU_ASSERT_EQUAL(end.span, early.id);
    CU_ASSERT_EQUAL(end.flags, EVENT_RECOVERED);
    CU_ASSERT_EQUAL(begin.span, late.id);
    CU_ASSERT_EQUAL(begin.flags, EVENT_RECOVERED);
    fake_say(&a, EVENT_BEGIN, &late, late.start_ns); /* comes late: already known */
    merge(&a);
    CU_ASSERT_EQUAL(count_of_type(EVENT_BEGIN), 0);
    CU_ASSERT_EQUAL(f.sessions.items[a.slot].mirror.rejected, 0);
    sessions_end(&f);
}

static void begin_that_was_lost_is_told_from_the_end_or_the_state(void)
{
    struct layout_session mirror;
    sessions_start(&f, 1);
    fake_attach(&f, &a, "x");
    struct layout_span kept = fake_span(32, "kept open", now()), over = fake_span(65, "over", now()),
                       last = fake_span(98, "last", now());
    fake_show(&a, 0, &kept);
    fake_say(&a, EVENT_BEGIN, &kept, kept.start_ns);
    fake_show(&a, 1, &over);
    fake_say(&a, EVENT_BEGIN, &over, over.start_ns);
    for (int i = 0; i < 100; i++) {
        struct layout_span point = fake_span(0, "instant", now());
        fake_say(&a, EVENT_INSTANT, &point, now());
    }
    fake_show(&a, 1, &(struct layout_span){0});
    fake_say(&a, EVENT_END, &over, now());
    fake_show(&a, 2, &last);
    fake_say(&a, EVENT_BEGIN, &last, last.start_ns);
    merge(&a);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.span_count, 2); /* the one with the lower id, too */
    CU_ASSERT_EQUAL(mirror.ended, 1);
    CU_ASSERT_EQUAL(mirror.rejected, 0);
    struct layout_event end = next_of_type(EVENT_END);
    CU_ASSERT_EQUAL(end.span, over.id);
    CU_ASSERT_STRING_EQUAL(end.name, "over");
    CU_ASSERT_EQUAL(end.start_ns, over.start_ns);
    sessions_end(&f);
}

static void nonsense_is_rejected_and_counted(void)
{
    struct layout_session mirror;
    sessions_start(&f, 2);
    fake_attach(&f, &a, "x");
    struct layout_span span = fake_span(0, "no id", now());
    fake_say(&a, EVENT_BEGIN, &span, now());
    span = fake_span(1, "not finite", now());
    span.value = (double)NAN;
    fake_say(&a, EVENT_BEGIN, &span, now());
    span = fake_span(0, "end of nothing", now());
    fake_say(&a, EVENT_END, &span, now());
    fake_say(&a, (enum event_type)99, &span, now());
    fake_say(&a, EVENT_USAGE, &span, now());
    merge(&a);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.rejected, 5);
    CU_ASSERT_EQUAL(mirror.span_count, 0);
    for (uint64_t id = 10; id < 10 + 40; id++) {
        span = fake_span(id, "many", now());
        fake_say(&a, EVENT_BEGIN, &span, now());
    }
    merge(&a);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.span_count, LAYOUT_SESSION_SPANS);
    CU_ASSERT_EQUAL(mirror.rejected, 5 + 40 - LAYOUT_SESSION_SPANS);
    sessions_end(&f);
}

static void times_texts_and_devices_are_put_right(void)
{
    struct layout_session mirror;
    sessions_start(&f, 2);
    fake_attach(&f, &a, "x");
    struct layout_span span = fake_span(1, "bad \xff\xfe text \x1b[31m", now() + 100 * SECOND);
    memset(span.job, 'j', sizeof span.job); /* not terminated */
    span.devices = 2 | UINT64_C(1) << 60;   /* the second is no device */
    fake_say(&a, EVENT_BEGIN, &span, now());
    span = fake_span(2, "none", 0);
    span.devices = UINT64_C(1) << 50;
    fake_say(&a, EVENT_BEGIN, &span, now());
    merge(&a);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT(mirror.spans[0].start_ns <= now());
    CU_ASSERT_EQUAL(mirror.spans[0].devices, 2);
    CU_ASSERT_EQUAL(strlen(mirror.spans[0].job), sizeof span.job - 1);
    CU_ASSERT_PTR_NULL(strpbrk(mirror.spans[0].name, "\xff\xfe\x1b"));
    CU_ASSERT_EQUAL(mirror.spans[1].devices, 0);
    CU_ASSERT_EQUAL(mirror.spans[1].flags, SPAN_NO_DEVICE);
    CU_ASSERT(mirror.spans[1].start_ns > 0);
    struct layout_span over = fake_span(1, "", 0);
    fake_say(&a, EVENT_END, &over, 5); /* before its start */
    merge(&a);
    struct layout_event end = next_of_type(EVENT_END);
    CU_ASSERT_EQUAL(end.mono_ns, mirror.spans[0].start_ns);
    sessions_end(&f);
}

static void one_talker_cannot_wash_out_the_others_events(void)
{
    sessions_start(&f, 1);
    fake_attach(&f, &a, "loud");
    fake_attach(&f, &b, "quiet");
    struct layout_span quiet = fake_span(1, "quiet", now());
    fake_say(&b, EVENT_BEGIN, &quiet, now());
    merge(&b);
    uint64_t before = ring_head(&f.sessions.events);
    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < 60; i++) {
            struct layout_span point = fake_span(0, "noise", now());
            fake_say(&a, EVENT_INSTANT, &point, now());
        }
        merge(&a);
    }
    uint64_t published = ring_head(&f.sessions.events) - before;
    CU_ASSERT(published < 4096);
    CU_ASSERT_EQUAL(f.sessions.items[a.slot].mirror.lost, 60000 - published);
    CU_ASSERT_EQUAL(next_of_type(EVENT_BEGIN).span, 1); /* still there */
    sessions_end(&f);
}

static void largest_gauge_while_open_is_the_spans_own_peak(void)
{
    sessions_start(&f, 1);
    fake_attach(&f, &a, "x");
    struct layout_span span = fake_span(1, "n", now());
    fake_say(&a, EVENT_BEGIN, &span, now());
    static const uint64_t held[] = {100, 900, UINT64_MAX, 300};
    for (int i = 0; i < 4; i++) {
        union {
            struct layout_gauge gauge;
            uint64_t words[5];
        } raw = {.gauge = {.updated_ns = now(), .device = 0, .allocated = 1, .reserved = held[i], .dynamic = UINT64_MAX}};
        ring_publish(&a.view.gauges[0], raw.words);
        merge(&a);
    }
    fake_say(&a, EVENT_END, &span, now());
    merge(&a);
    sessions_sum_up(&f.sessions, &f.devices, now() + 10 * SECOND, SECOND);
    CU_ASSERT_EQUAL(next_of_type(EVENT_USAGE).usage.own_vram_peak, 900);
    sessions_end(&f);
}

static void segment_made_anew_shows_the_same_sessions(void)
{
    char message[256];
    struct layout_session mirror;
    sessions_start(&f, 1);
    fake_attach(&f, &a, "x");
    struct layout_span span = fake_span(1, "n", now());
    fake_say(&a, EVENT_BEGIN, &span, now());
    merge(&a);
    sessions_publish(&f.sessions, now());
    CU_ASSERT_EQUAL(publisher_recreate(&f.publisher, message, sizeof message), REGION_OK);
    publish_announce(&f.publisher, 1, 1);
    sessions_bind(&f.sessions, &f.publisher);
    sessions_mirror(&f, a.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.span_count, 1);
    CU_ASSERT_EQUAL(mirror.spans[0].id, 1);
    sessions_end(&f);
}

static void one_session_with_much_to_sum_up_does_not_hold_up_the_others(void)
{
    sessions_start(&f, 1);
    for (int i = 0; i < 40; i++)
        sessions_sample(&f, now() + (uint64_t)i * 1000, 100, 1);
    fake_attach(&f, &a, "much");
    fake_attach(&f, &b, "little");
    for (uint64_t id = 1; id <= 200; id++) {
        struct layout_span span = fake_span(id, "n", 1); /* so long ago that every record is looked at */
        fake_say(&a, EVENT_BEGIN, &span, 1);
        fake_say(&a, EVENT_END, &span, 2);
        merge(&a);
    }
    struct layout_span span = fake_span(1, "n", 1);
    fake_say(&b, EVENT_BEGIN, &span, 1);
    fake_say(&b, EVENT_END, &span, 2);
    merge(&b);
    CU_ASSERT_EQUAL(f.sessions.ended_count, SESSIONS_ENDED_EACH + 1);
    CU_ASSERT_EQUAL(f.sessions.items[a.slot].mirror.lost, 200 - SESSIONS_ENDED_EACH);
    sessions_sum_up(&f.sessions, &f.devices, now(), SECOND);
    CU_ASSERT(f.sessions.backlog);
    struct layout_event event;
    int of_a = 0, of_b = 0;
    while (sessions_event(&f, &event)) {
        of_a += event.type == EVENT_USAGE && event.slot == (uint32_t)a.slot;
        of_b += event.type == EVENT_USAGE && event.slot == (uint32_t)b.slot;
    }
    CU_ASSERT(of_a > 0 && of_a <= 16);
    CU_ASSERT_EQUAL(of_b, 1);
    for (int i = 0; i < 20; i++)
        sessions_sum_up(&f.sessions, &f.devices, now(), SECOND);
    CU_ASSERT_EQUAL(f.sessions.ended_count, 0);
    CU_ASSERT_FALSE(f.sessions.backlog);
    CU_ASSERT_EQUAL(count_of_type(EVENT_USAGE), SESSIONS_ENDED_EACH - of_a);
    sessions_end(&f);
}

static void slots_that_rest_after_a_user_count_as_his(void)
{
    sessions_start(&f, 1);
    for (int i = 0; i < 5; i++) {
        fake_attach(&f, &a, "x");
        if (i % 2 == 0)
            sessions_close(&f.sessions, a.slot, now());
    }
    CU_ASSERT_EQUAL(sessions_of_user(&f.sessions, 5, now()), 5);
    CU_ASSERT_EQUAL(sessions_of_user(&f.sessions, 5, now() + 2 * SECOND), 2);
    CU_ASSERT_EQUAL(sessions_of_user(&f.sessions, 6, now()), 0);
    sessions_end(&f);
}

static void random_memory_harms_nobody(void)
{
    sessions_start(&f, 2);
    fake_attach(&f, &a, "hostile");
    fake_attach(&f, &b, "honest");
    struct layout_span span = fake_span(1, "honest", now());
    fake_say(&b, EVENT_BEGIN, &span, now());
    merge(&b);
    srand(1);
    for (int round = 0; round < 3000; round++) {
        for (int i = 0; i < 200; i++)
            a.memory[rand() % (CLIENT_MEMORY_BYTES / 8)] =
                (uint64_t)rand() << 33 ^ (uint64_t)rand() << 8 ^ (uint64_t)(rand() % 3 ? rand() % 256 : 0);
        merge(&a);
        sessions_sum_up(&f.sessions, &f.devices, now(), SECOND);
        sessions_publish(&f.sessions, now());
    }
    CU_ASSERT_EQUAL(f.sessions.items[b.slot].span_count, 1);
    CU_ASSERT(f.sessions.items[a.slot].mirror.lost > 0);
    sessions_close(&f.sessions, a.slot, now());
    CU_ASSERT_EQUAL(f.sessions.span_count, 1);
    sessions_end(&f);
}

TESTS({"span_is_seen_while_open_and_told_when_over", span_is_seen_while_open_and_told_when_over},
      {"usage_follows_the_sample_after_the_end", usage_follows_the_sample_after_the_end},
      {"device_without_samples_is_summed_up_after_some_patience", device_without_samples_is_summed_up_after_some_patience},
      {"hung_device_is_not_waited_for", hung_device_is_not_waited_for},
      {"spans_of_a_client_that_goes_are_abandoned", spans_of_a_client_that_goes_are_abandoned},
      {"slot_rests_a_second_and_its_generation_grows", slot_rests_a_second_and_its_generation_grows},
      {"overlap_of_two_sessions_on_a_device_is_told_to_both", overlap_of_two_sessions_on_a_device_is_told_to_both},
      {"times_and_not_the_order_of_reading_say_what_is_shared", times_and_not_the_order_of_reading_say_what_is_shared},
      {"span_whose_devices_are_gone_is_not_of_all", span_whose_devices_are_gone_is_not_of_all},
      {"lost_events_are_counted_and_concluded_from_the_state", lost_events_are_counted_and_concluded_from_the_state},
      {"begin_that_was_lost_is_told_from_the_end_or_the_state", begin_that_was_lost_is_told_from_the_end_or_the_state},
      {"nonsense_is_rejected_and_counted", nonsense_is_rejected_and_counted},
      {"times_texts_and_devices_are_put_right", times_texts_and_devices_are_put_right},
      {"one_talker_cannot_wash_out_the_others_events", one_talker_cannot_wash_out_the_others_events},
      {"largest_gauge_while_open_is_the_spans_own_peak", largest_gauge_while_open_is_the_spans_own_peak},
      {"segment_made_anew_shows_the_same_sessions", segment_made_anew_shows_the_same_sessions},
      {"one_session_with_much_to_sum_up_does_not_hold_up_the_others", one_session_with_much_to_sum_up_does_not_hold_up_the_others},
      {"slots_that_rest_after_a_user_count_as_his", slots_that_rest_after_a_user_count_as_his},
      {"random_memory_harms_nobody", random_memory_harms_nobody})
