/* A reader's handle, inside. Private to client/.
 *
 * Threads share a handle without locks and without reference counts:
 *
 *   reader                                    the one thread that re-attaches (it holds `busy`)
 *   1 g := generation        acquire          1 a mapping is made ready; nobody reads it
 *   2 m := current           acquire          2 current := new mapping       release
 *   3 copy by the ring's recipe               3 generation += 1
 *   4 fence                  acquire          4 the old range is replaced by zero pages at the same address
 *   5 generation = g ? accept : try again     5 later: its range and mapping may serve a segment of the same geometry
 *
 * A reader that was overtaken copies zeros, or words of the later segment, and step 5 throws its copy away. So a range is never
 * unmapped while the handle lives, a mapping is never freed, and what differs between two segments of one geometry is kept in
 * atomic words. The number of ranges is bounded by the number of distinct geometries + 1. */
#ifndef GPUTAP_CLIENT_HANDLE_H
#define GPUTAP_CLIENT_HANDLE_H

#include <stdbool.h>

#include "gputap.h"
#include "shm/segment.h"

enum {
    HANDLE_MAX_NUMBERS = LAYOUT_MAX_DEVICES, /* device numbers a handle gives out in its life */
    HANDLE_IDS_A_CHUNK = 32,
    HANDLE_PLACES = 8,
    HANDLE_RETRIES = 8,
    SNAPSHOT_PAYLOAD = LAYOUT_SNAPSHOT_WORDS - 1
};

/* One ring pair as a mapping sees it. `ring` and `coarse` are constant but for their member `first`, which belongs to one
 * segment and stands in words of its own. */
struct track {
    struct ring ring;
    struct ring coarse;
    shm_word first;
    shm_word coarse_first;
    shm_word last; /* low 48 bits: sequence last returned; high 16: of which attachment (see read.c) */
};

struct mapping {
    struct mapping *next;            /* all of the handle's; under `busy` */
    bool retired;                    /* free for a segment of its like; under `busy` */
    uint32_t adopted;                /* slots that have numbers; under `busy` */
    struct region_identity identity; /* under `busy` */

    /* Constant, also when a later segment is mapped here. Of the view only pointers, sizes and regions may be used: its epoch,
     * version and clocks are those of the first segment. */
    struct segment_view view;

    /* Of the segment mapped now. */
    shm_word attach; /* 1, 2, ... by attachment of the handle */
    shm_word epoch[2];
    shm_word same_clock;                    /* its monotonic clock is ours */
    shm_word place;                         /* index of gputap.places */
    shm_word32 slot_of[HANDLE_MAX_NUMBERS]; /* device number -> slot + 1, 0 = not in this segment */
    struct track tracks[];                  /* devices by slot, then the host */
};

struct handle_place {
    char path[PLACE_PATH_MAX];
    bool trust;
};

struct id_chunk {
    char ids[HANDLE_IDS_A_CHUNK][48];
};

struct gputap {
    shm_word current; /* struct mapping * */
    shm_word generation;
    shm_word next_check;                                         /* by our monotonic clock */
    shm_word32 busy;                                             /* taken by the thread that looks after the handle */
    shm_word32 pending;                                          /* status bits to be told once */
    shm_word32 problem;                                          /* why the last attempt to attach failed, as a positive number */
    shm_word beat;                                               /* last value seen */
    shm_word beat_seen;                                          /* when it was seen to move, by our clock */
    shm_word changes;                                            /* last value seen */
    shm_word annotator;                                          /* struct annotator *, see annotator.h */
    shm_word numbers;                                            /* device numbers given out */
    shm_word id_chunks[HANDLE_MAX_NUMBERS / HANDLE_IDS_A_CHUNK]; /* struct id_chunk *; an id never changes once counted */

    uint64_t attachments;     /* under `busy` */
    struct mapping *mappings; /* under `busy` */

    /* Constant after open. */
    char instance[65];
    uint64_t time_namespace;
    uint8_t boot_id[16];
    int place_count;
    struct handle_place places[HANDLE_PLACES];
};

/* --- message.c -------------------------------------------------------------------------------------------------------- */
#if defined(__GNUC__)
#include <stdio.h>
#if !defined(__MINGW_PRINTF_FORMAT)
#define __MINGW_PRINTF_FORMAT printf
#endif
#define CLIENT_PRINTF(at) __attribute__((format(__MINGW_PRINTF_FORMAT, at, at + 1)))
#else
#define CLIENT_PRINTF(at)
#endif
/* Keeps the text for gputap_message and returns the code. tap NULL: of gputap_open. */
int client_fail(const gputap *tap, int code, const char *format, ...) CLIENT_PRINTF(3);
/* The usual texts. */
int client_fail_absent(gputap *tap);
int client_fail_busy(const gputap *tap);
int client_fail_device(const gputap *tap, int code, int device);

/* Fills a sized struct of the caller from one of the size that this library knows. */
int client_copy_sized(const gputap *tap, void *out, uint32_t caller_size, const void *known, size_t known_size);

/* --- attach.c --------------------------------------------------------------------------------------------------------- */
/* Looks for the instance's segment and makes it current if it is another than now. 0, or why not with a text. Under `busy`. */
int handle_attach(gputap *tap, uint64_t now, char *message, size_t message_size);
void handle_describe_absence(const gputap *tap, char *out, size_t size);

/* --- mapping.c -------------------------------------------------------------------------------------------------------- */
int mapping_open(gputap *tap, int place, struct mapping **out, char *message, size_t message_size);
void mapping_retire(struct mapping *mapping);
void mapping_destroy(struct mapping *mapping);

/* --- check.c ---------------------------------------------------------------------------------------------------------- */
/* Looks after the handle: beat, state, new devices, a new segment. At most one thread does, the others go on. */
void handle_check(gputap *tap, uint64_t now, bool thorough);
/* Period for our own decisions: never 0, never absurd. */
uint64_t mapping_period(const struct mapping *mapping);

static inline void handle_tick(gputap *tap, uint64_t now)
{
    if ((int64_t)(now - word_peek(&tap->next_check)) >= 0)
        handle_check(tap, now, false);
}

/* --- devices.c -------------------------------------------------------------------------------------------------------- */
/* Gives numbers to slots of the mapping that have none yet. Under `busy`. True if there were any. */
bool devices_adopt(gputap *tap, struct mapping *mapping);
/* Slot of a device number in a mapping, or GPUTAP_EINVAL, GPUTAP_ENODEV. */
static inline int device_slot(gputap *tap, const struct mapping *mapping, int device)
{
    if (device < 0)
        return GPUTAP_EINVAL;
    if ((uint64_t)device >= word_get(&tap->numbers))
        return GPUTAP_ENODEV;
    uint32_t slot = word32_get(&mapping->slot_of[device]);
    return slot ? (int)slot - 1 : GPUTAP_ENODEV;
}

/* --- passes: one attempt of a read over the current mapping ----------------------------------------------------------- */
struct pass {
    struct mapping *mapping; /* NULL while not attached */
    uint64_t generation;
};

static inline struct mapping *handle_current(const gputap *tap) { return (struct mapping *)(uintptr_t)word_get(&tap->current); }

static inline void pass_begin(const gputap *tap, struct pass *pass)
{
    pass->generation = word_get(&tap->generation);
    pass->mapping = handle_current(tap);
}

/* Was the mapping current all the time? If not, whatever was read from it must not be used. */
static inline bool pass_held(const gputap *tap, const struct pass *pass)
{
    words_acquire_fence();
    return word_get(&tap->generation) == pass->generation;
}

/* Track of a device number or GPUTAP_HOST; NULL with *error set. */
static inline struct track *pass_track(gputap *tap, const struct pass *pass, int device, int *error)
{
    if (device == GPUTAP_HOST)
        return &pass->mapping->tracks[pass->mapping->view.device_slots];
    *error = device_slot(tap, pass->mapping, device);
    return *error < 0 ? NULL : &pass->mapping->tracks[*error];
}

static inline struct ring track_ring(const struct track *track)
{
    struct ring ring = track->ring;
    ring.first = word_get(&track->first);
    return ring;
}

static inline struct ring track_coarse(const struct track *track)
{
    struct ring ring = track->coarse;
    ring.first = word_get(&track->coarse_first);
    return ring;
}

/* --- annotate.c ------------------------------------------------------------------------------------------------------- */
/* Slot and generation of the handle's session while a broker has it, else -1. */
int annotator_slot(const gputap *tap, uint32_t *generation);
/* Ends it, at the handle's end. */
void annotator_destroy(gputap *tap);

/* --- entries.c -------------------------------------------------------------------------------------------------------- */
/* The newest copy of a table entry of the current segment: index is a device number for REGION_DEVICE. `words` payload words.
 * 0 or a negative code with a text. */
int entry_read(gputap *tap, enum region_type type, int index, uint64_t *out, uint32_t words);

#endif
