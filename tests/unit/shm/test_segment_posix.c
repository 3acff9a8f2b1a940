/* What modes, links, locks and signals do to a segment. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/segment.h"
#include "tests/unit/check.h"

static char folder[256];
static char message[1280];

static const struct segment_config config = {
    .device_slots = 3, .provider_slots = 2, .period_ns = 5000, .simulated = true, .mode = 0644, .group = -1, .version = "1.2.3"};

static void enter_folder(void)
{
    snprintf(folder, sizeof folder, "/dev/shm/gputap-unit-XXXXXX");
    if (!mkdtemp(folder))
        abort();
}

static void leave_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        abort();
}

static void full_file_system_is_an_error_that_names_the_size(void)
{
    enter_folder();
    if (mount("none", folder, "tmpfs", 0, "size=64k") != 0) {
        leave_folder();
        SKIP("mounting a small tmpfs needs root");
    }
    struct segment_writer writer;
    CU_ASSERT_EQUAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_ENOSPC);
    char size[32];
    snprintf(size, sizeof size, "%zu bytes", segment_bytes(&config));
    CU_ASSERT_PTR_NOT_NULL(strstr(message, size));
    struct region_identity identity;
    CU_ASSERT_EQUAL(region_lookup(folder, PLACE_SEGMENT, &identity, NULL), REGION_ENOENT);
    umount(folder);
    leave_folder();
}

static void mode_does_not_depend_on_the_umask(void)
{
    struct segment_writer writer;
    struct stat info;
    char path[512];
    enter_folder();
    mode_t before = umask(077);
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
    umask(before);
    snprintf(path, sizeof path, "%s/%s", folder, PLACE_SEGMENT);
    CU_ASSERT_EQUAL(stat(path, &info), 0);
    CU_ASSERT_EQUAL(info.st_mode & 07777, 0644);
    segment_close(&writer);
    leave_folder();
}

static void links_and_folders_in_place_of_a_segment_are_refused(void)
{
    struct region region;
    char path[512], target[512];
    enter_folder();
    snprintf(path, sizeof path, "%s/%s", folder, PLACE_SEGMENT);
    snprintf(target, sizeof target, "%s/elsewhere", folder);
    close(open(target, O_CREAT | O_WRONLY, 0644));
    CU_ASSERT_EQUAL(symlink(target, path), 0);
    CU_ASSERT(region_open(&region, folder, PLACE_SEGMENT, true, NULL, 0, message, sizeof message) < 0);
    unlink(path);
    mkdir(path, 0755);
    CU_ASSERT(region_open(&region, folder, PLACE_SEGMENT, true, NULL, 0, message, sizeof message) < 0);
    rmdir(path);
    CU_ASSERT_EQUAL(mkfifo(path, 0644), 0);
    CU_ASSERT(region_open(&region, folder, PLACE_SEGMENT, true, NULL, 0, message, sizeof message) < 0); /* and does not hang */
    unlink(path);
    close(open(path, O_CREAT | O_WRONLY, 0644));
    CU_ASSERT(region_open(&region, folder, PLACE_SEGMENT, true, NULL, 0, message, sizeof message) < 0); /* empty */
    leave_folder();
}

static void lock_is_held_for_life_and_freed_by_death(void)
{
    struct lock lock = LOCK_NONE;
    int64_t holder;
    int ready[2];
    enter_folder();
    CU_ASSERT_EQUAL(lock_held(folder), REGION_ENOENT);
    CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct lock mine = LOCK_NONE;
        char ok = lock_take(folder, 0644, -1, &mine, &holder, message, sizeof message) == REGION_OK ? 1 : 0;
        if (write(ready[1], &ok, 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    char ok = 0;
    CU_ASSERT_EQUAL(read(ready[0], &ok, 1), 1);
    CU_ASSERT_EQUAL(ok, 1);
    CU_ASSERT_EQUAL(lock_held(folder), 1);
    CU_ASSERT_EQUAL(lock_take(folder, 0644, -1, &lock, &holder, message, sizeof message), REGION_EBUSY);
    CU_ASSERT_EQUAL(holder, child);
    kill(child, SIGKILL);
    for (int i = 0; i < 500 && lock_held(folder) == 1; i++)
        usleep(1000);
    CU_ASSERT_EQUAL(lock_held(folder), 0); /* although its zombie is still there */
    waitpid(child, NULL, 0);
    CU_ASSERT_EQUAL(lock_take(folder, 0644, -1, &lock, &holder, message, sizeof message), REGION_OK);
    CU_ASSERT(lock_in_place(folder, &lock));
    lock_release(&lock);
    close(ready[0]);
    close(ready[1]);
    leave_folder();
}

static void lock_of_a_reader_hinders_no_start(void)
{
    struct lock first = LOCK_NONE, next = LOCK_NONE;
    int64_t holder;
    char path[512];
    enter_folder();
    CU_ASSERT_EQUAL_FATAL(lock_take(folder, 0644, -1, &first, &holder, message, sizeof message), REGION_OK);
    lock_release(&first); /* it died */
    snprintf(path, sizeof path, "%s/%s", folder, PLACE_LOCK);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    struct flock shared = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    CU_ASSERT_EQUAL_FATAL(fcntl(reader, F_OFD_SETLK, &shared), 0);
    CU_ASSERT_EQUAL(lock_take(folder, 0644, -1, &next, &holder, message, sizeof message), REGION_OK);
    CU_ASSERT_EQUAL(lock_held(folder), 1);
    lock_release(&next);
    close(reader);
    leave_folder();
}

static void renamed_or_removed_lock_is_noticed_and_made_again(void)
{
    struct lock lock = LOCK_NONE, other = LOCK_NONE;
    int64_t holder;
    char path[512], elsewhere[512];
    enter_folder();
    CU_ASSERT_EQUAL_FATAL(lock_take(folder, 0644, -1, &lock, &holder, message, sizeof message), REGION_OK);
    static const char *const names[] = {PLACE_LOCK, PLACE_OWNER};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere%d", folder, i);
        CU_ASSERT_EQUAL(rename(path, elsewhere), 0);
        CU_ASSERT_FALSE(lock_in_place(folder, &lock));
        CU_ASSERT_EQUAL(lock_take(folder, 0644, -1, &lock, &holder, message, sizeof message), REGION_OK);
        CU_ASSERT(lock_in_place(folder, &lock));
        CU_ASSERT_EQUAL(lock_held(folder), 1);
        CU_ASSERT_EQUAL(lock_take(folder, 0644, -1, &other, &holder, message, sizeof message), REGION_EBUSY);
    }
    lock_release(&lock);
    leave_folder();
}

static void waiter_on_a_read_only_mapping_is_woken(void)
{
    struct segment_writer writer;
    struct segment_view view;
    struct region region;
    enter_folder();
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
    CU_ASSERT_EQUAL_FATAL(region_open(&region, folder, PLACE_SEGMENT, true, NULL, 0, message, sizeof message), REGION_OK);
    CU_ASSERT_EQUAL_FATAL(segment_view(&view, region.memory, region.bytes, message, sizeof message), VIEW_OK);
    uint32_t seen = word32_get(&view.header->wake);
    pid_t child = fork();
    if (child == 0) {
        usleep(50000);
        segment_announce(&writer, 1);
        _exit(0);
    }
    uint64_t start = clock_mono_ns();
    for (int i = 0; i < 10 && word32_get(&view.header->wake) == seen; i++)
        wake_wait(&view.header->wake, seen, UINT64_C(5000000000));
    CU_ASSERT(word32_get(&view.header->wake) != seen);
    CU_ASSERT(clock_mono_ns() - start < UINT64_C(4000000000));
    waitpid(child, NULL, 0);
    region_unmap(region.memory, region.bytes);
    segment_close(&writer);
    leave_folder();
}

TESTS({"full_file_system_is_an_error_that_names_the_size", full_file_system_is_an_error_that_names_the_size},
      {"mode_does_not_depend_on_the_umask", mode_does_not_depend_on_the_umask},
      {"links_and_folders_in_place_of_a_segment_are_refused", links_and_folders_in_place_of_a_segment_are_refused},
      {"lock_is_held_for_life_and_freed_by_death", lock_is_held_for_life_and_freed_by_death},
      {"lock_of_a_reader_hinders_no_start", lock_of_a_reader_hinders_no_start},
      {"renamed_or_removed_lock_is_noticed_and_made_again", renamed_or_removed_lock_is_noticed_and_made_again},
      {"waiter_on_a_read_only_mapping_is_woken", waiter_on_a_read_only_mapping_is_woken})
