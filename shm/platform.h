/* What the layout needs from the operating system. One implementation a platform: *_posix.c, *_linux.c, *_win32.c. */
#ifndef GPUTAP_SHM_PLATFORM_H
#define GPUTAP_SHM_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/atomics.h"

/* --- clocks ----------------------------------------------------------------------------------------------------------- */
uint64_t clock_mono_ns(void);
uint64_t clock_mono_coarse_ns(void); /* milliseconds of resolution, a few nanoseconds of cost */
uint64_t clock_real_ns(void);
/* Names the monotonic clock: two processes with the same value (and boot) read the same clock. 0 = unknown. */
uint64_t clock_namespace(void);
/* 16 bytes that name this boot of the machine; all zero = unknown. */
void clock_boot_id(uint8_t out[16]);

/* Fills with random bytes. */
void platform_random(void *out, size_t size);

/* --- waking ----------------------------------------------------------------------------------------------------------- */
/* Wakes every waiter on a word in shared memory, in any process. */
void wake_all(shm_word32 *word);
/* Sleeps while *word == expected, at most timeout_ns; may return early. The word may be in a read-only shared mapping. */
void wake_wait(const shm_word32 *word, uint32_t expected, uint64_t timeout_ns);

/* --- files and mappings ----------------------------------------------------------------------------------------------- */
enum region_error {
    REGION_OK = 0,
    REGION_ENOENT = -1,
    REGION_EPERM = -2,
    REGION_ENOSPC = -3,
    REGION_ESYSTEM = -4,
    REGION_EBUSY = -5,     /* the lock is held */
    REGION_EUNTRUSTED = -6 /* owner or kind of file is wrong */
};

/* Which file a mapping came from: tells a new one of the same name. */
struct region_identity {
    uint64_t device;
    uint64_t inode;
};

struct region {
    void *memory;
    size_t bytes;
    struct region_identity identity;
    int file; /* the writer's descriptor; -1 for readers */
    int name; /* what keeps the name, where names are no files (Windows); -1 = none */
};

/* Creates DIR/NAME.<random> with every byte allocated, mapped read-write. Nobody sees it before region_publish. `message` gets a
 * text on failure. mode is set regardless of umask. */
int region_create(struct region *region, const char *directory, const char *name, size_t bytes, unsigned mode, int64_t group,
                  char *message, size_t message_size);
/* Renames it into place over whatever is there. */
int region_publish(struct region *region, const char *directory, const char *name, char *message, size_t message_size);
/* Is DIR/NAME still this file? */
bool region_in_place(const struct region *region, const char *directory, const char *name);
/* Removes what writers that were killed before region_publish have left of NAME. Only for the holder of the lock. */
void region_sweep(const char *directory, const char *name);
/* Unmaps and closes; a region never published is removed. */
void region_destroy(struct region *region);

/* Maps DIR/NAME read-only and whole. `trust_any_owner` for a directory that the user named. Maps over `over` (which has at least
 * as many bytes) where that is not NULL. REGION_ENOENT, REGION_EPERM, REGION_EUNTRUSTED, REGION_ESYSTEM. */
int region_open(struct region *region, const char *directory, const char *name, bool trust_any_owner, void *over, size_t over_bytes,
                char *message, size_t message_size);
/* Maps DIR/NAME read-write, only if it is the caller's own: to mark a predecessor. */
int region_open_owned(struct region *region, const char *directory, const char *name);
/* Identity of DIR/NAME now, and its modification time. */
int region_lookup(const char *directory, const char *name, struct region_identity *identity, uint64_t *modified_ns);
/* Swaps a reader's mapping for zero pages at the same address: a read under way in another thread sees zeros instead of a
 * fault, and the file's memory is free. The range stays reserved for a later region_open over it, or false: it cannot be had again.
 */
bool region_retire(void *memory, size_t bytes);
void region_unmap(void *memory, size_t bytes);
/* Makes the pages of a reader's mapping present, so that no read pays for it. Only once the header is known to be sound: a hole in
 * a file on tmpfs is filled with memory by this. */
void region_populate(const void *memory, size_t bytes);

/* Who may write in a folder, and how readers know that somebody does: see lock_posix.c. */
struct lock {
    int owner;
    int shared;
};
#define LOCK_NONE                                                                                                                  \
    {                                                                                                                              \
        -1, -1                                                                                                                     \
    }

/* Takes what of the two files is not already held and in place, for the life of the process. REGION_EBUSY with the holder's pid
 * if another has it; on any other error what was held stays held. */
int lock_take(const char *directory, unsigned mode, int64_t group, struct lock *lock, int64_t *holder, char *message, size_t size);
/* Are the files of that name still the ones that are held? */
bool lock_in_place(const char *directory, const struct lock *lock);
void lock_release(struct lock *lock);
/* Does a writer live there? 1 yes, 0 no, negative REGION_E... */
int lock_held(const char *directory);

/* Opens /dev/null for a standard descriptor that the process was started without: else the next file opened would get its number,
 * and what is printed would be written into it. First thing in every main. */
void process_open_standard_files(void);

/* --- memory between two processes ------------------------------------------------------------------------------------- */
/* Creates anonymous memory of a fixed size, zero-filled for real, that nobody can shrink or grow any more; `*file` is for the one
 * process that shall write it. Mapped here read-only: what the other end does to it cannot fault us. REGION_E... */
int sealed_create(size_t bytes, const void **memory, int *file);
/* Maps such memory read-write, and closes nothing. A forked child does not inherit the mapping. */
int sealed_map(int file, size_t bytes, void **memory);
void sealed_unmap(const void *memory, size_t bytes);

/* --- threads and processes -------------------------------------------------------------------------------------------- */
/* Guards a handle's private memory for less than a microsecond at a time. */
struct platform_mutex {
    uint64_t storage[8];
};
void mutex_init(struct platform_mutex *mutex);
void mutex_lock(struct platform_mutex *mutex);
void mutex_unlock(struct platform_mutex *mutex);
void mutex_destroy(struct platform_mutex *mutex);

/* A word that is *mark for as long as this is the same process, and something else in every forked child of it: to know one's own
 * child for the price of a load. NULL where there is no memory. */
const shm_word32 *fork_canary(uint32_t *mark);

/* --- places ----------------------------------------------------------------------------------------------------------- */
enum { PLACE_PATH_MAX = 1024 };
#define PLACE_SEGMENT "telemetry"
#define PLACE_LOCK "lock"
#define PLACE_OWNER "owner"
#define PLACE_CONTROL "control.sock"
#define PLACE_BRIDGE "bridge.sock"

/* True for 1 to 64 of [A-Za-z0-9._-] that do not start with a dot. */
bool place_valid_instance(const char *instance);
/* $GPUTAP_INSTANCE or "default". */
const char *place_default_instance(void);
/* Folder in which a broker of this user puts `instance`; creates base and folder (mode 0755 for root's, 0700 for a user's;
 * with group >= 0: 0750). REGION_E... with a text. */
int place_create(const char *instance, int64_t group, char *out, size_t size, char *message, size_t message_size);
/* Candidate folders of a reader in the order in which they are tried: i = 0, 1, ... Returns false past the last. `trust` is set
 * for a folder that the user named; one that is relative or too long is none. */
bool place_candidate(const char *instance, int i, char *out, size_t size, bool *trust);
/* A folder of another user than root or the caller must not be trusted. REGION_OK, ENOENT, EPERM, EUNTRUSTED. */
int place_check(const char *directory, bool trust);

#endif
