#include "shm/ring.h"

#include <assert.h>

void ring_bind(struct ring *ring, void *memory, void *front, uint32_t depth, uint32_t slot_bytes, uint32_t words)
{
    assert(depth > 0 && (depth & (depth - 1)) == 0);
    assert(slot_bytes % 64 == 0 && words >= 2 && words <= slot_bytes / 8);
    ring->header = memory;
    ring->slots = (shm_word *)((char *)memory + RING_HEADER_BYTES);
    ring->front = front;
    ring->mask = depth - 1;
    ring->stride = slot_bytes / 8;
    ring->words = words;
    ring->first = word_get(&ring->header->first);
}

void ring_format(struct ring *ring, void *memory, void *front, uint32_t depth, uint32_t slot_bytes, uint32_t words, uint64_t first)
{
    struct ring_header *header = memory;
    word_poke(&header->first, first);
    word_poke(&header->head, first);
    ring_bind(ring, memory, front, depth, slot_bytes, words);
    for (uint64_t slot = 0; slot < depth; slot++)
        word_poke(ring->slots + slot * ring->stride, 2 * first - 1);
    if (front)
        word_poke(front, 2 * first - 1);
    word_set(&header->head, first);
}

static void slot_write(shm_word *slot, uint64_t ticket, const uint64_t *payload, uint32_t count)
{
    word_poke(slot, 2 * ticket + 1);
#ifdef SHM_THREAD_SANITIZER
    for (uint32_t i = 0; i < count; i++)
        word_set(slot + 1 + i, payload[i]);
#else
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < count; i++)
        word_poke(slot + 1 + i, payload[i]);
#endif
    word_set(slot, 2 * ticket + 2);
}

uint64_t ring_publish(struct ring *ring, const uint64_t *payload)
{
    uint64_t ticket = word_peek(&ring->header->head);
    slot_write(ring->slots + (size_t)(ticket & ring->mask) * ring->stride, ticket, payload, ring->words - 1);
    if (ring->front)
        slot_write(ring->front, ticket, payload, ring->words - 1);
    word_set(&ring->header->head, ticket + 1);
    return ticket;
}

int ring_read(const struct ring *ring, uint64_t ticket, uint64_t *out)
{
    if (ring_distance(ticket, ring_head(ring)) <= 0)
        return RING_EMPTY;
    if (ring_distance(ring->first, ticket) < 0)
        return RING_OVERRUN;
    return ring_read_slot(ring_slot(ring, ticket), 2 * ticket + 2, out, ring->words - 1);
}

int ring_latest_by_head(const struct ring *ring, uint64_t *out, uint32_t count, uint64_t *last, int have_last)
{
    for (int attempt = 0; attempt < RING_RETRIES; attempt++) {
        uint64_t ticket = ring_head(ring) - 1;
        if (ring_distance(ring->first, ticket) < 0)
            return RING_EMPTY;
        /* The front is published before head, so head may name the record before the one last returned. By one, never more. */
        if (have_last && *last - ticket == 1)
            continue;
        if (ring_read_slot(ring_slot(ring, ticket), 2 * ticket + 2, out, count) == RING_OK) {
            *last = ticket;
            return RING_OK;
        }
    }
    return RING_OVERRUN;
}

static int slot_read_fields(const shm_word *slot, uint64_t expected, const uint32_t *offsets, uint32_t count, uint64_t *out)
{
    if (word_get(slot) != expected)
        return RING_OVERRUN;
    for (uint32_t i = 0; i < count; i++)
        out[i] = ring_peek(slot + 1 + offsets[i]);
    words_acquire_fence();
    return word_peek(slot) == expected ? RING_OK : RING_OVERRUN;
}

int ring_latest_fields(const struct ring *ring, const uint32_t *offsets, uint32_t count, uint64_t *out, uint64_t *last,
                       int have_last)
{
    if (ring->front) {
        uint64_t stamp = word_get(ring->front);
        if (!(stamp & 1) && slot_read_fields(ring->front, stamp, offsets, count, out) == RING_OK) {
            *last = ring_ticket_of(ring, stamp);
            return RING_OK;
        }
    }
    for (int attempt = 0; attempt < RING_RETRIES; attempt++) {
        uint64_t ticket = ring_head(ring) - 1;
        if (ring_distance(ring->first, ticket) < 0)
            return RING_EMPTY;
        if (have_last && *last - ticket == 1)
            continue;
        if (slot_read_fields(ring_slot(ring, ticket), 2 * ticket + 2, offsets, count, out) == RING_OK) {
            *last = ticket;
            return RING_OK;
        }
    }
    return RING_OVERRUN;
}
