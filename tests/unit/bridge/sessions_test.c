/* From a segment to the messages about sessions, with the test in the broker's place. */
#include "bridge/annotations.h"

#include "client/json/document.h"
#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

enum { OWN = 1000, OTHER = 1001 };

static struct fixture f;
static gputap *tap;
static struct annotations annotations;
static int64_t now_ms;

static void begin(bool show_all)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 4, "ab");
    tap = fixture_open(0);
    now_ms = 1000000;
    annotations_start(&annotations, tap, show_all, OWN);
    annotations_listen(&annotations, 1);
    annotations_update(&annotations, now_ms);
}

static void end(void)
{
    annotations_stop(&annotations);
    gputap_close(tap);
    fixture_end(&f);
}

static struct layout_session session_of(uint32_t uid, const char *label)
{
    struct layout_session session = fixture_session_entry(label);
    session.uid = uid;
    session.generation = 1;
    return session;
}

static void add_span(struct layout_session *session, uint64_t id, double value)
{
    struct layout_span *span = &session->spans[session->span_count++];
    span->id = id;
    span->start_ns = clock_mono_ns();
    span->value = value;
    span->max = 10;
    snprintf(span->name, sizeof span->name, "n%d", (int)id);
}

static void say(enum event_type type, uint32_t slot, uint32_t uid, uint64_t span, const char *name)
{
    struct layout_event event;
    memset(&event, 0, sizeof event);
    event.type = (uint32_t)type;
    event.slot = slot;
    event.generation = 1;
    event.uid = uid;
    event.span = span;
    event.mono_ns = event.start_ns = clock_mono_ns();
    event.real_ns = clock_real_ns();
    snprintf(event.name, sizeof event.name, "%s", name);
    fixture_event(&f, &event);
}

/* As `sessions` goes out; the caller drops it. */
static json_t *list(void)
{
    json_t *message = json_loadb((char *)buffer_data(&annotations.list), annotations.list.length, 0, NULL);
    CU_ASSERT_STRING_EQUAL_FATAL(json_string_value(json_object_get(message, "type")), "sessions");
    return message;
}

static size_t count_in(const json_t *message, const char *key) { return json_array_size(json_object_get(message, key)); }

static bool list_is(size_t sessions, int hidden)
{
    json_t *message = list();
    bool same = count_in(message, "sessions") == sessions && json_integer_value(json_object_get(message, "hidden")) == hidden;
    json_decref(message);
    return same;
}

static bool update(int64_t later_ms)
{
    now_ms += later_ms;
    return annotations_update(&annotations, now_ms);
}

static void a_begin_and_an_end_are_told_at_once(void)
{
    begin(false);
    struct layout_session session = session_of(OWN, "L");
    fixture_session(&f, 3, &session);
    say(EVENT_ATTACH, 3, OWN, 0, "L");
    CU_ASSERT(update(1));
    CU_ASSERT(list_is(1, 0));
    for (uint64_t span = 1; span <= 5; span++) {
        uint64_t number = annotations.number;
        session.span_count = 0;
        add_span(&session, span, 0);
        fixture_session(&f, 3, &session);
        say(EVENT_BEGIN, 3, OWN, span, "n");
        CU_ASSERT(update(1));
        CU_ASSERT_EQUAL(annotations.number, number + 1);
    }
    session.state = SESSION_FREE;
    fixture_session(&f, 3, &session);
    say(EVENT_DETACH, 3, OWN, 0, "L");
    CU_ASSERT(update(1));
    CU_ASSERT(list_is(0, 0));
    end();
}

static void steps_are_told_ten_times_a_second_and_the_last_one_too(void)
{
    begin(false);
    struct layout_session session = session_of(OWN, "L");
    add_span(&session, 1, 0);
    fixture_session(&f, 0, &session);
    say(EVENT_ATTACH, 0, OWN, 0, "L");
    update(1);
    uint64_t number = annotations.number;
    for (int i = 1; i <= 200; i++) {
        session.spans[0].value = i;
        fixture_session(&f, 0, &session);
        update(10);
    }
    CU_ASSERT(annotations.number - number >= 18 && annotations.number - number <= 21);
    update(100);
    json_t *message = list();
    json_t *span = json_array_get(json_object_get(json_array_get(json_object_get(message, "sessions"), 0), "spans"), 0);
    CU_ASSERT_EQUAL(json_number_value(json_object_get(span, "value")), 200);
    json_decref(message);
    number = annotations.number;
    for (int i = 0; i < 20; i++)
        CU_ASSERT_FALSE(update(100));
    CU_ASSERT_EQUAL(annotations.number, number);
    end();
}

static void say_a_span(uint32_t slot, uint32_t uid)
{
    struct layout_session session = session_of(uid, uid == OWN ? "mine" : "secret");
    add_span(&session, 1, 0);
    fixture_session(&f, slot, &session);
    say(EVENT_ATTACH, slot, uid, 0, session.label);
    say(EVENT_BEGIN, slot, uid, 1, "n1");
    say(EVENT_END, slot, uid, 1, "n1");
    say(EVENT_USAGE, slot, uid, 1, "");
}

static bool mentions(const struct buffer *text, const char *word)
{
    json_t *message = json_loadb((char *)buffer_data(text), text->length, 0, NULL);
    char *plain = document_print(message);
    bool found = plain && strstr(plain, word) != NULL;
    free(plain);
    json_decref(message);
    return found;
}

static void other_users_are_counted_and_not_shown(void)
{
    for (int all = 0; all <= 1; all++) {
        struct event_position at;
        begin(all == 1);
        event_log_newest(&annotations.log, &at);
        say_a_span(0, OWN);
        say_a_span(1, OTHER);
        update(1);
        CU_ASSERT(list_is(all ? 2 : 1, all ? 0 : 1));
        CU_ASSERT_EQUAL(mentions(&annotations.list, "secret"), all == 1);
        const struct buffer *batch = event_log_take(&annotations.log, &at);
        CU_ASSERT_PTR_NOT_NULL_FATAL(batch);
        CU_ASSERT_EQUAL(mentions(batch, "secret"), all == 1);
        CU_ASSERT(mentions(batch, "mine"));
        json_t *document = annotations_document(&annotations);
        char *text = document_print(document);
        CU_ASSERT_EQUAL(strstr(text, "secret") != NULL, all == 1);
        CU_ASSERT_EQUAL(count_in(document, "finished"), all ? 2 : 1);
        CU_ASSERT_EQUAL(json_integer_value(json_object_get(document, "hidden")), all ? 0 : 1);
        free(text);
        json_decref(document);
        end();
    }
}

static void nothing_is_looked_at_where_nothing_was_said(void)
{
    begin(false);
    struct layout_session session = session_of(OWN, "silent");
    fixture_session(&f, 0, &session);
    CU_ASSERT_FALSE(update(1000));
    CU_ASSERT_EQUAL(annotations.open, 0);
    say(EVENT_ATTACH, 0, OWN, 0, "silent");
    CU_ASSERT(update(1));
    CU_ASSERT_EQUAL(annotations.open, 1);
    end();
}

static void without_clients_nothing_is_encoded_but_ended_spans_are_kept(void)
{
    begin(false);
    annotations_listen(&annotations, -1);
    uint64_t number = annotations.number, batches = annotations.log.next;
    say_a_span(0, OWN);
    CU_ASSERT_FALSE(update(1000));
    CU_ASSERT_EQUAL(annotations.number, number);
    CU_ASSERT_EQUAL(annotations.log.next, batches);
    CU_ASSERT_EQUAL(annotations.finished.total, 1);
    annotations_listen(&annotations, 1);
    CU_ASSERT(update(1));
    CU_ASSERT(list_is(1, 0));
    end();
}

static void what_ended_before_the_bridge_started_is_kept_with_its_label(void)
{
    begin(false);
    say_a_span(0, OWN);
    annotations_stop(&annotations);
    struct layout_session next = session_of(OWN, "next in the slot");
    next.generation = 2;
    fixture_session(&f, 0, &next);
    annotations_start(&annotations, tap, false, OWN);
    json_t *document = annotations_document(&annotations);
    const json_t *span = json_array_get(json_object_get(document, "finished"), 0);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(span, "label")), "mine");
    CU_ASSERT_EQUAL(json_array_size(json_object_get(span, "usage")), 1);
    json_decref(document);
    end();
}

static void a_new_broker_has_none_of_the_old_sessions(void)
{
    begin(false);
    say_a_span(0, OWN);
    update(1);
    CU_ASSERT(list_is(1, 0));
    json_t *before = annotations_document(&annotations);
    fixture_segment(&f, 4, "ab");
    fixture_announce(&f);
    gputap_status(tap);
    update(1);
    CU_ASSERT(list_is(0, 0));
    json_t *after = annotations_document(&annotations);
    CU_ASSERT(!json_equal(json_object_get(before, "epoch"), json_object_get(after, "epoch")));
    CU_ASSERT(json_equal(json_object_get(before, "finished"), json_object_get(after, "finished")));
    json_decref(before);
    json_decref(after);
    end();
}

static void a_flood_is_taken_in_pieces_and_what_is_lost_is_counted(void)
{
    begin(false);
    struct event_position at;
    event_log_newest(&annotations.log, &at);
    enum { SAID = 20000 };
    for (int i = 0; i < SAID; i++)
        say(EVENT_INSTANT, 0, OWN, 0, "i");
    update(1);
    CU_ASSERT(annotations.backlog);
    for (int i = 0; i < 1000 && annotations.backlog; i++)
        update(1);
    CU_ASSERT_FALSE(annotations.backlog);
    CU_ASSERT_EQUAL(annotations.log.events - at.event, SAID);
    CU_ASSERT(annotations.cursor.lost >= SAID - LAYOUT_EVENT_DEPTH);
    end();
}

TESTS({"a_begin_and_an_end_are_told_at_once", a_begin_and_an_end_are_told_at_once},
      {"steps_are_told_ten_times_a_second_and_the_last_one_too", steps_are_told_ten_times_a_second_and_the_last_one_too},
      {"other_users_are_counted_and_not_shown", other_users_are_counted_and_not_shown},
      {"nothing_is_looked_at_where_nothing_was_said", nothing_is_looked_at_where_nothing_was_said},
      {"without_clients_nothing_is_encoded_but_ended_spans_are_kept", without_clients_nothing_is_encoded_but_ended_spans_are_kept},
      {"what_ended_before_the_bridge_started_is_kept_with_its_label", what_ended_before_the_bridge_started_is_kept_with_its_label},
      {"a_new_broker_has_none_of_the_old_sessions", a_new_broker_has_none_of_the_old_sessions},
      {"a_flood_is_taken_in_pieces_and_what_is_lost_is_counted", a_flood_is_taken_in_pieces_and_what_is_lost_is_counted})
