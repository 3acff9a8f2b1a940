/* Opening where modes, owners and several places decide. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

static struct fixture f;

static int try_open(void)
{
    gputap *tap;
    int result = gputap_open(&tap, "t", 0);
    gputap_close(tap);
    return result;
}

static void unreadable_file_is_not_permitted(void)
{
    char path[256];
    if (geteuid() == 0)
        SKIP("root may read everything");
    fixture_start(&f);
    fixture_segment(&f, 2, "a");
    snprintf(path, sizeof path, "%s/%s", f.folder, PLACE_SEGMENT);
    CU_ASSERT_EQUAL(chmod(path, 0), 0);
    CU_ASSERT_EQUAL(try_open(), GPUTAP_EPERM);
    fixture_end(&f);
}

static void file_writable_by_everybody_is_not_trusted(void)
{
    char path[256];
    fixture_start(&f);
    fixture_segment(&f, 2, "a");
    snprintf(path, sizeof path, "%s/%s", f.folder, PLACE_SEGMENT);
    CU_ASSERT_EQUAL(chmod(path, 0666), 0);
    CU_ASSERT_EQUAL(try_open(), GPUTAP_EPERM);
    gputap *tap = fixture_open(GPUTAP_OPEN_DETACHED);
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_NOPERM);
    gputap_close(tap);
    fixture_end(&f);
}

/* The places are those of a reader without GPUTAP_DIR; only the user's own can be arranged here. */
static void live_broker_wins_over_nothing_and_dead_one_is_read(void)
{
    char runtime[80], base[128];
    fixture_start(&f);
    snprintf(runtime, sizeof runtime, "%s", f.base);
    snprintf(base, sizeof base, "%s/gputap", runtime);
    CU_ASSERT_EQUAL(rename(f.folder, base), 0); /* <runtime>/gputap is the base now */
    snprintf(f.folder, sizeof f.folder, "%s/t-unit-places", base);
    CU_ASSERT_EQUAL(mkdir(f.folder, 0755), 0);
    unsetenv("GPUTAP_DIR");
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    gputap *tap;
    CU_ASSERT_EQUAL(gputap_open(&tap, "t-unit-places", 0), GPUTAP_ENOBROKER);
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(NULL), base));
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(NULL), "/run/gputap"));
    fixture_segment(&f, 2, "a");
    CU_ASSERT_EQUAL(gputap_open(&tap, "t-unit-places", 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_DEAD);
    fixture_lock(&f);
    fixture_announce(&f);
    CU_ASSERT_EQUAL(gputap_status(tap), GPUTAP_STATUS_RUNNING);
    gputap_close(tap);
    unsetenv("XDG_RUNTIME_DIR");
    fixture_abandon(&f);
    fixture_unlock(&f);
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f.folder, PLACE_SEGMENT);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s", f.folder, PLACE_LOCK);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s", f.folder, PLACE_OWNER);
    unlink(path);
    CU_ASSERT(rmdir(f.folder) == 0 && rmdir(base) == 0 && rmdir(f.base) == 0);
}

TESTS({"unreadable_file_is_not_permitted", unreadable_file_is_not_permitted},
      {"file_writable_by_everybody_is_not_trusted", file_writable_by_everybody_is_not_trusted},
      {"live_broker_wins_over_nothing_and_dead_one_is_read", live_broker_wins_over_nothing_and_dead_one_is_read})
