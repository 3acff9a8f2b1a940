/* The hand-written frame against jansson's documents of the same numbers. */
#include "bridge/frames.h"

#include <math.h>

#include "tests/unit/check.h"

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Numbers of every size, also those at the edges of rounding. */
static double random_double(void)
{
    static const double edges[] = {0,     -0.0,   0.05, 0.049999999,  0.95,  99.95, 99.949,   1e-9, 0.1 + 0.2, 9007199254740991.0,
                                   1e300, -1e300, 1e15, 123456789.25, -0.04, -0.06, INFINITY, NAN};
    uint64_t bits = next_random();
    if (bits % 4 == 0)
        return edges[(bits >> 8) % (sizeof edges / sizeof edges[0])];
    double value = (double)(int64_t)(next_random() >> (bits % 40 + 12)) / (double)(1 + (bits >> 8) % 1000);
    return bits & 16 ? -value : value;
}

static void fill(struct frames_row *row, int device)
{
    *row = (struct frames_row){.device = device, .known = next_random() % 8 != 0, .snapshot = GPUTAP_SNAPSHOT_INIT};
    row->snapshot.valid[0] = next_random() | next_random();
    for (int metric = 0; metric < GPUTAP_METRIC_SLOTS; metric++) {
        const gputap_metric *info = gputap_metric_info(device, metric);
        if (info && info->type == GPUTAP_F64)
            row->snapshot.values[metric].f64 = random_double();
        else
            row->snapshot.values[metric].u64 = next_random() >> (next_random() % 60 + 1);
    }
}

static bool same_row(const json_t *row, const struct frames_row *from, enum document_set set, int device)
{
    int metrics[GPUTAP_METRIC_SLOTS];
    int count = document_set_metrics(set, device, metrics, GPUTAP_METRIC_SLOTS);
    if (json_array_size(row) != (size_t)count)
        return false;
    for (int i = 0; i < count; i++) {
        json_t *want = from->known ? document_value(&from->snapshot, device, metrics[i]) : json_null();
        const json_t *got = json_array_get(row, (size_t)i);
        bool same = json_is_null(want) ? json_is_null(got)
                                       : json_is_number(got) && fabs(json_number_value(want) - json_number_value(got)) <=
                                                                    fabs(json_number_value(want)) * 1e-14;
        if (!same)
            printf("column %d: %s against %s\n", i, json_dumps(want, JSON_ENCODE_ANY), json_dumps(got, JSON_ENCODE_ANY));
        json_decref(want);
        if (!same)
            return false;
    }
    return true;
}

static void frames_say_what_documents_say(void)
{
    struct buffer buffer = {0};
    struct frames_row rows[5];
    for (int round = 0; round < 2000; round++) {
        struct frames_sample sample = {
            .seq = next_random() >> 2, .t_ms = (int64_t)(next_random() >> 20), .rows = rows, .count = round % 6};
        enum document_set set = (enum document_set)(round % 3);
        fill(&sample.host, GPUTAP_HOST);
        for (int i = 0; i < sample.count; i++)
            fill(&rows[i], i * 50);
        struct protocol_devices devices = round % 2 ? protocol_all_devices : (struct protocol_devices){{1}};
        frames_write(&buffer, &sample, set, &devices);
        json_t *frame = json_loadb((char *)buffer_data(&buffer), buffer.length, JSON_REJECT_DUPLICATES, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(frame);
        CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(frame, "type")), "s");
        CU_ASSERT_EQUAL((uint64_t)json_integer_value(json_object_get(frame, "seq")), sample.seq);
        CU_ASSERT_EQUAL(json_integer_value(json_object_get(frame, "t")), sample.t_ms);
        json_t *g = json_object_get(frame, "g");
        CU_ASSERT_EQUAL(json_array_size(g), (size_t)sample.count);
        for (int i = 0; i < sample.count; i++) {
            const json_t *row = json_array_get(g, (size_t)i);
            CU_ASSERT(protocol_wants(&devices, i * 50) ? same_row(row, &rows[i], set, i * 50) : json_is_null(row));
        }
        CU_ASSERT(same_row(json_object_get(frame, "c"), &sample.host, set, GPUTAP_HOST));
        json_decref(frame);
    }
    buffer_free(&buffer);
}

static void numbers_are_short(void)
{
    static const struct {
        double value;
        int decimals;
        const char *text;
    } cases[] = {{3.1, 1, "3.1"},           {3.14159, 1, "3.14"},  {3.0, 1, "3"},           {-0.001, 1, "0"},
                 {99.999, 1, "100"},        {0.05, 0, "0.1"},      {2900.0, 0, "2900"},     {-12.5, 0, "-12.5"},
                 {NAN, 1, "null"},          {INFINITY, 1, "null"}, {1024.06, 1, "1024.06"}, {1e300, 0, "1e+300"},
                 {0.000001, 9, "0.000001"}, {7.10, -3, "7.1"}};
    struct buffer buffer = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buffer_clear(&buffer);
        buffer_f64(&buffer, cases[i].value, cases[i].decimals);
        buffer_put(&buffer, "", 1);
        CU_ASSERT_STRING_EQUAL((char *)buffer_data(&buffer), cases[i].text);
    }
    buffer_clear(&buffer);
    buffer_i64(&buffer, INT64_MIN);
    buffer_put(&buffer, " ", 1);
    buffer_u64(&buffer, UINT64_MAX);
    buffer_put(&buffer, "", 1);
    CU_ASSERT_STRING_EQUAL((char *)buffer_data(&buffer), "-9223372036854775808 18446744073709551615");
    buffer_free(&buffer);
}

static void documents_without_a_broker(void)
{
    gputap *tap;
    setenv("GPUTAP_DIR", "/nonexistent/gputap-test", 1);
    CU_ASSERT_EQUAL_FATAL(gputap_open(&tap, "unit", GPUTAP_OPEN_DETACHED), GPUTAP_OK);
    json_t *snapshot = document_snapshot(tap);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(snapshot, "state")), "absent");
    CU_ASSERT(json_is_null(json_object_get(snapshot, "epoch")));
    CU_ASSERT(json_is_null(json_object_get(snapshot, "age_ms")));
    CU_ASSERT_EQUAL(json_array_size(json_object_get(snapshot, "gpus")), 0);
    json_t *metrics = json_object_get(json_object_get(snapshot, "system"), "metrics");
    CU_ASSERT_EQUAL(json_object_size(metrics), GPUTAP_HOST_METRIC_COUNT);
    json_decref(snapshot);
    json_t *history = document_history(tap, GPUTAP_HOST, DOCUMENT_FULL, 10, 10);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(history, "rows")), 0);
    json_decref(history);
    gputap_close(tap);
    json_t *text = document_text("a\xff"
                                 "b");
    CU_ASSERT_STRING_EQUAL(json_string_value(text), "a?b");
    json_decref(text);
}

TESTS({"frames_say_what_documents_say", frames_say_what_documents_say}, {"numbers_are_short", numbers_are_short},
      {"documents_without_a_broker", documents_without_a_broker})
