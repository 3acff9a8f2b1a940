/* The handle follows its instance: restarts, deaths, standstill, and threads that read through all of it. */
#include <pthread.h>

#include "client/handle.h"
#include "tests/helpers/os.h"
#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

static struct fixture f;
static gputap *tap;

static void begin(const char *names)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 4, names);
    fixture_announce(&f);
    tap = fixture_open(0);
}

static void end(void)
{
    gputap_close(tap);
    fixture_end(&f);
}

/* kill -9 and a new start. */
static void restart(uint32_t slots, const char *names)
{
    fixture_unlock(&f);
    fixture_abandon(&f);
    fixture_lock(&f);
    fixture_segment(&f, slots, names);
}

/* That the handle holds. One that it lost while it was exchanged (see shm/range_win32.c) is another's. */
static int ranges(void)
{
    int count = 0;
    for (struct mapping *mapping = tap->mappings; mapping; mapping = mapping->next)
        count += mapping->retired || mapping == handle_current(tap);
    return count;
}

static void status_tells_life_standstill_and_death(void)
{
    begin("a");
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_RUNNING);
    CU_ASSERT_EQUAL(gputap_period(tap), 20000000);
    CU_ASSERT_EQUAL(gputap_tick(tap), 1);
    fixture_sleep_ms(300); /* 2.5 periods + 100 ms are 150 ms */
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_STALE);
    fixture_announce(&f);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_RUNNING);
    fixture_unlock(&f);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_DEAD);
    fixture_lock(&f);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_RUNNING);
    segment_mark(&f.writer, SEGMENT_DEAD);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_DEAD);
    end();
}

static void numbers_of_a_dead_broker_stay_readable(void)
{
    begin("a");
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    struct layout_snapshot sample = fixture_sample(5, 5);
    fixture_publish(&f, 0, &sample);
    fixture_unlock(&f);
    fixture_abandon(&f);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_DEAD);
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
    fixture_sleep_ms(30);
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
    CU_ASSERT(got.age_ns >= 30000000);
    end();
}

static void a_new_segment_is_attached_by_reading_alone(void)
{
    begin("a");
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    uint8_t before[16], after[16];
    struct layout_snapshot sample = fixture_sample(1, 1);
    fixture_publish(&f, 0, &sample);
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_epoch(tap, before), GPUTAP_OK);
    restart(4, "a");
    sample = fixture_sample(2, 2);
    fixture_publish(&f, 0, &sample);
    uint64_t start = clock_mono_ns();
    do {
        CU_ASSERT_EQUAL_FATAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
    } while (got.values[GPUTAP_GFX_BUSY].f64 != 2 && clock_mono_ns() - start < UINT64_C(2000000000));
    CU_ASSERT_EQUAL(got.values[GPUTAP_GFX_BUSY].f64, 2);
    CU_ASSERT_EQUAL(got.sequence, 1);
    CU_ASSERT(clock_mono_ns() - start < UINT64_C(500000000));
    CU_ASSERT_EQUAL(gputap_epoch(tap, after), GPUTAP_OK);
    CU_ASSERT(memcmp(before, after, 16) != 0);
    fixture_announce(&f); /* a slow machine is not a beat that stands still */
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_RUNNING | GPUTAP_STATUS_RESTARTED | GPUTAP_STATUS_CHANGED);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_RUNNING);
    end();
}

static void a_swept_file_that_was_made_again_is_attached(void)
{
    char path[256];
    if (os_named_places())
        SKIP("nobody can remove an object that is held");
    begin("a");
    snprintf(path, sizeof path, "%s/%s", f.folder, PLACE_SEGMENT);
    CU_ASSERT(os_remove_file(path));
    CU_ASSERT_FALSE(segment_in_place(&f.writer, f.folder));
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_RUNNING);
    fixture_segment(&f, 4, "a");
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_RESTARTED);
    end();
}

static void device_numbers_stay_with_their_ids(void)
{
    begin("abc");
    gputap_device device = GPUTAP_DEVICE_INIT;
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    CU_ASSERT_EQUAL(gputap_device_count(tap), 3);
    restart(4, "ca"); /* other order, b is gone */
    struct layout_snapshot sample = fixture_sample(7, 7);
    fixture_publish(&f, 0, &sample);
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_RESTARTED);
    CU_ASSERT_EQUAL(gputap_device_count(tap), 3);
    CU_ASSERT_EQUAL(gputap_device_info(tap, 2, &device), GPUTAP_OK);
    CU_ASSERT_STRING_EQUAL(device.id, "dev:c");
    CU_ASSERT_EQUAL(gputap_latest(tap, 2, &got), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_device_info(tap, 1, &device), GPUTAP_ENODEV);
    CU_ASSERT_EQUAL(gputap_latest(tap, 1, &got), GPUTAP_ENODEV);
    CU_ASSERT_EQUAL(gputap_find(tap, "dev:b"), GPUTAP_ENODEV);
    restart(8, "dbac"); /* another geometry, b is back, d is new */
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_RESTARTED);
    CU_ASSERT_EQUAL(gputap_device_count(tap), 4);
    CU_ASSERT_EQUAL(gputap_find(tap, "dev:b"), 1);
    CU_ASSERT_EQUAL(gputap_find(tap, "dev:d"), 3);
    end();
}

static void ranges_are_bounded_by_geometries(void)
{
    begin("a");
    for (int i = 0; i < 30; i++) {
        restart(i % 3 == 0 ? 8 : 4, "ab");
        struct layout_snapshot sample = fixture_sample(i, 1);
        fixture_publish(&f, 0, &sample);
        CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_RESTARTED);
        gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
        CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
        CU_ASSERT(got.sequence == 1 && got.values[GPUTAP_GFX_BUSY].f64 == i);
    }
    CU_ASSERT(ranges() <= 3);
    end();
}

static void a_newer_segment_that_cannot_be_read_leaves_the_old_one(void)
{
    begin("a");
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    struct layout_snapshot sample = fixture_sample(5, 5);
    fixture_publish(&f, 0, &sample);
    char junk[8192];
    memset(junk, 'j', sizeof junk);
    fixture_replace(&f, junk, sizeof junk);
    segment_mark(&f.writer, SEGMENT_SUPERSEDED);
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_SUPERSEDED);
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
    CU_ASSERT_EQUAL(got.values[GPUTAP_GFX_BUSY].f64, 5);
    end();
}

/* A reader that is overtaken between its two looks at the generation: whatever it finds in the old range, now zero pages and later
 * another segment, it does not fault and is not believed. */
static void an_overtaken_reader_is_turned_away(void)
{
    begin("a");
    struct pass pass;
    uint64_t words[SNAPSHOT_PAYLOAD], last = 0;
    int error = 0;
    struct layout_snapshot sample = fixture_sample(5, 5);
    fixture_publish(&f, 0, &sample);
    pass_begin(tap, &pass);
    struct track *track = pass_track(tap, &pass, 0, &error);
    struct ring ring = track_ring(track);
    CU_ASSERT_EQUAL(ring_latest_words(&ring, words, SNAPSHOT_PAYLOAD, &last, 0), RING_OK);
    CU_ASSERT(words[0] == sample.tick && words[1] == sample.mono_ns && pass_held(tap, &pass));
    restart(4, "a");
    fixture_publish(&f, 0, &sample);
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_RESTARTED);
    (void)ring_latest_words(&ring, words, SNAPSHOT_PAYLOAD, &last, 0);
    CU_ASSERT_EQUAL(words[1], 0);
    CU_ASSERT_FALSE(pass_held(tap, &pass));
    restart(4, "a");
    sample = fixture_sample(6, 6);
    fixture_publish(&f, 0, &sample);
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_RESTARTED);
    CU_ASSERT_PTR_EQUAL(handle_current(tap), pass.mapping); /* the range serves again */
    (void)ring_latest_words(&ring, words, SNAPSHOT_PAYLOAD, &last, 0);
    CU_ASSERT_FALSE(pass_held(tap, &pass));
    end();
}

/* Two threads read records 10 and 11 of a track; whoever is later with 10 must not give it away any more. */
static void a_sample_older_than_one_returned_is_not_returned(void)
{
    begin("a");
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    for (int i = 0; i < 10; i++) {
        struct layout_snapshot sample = fixture_sample(i, 1);
        fixture_publish(&f, 0, &sample);
    }
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
    CU_ASSERT_EQUAL(got.sequence, 10);
    struct track *track = &handle_current(tap)->tracks[0];
    word_set(&track->last, word_get(&track->last) + 1); /* another thread returned 11 */
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_EAGAIN);
    struct layout_snapshot sample = fixture_sample(10, 1);
    fixture_publish(&f, 0, &sample);
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
    CU_ASSERT_EQUAL(got.sequence, 11);
    end();
}

struct announcer {
    int ms;
    bool renew;
};
static void *announce_later(void *argument)
{
    struct announcer *plan = argument;
    fixture_sleep_ms(plan->ms);
    if (plan->renew)
        restart(4, "a");
    fixture_announce(&f);
    return NULL;
}

static void wait_wakes_at_a_tick_and_follows_a_restart(void)
{
    begin("a");
    uint64_t tick = 0, start = clock_mono_ns();
    pthread_t thread;
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(tick, 1);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 0), GPUTAP_ETIMEDOUT);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 50), GPUTAP_ETIMEDOUT);
    CU_ASSERT(clock_mono_ns() - start >= 50000000);
    struct announcer plan = {30, false};
    pthread_create(&thread, NULL, announce_later, &plan);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 5000), GPUTAP_OK);
    CU_ASSERT_EQUAL(tick, 2);
    pthread_join(thread, NULL);
    plan.renew = true;
    tick = 1; /* the new epoch's first tick bears the number that this caller saw last */
    f.tick = 0;
    restart(4, "a");
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_RESTARTED);
    fixture_announce(&f);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 0), GPUTAP_ETIMEDOUT);
    pthread_create(&thread, NULL, announce_later, &plan);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 5000), GPUTAP_OK);
    CU_ASSERT_EQUAL(tick, 1);
    pthread_join(thread, NULL);
    end();
}

/* --- threads -------------------------------------------------------------------------------------------------------------- */
static shm_word32 stop, torn, unexpected;
static shm_word reads;

/* In every sample vram_used is busy * 1000 + the life's number, so a mix of two shows. */
static void *read_always(void *argument)
{
    static const int metrics[] = {GPUTAP_GFX_BUSY, GPUTAP_VRAM_USED};
    (void)argument;
    while (!word32_get(&stop)) {
        gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
        double values[2];
        int result = gputap_latest(tap, 0, &got);
        if (result == GPUTAP_OK &&
            (got.mono_ns == 0 || got.values[GPUTAP_VRAM_USED].u64 / 1000 != (uint64_t)got.values[GPUTAP_GFX_BUSY].f64))
            word32_add(&torn, 1);
        if (result != GPUTAP_OK && result != GPUTAP_EEMPTY && result != GPUTAP_EAGAIN && result != GPUTAP_ENODEV)
            word32_add(&unexpected, 1);
        result = gputap_read(tap, 0, metrics, 2, values);
        if (result == GPUTAP_OK && (uint64_t)values[1] / 1000 != (uint64_t)values[0])
            word32_add(&torn, 1);
        gputap_device device = GPUTAP_DEVICE_INIT;
        if (gputap_device_info(tap, 0, &device) == GPUTAP_OK && strcmp(device.id, "dev:a") != 0)
            word32_add(&torn, 1);
        (void)gputap_status(tap);
        word_add(&reads, 1);
    }
    return NULL;
}

static void threads_read_while_segments_are_replaced(void)
{
    enum { THREADS = 3, LIVES = 40 };
    pthread_t threads[THREADS];
    begin("a");
    word32_set(&stop, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, read_always, NULL);
    for (uint64_t life = 0; life < LIVES; life++) {
        for (uint64_t i = 1; i < 200; i++) {
            struct layout_snapshot sample = fixture_sample((double)i, i * 1000 + life);
            fixture_publish(&f, 0, &sample);
        }
        uint64_t before = word_get(&reads), give_up = clock_mono_ns() + UINT64_C(5000000000);
        while (word_get(&reads) < before + 20 && clock_mono_ns() < give_up)
            fixture_sleep_ms(1);
        restart(life % 5 == 0 ? 8 : 4, life % 2 ? "a" : "ba");
    }
    word32_set(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT_EQUAL(word32_get(&torn), 0);
    CU_ASSERT_EQUAL(word32_get(&unexpected), 0);
    CU_ASSERT(ranges() <= 3 + os_ranges_lost_at_most(LIVES));
    end();
}

TESTS({"status_tells_life_standstill_and_death", status_tells_life_standstill_and_death},
      {"numbers_of_a_dead_broker_stay_readable", numbers_of_a_dead_broker_stay_readable},
      {"a_new_segment_is_attached_by_reading_alone", a_new_segment_is_attached_by_reading_alone},
      {"a_swept_file_that_was_made_again_is_attached", a_swept_file_that_was_made_again_is_attached},
      {"device_numbers_stay_with_their_ids", device_numbers_stay_with_their_ids},
      {"ranges_are_bounded_by_geometries", ranges_are_bounded_by_geometries},
      {"a_newer_segment_that_cannot_be_read_leaves_the_old_one", a_newer_segment_that_cannot_be_read_leaves_the_old_one},
      {"an_overtaken_reader_is_turned_away", an_overtaken_reader_is_turned_away},
      {"a_sample_older_than_one_returned_is_not_returned", a_sample_older_than_one_returned_is_not_returned},
      {"wait_wakes_at_a_tick_and_follows_a_restart", wait_wakes_at_a_tick_and_follows_a_restart},
      {"threads_read_while_segments_are_replaced", threads_read_while_segments_are_replaced})
