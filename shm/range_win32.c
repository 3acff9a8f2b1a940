/* What this process has mapped where.
 *
 * Windows cannot replace a mapping at its address in one step: the old one is taken away, then the new one is put there. A reader
 * of that moment faults. Its fault is taken here: it waits until the step is done, since that is under `lock`, and reads again.
 * Should another thread's allocation have got the range in between, the range is lost: it is theirs, and is never touched again.
 * (The placeholders of Windows 10 would keep it; the step would be two steps all the same.) */
#include <stdlib.h>

#include "shm/win32.h"

enum content { VIEW, ZEROS, LOST };

struct range {
    struct range *next;
    uint8_t *memory;
    size_t bytes;
    enum content content;
    struct wake *wake; /* NULL where the region has no events, as one of another system */
};

static SRWLOCK lock = SRWLOCK_INIT;
static struct range *ranges;

static struct range *find(const void *address)
{
    const uint8_t *at = address;
    for (struct range *range = ranges; range; range = range->next)
        if (at >= range->memory && at < range->memory + range->bytes)
            return range;
    return NULL;
}

static bool readable(const void *address)
{
    MEMORY_BASIC_INFORMATION info;
    return VirtualQuery(address, &info, sizeof info) == sizeof info && info.State == MEM_COMMIT &&
           !(info.Protect & (PAGE_NOACCESS | PAGE_GUARD));
}

static LONG CALLBACK wait_for_the_step(EXCEPTION_POINTERS *pointers)
{
    const EXCEPTION_RECORD *record = pointers->ExceptionRecord;
    if (record->ExceptionCode != EXCEPTION_ACCESS_VIOLATION || record->NumberParameters < 2 || record->ExceptionInformation[0] != 0)
        return EXCEPTION_CONTINUE_SEARCH;
    const void *address = (const void *)record->ExceptionInformation[1]; /* of a load */
    AcquireSRWLockShared(&lock);
    bool ours = find(address) != NULL && readable(address);
    ReleaseSRWLockShared(&lock);
    return ours ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_CONTINUE_SEARCH;
}

/* For the life of the process: a fault may be on its way to the handler when the last range goes. So the module stays as well. */
static BOOL CALLBACK watch_faults(INIT_ONCE *once, void *parameter, void **context)
{
    HMODULE module;
    (void)once, (void)parameter, (void)context;
    return GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                              (const wchar_t *)(uintptr_t)&wait_for_the_step, &module) &&
           AddVectoredExceptionHandler(1, wait_for_the_step) != NULL;
}

static struct range *range_new(void *memory, size_t bytes, struct wake *wake)
{
    struct range *range = malloc(sizeof *range);
    if (!range)
        return NULL;
    AcquireSRWLockExclusive(&lock);
    *range = (struct range){ranges, memory, bytes, VIEW, wake};
    ranges = range;
    ReleaseSRWLockExclusive(&lock);
    return range;
}

/* From the top of the address space down, where hardly anybody else allocates: so a range is not lost while it is exchanged. */
static void *map_high(HANDLE section, size_t bytes)
{
    for (int attempt = 0; attempt < 8; attempt++) {
        void *at = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_TOP_DOWN, PAGE_NOACCESS);
        if (!at)
            break;
        VirtualFree(at, 0, MEM_RELEASE);
        if (MapViewOfFileEx(section, FILE_MAP_READ, 0, 0, bytes, at))
            return at;
    }
    return MapViewOfFile(section, FILE_MAP_READ, 0, 0, bytes);
}

static int map_anew(HANDLE section, size_t bytes, const struct region_identity *identity, void **memory)
{
    static INIT_ONCE watching = INIT_ONCE_STATIC_INIT;
    if (!InitOnceExecuteOnce(&watching, watch_faults, NULL, NULL))
        return REGION_ESYSTEM;
    *memory = map_high(section, bytes);
    if (!*memory)
        return win32_error_of(GetLastError());
    struct wake *wake = wake_open(identity, false);
    if (range_new(*memory, bytes, wake))
        return REGION_OK;
    wake_release(wake);
    UnmapViewOfFile(*memory);
    return REGION_ENOSPC;
}

static void clear(struct range *range)
{
    wake_release(range->wake);
    range->wake = NULL;
    if (range->content == VIEW)
        UnmapViewOfFile(range->memory);
    else if (range->content == ZEROS)
        VirtualFree(range->memory, 0, MEM_RELEASE);
}

static void fill_with_zeros(struct range *range)
{
    void *at = VirtualAlloc(range->memory, range->bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READONLY);
    range->content = at ? ZEROS : LOST;
}

static int map_over(struct range *range, HANDLE section, struct wake *wake)
{
    if (range->content == LOST) {
        wake_release(wake);
        return REGION_ESYSTEM;
    }
    clear(range);
    if (MapViewOfFileEx(section, FILE_MAP_READ, 0, 0, range->bytes, range->memory)) {
        range->content = VIEW;
        range->wake = wake;
        return REGION_OK;
    }
    fill_with_zeros(range);
    wake_release(wake);
    return REGION_ESYSTEM;
}

int range_map(HANDLE section, size_t bytes, const struct region_identity *identity, void *over, void **memory)
{
    if (!over)
        return map_anew(section, bytes, identity, memory);
    struct wake *wake = wake_open(identity, false);
    AcquireSRWLockExclusive(&lock);
    struct range *range = find(over);
    if (!range || range->memory != over || range->bytes != bytes)
        abort();
    int result = map_over(range, section, wake);
    ReleaseSRWLockExclusive(&lock);
    *memory = over;
    return result;
}

bool range_note(void *memory, size_t bytes, const struct region_identity *identity, bool create)
{
    struct wake *wake = wake_open(identity, create);
    if (wake && range_new(memory, bytes, wake))
        return true;
    wake_release(wake);
    return false;
}

bool range_retire(void *memory)
{
    AcquireSRWLockExclusive(&lock);
    struct range *range = find(memory);
    if (range && range->content == VIEW) {
        clear(range);
        fill_with_zeros(range);
    }
    bool kept = range && range->content == ZEROS;
    ReleaseSRWLockExclusive(&lock);
    return kept;
}

void range_unmap(void *memory)
{
    AcquireSRWLockExclusive(&lock);
    struct range **at = &ranges, *range;
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    range = *at;
    if (range) {
        *at = range->next;
        clear(range);
    } else {
        UnmapViewOfFile(memory);
    }
    ReleaseSRWLockExclusive(&lock);
    free(range);
}

struct wake *range_wake(const void *word, bool *found)
{
    AcquireSRWLockShared(&lock);
    const struct range *range = find(word);
    struct wake *wake = range && range->wake ? wake_share(range->wake) : NULL;
    *found = range != NULL;
    ReleaseSRWLockShared(&lock);
    return wake;
}
