/* Named sections. A section cannot be renamed, so what a rename is to a file is here one word: the small section DIRECTORY/NAME
 * says which DIRECTORY/NAME.<random> is the region now. Both names live as long as somebody holds a handle, which only the writer
 * does: its death takes them away, while readers keep what they have mapped. */
#include <stdio.h>
#include <string.h>

#include "shm/text.h"
#include "shm/win32.h"

static const uint64_t device_of_sections = UINT64_C(0x73656374696F6E73);

/* `bytes` is 0 while the rest is being changed, and names the size with the region: equal before and after, suffix is of it. */
struct published {
    shm_word bytes;
    shm_word suffix;
    shm_word modified_ns;
};

static bool segment_name(char *out, size_t size, const char *name, uint64_t suffix)
{
    int length = snprintf(out, size, "%s.%016llx", name, (unsigned long long)suffix);
    return length > 0 && length < (int)size;
}

static int make(const char *directory, const char *name, size_t bytes, DWORD others, HANDLE *section, char *message,
                size_t message_size)
{
    wchar_t path[PLACE_PATH_MAX];
    struct win32_access access;
    if (!win32_path(path, directory, name))
        return REGION_ESYSTEM;
    if (!win32_access_open(&access, others))
        return win32_fail(directory, name, GetLastError(), message, message_size);
    *section = CreateFileMappingW(INVALID_HANDLE_VALUE, &access.attributes, PAGE_READWRITE, (DWORD)((uint64_t)bytes >> 32),
                                  (DWORD)bytes, path);
    DWORD code = GetLastError();
    win32_access_close(&access);
    if (*section)
        return code == ERROR_ALREADY_EXISTS ? REGION_EBUSY : REGION_OK;
    int result = win32_fail(directory, name, code, message, message_size);
    if (result == REGION_ENOSPC)
        text_format(message, message_size,
                    "%s/%s: no memory left: %zu bytes (%.1f MiB) are needed; enlarge the page file or lower --max-devices",
                    directory, name, bytes, (double)bytes / 1048576.0);
    return result;
}

int section_create(struct region *region, const char *directory, const char *name, size_t bytes, unsigned mode, char *message,
                   size_t message_size)
{
    char full[128];
    HANDLE section;
    uint64_t suffix;
    platform_random(&suffix, sizeof suffix);
    if (!segment_name(full, sizeof full, name, suffix))
        return REGION_ESYSTEM;
    int result = make(directory, full, bytes, mode & 04 ? WIN32_MAY_MAP : WIN32_NOTHING, &section, message, message_size);
    if (result == REGION_EBUSY) { /* somebody guessed 64 bits, or meddles */
        CloseHandle(section);
        text_format(message, message_size, "%s/%s: is there already", directory, full);
        return REGION_EUNTRUSTED;
    }
    if (result != REGION_OK)
        return result;
    region->memory = MapViewOfFile(section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, bytes);
    if (!region->memory) {
        result = win32_fail(directory, full, GetLastError(), message, message_size);
        CloseHandle(section);
        return result;
    }
    region->file = win32_keep(section);
    region->bytes = bytes;
    region->identity = (struct region_identity){device_of_sections, suffix};
    return REGION_OK;
}

int section_publish(struct region *region, const char *directory, const char *name, char *message, size_t message_size)
{
    HANDLE section;
    /* One that is there already is an earlier region's of this process, or kept alive by a reader: ours to change in both cases. */
    int result = make(directory, name, sizeof(struct published), WIN32_MAY_MAP, &section, message, message_size);
    if (result != REGION_OK && result != REGION_EBUSY)
        return result;
    struct published *published = MapViewOfFile(section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, sizeof *published);
    if (!published) {
        result = win32_fail(directory, name, GetLastError(), message, message_size);
        CloseHandle(section);
        return result;
    }
    word_set(&published->bytes, 0);
    word_swap(&published->suffix, region->identity.inode); /* a full barrier: not seen with the size of before */
    word_set(&published->modified_ns, clock_real_ns());
    word_set(&published->bytes, region->bytes);
    UnmapViewOfFile(published);
    region->name = win32_keep(section);
    return REGION_OK;
}

int section_lookup(const char *directory, const char *name, struct region_identity *identity, uint64_t *modified_ns, size_t *bytes)
{
    wchar_t path[PLACE_PATH_MAX];
    if (!win32_path(path, directory, name))
        return REGION_ESYSTEM;
    HANDLE section = OpenFileMappingW(FILE_MAP_READ, FALSE, path);
    if (!section)
        return win32_error_of(GetLastError());
    const struct published *published = MapViewOfFile(section, FILE_MAP_READ, 0, 0, sizeof *published);
    CloseHandle(section);
    if (!published)
        return REGION_ESYSTEM;
    int result = REGION_ENOENT;
    for (int attempt = 0; attempt < 8 && result != REGION_OK; attempt++) {
        uint64_t before = word_get(&published->bytes), suffix = word_get(&published->suffix);
        if (modified_ns)
            *modified_ns = word_get(&published->modified_ns);
        words_acquire_fence();
        if (before == 0 || before != word_get(&published->bytes) || before > SIZE_MAX / 2)
            continue;
        *identity = (struct region_identity){device_of_sections, suffix};
        *bytes = (size_t)before;
        result = REGION_OK;
    }
    UnmapViewOfFile(published);
    return result;
}

int section_open(struct region *region, const char *directory, const char *name, DWORD access, HANDLE *section)
{
    wchar_t path[PLACE_PATH_MAX];
    char full[128];
    int result = section_lookup(directory, name, &region->identity, NULL, &region->bytes);
    if (result != REGION_OK)
        return result;
    if (!segment_name(full, sizeof full, name, region->identity.inode) || !win32_path(path, directory, full))
        return REGION_ESYSTEM;
    *section = OpenFileMappingW(access, FALSE, path);
    return *section ? REGION_OK : win32_error_of(GetLastError());
}
