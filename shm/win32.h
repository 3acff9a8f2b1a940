/* What the Win32 halves of shm/ share. Windows speaks UTF-16, this project UTF-8. Private to *_win32.c. */
#ifndef GPUTAP_SHM_WIN32_H
#define GPUTAP_SHM_WIN32_H

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "shm/platform.h"

/* A place is a folder, or a prefix of object names: `Global\gputap/<instance>` or `Local\gputap/<instance>`. A slash means nothing
 * in an object's name, and none can be in an instance's. */
bool win32_place_of_objects(const char *directory);
/* DIRECTORY/NAME as UTF-16. False where it is too long or no UTF-8. */
bool win32_path(wchar_t out[PLACE_PATH_MAX], const char *directory, const char *name);

/* Handles have 32 significant bits, so that one fits where other systems keep a descriptor; -1 = none. */
static inline HANDLE win32_handle(int kept) { return (HANDLE)(intptr_t)kept; }
static inline int win32_keep(HANDLE handle) { return (int)(intptr_t)handle; }

int win32_error_of(DWORD code);
/* Text and REGION_E... of a Win32 error. */
int win32_fail(const char *directory, const char *name, DWORD code, char *message, size_t size);

enum {
    WIN32_NOTHING = 0,
    WIN32_MAY_MAP = SECTION_QUERY | SECTION_MAP_READ,
    WIN32_MAY_WAIT = SYNCHRONIZE,
};
/* Everything for the system, administrators and the object's owner, `others` for everybody else. */
struct win32_access {
    SECURITY_ATTRIBUTES attributes;
};
bool win32_access_open(struct win32_access *access, DWORD others);
void win32_access_close(struct win32_access *access);

/* --- section_win32.c: named sections ------------------------------------------------------------------------------------------ */
int section_create(struct region *region, const char *directory, const char *name, size_t bytes, unsigned mode, char *message,
                   size_t message_size);
int section_publish(struct region *region, const char *directory, const char *name, char *message, size_t message_size);
int section_lookup(const char *directory, const char *name, struct region_identity *identity, uint64_t *modified_ns, size_t *bytes);
/* Opens what is published under the name; fills identity and bytes. */
int section_open(struct region *region, const char *directory, const char *name, DWORD access, HANDLE *section);

/* --- mapped_file_win32.c: sections of files --------------------------------------------------------------------------------------
 */
int file_create(struct region *region, const char *directory, const char *name, size_t bytes, char *message, size_t message_size);
int file_publish(struct region *region, const char *directory, const char *name, char *message, size_t message_size);
int file_lookup(const char *directory, const char *name, struct region_identity *identity, uint64_t *modified_ns);
int file_open(struct region *region, const char *directory, const char *name, bool writable, HANDLE *section);
void file_sweep(const char *directory, const char *name);
/* Puts a file in the place of another, which readers may have open and mapped. */
bool file_replace(const wchar_t *from, const wchar_t *to);

/* --- wake_win32.c
 * ----------------------------------------------------------------------------------------------------------------- */
/* The two events of one region. Counted, since a waiter may be on them while its range is given to another region. */
struct wake;
struct wake *wake_open(const struct region_identity *identity, bool create);
void wake_release(struct wake *wake);
struct wake *wake_share(struct wake *wake);

/* --- range_win32.c: what this process has mapped where
 * ------------------------------------------------------------------------------- */
/* Maps a section read-only; over `over`, a range of the same size that was mapped by this before, where that is not NULL. */
int range_map(HANDLE section, size_t bytes, const struct region_identity *identity, void *over, void **memory);
/* Notes a writer's own mapping, so that waking knows its region. */
bool range_note(void *memory, size_t bytes, const struct region_identity *identity, bool create);
bool range_retire(void *memory);
void range_unmap(void *memory);
/* The events of the region in which a word lies, shared; NULL where it lies in none. `*found` tells a region without events. */
struct wake *range_wake(const void *word, bool *found);

#endif
