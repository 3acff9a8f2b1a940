/* Sections of files: the form that GPUTAP_DIR asks for, and that another system can read as well. Who may read a file is what its
 * folder hands down. */
#include <stdio.h>
#include <string.h>

#include "shm/text.h"
#include "shm/win32.h"

static const DWORD share_all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

static uint64_t process_suffix(void)
{
    static uint64_t suffix;
    if (suffix == 0)
        platform_random(&suffix, sizeof suffix);
    return suffix;
}

static bool temporary_path(wchar_t out[PLACE_PATH_MAX], const char *directory, const char *name, uint64_t suffix)
{
    char full[128];
    int length = snprintf(full, sizeof full, ".%s.%016llx", name, (unsigned long long)suffix);
    return length > 0 && length < (int)sizeof full && win32_path(out, directory, full);
}

static bool identify(HANDLE file, struct region_identity *identity, uint64_t *modified_ns, DWORD *attributes, uint64_t *bytes)
{
    BY_HANDLE_FILE_INFORMATION info;
    if (!GetFileInformationByHandle(file, &info))
        return false;
    *identity = (struct region_identity){info.dwVolumeSerialNumber, (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow};
    *attributes = info.dwFileAttributes;
    *bytes = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
    uint64_t ticks = (uint64_t)info.ftLastWriteTime.dwHighDateTime << 32 | info.ftLastWriteTime.dwLowDateTime;
    if (modified_ns) /* both from 1601 on: only compared with each other */
        *modified_ns = ticks * 100;
    return true;
}

/* Every byte is written, not only promised: on a full disk a hole is an error in whoever touches it, later. */
static bool fill_with_zeros(HANDLE file, size_t bytes)
{
    static const char zeros[65536];
    DWORD wrote;
    for (size_t done = 0; done < bytes; done += wrote) {
        DWORD step = (DWORD)(bytes - done < sizeof zeros ? bytes - done : sizeof zeros);
        if (!WriteFile(file, zeros, step, &wrote, NULL))
            return false;
        if (wrote == 0) {
            SetLastError(ERROR_DISK_FULL);
            return false;
        }
    }
    return true;
}

static void *map_writable(HANDLE file, size_t bytes)
{
    HANDLE section = CreateFileMappingW(file, NULL, PAGE_READWRITE, 0, 0, NULL);
    if (!section)
        return NULL;
    void *memory = MapViewOfFile(section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, bytes);
    DWORD code = GetLastError();
    CloseHandle(section);
    SetLastError(code);
    return memory;
}

int file_create(struct region *region, const char *directory, const char *name, size_t bytes, char *message, size_t message_size)
{
    wchar_t path[PLACE_PATH_MAX];
    DWORD attributes;
    uint64_t size;
    if (!temporary_path(path, directory, name, process_suffix()))
        return REGION_ESYSTEM;
    HANDLE file =
        CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE, share_all, NULL, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return win32_fail(directory, name, GetLastError(), message, message_size);
    bool ok = fill_with_zeros(file, bytes) && identify(file, &region->identity, NULL, &attributes, &size) &&
              (region->memory = map_writable(file, bytes)) != NULL;
    if (!ok) {
        int result = win32_fail(directory, name, GetLastError(), message, message_size);
        if (result == REGION_ENOSPC)
            text_format(message, message_size, "%s/%s: no space left: %zu bytes (%.1f MiB) are needed", directory, name, bytes,
                        (double)bytes / 1048576.0);
        CloseHandle(file);
        DeleteFileW(path);
        return result;
    }
    region->file = win32_keep(file);
    region->bytes = bytes;
    return REGION_OK;
}

/* Where the target cannot be replaced because it is mapped, it is first moved out of the way, to a name that a sweep finds. */
bool file_replace(const wchar_t *from, const wchar_t *to)
{
    if (MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING))
        return true;
    DWORD code = GetLastError();
    wchar_t aside[PLACE_PATH_MAX];
    const wchar_t *base = wcsrchr(to, L'/');
    uint64_t suffix;
    platform_random(&suffix, sizeof suffix);
    int length =
        base ? _snwprintf(aside, PLACE_PATH_MAX, L"%.*ls/.%ls.%016llx", (int)(base - to), to, base + 1, (unsigned long long)suffix)
             : -1;
    if (length > 0 && length < PLACE_PATH_MAX && MoveFileExW(to, aside, 0)) {
        if (MoveFileExW(from, to, 0)) {
            DeleteFileW(aside);
            return true;
        }
        code = GetLastError();
        (void)MoveFileExW(aside, to, 0);
    }
    SetLastError(code);
    return false;
}

int file_publish(struct region *region, const char *directory, const char *name, char *message, size_t message_size)
{
    wchar_t from[PLACE_PATH_MAX], to[PLACE_PATH_MAX];
    (void)region;
    if (!temporary_path(from, directory, name, process_suffix()) || !win32_path(to, directory, name))
        return REGION_ESYSTEM;
    if (file_replace(from, to))
        return REGION_OK;
    int result = win32_fail(directory, name, GetLastError(), message, message_size);
    DeleteFileW(from);
    return result;
}

/* A regular file: neither a folder nor a link to elsewhere. */
static int open_checked(const char *directory, const char *name, DWORD access, HANDLE *file, struct region_identity *identity,
                        uint64_t *modified_ns, uint64_t *bytes)
{
    wchar_t path[PLACE_PATH_MAX];
    DWORD attributes = 0;
    if (!win32_path(path, directory, name))
        return REGION_ESYSTEM;
    *file =
        CreateFileW(path, access, share_all, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    if (*file == INVALID_HANDLE_VALUE)
        return win32_error_of(GetLastError());
    bool known = identify(*file, identity, modified_ns, &attributes, bytes);
    if (known && !(attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)))
        return REGION_OK;
    CloseHandle(*file);
    return known ? REGION_EUNTRUSTED : REGION_ESYSTEM;
}

int file_lookup(const char *directory, const char *name, struct region_identity *identity, uint64_t *modified_ns)
{
    HANDLE file;
    uint64_t bytes;
    int result = open_checked(directory, name, FILE_READ_ATTRIBUTES, &file, identity, modified_ns, &bytes);
    if (result == REGION_OK)
        CloseHandle(file);
    return result;
}

int file_open(struct region *region, const char *directory, const char *name, bool writable, HANDLE *section)
{
    HANDLE file;
    uint64_t bytes;
    int result = open_checked(directory, name, writable ? GENERIC_READ | GENERIC_WRITE : GENERIC_READ, &file, &region->identity,
                              NULL, &bytes);
    if (result != REGION_OK)
        return result;
    region->bytes = bytes <= SIZE_MAX / 2 ? (size_t)bytes : SIZE_MAX / 2;
    *section = region->bytes > 0 ? CreateFileMappingW(file, NULL, writable ? PAGE_READWRITE : PAGE_READONLY, 0, 0, NULL) : NULL;
    result = *section ? REGION_OK : region->bytes == 0 ? REGION_ESYSTEM : win32_error_of(GetLastError());
    CloseHandle(file);
    return result;
}

void file_sweep(const char *directory, const char *name)
{
    wchar_t path[PLACE_PATH_MAX], pattern[PLACE_PATH_MAX];
    char prefix[64], found[MAX_PATH * 3];
    WIN32_FIND_DATAW entry;
    (void)snprintf(prefix, sizeof prefix, ".%s.*", name);
    if (!win32_path(pattern, directory, prefix))
        return;
    HANDLE search = FindFirstFileW(pattern, &entry);
    if (search == INVALID_HANDLE_VALUE)
        return;
    do {
        if (WideCharToMultiByte(CP_UTF8, 0, entry.cFileName, -1, found, sizeof found, NULL, NULL) > 0 &&
            win32_path(path, directory, found))
            DeleteFileW(path);
    } while (FindNextFileW(search, &entry));
    FindClose(search);
}
