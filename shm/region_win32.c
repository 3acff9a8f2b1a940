/* A region is a named section, or a file where GPUTAP_DIR names a folder. */
#include <stdlib.h>
#include <string.h>

#include "shm/text.h"
#include "shm/win32.h"

/* 1024 devices take 1.4 GB. */
static const size_t largest_segment = SIZE_MAX / 2 < (size_t)4 << 30 ? SIZE_MAX / 2 : (size_t)4 << 30;

static void region_clear(struct region *region)
{
    memset(region, 0, sizeof *region);
    region->file = region->name = -1;
}

int region_create(struct region *region, const char *directory, const char *name, size_t bytes, unsigned mode, int64_t group,
                  char *message, size_t message_size)
{
    region_clear(region);
    if (group >= 0) {
        text_format(message, message_size, "%s: there are no numbered groups on Windows", directory);
        return REGION_ESYSTEM;
    }
    int result = win32_place_of_objects(directory) ? section_create(region, directory, name, bytes, mode, message, message_size)
                                                   : file_create(region, directory, name, bytes, message, message_size);
    if (result != REGION_OK)
        return result;
    if (range_note(region->memory, bytes, &region->identity, true))
        return REGION_OK;
    text_format(message, message_size, "%s/%s: its events cannot be made", directory, name);
    region_destroy(region);
    return REGION_ESYSTEM;
}

int region_publish(struct region *region, const char *directory, const char *name, char *message, size_t message_size)
{
    return win32_place_of_objects(directory) ? section_publish(region, directory, name, message, message_size)
                                             : file_publish(region, directory, name, message, message_size);
}

bool region_in_place(const struct region *region, const char *directory, const char *name)
{
    struct region_identity now;
    return region_lookup(directory, name, &now, NULL) == REGION_OK && now.device == region->identity.device &&
           now.inode == region->identity.inode;
}

void region_sweep(const char *directory, const char *name)
{
    if (!win32_place_of_objects(directory)) /* a killed process's sections are gone with it */
        file_sweep(directory, name);
}

void region_destroy(struct region *region)
{
    if (region->memory)
        range_unmap(region->memory);
    if (region->file != -1)
        CloseHandle(win32_handle(region->file));
    if (region->name != -1)
        CloseHandle(win32_handle(region->name));
    region->memory = NULL;
    region->file = region->name = -1;
}

static int find(struct region *region, const char *directory, const char *name, bool writable, HANDLE *section)
{
    region_clear(region);
    return win32_place_of_objects(directory)
               ? section_open(region, directory, name, writable ? FILE_MAP_READ | FILE_MAP_WRITE : FILE_MAP_READ, section)
               : file_open(region, directory, name, writable, section);
}

int region_open(struct region *region, const char *directory, const char *name, bool trust_any_owner, void *over, size_t over_bytes,
                char *message, size_t message_size)
{
    HANDLE section = NULL;
    (void)trust_any_owner; /* a folder is always one that the user named; who may make global names, place_win32.c says */
    int result = find(region, directory, name, false, &section);
    if (result == REGION_ENOENT || result == REGION_EPERM)
        (void)win32_fail(directory, name, GetLastError(), message, message_size);
    else if (result != REGION_OK)
        text_format(message, message_size, "%s/%s: %s", directory, name,
                    result == REGION_EUNTRUSTED ? "not a regular file" : "empty");
    if (result != REGION_OK)
        return result;
    if (region->bytes > largest_segment || (over && region->bytes != over_bytes)) {
        CloseHandle(section);
        text_format(message, message_size, "%s/%s: larger than any segment, or than expected", directory, name);
        return REGION_ESYSTEM;
    }
    result = range_map(section, region->bytes, &region->identity, over, &region->memory);
    if (result != REGION_OK)
        (void)win32_fail(directory, name, GetLastError(), message, message_size);
    CloseHandle(section);
    return result;
}

int region_open_owned(struct region *region, const char *directory, const char *name)
{
    HANDLE section = NULL;
    int result = find(region, directory, name, true, &section);
    if (result != REGION_OK)
        return result;
    region->memory = MapViewOfFile(section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, region->bytes);
    CloseHandle(section);
    if (!region->memory)
        return REGION_ESYSTEM;
    (void)range_note(region->memory, region->bytes, &region->identity, false);
    return REGION_OK;
}

int region_lookup(const char *directory, const char *name, struct region_identity *identity, uint64_t *modified_ns)
{
    size_t bytes;
    return win32_place_of_objects(directory) ? section_lookup(directory, name, identity, modified_ns, &bytes)
                                             : file_lookup(directory, name, identity, modified_ns);
}

bool region_retire(void *memory, size_t bytes)
{
    (void)bytes;
    return range_retire(memory);
}

void region_unmap(void *memory, size_t bytes)
{
    (void)bytes;
    if (memory)
        range_unmap(memory);
}

void region_populate(const void *memory, size_t bytes)
{
    WIN32_MEMORY_RANGE_ENTRY range = {(void *)(uintptr_t)memory, bytes};
    (void)PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}
