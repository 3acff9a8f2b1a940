/* The JSON documents of sessions, events and usage: shared by the command line and the bridge. */
#include <math.h>
#include <unistd.h>

#include "client/json/document.h"
#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

static void print_equals(json_t *document, const char *expected)
{
    char *text = document_print(document);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    if (strcmp(text, expected) != 0)
        printf("\n  got      %s\n  expected %s\n", text, expected);
    CU_ASSERT_STRING_EQUAL(text, expected);
    free(text);
    json_decref(document);
}

static void a_session_without_anything_open_has_empty_lists(void)
{
    gputap_session session = {.slot = 3, .generation = 2, .pid = 10, .uid = 1000, .since_ms = 1700000000123, .label = "a\"b"};
    print_equals(document_session(&session, NULL, 0),
                 "{\"slot\":3,\"generation\":2,\"pid\":10,\"uid\":1000,\"label\":\"a\\\"b\",\"comm\":null,\"since\":1700000000123,"
                 "\"dropped\":0,\"lost\":0,\"rejected\":0,\"ended\":0,\"gauges\":[],\"spans\":[]}");
}

static void spans_say_null_for_what_is_not_told(void)
{
    gputap_session session = {.slot = 0, .generation = 1, .gauge_count = 1};
    session.gauges[0] = (gputap_gauge_value){.device = 1, .allocated = 5, .reserved = UINT64_MAX, .dynamic = 0};
    gputap_span spans[3] = {{.id = 32, .start_ms = 7, .seconds = 1.23456, .name = "n"},
                            {.id = 33,
                             .parent = 32,
                             .value = 3,
                             .max = 20,
                             .device_count = 2,
                             .devices = {1, 0},
                             .shared = 1,
                             .job = "p1",
                             .node = "3"},
                            {.id = 34, .value = 9, .device_count = -1}};
    json_t *document = document_session(&session, spans, 3);
    print_equals(json_incref(json_object_get(document, "gauges")), "[{\"gpu\":1,\"allocated\":5,\"reserved\":null,\"dynamic\":0}]");
    print_equals(json_incref(json_object_get(document, "spans")),
                 "[{\"id\":32,\"parent\":null,\"job\":null,\"node\":null,\"name\":\"n\",\"value\":null,\"max\":null,\"start\":7,"
                 "\"seconds\":1.235,\"gpus\":null,\"shared\":false},"
                 "{\"id\":33,\"parent\":32,\"job\":\"p1\",\"node\":\"3\",\"name\":null,\"value\":3,\"max\":20,\"start\":0,"
                 "\"seconds\":0,\"gpus\":[1,0],\"shared\":true},"
                 "{\"id\":34,\"parent\":null,\"job\":null,\"node\":null,\"name\":null,\"value\":9,\"max\":null,\"start\":0,"
                 "\"seconds\":0,\"gpus\":[],\"shared\":false}]");
    json_decref(document);
}

static void events_carry_usage_only_where_they_are_usage(void)
{
    gputap_event event = {.type = GPUTAP_EVENT_END,
                          .flags = GPUTAP_EVENT_ABANDONED,
                          .slot = 4,
                          .generation = 9,
                          .pid = 1,
                          .uid = 2,
                          .span = 32,
                          .real_ms = 55,
                          .seconds = 2,
                          .name = "n",
                          .label = "l"};
    print_equals(document_event(&event),
                 "{\"type\":\"end\",\"t\":55,\"session\":\"4.9\",\"label\":\"l\",\"pid\":1,\"uid\":2,\"span\":32,\"parent\":null,"
                 "\"gpus\":null,\"job\":null,\"node\":null,\"name\":\"n\",\"value\":null,\"max\":null,\"seconds\":2,"
                 "\"abandoned\":true,\"recovered\":false}");
    event.type = GPUTAP_EVENT_USAGE;
    event.seconds = (double)NAN;
    const double unknown = (double)NAN;
    event.usage = (gputap_usage){.device = 1,
                                 .flags = GPUTAP_USAGE_SHARED,
                                 .samples = 3,
                                 .seconds = 2,
                                 .sampled_seconds = 2,
                                 .energy = 12.34567,
                                 .net_energy = unknown,
                                 .busy_mean = 50.5,
                                 .busy_peak = 99,
                                 .vram_mean = 10.6,
                                 .vram_peak = 2e10,
                                 .unified_peak = unknown,
                                 .own_vram_peak = unknown,
                                 .temperature_peak = 61.5};
    json_t *document = document_event(&event);
    CU_ASSERT(json_is_null(json_object_get(document, "seconds")));
    print_equals(json_incref(json_object_get(document, "usage")),
                 "{\"gpu\":1,\"seconds\":2,\"sampled_seconds\":2,\"energy\":12.346,\"net_energy\":null,\"busy_mean\":50.5,"
                 "\"busy_peak\":99,\"throttled_seconds\":0,\"vram_mean\":11,\"vram_peak\":20000000000,\"unified_peak\":null,"
                 "\"own_vram_peak\":null,\"temperature_peak\":61.5,\"samples\":3,\"partial\":false,\"estimated\":false,"
                 "\"shared\":true,\"unified\":false}");
    json_decref(document);
    event.type = 99;
    document = document_event(&event);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(document, "type")), "unknown");
    json_decref(document);
}

static void sessions_are_of_one_user_or_of_all(void)
{
    struct fixture f;
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 1, "a");
    gputap *tap = fixture_open(0);
    struct layout_session mine = fixture_session_entry("mine"), other = fixture_session_entry("other");
    other.uid = UINT32_MAX;
    fixture_session(&f, 2, &mine);
    fixture_session(&f, 9, &other);
    json_t *all = document_sessions(tap, -1), *some = document_sessions(tap, mine.uid);
    CU_ASSERT_EQUAL(json_array_size(all), 2);
    CU_ASSERT_EQUAL(json_array_size(some), 1);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_array_get(some, 0), "label")), "mine");
    json_decref(all);
    json_decref(some);
    gputap_close(tap);
    fixture_end(&f);
}

/* --- processes */

static struct fixture f;
static gputap *tap;

static void publish_processes(uint32_t hidden)
{
    struct layout_process rows[2] = {fixture_process(42, 1000, 1000, "python3"), fixture_process(7, 1001, 500, "secret")};
    rows[0].gfx_busy = 12.345;
    rows[0].encode_busy = rows[0].media_busy = (double)NAN;
    rows[0].flags = PROCESS_KFD;
    rows[0].sharers = 1;
    rows[1].start_ms = 0;
    struct layout_process_table table = fixture_process_table(rows, 2);
    table.others = 3, table.others_vram = 30, table.others_gtt = UINT64_MAX;
    table.hidden = hidden;
    table.flags = PROCESS_TABLE_PARTIAL;
    fixture_processes(&f, 0, &table);
}

static void begin_processes(void)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 4, "ab");
    tap = fixture_open(0);
    publish_processes(0);
}

static void end_processes(void)
{
    gputap_close(tap);
    fixture_end(&f);
}

static void processes_of_other_users_are_counted_with_what_they_hold(void)
{
    begin_processes();
    print_equals(document_process_gpu(tap, 0, 1000),
                 "{\"gpu\":0,\"rows\":[{\"pid\":42,\"uid\":1000,\"comm\":\"python3\",\"container\":null,\"start\":1764540000000,"
                 "\"vram\":1000,\"gtt\":4096,\"gfx_busy\":12.3,\"compute_busy\":0,\"copy_busy\":0,\"encode_busy\":null,"
                 "\"decode_busy\":0,\"media_busy\":null,\"sharers\":1,\"kfd\":true,\"partial\":false}],"
                 "\"others\":{\"count\":3,\"vram\":30,\"gtt\":null},\"hidden\":1,\"hidden_vram\":500,\"partial\":true,"
                 "\"external\":null}");
    publish_processes(5);
    json_t *document = document_process_gpu(tap, 0, 1000);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(document, "hidden")), 6);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(document, "hidden_vram")), 500);
    json_decref(document);
    document = document_process_gpu(tap, 0, -1);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(document, "rows")), 2);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(document, "hidden")), 5);
    CU_ASSERT(json_is_null(json_object_get(document, "hidden_vram"))); /* none of them could be read */
    json_decref(document);
    end_processes();
}

static void processes_of_a_device_that_nobody_looks_at_are_null(void)
{
    begin_processes();
    print_equals(document_process_gpus(tap, 1, -1),
                 "[{\"gpu\":1,\"rows\":null,\"others\":null,\"hidden\":null,\"hidden_vram\":null,"
                 "\"partial\":null,\"external\":null}]");
    json_t *all = document_process_gpus(tap, -1, -1);
    CU_ASSERT_EQUAL(json_array_size(all), 2);
    json_decref(all);
    end_processes();
}

TESTS({"a_session_without_anything_open_has_empty_lists", a_session_without_anything_open_has_empty_lists},
      {"spans_say_null_for_what_is_not_told", spans_say_null_for_what_is_not_told},
      {"events_carry_usage_only_where_they_are_usage", events_carry_usage_only_where_they_are_usage},
      {"sessions_are_of_one_user_or_of_all", sessions_are_of_one_user_or_of_all},
      {"processes_of_other_users_are_counted_with_what_they_hold", processes_of_other_users_are_counted_with_what_they_hold},
      {"processes_of_a_device_that_nobody_looks_at_are_null", processes_of_a_device_that_nobody_looks_at_are_null})
