/* Liveness and exclusion, freed by the system when their holder dies, whatever killed it.
 *
 * Named objects: `owner` is an event that only its holder may open, so that its name is taken as long as the holder lives; `lock`
 * is a section with the holder's pid that everybody may look at. Readers let go of it at once; one that keeps it makes a dead
 * broker look alive but standing still, and hinders no start.
 *
 * Files: as on other systems (see lock_posix.c), by a lock on one byte. It lies past the pid, since a lock is in the way of reading
 * here, and where the other systems' lock on the whole file meets it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/text.h"
#include "shm/win32.h"

static const DWORD locked_byte = 1u << 30;
static const DWORD share_all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/* --- named objects --------------------------------------------------------------------------------------------------------- */
static int64_t holder_of_objects(const char *directory)
{
    wchar_t path[PLACE_PATH_MAX];
    if (!win32_path(path, directory, PLACE_LOCK))
        return 0;
    HANDLE section = OpenFileMappingW(FILE_MAP_READ, FALSE, path);
    const shm_word *pid = section ? MapViewOfFile(section, FILE_MAP_READ, 0, 0, sizeof *pid) : NULL;
    int64_t holder = pid ? (int64_t)word_get(pid) : 0;
    if (pid)
        UnmapViewOfFile((void *)(uintptr_t)pid);
    if (section)
        CloseHandle(section);
    return holder;
}

static int take_owner_object(const char *directory, struct lock *lock, int64_t *holder, char *message, size_t size)
{
    wchar_t path[PLACE_PATH_MAX];
    struct win32_access access;
    if (!win32_path(path, directory, PLACE_OWNER) || !win32_access_open(&access, WIN32_NOTHING))
        return REGION_ESYSTEM;
    HANDLE event = CreateEventW(&access.attributes, TRUE, FALSE, path);
    DWORD code = GetLastError();
    win32_access_close(&access);
    if (event && code != ERROR_ALREADY_EXISTS) {
        lock->owner = win32_keep(event);
        return REGION_OK;
    }
    if (event)
        CloseHandle(event);
    *holder = holder_of_objects(directory);
    int result = win32_fail(directory, PLACE_OWNER, code, message, size);
    return event || *holder != 0 ? REGION_EBUSY : result; /* another user's may not be opened, but is there */
}

static int publish_object(const char *directory, unsigned mode, struct lock *lock, char *message, size_t size)
{
    wchar_t path[PLACE_PATH_MAX];
    struct win32_access access;
    if (!win32_path(path, directory, PLACE_LOCK) || !win32_access_open(&access, mode & 04 ? WIN32_MAY_MAP : WIN32_NOTHING))
        return REGION_ESYSTEM;
    HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, &access.attributes, PAGE_READWRITE, 0, sizeof(shm_word), path);
    DWORD code = GetLastError();
    win32_access_close(&access);
    shm_word *pid = section ? MapViewOfFile(section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, sizeof *pid) : NULL;
    if (!pid) {
        int result = win32_fail(directory, PLACE_LOCK, section ? GetLastError() : code, message, size);
        if (section)
            CloseHandle(section);
        return result;
    }
    word_set(pid, GetCurrentProcessId());
    UnmapViewOfFile(pid);
    lock->shared = win32_keep(section);
    return REGION_OK;
}

static int held_by_object(const char *directory)
{
    wchar_t path[PLACE_PATH_MAX];
    if (!win32_path(path, directory, PLACE_LOCK))
        return REGION_ESYSTEM;
    HANDLE section = OpenFileMappingW(FILE_MAP_READ, FALSE, path);
    if (!section)
        return win32_error_of(GetLastError());
    CloseHandle(section);
    return 1;
}

/* --- files ------------------------------------------------------------------------------------------------------------------- */
static bool lock_byte(HANDLE file, DWORD exclusive)
{
    OVERLAPPED at = {.Offset = locked_byte};
    return LockFileEx(file, LOCKFILE_FAIL_IMMEDIATELY | exclusive, 0, 1, 0, &at);
}

static bool conflict(DWORD code) { return code == ERROR_LOCK_VIOLATION || code == ERROR_IO_PENDING; }

static int64_t read_pid(HANDLE file)
{
    char text[32] = {0};
    OVERLAPPED at = {0};
    DWORD got = 0;
    return ReadFile(file, text, sizeof text - 1, &got, &at) && got > 0 ? strtoll(text, NULL, 10) : 0;
}

static bool write_pid(HANDLE file)
{
    char text[32];
    OVERLAPPED at = {0};
    DWORD wrote = 0, length = (DWORD)snprintf(text, sizeof text, "%lu\n", GetCurrentProcessId());
    return SetEndOfFile(file) && WriteFile(file, text, length, &wrote, &at) && wrote == length;
}

/* By the file's number alone: both are in one folder, and the volume of a file that was renamed is not always told. */
static bool same_file(HANDLE held, const struct region_identity *named)
{
    BY_HANDLE_FILE_INFORMATION info;
    return GetFileInformationByHandle(held, &info) && ((uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow) == named->inode;
}

static bool in_place(const char *directory, const char *name, int held)
{
    struct region_identity named;
    if (held == -1)
        return false;
    return win32_place_of_objects(directory) ||
           (file_lookup(directory, name, &named, NULL) == REGION_OK && same_file(win32_handle(held), &named));
}

static int take_owner_file(const char *directory, struct lock *lock, int64_t *holder, char *message, size_t size)
{
    wchar_t path[PLACE_PATH_MAX];
    if (!win32_path(path, directory, PLACE_OWNER))
        return REGION_ESYSTEM;
    HANDLE file = CreateFileW(path, GENERIC_READ | GENERIC_WRITE, share_all, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return win32_fail(directory, PLACE_OWNER, GetLastError(), message, size);
    if (!lock_byte(file, LOCKFILE_EXCLUSIVE_LOCK) || !write_pid(file)) {
        DWORD code = GetLastError();
        int result = win32_fail(directory, PLACE_OWNER, code, message, size);
        *holder = read_pid(file);
        CloseHandle(file);
        return conflict(code) ? REGION_EBUSY : result;
    }
    if (lock->owner != -1)
        CloseHandle(win32_handle(lock->owner));
    lock->owner = win32_keep(file);
    return REGION_OK;
}

static int publish_file(const char *directory, struct lock *lock, char *message, size_t size)
{
    wchar_t path[PLACE_PATH_MAX], temporary[PLACE_PATH_MAX];
    if (!win32_path(path, directory, PLACE_LOCK) || !win32_path(temporary, directory, "." PLACE_LOCK))
        return REGION_ESYSTEM;
    DeleteFileW(temporary); /* ours to remove: the owner is locked */
    HANDLE file =
        CreateFileW(temporary, GENERIC_READ | GENERIC_WRITE | DELETE, share_all, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return win32_fail(directory, PLACE_LOCK, GetLastError(), message, size);
    if (!lock_byte(file, LOCKFILE_EXCLUSIVE_LOCK) || !write_pid(file) || !file_replace(temporary, path)) {
        int result = win32_fail(directory, PLACE_LOCK, GetLastError(), message, size);
        CloseHandle(file);
        DeleteFileW(temporary);
        return result;
    }
    if (lock->shared != -1)
        CloseHandle(win32_handle(lock->shared));
    lock->shared = win32_keep(file);
    return REGION_OK;
}

static int held_by_file(const char *directory)
{
    wchar_t path[PLACE_PATH_MAX];
    if (!win32_path(path, directory, PLACE_LOCK))
        return REGION_ESYSTEM;
    HANDLE file = CreateFileW(path, GENERIC_READ, share_all, NULL, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return win32_error_of(GetLastError());
    bool got = lock_byte(file, 0);
    DWORD code = GetLastError();
    CloseHandle(file); /* and the lock */
    return got ? 0 : conflict(code) ? 1 : REGION_ESYSTEM;
}

/* --- both -------------------------------------------------------------------------------------------------------------------- */
int lock_take(const char *directory, unsigned mode, int64_t group, struct lock *lock, int64_t *holder, char *message, size_t size)
{
    bool objects = win32_place_of_objects(directory);
    (void)group;
    *holder = 0;
    if (!in_place(directory, PLACE_OWNER, lock->owner)) {
        int result = objects ? take_owner_object(directory, lock, holder, message, size)
                             : take_owner_file(directory, lock, holder, message, size);
        if (result != REGION_OK)
            return result;
    }
    if (in_place(directory, PLACE_LOCK, lock->shared))
        return REGION_OK;
    return objects ? publish_object(directory, mode, lock, message, size) : publish_file(directory, lock, message, size);
}

bool lock_in_place(const char *directory, const struct lock *lock)
{
    return in_place(directory, PLACE_OWNER, lock->owner) && in_place(directory, PLACE_LOCK, lock->shared);
}

void lock_release(struct lock *lock)
{
    if (lock->shared != -1)
        CloseHandle(win32_handle(lock->shared));
    if (lock->owner != -1)
        CloseHandle(win32_handle(lock->owner));
    *lock = (struct lock)LOCK_NONE;
}

int lock_held(const char *directory)
{
    return win32_place_of_objects(directory) ? held_by_object(directory) : held_by_file(directory);
}
