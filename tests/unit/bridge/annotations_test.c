/* What the bridge keeps of events: the bounded log that clients read at their own pace, and the last ended spans. */
#include "bridge/event_log.h"
#include "bridge/finished.h"

#include <math.h>

#include "client/json/document.h"
#include "tests/unit/check.h"

static void add(struct event_log *log, const char *text, uint64_t count)
{
    struct buffer buffer = {0};
    buffer_text(&buffer, text);
    event_log_add(log, &buffer, count);
    CU_ASSERT_PTR_NULL(buffer.memory);
}

static bool next_is(struct event_log *log, struct event_position *at, const char *text)
{
    const struct buffer *batch = event_log_take(log, at);
    return batch && batch->length == strlen(text) && memcmp(buffer_data(batch), text, batch->length) == 0;
}

static void batches_come_in_order_and_once(void)
{
    static struct event_log log;
    struct event_position early, late;
    event_log_newest(&log, &early);
    add(&log, "a", 1);
    add(&log, "b", 3);
    event_log_newest(&log, &late);
    CU_ASSERT(event_log_behind(&log, &early));
    CU_ASSERT(!event_log_behind(&log, &late));
    add(&log, "c", 1);
    CU_ASSERT(next_is(&log, &early, "a") && next_is(&log, &early, "b") && next_is(&log, &early, "c"));
    CU_ASSERT_PTR_NULL(event_log_take(&log, &early));
    CU_ASSERT(!event_log_behind(&log, &early));
    CU_ASSERT_EQUAL(event_log_missed(&log, &late), 0);
    CU_ASSERT(next_is(&log, &late, "c"));
    event_log_free(&log);
}

/* Got and missed add up to what was said, whatever the reader's pace. */
static void a_slow_reader_is_told_exactly_what_it_missed(void)
{
    static struct event_log log;
    struct event_position at;
    uint64_t said = 0, got = 0, missed = 0;
    event_log_newest(&log, &at);
    for (int i = 0; i < 1000; i++) {
        uint64_t count = (uint64_t)(i % 7 + 1);
        said += count;
        if (i % 11 == 0)
            event_log_lose(&log, count);
        else
            add(&log, "x", count);
        if (i % 150 != 149)
            continue;
        for (;;) {
            missed += event_log_missed(&log, &at);
            uint64_t before = at.event;
            if (!event_log_take(&log, &at))
                break;
            got += at.event - before;
        }
        CU_ASSERT_EQUAL(got + missed, said);
        CU_ASSERT(!event_log_behind(&log, &at));
    }
    CU_ASSERT(got > 0 && missed > got);
    event_log_free(&log);
}

static void the_log_is_bounded_in_bytes(void)
{
    static struct event_log log;
    static char text[40000];
    struct event_position at;
    memset(text, 'x', sizeof text - 1);
    event_log_newest(&log, &at);
    for (int i = 0; i < 50; i++)
        add(&log, text, 1);
    CU_ASSERT(log.bytes <= EVENT_LOG_BYTES);
    CU_ASSERT(log.next - log.oldest >= 4);
    CU_ASSERT_EQUAL(event_log_missed(&log, &at), log.oldest);
    event_log_free(&log);
    CU_ASSERT_EQUAL(log.bytes, 0);
}

static void what_could_not_be_encoded_counts_as_lost(void)
{
    static struct event_log log;
    struct event_position at;
    struct buffer broken = {.failed = true};
    event_log_newest(&log, &at);
    event_log_add(&log, &broken, 4);
    add(&log, "a", 1);
    CU_ASSERT_EQUAL(event_log_missed(&log, &at), 4);
    CU_ASSERT(next_is(&log, &at, "a"));
    event_log_free(&log);
}

/* ---- ended spans ---- */

static const uint8_t epoch[16] = {1}, other_epoch[16] = {2};

static gputap_event event_of(uint32_t type, uint64_t span)
{
    gputap_event event = GPUTAP_EVENT_INIT;
    event.type = type;
    event.span = span;
    event.generation = 1;
    event.real_ms = (int64_t)span;
    event.seconds = type == GPUTAP_EVENT_END ? 1.5 : (double)NAN;
    snprintf(event.name, sizeof event.name, "n%llu", (unsigned long long)span);
    event.usage = (gputap_usage){.seconds = 1.25, .energy = 7, .net_energy = (double)NAN};
    return event;
}

static void take(struct finished *finished, const uint8_t of[16], uint32_t type, uint64_t span, int device)
{
    gputap_event event = event_of(type, span);
    event.usage.device = device;
    finished_take(finished, of, &event);
}

static json_t *at(const json_t *list, size_t i, const char *key) { return json_object_get(json_array_get(list, i), key); }

static void usage_is_joined_to_its_span(void)
{
    static struct finished finished;
    take(&finished, epoch, GPUTAP_EVENT_BEGIN, 1, 0);
    take(&finished, epoch, GPUTAP_EVENT_END, 1, 0);
    take(&finished, epoch, GPUTAP_EVENT_END, 2, 0);
    take(&finished, other_epoch, GPUTAP_EVENT_END, 1, 0);
    take(&finished, epoch, GPUTAP_EVENT_USAGE, 1, 0);
    take(&finished, epoch, GPUTAP_EVENT_USAGE, 1, 1);
    json_t *list = finished_document(&finished);
    CU_ASSERT_EQUAL_FATAL(json_array_size(list), 3);
    CU_ASSERT_EQUAL(json_array_size(at(list, 0, "usage")), 2);
    CU_ASSERT_EQUAL(json_array_size(at(list, 1, "usage")), 0);
    CU_ASSERT_EQUAL(json_array_size(at(list, 2, "usage")), 0);
    const json_t *usage = json_array_get(at(list, 0, "usage"), 1);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(usage, "gpu")), 1);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(usage, "energy")), 7);
    CU_ASSERT(json_is_null(json_object_get(usage, "net_energy")));
    CU_ASSERT_EQUAL(json_real_value(at(list, 0, "seconds")), 1.5);
    CU_ASSERT_PTR_NULL(at(list, 0, "type"));
    CU_ASSERT_STRING_EQUAL(json_string_value(at(list, 2, "epoch")), "02000000000000000000000000000000");
    json_decref(list);
    finished_free(&finished);
}

static void usage_whose_end_was_missed_is_a_span_all_the_same(void)
{
    static struct finished finished;
    take(&finished, epoch, GPUTAP_EVENT_USAGE, 9, 3);
    take(&finished, epoch, GPUTAP_EVENT_USAGE, 9, 4);
    json_t *list = finished_document(&finished);
    CU_ASSERT_EQUAL_FATAL(json_array_size(list), 1);
    CU_ASSERT_STRING_EQUAL(json_string_value(at(list, 0, "name")), "n9");
    CU_ASSERT_EQUAL(json_real_value(at(list, 0, "seconds")), 1.25);
    CU_ASSERT_EQUAL(json_array_size(at(list, 0, "usage")), 2);
    json_decref(list);
    finished_free(&finished);
}

static void the_last_spans_are_kept_oldest_first(void)
{
    static struct finished finished;
    for (uint64_t span = 1; span <= FINISHED_SPANS + 50; span++) {
        take(&finished, epoch, GPUTAP_EVENT_END, span, 0);
        take(&finished, epoch, GPUTAP_EVENT_USAGE, span, 0);
    }
    for (int i = 0; i < 2 * FINISHED_DEVICES; i++)
        take(&finished, epoch, GPUTAP_EVENT_USAGE, FINISHED_SPANS, i);
    json_t *list = finished_document(&finished);
    CU_ASSERT_EQUAL_FATAL(json_array_size(list), FINISHED_SPANS);
    CU_ASSERT_EQUAL(json_integer_value(at(list, 0, "span")), 51);
    CU_ASSERT_EQUAL(json_integer_value(at(list, FINISHED_SPANS - 1, "span")), FINISHED_SPANS + 50);
    CU_ASSERT_EQUAL(json_array_size(at(list, FINISHED_SPANS - 51, "usage")), FINISHED_DEVICES);
    json_decref(list);
    finished_free(&finished);
}

TESTS({"batches_come_in_order_and_once", batches_come_in_order_and_once},
      {"a_slow_reader_is_told_exactly_what_it_missed", a_slow_reader_is_told_exactly_what_it_missed},
      {"the_log_is_bounded_in_bytes", the_log_is_bounded_in_bytes},
      {"what_could_not_be_encoded_counts_as_lost", what_could_not_be_encoded_counts_as_lost},
      {"usage_is_joined_to_its_span", usage_is_joined_to_its_span},
      {"usage_whose_end_was_missed_is_a_span_all_the_same", usage_whose_end_was_missed_is_a_span_all_the_same},
      {"the_last_spans_are_kept_oldest_first", the_last_spans_are_kept_oldest_first})
