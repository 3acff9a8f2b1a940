#include "shm/ring.h"
#include "tests/unit/check.h"

enum { DEPTH = 8, WORDS = 16, SLOT_BYTES = 128 };

static _Alignas(64) uint8_t memory[RING_HEADER_BYTES + DEPTH * SLOT_BYTES];
static _Alignas(64) uint8_t front[SLOT_BYTES];

static void fresh(struct ring *ring, uint64_t first, bool with_front)
{
    memset(memory, 0xAA, sizeof memory);
    memset(front, 0xAA, sizeof front);
    ring_format(ring, memory, with_front ? front : NULL, DEPTH, SLOT_BYTES, WORDS, first);
}

static void publish(struct ring *ring, uint64_t value)
{
    uint64_t payload[WORDS - 1];
    for (int i = 0; i < WORDS - 1; i++)
        payload[i] = value;
    ring_publish(ring, payload);
}

static const uint64_t firsts[] = {1, 1000, (UINT64_C(1) << 63) - 3, UINT64_MAX - 3};
#define FOR_EACH_FIRST(ring) for (size_t f = 0; f < 4; f++)

static void empty_ring_answers_empty(void)
{
    struct ring ring;
    uint64_t out[WORDS - 1], last = 0;
    FOR_EACH_FIRST(ring)
    {
        fresh(&ring, firsts[f], true);
        CU_ASSERT_EQUAL(ring_latest_words(&ring, out, WORDS - 1, &last, 0), RING_EMPTY);
        CU_ASSERT_EQUAL(ring_read(&ring, firsts[f], out), RING_EMPTY);
        CU_ASSERT_EQUAL(ring_published(&ring), 0);
    }
}

static void newest_is_read_across_the_wrap_of_stamps(void)
{
    struct ring ring;
    uint64_t out[WORDS - 1], last = 0;
    FOR_EACH_FIRST(ring)
    for (int with_front = 0; with_front < 2; with_front++) {
        fresh(&ring, firsts[f], with_front);
        for (uint64_t n = 0; n < 5 * DEPTH; n++) {
            publish(&ring, n);
            CU_ASSERT_EQUAL(ring_latest_words(&ring, out, WORDS - 1, &last, n > 0), RING_OK);
            CU_ASSERT_EQUAL(last, firsts[f] + n);
            CU_ASSERT_EQUAL(out[0], n);
            CU_ASSERT_EQUAL(out[WORDS - 2], n);
            CU_ASSERT_EQUAL(ring_published(&ring), n + 1);
        }
    }
}

static void ticket_is_overrun_exactly_when_its_slot_was_reused(void)
{
    struct ring ring;
    uint64_t out[WORDS - 1];
    FOR_EACH_FIRST(ring)
    {
        fresh(&ring, firsts[f], false);
        for (uint64_t n = 0; n < 3 * DEPTH; n++)
            publish(&ring, n);
        for (uint64_t n = 0; n < 3 * DEPTH; n++)
            CU_ASSERT_EQUAL(ring_read(&ring, firsts[f] + n, out), n < 2 * DEPTH ? RING_OVERRUN : RING_OK);
        CU_ASSERT_EQUAL(ring_read(&ring, firsts[f] + 3 * DEPTH, out), RING_EMPTY);
        CU_ASSERT_EQUAL(ring_read(&ring, firsts[f] - 1, out), RING_OVERRUN);
    }
}

static shm_word *slot_of(struct ring *ring, uint64_t ticket) { return ring->slots + (ticket & ring->mask) * ring->stride; }

/* The writer died after each step of its recipe; what was published before stays readable. */
static void death_of_the_writer_hides_nothing(void)
{
    struct ring ring;
    uint64_t out[WORDS - 1], last;
    for (int step = 1; step <= 7; step++) {
        fresh(&ring, 100, true);
        publish(&ring, 7);
        uint64_t ticket = ring_head(&ring);
        word_set(slot_of(&ring, ticket), 2 * ticket + 1); /* 1: ring slot begun */
        if (step >= 2)
            word_set(slot_of(&ring, ticket) + 1, 8); /* 2: some words */
        if (step >= 3)
            word_set(slot_of(&ring, ticket), 2 * ticket + 2); /* 3: ring slot whole */
        if (step >= 4)
            word_set(ring.front, 2 * ticket + 1); /* 4: front begun */
        if (step >= 5)
            word_set(ring.front + 1, 8);
        if (step >= 6)
            word_set(ring.front, 2 * ticket + 2); /* 6: front whole */
        if (step >= 7)
            word_set(&ring.header->head, ticket + 1);
        last = 100;
        CU_ASSERT_EQUAL(ring_latest_words(&ring, out, WORDS - 1, &last, 1), RING_OK);
        CU_ASSERT_EQUAL(out[0], step >= 6 ? 8 : 7);
        CU_ASSERT_EQUAL(last, step >= 6 ? ticket : 100);
    }
}

static void newest_is_never_older_than_one_seen(void)
{
    struct ring ring;
    uint64_t out[WORDS - 1], last = 101;
    fresh(&ring, 100, true);
    publish(&ring, 1);
    publish(&ring, 2);
    /* The front of ticket 101 was read; then the writer is in the front of 102 with head still at 101. */
    word_set(ring.front, 2 * UINT64_C(102) + 1);
    word_set(&ring.header->head, 101);
    CU_ASSERT_EQUAL(ring_latest_words(&ring, out, WORDS - 1, &last, 1), RING_OVERRUN);
    CU_ASSERT_EQUAL(ring_latest_words(&ring, out, WORDS - 1, &last, 0), RING_OK);
    CU_ASSERT_EQUAL(last, 100);
}

static void fields_come_from_one_record(void)
{
    struct ring ring;
    const uint32_t offsets[] = {0, 7, WORDS - 2};
    uint64_t out[3], last = 0;
    fresh(&ring, 5, true);
    CU_ASSERT_EQUAL(ring_latest_fields(&ring, offsets, 3, out, &last, 0), RING_EMPTY);
    publish(&ring, 41);
    publish(&ring, 42);
    CU_ASSERT_EQUAL(ring_latest_fields(&ring, offsets, 3, out, &last, 0), RING_OK);
    CU_ASSERT(out[0] == 42 && out[1] == 42 && out[2] == 42);
    word_set(ring.front, 2 * UINT64_C(7) + 1); /* the front is being written: head and ring answer */
    CU_ASSERT_EQUAL(ring_latest_fields(&ring, offsets, 3, out, &last, 1), RING_OK);
    CU_ASSERT_EQUAL(last, 6);
}

static void reads_are_bounded_against_a_stopped_writer(void)
{
    struct ring ring;
    uint64_t out[WORDS - 1], last = 0;
    fresh(&ring, 5, true);
    publish(&ring, 1);
    word_set(ring.front, 13);                /* odd */
    word_set(slot_of(&ring, 5), 2 * 13 + 1); /* and the ring's slot too: cannot happen to one writer, must not hang us */
    CU_ASSERT_EQUAL(ring_latest_words(&ring, out, WORDS - 1, &last, 0), RING_OVERRUN);
}

TESTS({"empty_ring_answers_empty", empty_ring_answers_empty},
      {"newest_is_read_across_the_wrap_of_stamps", newest_is_read_across_the_wrap_of_stamps},
      {"ticket_is_overrun_exactly_when_its_slot_was_reused", ticket_is_overrun_exactly_when_its_slot_was_reused},
      {"death_of_the_writer_hides_nothing", death_of_the_writer_hides_nothing},
      {"newest_is_never_older_than_one_seen", newest_is_never_older_than_one_seen},
      {"fields_come_from_one_record", fields_come_from_one_record},
      {"reads_are_bounded_against_a_stopped_writer", reads_are_bounded_against_a_stopped_writer})
