/* The shared-memory rows of the design's targets, as ratios within one run: shm_bench [ROUNDS]
 *
 * A cold read is measured as a client pays it: another core has just published. Places rotate so that no page's luck decides,
 * candidates are interleaved in every round, and the median of the rounds' ratios is printed. Nothing here fails for slowness. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/layout.h"
#include "shm/platform.h"
#include "shm/ring.h"
#include "tests/bench/report.h"

enum { PLACES = 64, DEPTH = 4, WORDS = LAYOUT_SNAPSHOT_WORDS, BATCH = 16, HOT = 4000 };

/* A request that is only answered: tells how far apart the two processors are. */
#define PING (UINT64_C(1) << 63)

struct place {
    _Alignas(4096) uint8_t front[LAYOUT_SNAPSHOT_BYTES];
    _Alignas(64) uint8_t memory[RING_HEADER_BYTES + DEPTH * LAYOUT_SNAPSHOT_BYTES];
};

struct shared {
    struct place places[PLACES];
    _Alignas(64) shm_word request; /* round number: publish into its batch */
    _Alignas(64) shm_word answer;
    _Alignas(64) shm_word stop;
};

static struct shared *shared;
static struct ring rings[PLACES];
static volatile uint64_t zero;
static volatile size_t lines = LAYOUT_SNAPSHOT_BYTES; /* unknown to the compiler: the library's memcpy is called */

static void pin(size_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void *publisher(void *unused)
{
    uint64_t payload[WORDS - 1] = {0};
    pin(1);
    for (uint64_t seen = 0; !word_get(&shared->stop);) {
        uint64_t request = word_get(&shared->request);
        if (request == seen)
            continue;
        for (int i = 0; i < BATCH && !(request & PING); i++) {
            payload[0] = request;
            ring_publish(&rings[(request * BATCH + (uint64_t)i) % PLACES], payload);
        }
        seen = request;
        word_set(&shared->answer, request);
    }
    return unused;
}

enum method { COPY, NEWEST, BY_HEAD, FIELDS, METHODS };

static uint64_t read_once(enum method method, int place, uint64_t *out)
{
    static const uint32_t offsets[3] = {16, 30, 60};
    uint64_t last = 0;
    switch (method) {
    case COPY: memcpy(out, rings[place].front, lines); return out[WORDS - 1];
    case NEWEST: (void)ring_latest_words(&rings[place], out, WORDS - 1, &last, 0); return out[WORDS - 2];
    case BY_HEAD: (void)ring_latest_by_head(&rings[place], out, WORDS - 1, &last, 0); return out[WORDS - 2];
    default: (void)ring_latest_fields(&rings[place], offsets, 3, out, &last, 0); return out[2];
    }
}

/* Each read waits for the one before: no overlap that a single caller would not have. */
static double cold_ns(enum method method, uint64_t round)
{
    _Alignas(64) uint64_t out[WORDS];
    uint64_t chain = 0;
    word_set(&shared->request, round);
    while (word_get(&shared->answer) != round) {
    }
    uint64_t start = clock_mono_ns();
    for (int i = 0; i < BATCH; i++)
        chain = read_once(method, (int)((round * BATCH + (uint64_t)i + (chain & zero)) % PLACES), out);
    return (double)(clock_mono_ns() - start) / BATCH;
}

static double hot_ns(enum method method)
{
    _Alignas(64) uint64_t out[WORDS];
    uint64_t sum = 0, start = clock_mono_ns();
    for (int i = 0; i < HOT; i++)
        sum += read_once(method, 3, out);
    zero = sum & zero;
    return (double)(clock_mono_ns() - start) / HOT;
}

static double ping_pong_ns(void)
{
    uint64_t start = clock_mono_ns();
    for (uint64_t i = 1; i <= 1000; i++) {
        word_set(&shared->request, PING | i);
        while (word_get(&shared->answer) != (PING | i)) {
        }
    }
    return (double)(clock_mono_ns() - start) / 2000;
}

static double publish_wake_ns(void)
{
    static shm_word32 word;
    uint64_t payload[WORDS - 1] = {0};
    uint64_t start = clock_mono_ns();
    for (int i = 0; i < HOT; i++) {
        ring_publish(&rings[5], payload);
        word32_add(&word, 1);
        wake_all(&word);
    }
    return (double)(clock_mono_ns() - start) / HOT;
}

static double getppid_ns(void)
{
    uint64_t start = clock_mono_ns();
    for (int i = 0; i < HOT; i++)
        (void)syscall(SYS_getppid);
    return (double)(clock_mono_ns() - start) / HOT;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    if (rounds < 10 || rounds > REPORT_MAX_ROUNDS)
        return 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (int i = 0; i < PLACES; i++)
        ring_format(&rings[i], shared->places[i].memory, shared->places[i].front, DEPTH, LAYOUT_SNAPSHOT_BYTES, WORDS, 100);
    static double cold[METHODS][REPORT_MAX_ROUNDS], hot[METHODS][REPORT_MAX_ROUNDS], copies[REPORT_MAX_ROUNDS],
        wake[REPORT_MAX_ROUNDS], ppid[REPORT_MAX_ROUNDS];
    uint64_t round = 1;
    pthread_t thread;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (cpus >= 2 && pthread_create(&thread, NULL, publisher, NULL) == 0) {
        pin(0);
        double ping = ping_pong_ns();
        printf("one way between the two processors: %.0f ns%s\n", ping,
               ping < 80 ? " (near: they share a core, and a cold read is not cold)" : "");
        for (int n = 0; n < rounds; n++)
            for (int method = 0; method < METHODS; method++)
                cold[method][n] = cold_ns((enum method)((method + n) % METHODS), round++);
        /* Rows were rotated within a round: put them back to their method. */
        for (int n = 0; n < rounds; n++) {
            double row[METHODS];
            for (int method = 0; method < METHODS; method++)
                row[(method + n) % METHODS] = cold[method][n];
            for (int method = 0; method < METHODS; method++)
                cold[method][n] = row[method];
        }
        word_set(&shared->stop, 1);
        pthread_join(thread, NULL);
        memcpy(copies, cold[COPY], sizeof copies);
        report_ratio("first read after a publish / memcpy of the same lines", cold[NEWEST], copies, rounds, "<= 1.25");
        report_ratio("  (by head and ring, for comparison)", cold[BY_HEAD], copies, rounds, "-");
        report_ratio("  (three fields, for comparison)", cold[FIELDS], copies, rounds, "-");
    } else {
        printf("first read after a publish: skipped, it needs two processors\n");
    }
    uint64_t payload[WORDS - 1] = {0};
    ring_publish(&rings[3], payload);
    ring_publish(&rings[5], payload);
    for (int n = 0; n < rounds; n++) {
        for (int method = 0; method < METHODS; method++)
            hot[method][n] = hot_ns((enum method)method);
        wake[n] = publish_wake_ns();
        ppid[n] = getppid_ns();
    }
    memcpy(copies, hot[COPY], sizeof copies);
    report_ratio("hot read / memcpy 512 B", hot[NEWEST], copies, rounds, "(limit 2.5 to 3.4)");
    report_ratio("three-field read, hot / memcpy 512 B", hot[FIELDS], copies, rounds, "<= 0.7");
    report_ratio("publish + wake without waiters / getppid", wake, ppid, rounds, "<= 3");
    return 0;
}
