#include "tests/helpers/os.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>
#include <stdlib.h>

void os_sleep_ms(int ms) { Sleep((DWORD)ms); }
bool os_make_folder(const char *path) { return CreateDirectoryA(path, NULL); }
bool os_remove_folder(const char *path) { return RemoveDirectoryA(path); }
bool os_exists(const char *path) { return GetFileAttributesA(path) != INVALID_FILE_ATTRIBUTES; }
bool os_named_places(void) { return getenv("GPUTAP_TEST_NAMED_PLACES") != NULL; }

/* The name of a file that is open stays taken until the last handle closes: so the file goes elsewhere first. */
bool os_remove_file(const char *path)
{
    static unsigned count;
    char temporary[MAX_PATH], aside[MAX_PATH * 2];
    DWORD length = GetTempPathA(sizeof temporary, temporary);
    if (length == 0 || length >= sizeof temporary)
        return false;
    snprintf(aside, sizeof aside, "%sgputap-gone-%lx-%u", temporary, GetCurrentProcessId(), count++);
    return MoveFileExA(path, aside, MOVEFILE_REPLACE_EXISTING) && DeleteFileA(aside);
}

bool os_rename(const char *from, const char *to)
{
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) || (os_remove_file(to) && MoveFileExA(from, to, 0));
}

bool os_set_env(const char *name, const char *value)
{
    char text[4096];
    int length = snprintf(text, sizeof text, "%s=%s", name, value ? value : "");
    return length > 0 && length < (int)sizeof text && _putenv(text) == 0;
}

bool os_make_private_folder(char *out, size_t size)
{
    char temporary[MAX_PATH];
    LARGE_INTEGER now;
    DWORD length = GetTempPathA(sizeof temporary, temporary);
    if (length == 0 || length >= sizeof temporary || !QueryPerformanceCounter(&now))
        return false;
    int wrote = snprintf(out, size, "%sgputap-unit-%lx-%lx", temporary, GetCurrentProcessId(), (unsigned long)now.LowPart);
    return wrote > 0 && wrote < (int)size && CreateDirectoryA(out, NULL);
}

bool os_remove_files(const char *path)
{
    char pattern[MAX_PATH * 2];
    WIN32_FIND_DATAA entry;
    snprintf(pattern, sizeof pattern, "%s/*", path);
    HANDLE search = FindFirstFileA(pattern, &entry);
    if (search == INVALID_HANDLE_VALUE)
        return false;
    do {
        snprintf(pattern, sizeof pattern, "%s/%s", path, entry.cFileName);
        DeleteFileA(pattern);
    } while (FindNextFileA(search, &entry));
    FindClose(search);
    return RemoveDirectoryA(path);
}

int os_ranges_lost_at_most(int exchanges) { return exchanges / 8; }
