/* Cursors and history. */
#include <math.h>

#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

static struct fixture f;
static gputap *tap;

static void begin(void)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 2, "a");
    tap = fixture_open(0);
}

static void end(void)
{
    gputap_close(tap);
    fixture_end(&f);
}

static void publish_many(int from, int to)
{
    for (int i = from; i <= to; i++) {
        struct layout_snapshot sample = fixture_sample(i, 1);
        fixture_publish(&f, 0, &sample);
    }
}

static void cursor_returns_each_sample_once(void)
{
    begin();
    gputap_cursor cursor, newest;
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    CU_ASSERT_EQUAL(gputap_cursor_init(tap, &cursor, 0, 7), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_cursor_init(tap, &cursor, 1, GPUTAP_FROM_OLDEST), GPUTAP_ENODEV);
    CU_ASSERT_EQUAL(gputap_cursor_init(tap, &cursor, 0, GPUTAP_FROM_OLDEST), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_next(tap, &cursor, &got), 0);
    publish_many(1, 3);
    CU_ASSERT_EQUAL(gputap_cursor_init(tap, &newest, 0, GPUTAP_FROM_NEWEST), GPUTAP_OK);
    for (int i = 1; i <= 3; i++) {
        CU_ASSERT_EQUAL(gputap_next(tap, &cursor, &got), 1);
        CU_ASSERT(got.values[GPUTAP_GFX_BUSY].f64 == i && got.sequence == (uint64_t)i);
    }
    CU_ASSERT_EQUAL(gputap_next(tap, &cursor, &got), 0);
    CU_ASSERT_EQUAL(gputap_next(tap, &newest, &got), 0);
    publish_many(4, 4);
    CU_ASSERT_EQUAL(gputap_next(tap, &newest, &got), 1);
    CU_ASSERT_EQUAL(got.values[GPUTAP_GFX_BUSY].f64, 4);
    CU_ASSERT(cursor.got == 3 && cursor.lost == 0 && newest.got == 1 && newest.lost == 0);
    got.size = 1;
    CU_ASSERT_EQUAL(gputap_next(tap, &cursor, &got), GPUTAP_ESIZE);
    CU_ASSERT_EQUAL(cursor.got, 3);
    end();
}

static void lapped_cursor_counts_what_it_lost(void)
{
    begin();
    gputap_cursor cursor;
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    uint64_t published = 0, expected = 0;
    CU_ASSERT_EQUAL(gputap_cursor_init(tap, &cursor, 0, GPUTAP_FROM_NEWEST), GPUTAP_OK);
    static const int bursts[] = {1, 1023, 1024, 1025, 5000, 3, 2048, 1536};
    for (size_t i = 0; i < sizeof bursts / sizeof bursts[0]; i++) {
        publish_many((int)published + 1, (int)published + bursts[i]);
        published += (uint64_t)bursts[i];
        uint64_t lost = cursor.lost;
        while (gputap_next(tap, &cursor, &got) == 1) {
            expected += cursor.lost - lost + 1;
            lost = cursor.lost;
            CU_ASSERT_EQUAL(got.sequence, expected);
        }
        CU_ASSERT_EQUAL(cursor.got + cursor.lost, published);
    }
    CU_ASSERT_EQUAL(cursor.lost, (1025 - 512) + (5000 - 512) + (2048 - 512) + (1536 - 512));
    end();
}

static void oldest_starts_where_the_ring_still_reaches(void)
{
    begin();
    gputap_cursor cursor;
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    publish_many(1, 1500);
    CU_ASSERT_EQUAL(gputap_cursor_init(tap, &cursor, 0, GPUTAP_FROM_OLDEST), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_next(tap, &cursor, &got), 1);
    CU_ASSERT_EQUAL(got.sequence, 1500 - 1024 + 1);
    while (gputap_next(tap, &cursor, &got) == 1)
        ;
    CU_ASSERT(cursor.got == 1024 && cursor.lost == 0 && got.sequence == 1500);
    end();
}

static void cursor_counts_anew_in_a_new_epoch(void)
{
    begin();
    gputap_cursor cursor;
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    CU_ASSERT_EQUAL(gputap_cursor_init(tap, &cursor, 0, GPUTAP_FROM_OLDEST), GPUTAP_OK);
    publish_many(1, 10);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(gputap_next(tap, &cursor, &got), 1);
    fixture_segment(&f, 2, "a");
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_RESTARTED);
    CU_ASSERT_EQUAL(gputap_next(tap, &cursor, &got), 0);
    CU_ASSERT(cursor.restarts == 1 && cursor.got == 0 && cursor.lost == 0);
    publish_many(100, 2099);
    int count = 0;
    while (gputap_next(tap, &cursor, &got) == 1)
        count++;
    CU_ASSERT(count == 512 && cursor.got == 512 && cursor.got + cursor.lost == 2000 && cursor.restarts == 1);
    fixture_segment(&f, 2, "b");
    (void)gputap_status(tap);
    CU_ASSERT_EQUAL(gputap_next(tap, &cursor, &got), GPUTAP_ENODEV);
    end();
}

static void nonsense_in_a_cursor_is_harmless(void)
{
    begin();
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    publish_many(1, 2000);
    for (uint64_t i = 0; i < 64; i++) {
        gputap_cursor cursor = {.device = 0, .next = UINT64_C(1) << i, .attach = 1};
        (void)gputap_next(tap, &cursor, &got);
        cursor = (gputap_cursor){.device = (int32_t)(UINT32_C(1) << (i % 32)), .next = i, .attach = i};
        (void)gputap_next(tap, &cursor, &got);
    }
    end();
}

/* Ten samples a second for `seconds`, the last one now; busy is the sample's age in seconds, whole. */
static void publish_past(int seconds, uint64_t now)
{
    for (int tenth = seconds * 10; tenth > 0; tenth--) {
        struct layout_snapshot sample = fixture_sample((tenth - 1) / 10, 1);
        uint64_t age = (uint64_t)(tenth - 1) * 100000000u;
        sample.mono_ns = now - age;
        sample.real_ns = UINT64_C(1764540000000000000) - age;
        sample.metrics[METRIC_THROTTLE].u64 = UINT64_C(1) << (tenth % 3);
        metrics_set_valid(sample.valid, METRIC_THROTTLE);
        fixture_publish(&f, 0, &sample);
    }
}

static void history_is_means_of_slices(void)
{
    begin();
    static const int metrics[] = {GPUTAP_GFX_BUSY, GPUTAP_POWER_NOW, GPUTAP_THROTTLE};
    int64_t times[64];
    double rows[64 * 3];
    CU_ASSERT_EQUAL(gputap_history(tap, 0, metrics, 3, 10, 10, times, rows), 0);
    uint64_t now = clock_mono_ns() + UINT64_C(100000000000);
    publish_past(60, now);
    int got = gputap_history(tap, 0, metrics, 3, 20, 20, times, rows);
    CU_ASSERT_EQUAL_FATAL(got, 20);
    for (int i = 0; i < got; i++) {
        CU_ASSERT(fabs(rows[i * 3] - (19 - i)) < 0.6);
        CU_ASSERT(isnan(rows[i * 3 + 1]));
        CU_ASSERT_EQUAL(rows[i * 3 + 2], 7); /* bits are gathered, not averaged */
        CU_ASSERT(i == 0 || times[i] - times[i - 1] == 1000);
    }
    CU_ASSERT_EQUAL(gputap_history(tap, 0, metrics, 1, 3600, 1, times, rows), 1);
    CU_ASSERT(fabs(rows[0] - 29.5) < 0.01);
    CU_ASSERT_EQUAL(gputap_history(tap, 0, metrics, 1, 0, 1, times, rows), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_history(tap, 0, metrics, 1, 3601, 1, times, rows), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_history(tap, 0, metrics, 1, 1, 4097, times, rows), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_history(tap, 0, metrics, 65, 1, 1, times, rows), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_history(tap, 0, (const int[]){-1}, 1, 1, 1, times, rows), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_history(tap, 1, metrics, 1, 1, 1, times, rows), GPUTAP_ENODEV);
    end();
}

static void history_leaves_gaps_out_and_reaches_back_by_seconds(void)
{
    begin();
    static const int metrics[] = {GPUTAP_GFX_BUSY, GPUTAP_POWER_CAP};
    static int64_t times[4096];
    static double rows[4096 * 2];
    uint64_t now = clock_mono_ns() + UINT64_C(2000000000000);
    int count;
    const struct metric_info *busy = &metrics_table(false, &count)[METRIC_GFX_BUSY];
    for (uint64_t age = 600; age > 0; age--) { /* one coarse record a second, none between 300 and 200 seconds ago */
        struct layout_coarse record;
        if (age >= 200 && age < 300)
            continue;
        memset(&record, 0, sizeof record);
        record.end_mono_ns = now - age * 1000000000u;
        record.end_real_ns = UINT64_C(1000000000000000) - age * 1000000000u;
        record.samples = 10;
        record.valid = UINT64_C(1) << busy->coarse;
        record.mean[busy->coarse] = (double)age;
        fixture_publish_coarse(&f, 0, &record);
    }
    publish_past(110, now); /* 1100 samples: the ring has been round */
    int got = gputap_history(tap, 0, metrics, 2, 500, 50, times, rows);
    CU_ASSERT_EQUAL(got, 40);
    CU_ASSERT(fabs(rows[0] - 495) < 2);
    CU_ASSERT(isnan(rows[1]));
    double before = 1e9;
    for (int i = 0; i < got; i++) {
        CU_ASSERT(rows[i * 2] < before);
        before = rows[i * 2];
    }
    end();
}

TESTS({"cursor_returns_each_sample_once", cursor_returns_each_sample_once},
      {"lapped_cursor_counts_what_it_lost", lapped_cursor_counts_what_it_lost},
      {"oldest_starts_where_the_ring_still_reaches", oldest_starts_where_the_ring_still_reaches},
      {"cursor_counts_anew_in_a_new_epoch", cursor_counts_anew_in_a_new_epoch},
      {"nonsense_in_a_cursor_is_harmless", nonsense_in_a_cursor_is_harmless},
      {"history_is_means_of_slices", history_is_means_of_slices},
      {"history_leaves_gaps_out_and_reaches_back_by_seconds", history_leaves_gaps_out_and_reaches_back_by_seconds})
