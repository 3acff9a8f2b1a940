/* Named sections and events, locks, ranges and clocks of Windows. Where a second process is needed, it is this program, started for
 * the same test with CHILD in its environment. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <aclapi.h>
#include <time.h>

#include "shm/segment.h"
#include "tests/helpers/os.h"
#include "tests/unit/check.h"

#define CHILD "GPUTAP_TEST_CHILD"

static char folder[256]; /* a private one of files, or a prefix of names */
static char message[1280];

static const struct segment_config config = {
    .device_slots = 3, .provider_slots = 2, .period_ns = 5000, .mode = 0644, .group = -1, .version = "1.2.3"};

static void enter(bool names)
{
    if (names)
        snprintf(folder, sizeof folder, "Global\\gputap/unit-%lu", GetCurrentProcessId());
    else if (!os_make_private_folder(folder, sizeof folder))
        abort();
}

static void leave(bool names)
{
    if (!names && !os_remove_files(folder))
        abort();
}

static HANDLE start_child(const char *test)
{
    char program[MAX_PATH], line[MAX_PATH * 2];
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    GetModuleFileNameA(NULL, program, sizeof program);
    snprintf(line, sizeof line, "\"%s\" %s", program, test);
    os_set_env(CHILD, folder);
    BOOL started = CreateProcessA(program, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &process);
    os_set_env(CHILD, NULL);
    if (!started)
        abort();
    CloseHandle(process.hThread);
    return process.hProcess;
}

static const char *as_child(void)
{
    const char *given = getenv(CHILD);
    if (given)
        snprintf(folder, sizeof folder, "%s", given);
    return given;
}

static DWORD access_of_everybody(const char *name)
{
    SID_IDENTIFIER_AUTHORITY world = {SECURITY_WORLD_SID_AUTHORITY};
    PSID everybody = NULL;
    PACL list = NULL;
    PSECURITY_DESCRIPTOR descriptor = NULL;
    char path[512];
    DWORD mask = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    HANDLE object = OpenFileMappingA(READ_CONTROL, FALSE, path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(object);
    CU_ASSERT_EQUAL(GetSecurityInfo(object, SE_KERNEL_OBJECT, DACL_SECURITY_INFORMATION, NULL, NULL, &list, NULL, &descriptor), 0);
    CU_ASSERT(AllocateAndInitializeSid(&world, 1, SECURITY_WORLD_RID, 0, 0, 0, 0, 0, 0, 0, &everybody));
    for (DWORD i = 0; list && i < list->AceCount; i++) {
        ACCESS_ALLOWED_ACE *entry;
        if (GetAce(list, i, (void **)&entry) && EqualSid(&entry->SidStart, everybody))
            mask |= entry->Mask;
    }
    FreeSid(everybody);
    LocalFree(descriptor);
    CloseHandle(object);
    return mask;
}

static void without_a_folder_names_are_global_else_of_the_session(void)
{
    char place[256], candidate[256];
    bool trust;
    os_set_env("GPUTAP_DIR", NULL);
    CU_ASSERT_EQUAL(place_create("x", -1, place, sizeof place, message, sizeof message), REGION_OK);
    CU_ASSERT(strcmp(place, "Global\\gputap/x") == 0 || strcmp(place, "Local\\gputap/x") == 0);
    CU_ASSERT(place_candidate("x", 0, candidate, sizeof candidate, &trust) && !trust);
    CU_ASSERT_STRING_EQUAL(candidate, "Global\\gputap/x");
    CU_ASSERT(place_candidate("x", 1, candidate, sizeof candidate, &trust));
    CU_ASSERT_STRING_EQUAL(candidate, "Local\\gputap/x");
    CU_ASSERT_FALSE(place_candidate("x", 2, candidate, sizeof candidate, &trust));
    static const char *const bad[] = {"relative", "\\rooted", "/tmp", "C:", "C:relative"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        os_set_env("GPUTAP_DIR", bad[i]);
        CU_ASSERT_FALSE(place_candidate("x", 0, candidate, sizeof candidate, &trust));
        CU_ASSERT_EQUAL(place_create("x", -1, place, sizeof place, message, sizeof message), REGION_ESYSTEM);
    }
    os_set_env("GPUTAP_DIR", NULL);
}

static void others_may_read_a_section_and_nothing_else(void)
{
    struct segment_writer writer;
    struct region region;
    char name[64];
    DWORD before;
    enter(true);
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
    snprintf(name, sizeof name, PLACE_SEGMENT ".%016llx", (unsigned long long)writer.region.identity.inode);
    CU_ASSERT_EQUAL(access_of_everybody(PLACE_SEGMENT), SECTION_QUERY | SECTION_MAP_READ);
    CU_ASSERT_EQUAL(access_of_everybody(name), SECTION_QUERY | SECTION_MAP_READ);
    CU_ASSERT_EQUAL_FATAL(region_open(&region, folder, PLACE_SEGMENT, false, NULL, 0, message, sizeof message), REGION_OK);
    CU_ASSERT_FALSE(VirtualProtect(region.memory, 4096, PAGE_READWRITE, &before));
    region_unmap(region.memory, region.bytes);
    segment_close(&writer);

    struct segment_config own = config;
    own.mode = 0640;
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &own, folder, message, sizeof message), REGION_OK);
    snprintf(name, sizeof name, PLACE_SEGMENT ".%016llx", (unsigned long long)writer.region.identity.inode);
    CU_ASSERT_EQUAL(access_of_everybody(name), 0);
    segment_close(&writer);
}

static void a_name_leads_to_the_newest_section_and_goes_with_its_writer(void)
{
    struct segment_writer first, second;
    struct segment_view view;
    struct region region;
    struct region_identity identity;
    enter(true);
    CU_ASSERT_EQUAL(region_lookup(folder, PLACE_SEGMENT, &identity, NULL), REGION_ENOENT);
    CU_ASSERT_EQUAL_FATAL(segment_create(&first, &config, folder, message, sizeof message), REGION_OK);
    CU_ASSERT_EQUAL_FATAL(region_open(&region, folder, PLACE_SEGMENT, false, NULL, 0, message, sizeof message), REGION_OK);
    CU_ASSERT_EQUAL(segment_view(&view, region.memory, region.bytes, message, sizeof message), VIEW_OK);
    CU_ASSERT_EQUAL_FATAL(segment_create(&second, &config, folder, message, sizeof message), REGION_OK);
    CU_ASSERT_EQUAL(word32_get(&view.header->state), SEGMENT_SUPERSEDED);
    CU_ASSERT_FALSE(segment_in_place(&first, folder));
    CU_ASSERT(segment_in_place(&second, folder));
    segment_close(&first);
    CU_ASSERT(segment_in_place(&second, folder));
    segment_close(&second);
    CU_ASSERT_EQUAL(region_lookup(folder, PLACE_SEGMENT, &identity, NULL), REGION_ENOENT);
    CU_ASSERT_STRING_EQUAL(view.version, "1.2.3");
    CU_ASSERT_EQUAL(memcmp(view.header->magic, LAYOUT_MAGIC, 8), 0); /* what is mapped stays readable */
    region_unmap(region.memory, region.bytes);
}

static void hold_as_child(void)
{
    struct lock mine = LOCK_NONE;
    int64_t holder;
    if (lock_take(folder, 0644, -1, &mine, &holder, message, sizeof message) == REGION_OK)
        Sleep(60000);
    ExitProcess(9);
}

static void lock_is_held_for_life_and_freed_by_death(void)
{
    if (as_child())
        hold_as_child();
    for (int names = 0; names < 2; names++) {
        struct lock lock = LOCK_NONE, other = LOCK_NONE;
        int64_t holder;
        enter(names);
        CU_ASSERT_EQUAL(lock_held(folder), REGION_ENOENT);
        HANDLE child = start_child(__func__);
        for (int i = 0; i < 1000 && lock_held(folder) != 1; i++)
            Sleep(5);
        CU_ASSERT_EQUAL(lock_held(folder), 1);
        do { /* a section is there before there is a number in it */
            CU_ASSERT_EQUAL_FATAL(lock_take(folder, 0644, -1, &lock, &holder, message, sizeof message), REGION_EBUSY);
        } while (holder == 0);
        CU_ASSERT_EQUAL(holder, GetProcessId(child));
        TerminateProcess(child, 7);
        for (int i = 0; i < 1000 && lock_held(folder) == 1; i++)
            Sleep(5);
        CU_ASSERT_EQUAL(lock_held(folder), names ? REGION_ENOENT : 0);
        CU_ASSERT_EQUAL(lock_take(folder, 0644, -1, &lock, &holder, message, sizeof message), REGION_OK);
        CU_ASSERT(lock_in_place(folder, &lock));
        CU_ASSERT_EQUAL(lock_take(folder, 0644, -1, &other, &holder, message, sizeof message), REGION_EBUSY);
        lock_release(&lock);
        CloseHandle(child);
        leave(names);
    }
}

static void renamed_lock_file_is_noticed_and_made_again(void)
{
    struct lock lock = LOCK_NONE, other = LOCK_NONE;
    int64_t holder;
    char path[512], elsewhere[512];
    static const char *const names[] = {PLACE_LOCK, PLACE_OWNER};
    enter(false);
    CU_ASSERT_EQUAL_FATAL(lock_take(folder, 0644, -1, &lock, &holder, message, sizeof message), REGION_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere%d", folder, i);
        CU_ASSERT(os_rename(path, elsewhere));
        CU_ASSERT_FALSE(lock_in_place(folder, &lock));
        CU_ASSERT_EQUAL(lock_take(folder, 0644, -1, &lock, &holder, message, sizeof message), REGION_OK);
        CU_ASSERT(lock_in_place(folder, &lock));
        CU_ASSERT_EQUAL(lock_held(folder), 1);
        CU_ASSERT_EQUAL(lock_take(folder, 0644, -1, &other, &holder, message, sizeof message), REGION_EBUSY);
    }
    lock_release(&lock);
    leave(false);
}

/* Exit code: 0 = woken in good time. */
static void wait_as_child(void)
{
    struct region region;
    struct segment_view view;
    if (region_open(&region, folder, PLACE_SEGMENT, false, NULL, 0, message, sizeof message) != REGION_OK ||
        segment_view(&view, region.memory, region.bytes, message, sizeof message) != VIEW_OK)
        ExitProcess(1);
    for (uint32_t step = 0; step < 20; step++) {
        uint32_t seen = word32_get(&view.header->wake);
        uint64_t start = clock_mono_ns();
        while (word32_get(&view.header->wake) == seen)
            wake_wait(&view.header->wake, seen, UINT64_C(8000000000));
        if (clock_mono_ns() - start > UINT64_C(4000000000))
            ExitProcess(2);
    }
    ExitProcess(0);
}

static void waiter_in_another_process_is_woken_at_even_and_odd_steps(void)
{
    if (as_child())
        wait_as_child();
    for (int names = 0; names < 2; names++) {
        struct segment_writer writer;
        DWORD code = 99;
        enter(names);
        CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
        HANDLE child = start_child(__func__);
        for (uint64_t tick = 1; tick < 400 && WaitForSingleObject(child, 25) == WAIT_TIMEOUT; tick++)
            segment_announce(&writer, tick);
        CU_ASSERT(GetExitCodeProcess(child, &code));
        CU_ASSERT_EQUAL(code, 0);
        TerminateProcess(child, 7);
        CloseHandle(child);
        segment_close(&writer);
        leave(names);
    }
}

static void wait_ends_at_once_when_the_word_has_moved_and_else_in_time(void)
{
    struct segment_writer writer;
    shm_word32 alone;
    word32_set(&alone, 5);
    enter(true);
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
    shm_word32 *words[] = {&writer.header->wake, &alone};
    for (int i = 0; i < 2; i++) {
        uint32_t value = word32_get(words[i]);
        uint64_t start = clock_mono_ns();
        wake_wait(words[i], value + 1, UINT64_C(5000000000));
        CU_ASSERT(clock_mono_ns() - start < UINT64_C(1000000000));
        start = clock_mono_ns();
        wake_wait(words[i], value, 30000000);
        CU_ASSERT(clock_mono_ns() - start >= 25000000 && clock_mono_ns() - start < UINT64_C(2000000000));
    }
    segment_close(&writer);
}

/* --- a range that somebody else gets ----------------------------------------------------------------------------------------- */
static shm_word wanted, stolen, ending;

static DWORD WINAPI steal(void *argument)
{
    (void)argument;
    while (!word_get(&ending)) {
        void *at = (void *)(uintptr_t)word_get(&wanted);
        if (at && VirtualAlloc(at, 65536, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE)) {
            word_set(&wanted, 0);
            word_set(&stolen, (uint64_t)(uintptr_t)at);
        }
    }
    return 0;
}

static void a_range_taken_by_another_thread_is_left_to_it(void)
{
    struct segment_writer writer;
    struct region region;
    bool lost = false;
    enter(true);
    CU_ASSERT_EQUAL_FATAL(segment_create(&writer, &config, folder, message, sizeof message), REGION_OK);
    HANDLE thief = CreateThread(NULL, 0, steal, NULL, 0, NULL);
    for (int round = 0; round < 2000 && !lost; round++) {
        CU_ASSERT_EQUAL_FATAL(region_open(&region, folder, PLACE_SEGMENT, false, NULL, 0, message, sizeof message), REGION_OK);
        uint8_t *memory = region.memory;
        size_t bytes = region.bytes;
        word_set(&wanted, (uint64_t)(uintptr_t)memory);
        bool kept = region_retire(memory, region.bytes);
        CU_ASSERT(!kept || memory[0] == 0);
        lost = !kept || region_open(&region, folder, PLACE_SEGMENT, false, memory, bytes, message, sizeof message) != REGION_OK;
        word_set(&wanted, 0);
        if (!lost) {
            CU_ASSERT_EQUAL(memcmp(memory, LAYOUT_MAGIC, 8), 0);
            region_unmap(memory, bytes);
            continue;
        }
        while (!word_get(&stolen))
            Sleep(1);
        memory[0] = 77; /* the thief's */
        CU_ASSERT_EQUAL(region_open(&region, folder, PLACE_SEGMENT, false, memory, bytes, message, sizeof message), REGION_ESYSTEM);
        CU_ASSERT_FALSE(region_retire(memory, bytes));
        region_unmap(memory, bytes);
        CU_ASSERT_EQUAL(memory[0], 77);
        VirtualFree(memory, 0, MEM_RELEASE);
    }
    word_set(&ending, 1);
    WaitForSingleObject(thief, INFINITE);
    CloseHandle(thief);
    segment_close(&writer);
    if (!lost)
        SKIP("the other thread never came in between");
}

static void clocks_agree_with_each_other_and_with_the_calendar(void)
{
    uint8_t one[16], two[16];
    uint64_t before = clock_mono_ns();
    CU_ASSERT(before > 0);
    for (int i = 0; i < 2000; i++) {
        uint64_t coarse = clock_mono_coarse_ns(), now = clock_mono_ns();
        CU_ASSERT(now >= before && coarse + 100000000u > now && now + 100000000u > coarse);
        before = now;
        if (i % 200 == 0)
            Sleep(110); /* past the second after which the two are compared again */
    }
    int64_t seconds = (int64_t)(clock_real_ns() / 1000000000u) - (int64_t)time(NULL);
    CU_ASSERT(seconds >= -2 && seconds <= 2);
    CU_ASSERT(clock_namespace() != 0);
    clock_boot_id(one);
    clock_boot_id(two);
    CU_ASSERT_EQUAL(memcmp(one, two, 16), 0);
    memset(two, 0, sizeof two);
    CU_ASSERT(memcmp(one, two, 16) != 0);
    platform_random(one, sizeof one);
    platform_random(two, sizeof two);
    CU_ASSERT(memcmp(one, two, 16) != 0);
}

TESTS({"without_a_folder_names_are_global_else_of_the_session", without_a_folder_names_are_global_else_of_the_session},
      {"others_may_read_a_section_and_nothing_else", others_may_read_a_section_and_nothing_else},
      {"a_name_leads_to_the_newest_section_and_goes_with_its_writer", a_name_leads_to_the_newest_section_and_goes_with_its_writer},
      {"lock_is_held_for_life_and_freed_by_death", lock_is_held_for_life_and_freed_by_death},
      {"renamed_lock_file_is_noticed_and_made_again", renamed_lock_file_is_noticed_and_made_again},
      {"waiter_in_another_process_is_woken_at_even_and_odd_steps", waiter_in_another_process_is_woken_at_even_and_odd_steps},
      {"wait_ends_at_once_when_the_word_has_moved_and_else_in_time", wait_ends_at_once_when_the_word_has_moved_and_else_in_time},
      {"a_range_taken_by_another_thread_is_left_to_it", a_range_taken_by_another_thread_is_left_to_it},
      {"clocks_agree_with_each_other_and_with_the_calendar", clocks_agree_with_each_other_and_with_the_calendar})
