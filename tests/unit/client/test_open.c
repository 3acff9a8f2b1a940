/* Opening: what is found, what is refused and with which words. */
#include "tests/helpers/os.h"
#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

static struct fixture f;

static int try_open(unsigned flags)
{
    gputap *tap = (gputap *)&f;
    int result = gputap_open(&tap, "t", flags);
    CU_ASSERT_EQUAL(tap != NULL, result == GPUTAP_OK);
    gputap_close(tap);
    return result;
}

static void bad_arguments_are_refused(void)
{
    gputap *tap;
    static const char *const names[] = {"", ".x", "a/b", "a b",
                                        "0123456789012345678901234567890123456789012345678901234567890123x"};
    CU_ASSERT_EQUAL(gputap_open(NULL, "t", 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_open(&tap, "t", 2), GPUTAP_EINVAL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CU_ASSERT_EQUAL(gputap_open(&tap, names[i], GPUTAP_OPEN_DETACHED), GPUTAP_EINVAL);
        CU_ASSERT_PTR_NULL(tap);
    }
    gputap_close(NULL);
}

static void relative_or_overlong_folder_is_told_and_not_looked_into(void)
{
    char longer[1200];
    gputap *tap;
    memset(longer, 'a', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    const char *const folders[] = {"relative/place", longer};
    for (int i = 0; i < 2; i++) {
        os_set_env("GPUTAP_DIR", folders[i]);
        CU_ASSERT_EQUAL(gputap_open(&tap, "t", GPUTAP_OPEN_DETACHED), GPUTAP_EINVAL);
        CU_ASSERT_PTR_NULL(tap);
        CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(NULL), "GPUTAP_DIR"));
    }
    os_set_env("GPUTAP_DIR", NULL);
}

static void every_call_refuses_a_missing_handle(void)
{
    char text[64];
    uint8_t epoch[16];
    gputap_snapshot snapshot = GPUTAP_SNAPSHOT_INIT;
    gputap_cursor cursor;
    uint64_t tick = 0;
    int64_t times;
    double value;
    int metric = 0;
    CU_ASSERT_EQUAL(gputap_status(NULL), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_epoch(NULL, epoch), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_period(NULL), 0);
    CU_ASSERT_EQUAL(gputap_tick(NULL), 0);
    CU_ASSERT_EQUAL(gputap_device_count(NULL), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_device_info(NULL, 0, &(gputap_device)GPUTAP_DEVICE_INIT), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_find(NULL, "x"), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_host_info(NULL, &(gputap_host)GPUTAP_HOST_INIT), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_latest(NULL, 0, &snapshot), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_host_latest(NULL, &snapshot), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_read(NULL, 0, &metric, 1, &value), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_reason(NULL, 0, 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_source(NULL, 0, 0, text, sizeof text), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_wait(NULL, &tick, 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_cursor_init(NULL, &cursor, 0, 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_next(NULL, &cursor, &snapshot), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_history(NULL, 0, &metric, 1, 1, 1, &times, &value), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_provider_count(NULL), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_provider_info(NULL, 0, &(gputap_provider)GPUTAP_PROVIDER_INIT), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_broker_stats(NULL, &(gputap_stats)GPUTAP_STATS_INIT), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_schema(NULL, text, sizeof text), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_directory(NULL, text, sizeof text), GPUTAP_EINVAL);
}

static void absence_names_the_folder_and_the_cure(void)
{
    fixture_start(&f);
    CU_ASSERT_EQUAL(try_open(0), GPUTAP_ENOBROKER);
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(NULL), f.folder));
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(NULL), "start it with: gputapd --instance t"));
    fixture_end(&f);
}

static void other_major_is_told_with_both_numbers(void)
{
    uint16_t major = 9;
    fixture_start(&f);
    fixture_segment(&f, 2, "a");
    fixture_poke(&f, offsetof(struct layout_header, abi_major), &major, sizeof major);
    CU_ASSERT_EQUAL(try_open(0), GPUTAP_EVERSION);
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(NULL), "ABI 9"));
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(NULL), "ABI 1"));
    fixture_end(&f);
}

static void damaged_files_are_refused(void)
{
    char junk[10000];
    fixture_start(&f);
    fixture_segment(&f, 2, "a");
    memset(junk, 'x', sizeof junk);
    static const size_t sizes[] = {0, 1, 4095, 4096, sizeof junk};
    for (size_t i = os_named_places() ? 1 : 0; i < sizeof sizes / sizeof sizes[0]; i++) { /* a section is never empty */
        fixture_replace(&f, junk, sizes[i]);
        CU_ASSERT_EQUAL(try_open(0), GPUTAP_ECORRUPT);
        CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(NULL), f.folder));
    }
    fixture_replace(&f, f.writer.region.memory, f.writer.region.bytes / 2);
    CU_ASSERT_EQUAL(try_open(0), GPUTAP_ECORRUPT);
    fixture_end(&f);
}

static void detached_handle_answers_and_attaches_later(void)
{
    gputap_snapshot snapshot = GPUTAP_SNAPSHOT_INIT;
    uint8_t epoch[16];
    uint64_t tick = 0;
    char text[256];
    fixture_start(&f);
    gputap *tap = fixture_open(GPUTAP_OPEN_DETACHED);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_DEAD);
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &snapshot), GPUTAP_ENOBROKER);
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(tap), "start it with"));
    CU_ASSERT_EQUAL(gputap_epoch(tap, epoch), GPUTAP_ENOBROKER);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 0), GPUTAP_ENOBROKER);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 60), GPUTAP_ETIMEDOUT);
    CU_ASSERT_EQUAL(gputap_device_count(tap), 0);
    CU_ASSERT_EQUAL(gputap_directory(tap, text, sizeof text), GPUTAP_OK);
    CU_ASSERT_STRING_EQUAL(text, f.folder);
    CU_ASSERT_EQUAL(gputap_directory(tap, text, 4), GPUTAP_ESIZE);
    fixture_lock(&f);
    fixture_segment(&f, 2, "ab");
    struct layout_snapshot sample = fixture_sample(50, 1);
    fixture_publish(&f, 0, &sample);
    fixture_announce(&f);
    CU_ASSERT_EQUAL(gputap_wait(tap, &tick, 2000), GPUTAP_OK);
    CU_ASSERT_EQUAL(tick, 1);
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &snapshot), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_device_count(tap), 2);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_RUNNING | GPUTAP_STATUS_CHANGED);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_RUNNING);
    gputap_close(tap);
    fixture_end(&f);
}

TESTS({"bad_arguments_are_refused", bad_arguments_are_refused},
      {"relative_or_overlong_folder_is_told_and_not_looked_into", relative_or_overlong_folder_is_told_and_not_looked_into},
      {"every_call_refuses_a_missing_handle", every_call_refuses_a_missing_handle},
      {"absence_names_the_folder_and_the_cure", absence_names_the_folder_and_the_cure},
      {"other_major_is_told_with_both_numbers", other_major_is_told_with_both_numbers},
      {"damaged_files_are_refused", damaged_files_are_refused},
      {"detached_handle_answers_and_attaches_later", detached_handle_answers_and_attaches_later})
