/* Sessions, events and usage as a reader of the segment gets them. */
#include <math.h>
#include <pthread.h>

#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

#define SECOND UINT64_C(1000000000)

static struct fixture f;
static gputap *tap;

static void begin_with(const char *names)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 4, names);
    tap = fixture_open(0);
}

static void begin(void) { begin_with("ab"); }

static void end(void)
{
    gputap_close(tap);
    fixture_end(&f);
}

static struct layout_span span_entry(uint64_t id, const char *name, uint64_t devices)
{
    struct layout_span span;
    memset(&span, 0, sizeof span);
    span.id = id;
    span.start_ns = clock_mono_ns();
    span.devices = devices;
    snprintf(span.job, sizeof span.job, "p1");
    snprintf(span.node, sizeof span.node, "%d", (int)id);
    snprintf(span.name, sizeof span.name, "%s", name);
    return span;
}

static struct layout_event event_entry(enum event_type type, uint64_t span)
{
    struct layout_event event;
    memset(&event, 0, sizeof event);
    event.type = (uint32_t)type;
    event.generation = 1;
    event.span = span;
    event.mono_ns = clock_mono_ns();
    event.real_ns = clock_real_ns();
    return event;
}

/* --- sessions */

static void a_free_slot_is_empty(void)
{
    begin();
    gputap_session session = GPUTAP_SESSION_INIT;
    CU_ASSERT_EQUAL(gputap_session_slots(tap), LAYOUT_SESSION_SLOTS);
    CU_ASSERT_EQUAL(gputap_session_info(tap, 0, &session, NULL, 0), GPUTAP_EEMPTY);
    CU_ASSERT_EQUAL(gputap_session_info(tap, -1, &session, NULL, 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_session_info(tap, LAYOUT_SESSION_SLOTS, &session, NULL, 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_session_info(tap, 0, NULL, NULL, 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_session_info(tap, 0, &session, NULL, -1), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_session_info(NULL, 0, &session, NULL, 0), GPUTAP_EINVAL);
    struct layout_session entry = fixture_session_entry("gone");
    entry.state = SESSION_FREE;
    fixture_session(&f, 0, &entry);
    CU_ASSERT_EQUAL(gputap_session_info(tap, 0, &session, NULL, 0), GPUTAP_EEMPTY);
    end();
}

static void a_session_shows_its_spans_and_gauges(void)
{
    begin();
    struct layout_session entry = fixture_session_entry("ComfyUI");
    entry.generation = 7;
    entry.dropped = 1, entry.lost = 2, entry.rejected = 3, entry.ended = 4;
    entry.span_count = 2;
    entry.spans[0] = span_entry(33, "KSampler", 2);
    entry.spans[0].start_ns -= 5 * SECOND;
    entry.spans[0].value = 3, entry.spans[0].max = 20;
    entry.spans[0].shared = 2;
    entry.spans[1] = span_entry(34, "VAE", 0);
    entry.spans[1].parent = 33;
    entry.gauge_count = 1;
    entry.gauges[0] = (struct layout_gauge){.updated_ns = 1, .device = 1, .allocated = 10, .reserved = 20, .dynamic = UINT64_MAX};
    fixture_session(&f, 5, &entry);
    gputap_session session = GPUTAP_SESSION_INIT;
    gputap_span spans[GPUTAP_MAX_SPANS];
    CU_ASSERT_EQUAL(gputap_session_info(tap, 5, &session, spans, GPUTAP_MAX_SPANS), 2);
    CU_ASSERT(session.slot == 5 && session.generation == 7 && session.pid == 4321 && session.uid == 1000 && !session.mine);
    CU_ASSERT(session.dropped == 1 && session.lost == 2 && session.rejected == 3 && session.ended == 4);
    CU_ASSERT_STRING_EQUAL(session.label, "ComfyUI");
    CU_ASSERT_STRING_EQUAL(session.comm, "python3");
    CU_ASSERT(session.span_count == 2 && session.gauge_count == 1);
    CU_ASSERT(session.gauges[0].device == 1 && session.gauges[0].allocated == 10 && session.gauges[0].reserved == 20 &&
              session.gauges[0].dynamic == UINT64_MAX);
    CU_ASSERT(spans[0].id == 33 && spans[0].parent == 0 && spans[0].value == 3 && spans[0].max == 20 && spans[0].shared == 1);
    CU_ASSERT(spans[0].device_count == 1 && spans[0].devices[0] == 1);
    CU_ASSERT(spans[0].seconds >= 5 && spans[0].seconds < 60);
    int64_t started = (int64_t)(clock_real_ns() / 1000000) - 5000;
    CU_ASSERT(spans[0].start_ms <= started + 5 && spans[0].start_ms > started - 55000);
    CU_ASSERT_STRING_EQUAL(spans[0].job, "p1");
    CU_ASSERT_STRING_EQUAL(spans[0].node, "33");
    CU_ASSERT_STRING_EQUAL(spans[0].name, "KSampler");
    CU_ASSERT(spans[1].parent == 33 && spans[1].device_count == 0 && spans[1].max == 0 && spans[1].shared == 0);
    CU_ASSERT_EQUAL(gputap_session_info(tap, 5, &session, spans, 1), 1);
    CU_ASSERT_EQUAL(gputap_session_info(tap, 5, &session, NULL, 8), 0);
    CU_ASSERT_EQUAL(session.span_count, 2);
    session.size = 4;
    CU_ASSERT_EQUAL(gputap_session_info(tap, 5, &session, spans, 1), GPUTAP_ESIZE);
    end();
}

static void slots_become_the_handle_s_own_numbers(void)
{
    begin_with("ab"); /* numbers 0 and 1 */
    fixture_segment(&f, 4, "xba");
    (void)gputap_status(tap); /* now: slot 0 is number 2, slot 1 is 1, slot 2 is 0 */
    struct layout_session entry = fixture_session_entry("s");
    entry.span_count = 4;
    entry.spans[0] = span_entry(1, "some", 1 | 4);
    entry.spans[1] = span_entry(2, "none", UINT64_C(1) << 50);
    entry.spans[2] = span_entry(3, "gone", 0);
    entry.spans[2].flags = SPAN_NO_DEVICE;
    entry.spans[3] = span_entry(4, "b", 2);
    entry.gauge_count = 3;
    entry.gauges[0] = (struct layout_gauge){.updated_ns = 1, .device = 2, .reserved = 20};
    entry.gauges[1] = (struct layout_gauge){.updated_ns = 1, .device = 3, .reserved = 30};
    entry.gauges[2] = (struct layout_gauge){.updated_ns = 1, .device = UINT32_MAX, .reserved = 40};
    fixture_session(&f, 0, &entry);
    gputap_session session = GPUTAP_SESSION_INIT;
    gputap_span spans[GPUTAP_MAX_SPANS];
    CU_ASSERT_EQUAL(gputap_session_info(tap, 0, &session, spans, GPUTAP_MAX_SPANS), 4);
    CU_ASSERT(spans[0].device_count == 2 && spans[0].devices[0] == 2 && spans[0].devices[1] == 0);
    CU_ASSERT(spans[1].device_count == -1 && spans[2].device_count == -1); /* and not 0, which is all */
    CU_ASSERT(spans[3].device_count == 1 && spans[3].devices[0] == 1);
    CU_ASSERT(session.gauge_count == 1 && session.gauges[0].device == 0 && session.gauges[0].reserved == 20);
    end();
}

static void garbage_in_the_mirror_is_bounded_and_cleaned(void)
{
    begin();
    struct layout_session entry = fixture_session_entry("s");
    memset(entry.label, 'x', sizeof entry.label);
    memcpy(entry.comm, "a\033[2J\xff\xc3\xa9", 9);
    entry.span_count = entry.gauge_count = UINT32_MAX;
    for (int i = 0; i < LAYOUT_SESSION_SPANS; i++) {
        entry.spans[i] = span_entry((uint64_t)i, "n", UINT64_MAX);
        memset(entry.spans[i].name, 0xC3, sizeof entry.spans[i].name);
        entry.spans[i].value = (double)NAN;
        entry.spans[i].max = (double)INFINITY;
        entry.spans[i].start_ns = UINT64_MAX;
    }
    fixture_session(&f, 0, &entry);
    gputap_session session = GPUTAP_SESSION_INIT;
    gputap_span spans[GPUTAP_MAX_SPANS];
    CU_ASSERT_EQUAL(gputap_session_info(tap, 0, &session, spans, 1000), LAYOUT_SESSION_SPANS - 1); /* id 0 is none */
    CU_ASSERT(strlen(session.label) == sizeof session.label - 1);
    CU_ASSERT_STRING_EQUAL(session.comm, "a[2J\xc3\xa9");
    CU_ASSERT(session.span_count == LAYOUT_SESSION_SPANS && session.gauge_count == 0);
    CU_ASSERT(spans[0].value == 0 && spans[0].max == 0 && spans[0].seconds == 0 && spans[0].name[0] == '\0');
    CU_ASSERT_EQUAL(spans[0].device_count, 2);
    end();
}

/* As a segment of ABI 1.0: the regions that came later get types that nobody knows. */
static void hide_regions(void)
{
    const struct layout_header *header = f.writer.header;
    for (uint32_t i = 0; i < header->region_count; i++)
        if (header->regions[i].type >= REGION_SESSION) {
            uint16_t type = 900;
            fixture_poke(&f, offsetof(struct layout_header, regions) + i * sizeof header->regions[0], &type, sizeof type);
        }
}

static void an_older_broker_has_no_slots_and_no_events(void)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 4, "ab");
    hide_regions();
    tap = fixture_open(0);
    gputap_session session = GPUTAP_SESSION_INIT;
    gputap_event event = GPUTAP_EVENT_INIT;
    gputap_cursor cursor;
    CU_ASSERT_EQUAL(gputap_session_slots(tap), 0);
    CU_ASSERT_EQUAL(gputap_session_info(tap, 0, &session, NULL, 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_event_cursor_init(tap, &cursor, GPUTAP_FROM_OLDEST), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 0);
    fixture_segment(&f, 4, "ab"); /* it is updated */
    struct layout_event attach = event_entry(EVENT_ATTACH, 0);
    fixture_event(&f, &attach);
    (void)gputap_status(tap);
    CU_ASSERT_EQUAL(gputap_session_slots(tap), LAYOUT_SESSION_SLOTS);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
    CU_ASSERT_EQUAL(cursor.restarts, 1);
    end();
}

/* --- events */

static void events_come_once_and_in_order(void)
{
    begin();
    gputap_cursor oldest, newest;
    gputap_event event = GPUTAP_EVENT_INIT;
    CU_ASSERT_EQUAL(gputap_event_cursor_init(tap, &oldest, 9), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_event_cursor_init(tap, NULL, 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_event_cursor_init(tap, &oldest, GPUTAP_FROM_OLDEST), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &oldest, &event), 0);
    struct layout_session session = fixture_session_entry("label");
    fixture_session(&f, 0, &session);
    struct layout_event begun = event_entry(EVENT_BEGIN, 32), step = begun, ended = begun;
    begun.devices = 2;
    begun.parent = 5;
    snprintf(begun.name, sizeof begun.name, "KSampler");
    fixture_event(&f, &begun);
    CU_ASSERT_EQUAL(gputap_event_cursor_init(tap, &newest, GPUTAP_FROM_NEWEST), GPUTAP_OK);
    step.type = EVENT_STEP;
    step.start_ns = step.mono_ns - SECOND / 2;
    step.value = 1, step.max = 4;
    fixture_event(&f, &step);
    ended.type = EVENT_END;
    ended.flags = EVENT_ABANDONED | 0x100;
    ended.start_ns = ended.mono_ns + 1; /* a clock that makes no sense */
    ended.value = (double)NAN, ended.max = 4;
    fixture_event(&f, &ended);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &oldest, &event), 1);
    CU_ASSERT(event.type == GPUTAP_EVENT_BEGIN && event.slot == 0 && event.generation == 1 && event.span == 32 &&
              event.parent == 5);
    CU_ASSERT(event.device_count == 1 && event.devices[0] == 1 && isnan(event.seconds));
    CU_ASSERT(event.mono_ns == begun.mono_ns && event.real_ms == (int64_t)(begun.real_ns / 1000000));
    CU_ASSERT_STRING_EQUAL(event.name, "KSampler");
    CU_ASSERT_STRING_EQUAL(event.label, "label");
    CU_ASSERT_EQUAL(gputap_next_event(tap, &newest, &event), 1);
    CU_ASSERT(event.type == GPUTAP_EVENT_STEP && event.value == 1 && event.max == 4 && event.seconds == 0.5);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &newest, &event), 1);
    CU_ASSERT(event.type == GPUTAP_EVENT_END && event.flags == GPUTAP_EVENT_ABANDONED && isnan(event.seconds));
    CU_ASSERT(event.value == 0 && event.max == 0);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &newest, &event), 0);
    CU_ASSERT(newest.got == 2 && newest.lost == 0);
    event.size = 2;
    CU_ASSERT_EQUAL(gputap_next_event(tap, &oldest, &event), GPUTAP_ESIZE);
    CU_ASSERT_EQUAL(oldest.got, 1);
    end();
}

static void a_lapped_event_cursor_counts_what_it_lost(void)
{
    begin();
    gputap_cursor cursor;
    gputap_event event = GPUTAP_EVENT_INIT;
    struct layout_event instant = event_entry(EVENT_INSTANT, 0);
    CU_ASSERT_EQUAL(gputap_event_cursor_init(tap, &cursor, GPUTAP_FROM_NEWEST), GPUTAP_OK);
    for (int i = 0; i < LAYOUT_EVENT_DEPTH + 100; i++) {
        instant.parent = (uint64_t)i;
        fixture_event(&f, &instant);
    }
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
    CU_ASSERT_EQUAL(cursor.lost, LAYOUT_EVENT_DEPTH / 2 + 100);
    CU_ASSERT_EQUAL(event.parent, cursor.lost);
    while (gputap_next_event(tap, &cursor, &event) == 1)
        ;
    CU_ASSERT_EQUAL(cursor.got + cursor.lost, LAYOUT_EVENT_DEPTH + 100);
    CU_ASSERT_EQUAL(event.parent, LAYOUT_EVENT_DEPTH + 99);
    end();
}

static struct layout_event usage_of(uint64_t span, uint64_t end_ticket, uint32_t device)
{
    struct layout_event event = event_entry(EVENT_USAGE, span);
    event.end_ticket = end_ticket;
    event.usage = (struct layout_usage){.device = device,
                                        .flags = GPUTAP_USAGE_SHARED | 0x4000,
                                        .samples = 12,
                                        .seconds = 2,
                                        .sampled_seconds = 1.5,
                                        .energy = 30,
                                        .net_energy = (double)NAN,
                                        .busy_mean = 50,
                                        .busy_peak = -1,
                                        .throttled_seconds = (double)INFINITY,
                                        .vram_mean = 1,
                                        .vram_peak = 2,
                                        .unified_peak = 3,
                                        .own_vram_peak = 4,
                                        .temperature_peak = -5};
    return event;
}

static void usage_events_take_their_texts_from_the_end(void)
{
    begin();
    gputap_cursor cursor;
    gputap_event event = GPUTAP_EVENT_INIT;
    CU_ASSERT_EQUAL(gputap_event_cursor_init(tap, &cursor, GPUTAP_FROM_OLDEST), GPUTAP_OK);
    struct layout_event ended = event_entry(EVENT_END, 64), other = event_entry(EVENT_BEGIN, 64);
    snprintf(ended.job, sizeof ended.job, "p1");
    snprintf(ended.node, sizeof ended.node, "3");
    snprintf(ended.name, sizeof ended.name, "KSampler");
    uint64_t ticket = fixture_event(&f, &ended);
    struct layout_event usage = usage_of(64, ticket, 1);
    fixture_event(&f, &usage);
    uint64_t wrong = fixture_event(&f, &other);
    struct layout_event lost[] = {usage_of(64, wrong, 0), usage_of(65, ticket, 0), usage_of(64, UINT64_MAX, 9)};
    lost[2].generation = 8;
    for (int i = 0; i < 3; i++)
        fixture_event(&f, &lost[i]);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
    CU_ASSERT(event.type == GPUTAP_EVENT_USAGE && event.flags == 0 && event.span == 64);
    CU_ASSERT_STRING_EQUAL(event.job, "p1");
    CU_ASSERT_STRING_EQUAL(event.node, "3");
    CU_ASSERT_STRING_EQUAL(event.name, "KSampler");
    CU_ASSERT_STRING_EQUAL(event.label, "");
    const gputap_usage *u = &event.usage;
    CU_ASSERT(u->device == 1 && u->flags == GPUTAP_USAGE_SHARED && u->samples == 12 && u->seconds == 2 &&
              u->sampled_seconds == 1.5);
    CU_ASSERT(u->energy == 30 && isnan(u->net_energy) && u->busy_mean == 50 && isnan(u->busy_peak) && isnan(u->throttled_seconds));
    CU_ASSERT(u->vram_mean == 1 && u->vram_peak == 2 && u->unified_peak == 3 && u->own_vram_peak == 4 && u->temperature_peak == -5);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
        CU_ASSERT(event.flags == GPUTAP_EVENT_NO_TEXTS && event.name[0] == '\0');
    }
    CU_ASSERT_EQUAL(event.usage.device, -1);
    end();
}

static void a_label_is_told_while_the_slot_is_its_own(void)
{
    begin();
    gputap_cursor cursor;
    gputap_event event = GPUTAP_EVENT_INIT;
    CU_ASSERT_EQUAL(gputap_event_cursor_init(tap, &cursor, GPUTAP_FROM_OLDEST), GPUTAP_OK);
    struct layout_session session = fixture_session_entry("second");
    session.generation = 2;
    fixture_session(&f, 0, &session);
    struct layout_event attach = event_entry(EVENT_ATTACH, 0), begun = event_entry(EVENT_BEGIN, 32);
    snprintf(attach.name, sizeof attach.name, "first");
    fixture_event(&f, &attach);
    fixture_event(&f, &begun);
    begun.generation = 2;
    fixture_event(&f, &begun);
    begun.slot = UINT32_MAX;
    begun.type = 77;
    fixture_event(&f, &begun);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
    CU_ASSERT_STRING_EQUAL(event.label, "first");
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
    CU_ASSERT_STRING_EQUAL(event.label, "");
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
    CU_ASSERT_STRING_EQUAL(event.label, "second");
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), 1);
    CU_ASSERT(event.type == 77 && event.slot == -1 && event.label[0] == '\0');
    end();
}

/* --- usage and clocks */

static void publish_at(uint32_t slot, uint64_t mono_ns, double joules, double seconds)
{
    struct layout_snapshot sample = fixture_sample(40, 1000);
    sample.mono_ns = mono_ns;
    sample.metrics[METRIC_POWER_NOW].f64 = 20;
    metrics_set_valid(sample.valid, METRIC_POWER_NOW);
    sample.sums[ACCUMULATE_ENERGY] = joules;
    sample.sums[ACCUMULATE_SAMPLED] = seconds;
    sample.sums[ACCUMULATE_BUSY] = 0.4 * seconds;
    fixture_publish(&f, slot, &sample);
}

static void usage_is_of_the_device_and_the_interval(void)
{
    begin();
    gputap_usage usage;
    uint64_t now = clock_mono_ns();
    CU_ASSERT_EQUAL(gputap_usage_between(tap, 1, now - SECOND, now, &usage), GPUTAP_EEMPTY);
    CU_ASSERT_EQUAL(gputap_usage_between(tap, 2, now - SECOND, now, &usage), GPUTAP_ENODEV);
    CU_ASSERT_EQUAL(gputap_usage_between(tap, GPUTAP_HOST, now - SECOND, now, &usage), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_usage_between(tap, 1, now, now - SECOND, &usage), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_usage_between(tap, 1, now, now, NULL), GPUTAP_EINVAL);
    struct layout_device entry = fixture_entry('b');
    entry.idle_watts = 5;
    fixture_device(&f, 1, &entry);
    for (int i = 0; i <= 10; i++)
        publish_at(1, now - 10 * SECOND + (uint64_t)i * SECOND, 20.0 * i, i);
    CU_ASSERT_EQUAL(gputap_usage_between(tap, 1, now - 6 * SECOND, now - 2 * SECOND, &usage), GPUTAP_OK);
    CU_ASSERT(usage.device == 1 && usage.flags == 0 && usage.samples == 5);
    CU_ASSERT_DOUBLE_EQUAL(usage.seconds, 4, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(usage.energy, 80, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(usage.net_energy, 60, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(usage.busy_mean, 40, 1e-6);
    CU_ASSERT_EQUAL(gputap_usage_between(tap, 1, now - 6 * SECOND, 0, &usage), GPUTAP_OK); /* until now */
    CU_ASSERT(usage.flags == GPUTAP_USAGE_ESTIMATED && usage.seconds >= 6 && usage.seconds < 30);
    CU_ASSERT(usage.energy >= 120);
    end();
}

static void the_clock_is_ours_or_derived_from_the_host_s_sample(void)
{
    begin();
    uint64_t before = clock_mono_ns(), now = gputap_now(tap), after = clock_mono_ns();
    CU_ASSERT(now >= before && now <= after);
    CU_ASSERT_EQUAL(gputap_now(NULL), 0);
    gputap_close(tap);
    uint64_t elsewhere = 1234567;
    fixture_poke(&f, offsetof(struct layout_header, time_namespace), &elsewhere, sizeof elsewhere);
    tap = fixture_open(0);
    CU_ASSERT_EQUAL(gputap_now(tap), 0); /* nothing ties the clocks yet */
    struct layout_snapshot host = fixture_sample(0, 0);
    const uint64_t shift = 1000000 * SECOND;
    host.mono_ns += shift;
    host.real_ns -= 3 * SECOND; /* taken three seconds ago */
    host.mono_ns -= 3 * SECOND;
    fixture_publish_host(&f, &host);
    int64_t off = (int64_t)(gputap_now(tap) - (clock_mono_ns() + shift));
    CU_ASSERT(off > -(int64_t)SECOND && off < (int64_t)SECOND / 10);
    end();
}

/* --- waiting */

static void *merge_later(void *unused)
{
    fixture_sleep_ms(60);
    segment_wake(&f.writer);
    return unused;
}

static void waiting_for_a_change_sees_a_merge_between_ticks(void)
{
    begin();
    uint64_t change = 0, tick = 0;
    pthread_t thread;
    CU_ASSERT_EQUAL(gputap_wait_change(tap, NULL, 0), GPUTAP_EINVAL);
    fixture_announce(&f);
    CU_ASSERT_EQUAL(gputap_wait_change(tap, &change, 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_wait_change(tap, &change, 0), GPUTAP_ETIMEDOUT);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, merge_later, NULL), 0);
    uint64_t began = clock_mono_ns();
    CU_ASSERT_EQUAL(gputap_wait_change(tap, &change, 10000), GPUTAP_OK);
    CU_ASSERT(clock_mono_ns() - began < 5 * SECOND);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 0), GPUTAP_ETIMEDOUT); /* which is no tick */
    fixture_announce(&f);
    CU_ASSERT_EQUAL(gputap_wait_change(tap, &change, 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 0), GPUTAP_OK);
    fixture_segment(&f, 4, "ab"); /* another segment is a change, too */
    (void)gputap_status(tap);
    CU_ASSERT_EQUAL(gputap_wait_change(tap, &change, 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_wait_change(tap, &change, 0), GPUTAP_ETIMEDOUT);
    end();
}

static void without_a_broker_all_say_so(void)
{
    fixture_start(&f);
    tap = fixture_open(GPUTAP_OPEN_DETACHED);
    gputap_session session = GPUTAP_SESSION_INIT;
    gputap_event event = GPUTAP_EVENT_INIT;
    gputap_usage usage;
    gputap_cursor cursor = {0};
    uint64_t change = 0;
    CU_ASSERT_EQUAL(gputap_session_slots(tap), GPUTAP_ENOBROKER);
    CU_ASSERT_EQUAL(gputap_session_info(tap, 0, &session, NULL, 0), GPUTAP_ENOBROKER);
    CU_ASSERT_EQUAL(gputap_event_cursor_init(tap, &cursor, 0), GPUTAP_ENOBROKER);
    CU_ASSERT_EQUAL(gputap_next_event(tap, &cursor, &event), GPUTAP_ENOBROKER);
    CU_ASSERT_EQUAL(gputap_usage_between(tap, 0, 0, 0, &usage), GPUTAP_ENOBROKER);
    CU_ASSERT_EQUAL(gputap_wait_change(tap, &change, 0), GPUTAP_ENOBROKER);
    CU_ASSERT_EQUAL(gputap_now(tap), 0);
    end();
}

TESTS({"a_free_slot_is_empty", a_free_slot_is_empty},
      {"a_session_shows_its_spans_and_gauges", a_session_shows_its_spans_and_gauges},
      {"slots_become_the_handle_s_own_numbers", slots_become_the_handle_s_own_numbers},
      {"garbage_in_the_mirror_is_bounded_and_cleaned", garbage_in_the_mirror_is_bounded_and_cleaned},
      {"an_older_broker_has_no_slots_and_no_events", an_older_broker_has_no_slots_and_no_events},
      {"events_come_once_and_in_order", events_come_once_and_in_order},
      {"a_lapped_event_cursor_counts_what_it_lost", a_lapped_event_cursor_counts_what_it_lost},
      {"usage_events_take_their_texts_from_the_end", usage_events_take_their_texts_from_the_end},
      {"a_label_is_told_while_the_slot_is_its_own", a_label_is_told_while_the_slot_is_its_own},
      {"usage_is_of_the_device_and_the_interval", usage_is_of_the_device_and_the_interval},
      {"the_clock_is_ours_or_derived_from_the_host_s_sample", the_clock_is_ours_or_derived_from_the_host_s_sample},
      {"waiting_for_a_change_sees_a_merge_between_ticks", waiting_for_a_change_sees_a_merge_between_ticks},
      {"without_a_broker_all_say_so", without_a_broker_all_say_so})
