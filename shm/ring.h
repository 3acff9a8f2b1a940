/* The stamped ring: one writer, any number of read-only readers, the oldest slot is overwritten.
 *
 * A slot is `words` 64-bit words; word 0 is the stamp. The writer of ticket t into slot t & mask does
 *
 *   1 stamp := 2t+1   relaxed      dies here: the slot's old record is gone, the other slots and head are untouched
 *   2 fence           release
 *   3 words := data   relaxed      dies here: as above; the odd stamp keeps every reader out
 *   4 stamp := 2t+2   release      dies here: the record is whole but unannounced; head still names the one before
 *   5 head  := t+1    release
 *
 * and the reader of ticket t (first <= t < head, checked before)
 *
 *   1 a := stamp      acquire      a != 2t+2: overrun, or being written
 *   2 copy            relaxed
 *   3 fence           acquire
 *   4 b := stamp      relaxed      b != a: overrun, the copy is dropped
 *
 * If a copied word came from a later ticket, that ticket's release fence made its odd stamp visible before the word, and the
 * reader's acquire fence makes load 4 see it: so b != a. An acquire on load 4 in place of the fence would order what follows
 * the load, not the copy before it; a release on store 1 in place of the fence would let the words overtake the stamp. Both
 * are modelled as failing variants in tests/models.
 *
 * Tickets count from a `first` that is random (debug builds: just below the stamp's wrap, so that wrap mistakes show within a
 * lap), and are compared by signed difference. A fresh slot carries 2*first-1, the stamp of a record for ever being written.
 *
 * The front is the same slot once more, depth 1, before each series: the writer fills ring slot, then front, then head, so
 * that a reader of the newest record touches eight lines that it can prefetch, instead of head and then a slot that depends on
 * it. Head before front would let a reader go backwards. Writer killed in the front: its stamp stays odd and readers take
 * head and the ring, which cost one more miss and lose nothing.
 *
 * ThreadSanitizer knows no fences, so its build stores and loads every word with release and acquire, which is also right. */
#ifndef GPUTAP_SHM_RING_H
#define GPUTAP_SHM_RING_H

#include <stddef.h>
#include <stdint.h>

#include "shm/atomics.h"

enum {
    RING_OK = 0,
    RING_EMPTY = 1,   /* nothing was published yet */
    RING_OVERRUN = 2, /* overwritten, or being written */
    RING_RETRIES = 8, /* attempts before a reader gives up for now */
    RING_HEADER_BYTES = 128
};

/* As laid out in shared memory, before the slots of every ring. Written by the ring's writer only. */
struct ring_header {
    shm_word first; /* written once, before the segment is published */
    uint64_t reserved[7];
    shm_word head; /* own line: published last, see step 5 */
    uint64_t unused[7];
};
_Static_assert(sizeof(struct ring_header) == RING_HEADER_BYTES, "ring header layout");

/* A process's own view of one ring. */
struct ring {
    struct ring_header *header;
    shm_word *slots;
    shm_word *front; /* NULL where the ring has none */
    uint64_t first;
    uint64_t mask;
    uint32_t stride; /* words from slot to slot */
    uint32_t words;  /* words of a slot that are used, the stamp among them */
};

/* Bytes of a ring with its header; slot_bytes is a multiple of 64. */
static inline size_t ring_bytes(uint32_t depth, uint32_t slot_bytes) { return RING_HEADER_BYTES + (size_t)depth * slot_bytes; }

/* Binds a view to memory that holds a formatted ring. The caller has checked that ring_bytes() fit and that depth is a power of
 * two; `words` is at most slot_bytes / 8. */
void ring_bind(struct ring *ring, void *memory, void *front, uint32_t depth, uint32_t slot_bytes, uint32_t words);

/* Writes the empty state into memory and binds to it. Not for memory that anybody reads yet. */
void ring_format(struct ring *ring, void *memory, void *front, uint32_t depth, uint32_t slot_bytes, uint32_t words, uint64_t first);

/* Publishes words 1.. of a slot (`words - 1` of them) as the next ticket, which it returns. Only the one writer calls it. */
uint64_t ring_publish(struct ring *ring, const uint64_t *payload);

static inline int64_t ring_distance(uint64_t from, uint64_t to) { return (int64_t)(to - from); }
static inline uint64_t ring_head(const struct ring *ring) { return word_get(&ring->header->head); }
static inline uint64_t ring_published(const struct ring *ring) { return ring_head(ring) - ring->first; }
static inline const shm_word *ring_slot(const struct ring *ring, uint64_t ticket)
{
    return ring->slots + (size_t)(ticket & ring->mask) * ring->stride;
}
static inline uint64_t ring_ticket_of(const struct ring *ring, uint64_t stamp)
{
    return ring->first + ((stamp - (2 * ring->first + 2)) >> 1);
}

/* One word of a slot. */
static inline uint64_t ring_peek(const shm_word *word)
{
#ifdef SHM_THREAD_SANITIZER
    return word_get(word);
#else
    return word_peek(word);
#endif
}

/* Copies slot words 1..count into out[0..]. Pointers advance by eight: an index, or a fully unrolled loop, costs gcc twice the
 * time in address arithmetic. */
static inline void ring_copy_words(const shm_word *from, uint64_t *out, uint32_t count)
{
#ifdef SHM_THREAD_SANITIZER
    for (uint32_t i = 0; i < count; i++)
        out[i] = ring_peek(from + i);
#else
    for (; count >= 8; count -= 8, from += 8, out += 8) {
        out[0] = word_peek(from + 0);
        out[1] = word_peek(from + 1);
        out[2] = word_peek(from + 2);
        out[3] = word_peek(from + 3);
        out[4] = word_peek(from + 4);
        out[5] = word_peek(from + 5);
        out[6] = word_peek(from + 6);
        out[7] = word_peek(from + 7);
    }
    for (; count > 0; count--)
        *out++ = word_peek(from++);
#endif
}

/* The reader's recipe on one slot. `expected` is the stamp wanted. */
static inline int ring_read_slot(const shm_word *slot, uint64_t expected, uint64_t *out, uint32_t count)
{
    if (word_get(slot) != expected)
        return RING_OVERRUN;
    ring_copy_words(slot + 1, out, count);
#ifndef RING_MUTATION_NO_RECHECK
    words_acquire_fence();
    if (word_peek(slot) != expected)
        return RING_OVERRUN;
#endif
    return RING_OK;
}

/* Reads one ticket into out (words - 1 words). RING_EMPTY if it is not published yet, RING_OVERRUN if it is gone. */
int ring_read(const struct ring *ring, uint64_t ticket, uint64_t *out);

/* Reads the newest record, by the front where there is one, and never one older than `*last` if that was read before (pass
 * `have_last` 0 at first). On RING_OK `*last` is its ticket. At most RING_RETRIES attempts, then RING_OVERRUN. */
static inline int ring_latest_words(const struct ring *ring, uint64_t *out, uint32_t count, uint64_t *last, int have_last);

/* The same for a few words: offsets are positions in the payload. */
int ring_latest_fields(const struct ring *ring, const uint32_t *offsets, uint32_t count, uint64_t *out, uint64_t *last,
                       int have_last);

int ring_latest_by_head(const struct ring *ring, uint64_t *out, uint32_t count, uint64_t *last, int have_last);

static inline int ring_latest_words(const struct ring *ring, uint64_t *out, uint32_t count, uint64_t *last, int have_last)
{
    const shm_word *front = ring->front;
    if (front) {
        words_prefetch(front, ring->stride * 8);
        uint64_t stamp = word_get(front);
        if (!(stamp & 1) && ring_read_slot(front, stamp, out, count) == RING_OK) {
            *last = ring_ticket_of(ring, stamp);
            return RING_OK;
        }
    }
    return ring_latest_by_head(ring, out, count, last, have_last);
}

#endif
