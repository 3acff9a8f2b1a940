/* What it costs to wake fifty waiters: one publish and one wake-up of a shared word, against an eventfd write for each.
 *     waiters_bench [ROUNDS] */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "shm/layout.h"
#include "shm/platform.h"
#include "shm/ring.h"
#include "tests/bench/report.h"

enum { WAITERS = 50, WORDS = LAYOUT_SNAPSHOT_WORDS };

static shm_word32 word;
static shm_word asleep; /* waiters that are about to sleep */
static shm_word32 over;
static int bells[WAITERS];

/* Waiters on one processor, the one who wakes them on another: else they preempt it, and its cost is theirs. */
static void pin(size_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void *wait_for_word(void *unused)
{
    pin(0);
    while (!word32_get(&over)) {
        uint32_t seen = word32_get(&word);
        word_add(&asleep, 1);
        while (word32_get(&word) == seen)
            wake_wait(&word, seen, UINT64_C(1000000000));
    }
    return unused;
}

static void *wait_for_bell(void *argument)
{
    uint64_t count;
    pin(0);
    while (!word32_get(&over)) {
        word_add(&asleep, 1);
        if (read(*(int *)argument, &count, sizeof count) != (ssize_t)sizeof count)
            break;
    }
    return NULL;
}

/* Everybody has gone to sleep since the last time, as far as can be told. */
static void settle(void)
{
    for (int i = 0; i < 1000 && word_get(&asleep) < 2 * WAITERS; i++)
        nanosleep(&(struct timespec){0, 500000}, NULL);
    nanosleep(&(struct timespec){0, 4000000}, NULL);
}

static double by_word(struct ring *ring)
{
    uint64_t payload[WORDS - 1] = {0}, start = clock_mono_ns();
    ring_publish(ring, payload);
    word_add(&asleep, (uint64_t)-WAITERS);
    word32_add(&word, 1);
    wake_all(&word);
    return (double)(clock_mono_ns() - start);
}

static double by_bells(void)
{
    uint64_t one = 1, start = clock_mono_ns();
    word_add(&asleep, (uint64_t)-WAITERS);
    for (int i = 0; i < WAITERS; i++)
        if (write(bells[i], &one, sizeof one) != (ssize_t)sizeof one)
            return 0;
    return (double)(clock_mono_ns() - start);
}

int main(int argc, char **argv)
{
    static _Alignas(64) uint8_t memory[RING_HEADER_BYTES + 4 * LAYOUT_SNAPSHOT_BYTES], front[LAYOUT_SNAPSHOT_BYTES];
    static double words[REPORT_MAX_ROUNDS], writes[REPORT_MAX_ROUNDS];
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    pthread_t threads[2 * WAITERS];
    struct ring ring;
    if (rounds < 10 || rounds > REPORT_MAX_ROUNDS)
        return 2;
    ring_format(&ring, memory, front, 4, LAYOUT_SNAPSHOT_BYTES, WORDS, 100);
    for (int i = 0; i < WAITERS; i++) {
        bells[i] = eventfd(0, EFD_CLOEXEC);
        if (bells[i] < 0 || pthread_create(&threads[i], NULL, wait_for_word, NULL) != 0 ||
            pthread_create(&threads[WAITERS + i], NULL, wait_for_bell, &bells[i]) != 0)
            return 1;
    }
    pin(1);
    for (int i = 0; i < rounds; i++)
        for (int turn = 0; turn < 2; turn++) {
            settle();
            if ((i + turn) % 2)
                words[i] = by_word(&ring);
            else
                writes[i] = by_bells();
        }
    report_ratio("publish + wake, 50 waiters / 50 eventfd writes", words, writes, rounds, "<= 0.5");
    word32_set(&over, 1);
    (void)by_word(&ring);
    (void)by_bells();
    for (int i = 0; i < 2 * WAITERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
