/* Readers against an unthrottled writer: ring_torture [--reads N] [--threads] [--expect-torn]
 *
 * Every word of a record is a function of its ticket, so that a torn record shows. Rings of depth 2 and 1024, with and without a
 * front; newest reads and cursors; cursors account exactly for what they lost. Processes share the memory by default; with
 * --threads one process has both sides, which is what ThreadSanitizer can see. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shm/ring.h"

enum { WORDS = 64, SLOT_BYTES = 512, MAX_DEPTH = 1024 };

struct result {
    shm_word reads, fresh, torn, backwards, lost, got, again, bad_account;
};

struct arena {
    shm_word stop;
    shm_word stall; /* readers may pause in the middle of their work */
    struct result result;
    _Alignas(64) uint8_t front[SLOT_BYTES];
    _Alignas(64) uint8_t ring[RING_HEADER_BYTES + MAX_DEPTH * SLOT_BYTES];
};

struct job {
    struct arena *arena;
    uint32_t depth;
    bool front;
    bool cursor;
    uint64_t reads;
};

static void bind(struct ring *ring, const struct job *job)
{
    ring_bind(ring, job->arena->ring, job->front ? job->arena->front : NULL, job->depth, SLOT_BYTES, WORDS);
}

static void *writer_run(void *argument)
{
    const struct job *job = argument;
    struct ring ring;
    uint64_t payload[WORDS - 1];
    bind(&ring, job);
    while (!word_get(&job->arena->stop)) {
        uint64_t ticket = ring_head(&ring);
        for (int i = 0; i < WORDS - 1; i++)
            payload[i] = ticket * 64 + (uint64_t)i;
        ring_publish(&ring, payload);
    }
    return NULL;
}

static bool torn(const uint64_t *payload, uint64_t ticket)
{
    for (int i = 0; i < WORDS - 1; i++)
        if (payload[i] != ticket * 64 + (uint64_t)i)
            return true;
    return false;
}

/* Enough reads, and enough of them of a record that was new: a writer that gets no processor proves nothing. */
static bool enough(const struct job *job, uint64_t reads, uint64_t fresh, time_t start)
{
    return (reads >= job->reads && fresh >= job->reads / 20) || (reads % 1024 == 0 && time(NULL) - start > 30);
}

static void maybe_stall(uint64_t n)
{
    struct timespec pause = {0, 200000};
    if (n % 50021 == 0)
        nanosleep(&pause, NULL);
}

static void read_newest(const struct job *job, struct result *result)
{
    struct ring ring;
    uint64_t payload[WORDS - 1], last = 0, before = 0, n, fresh = 0;
    bool have = false;
    time_t start = time(NULL);
    bind(&ring, job);
    for (n = 0; !enough(job, n, fresh, start); n++) {
        maybe_stall(n + 1);
        if (ring_latest_words(&ring, payload, WORDS - 1, &last, have) != RING_OK) {
            word_add(&result->again, 1);
            continue;
        }
        if (torn(payload, last))
            word_add(&result->torn, 1);
        if (have && ring_distance(before, last) < 0)
            word_add(&result->backwards, 1);
        fresh += !have || before != last;
        before = last;
        have = true;
    }
    word_add(&result->fresh, fresh);
    word_add(&result->reads, n);
}

static void read_cursor(const struct job *job, struct result *result)
{
    struct ring ring;
    uint64_t payload[WORDS - 1], got = 0, lost = 0, n;
    time_t began = time(NULL);
    bind(&ring, job);
    uint64_t start = ring_head(&ring), next = start;
    for (n = 0; !enough(job, n, got + lost, began); n++) {
        maybe_stall(n + 1);
        int found = ring_read(&ring, next, payload);
        if (found == RING_EMPTY)
            continue;
        if (found == RING_OVERRUN) {
            uint64_t to = ring_head(&ring) - job->depth / 2;
            if (ring_distance(next, to) <= 0)
                to = next + 1;
            lost += to - next;
            next = to;
            continue;
        }
        if (torn(payload, next))
            word_add(&result->torn, 1);
        got++;
        next++;
    }
    if (got + lost != next - start)
        word_add(&result->bad_account, 1);
    word_add(&result->got, got);
    word_add(&result->lost, lost);
    word_add(&result->reads, n);
}

static void *reader_run(void *argument)
{
    const struct job *job = argument;
    if (job->cursor)
        read_cursor(job, &job->arena->result);
    else
        read_newest(job, &job->arena->result);
    return NULL;
}

static void run_threads(struct job *job)
{
    pthread_t writer, readers[2];
    struct job cursor = *job;
    cursor.cursor = true;
    if (pthread_create(&writer, NULL, writer_run, job) || pthread_create(&readers[0], NULL, reader_run, job) ||
        pthread_create(&readers[1], NULL, reader_run, &cursor))
        exit(1);
    pthread_join(readers[0], NULL);
    pthread_join(readers[1], NULL);
    word_set(&job->arena->stop, 1);
    pthread_join(writer, NULL);
}

static pid_t start(void *(*run)(void *), struct job *job)
{
    pid_t pid = fork();
    if (pid == 0) {
        run(job);
        _exit(0);
    }
    return pid;
}

static void run_processes(struct job *job)
{
    struct job cursor = *job;
    cursor.cursor = true;
    pid_t writer = start(writer_run, job);
    pid_t readers[2] = {start(reader_run, job), start(reader_run, &cursor)};
    waitpid(readers[0], NULL, 0);
    waitpid(readers[1], NULL, 0);
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
}

static uint64_t run_one(uint32_t depth, bool front, bool threads, uint64_t reads)
{
    struct arena *arena = mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
        exit(1);
    struct job job = {arena, depth, front, false, reads};
    struct ring ring;
    ring_format(&ring, arena->ring, front ? arena->front : NULL, depth, SLOT_BYTES, WORDS, (UINT64_C(1) << 63) - 5);
    if (threads)
        run_threads(&job);
    else
        run_processes(&job);
    struct result *r = &arena->result;
    uint64_t bad = word_get(&r->torn) + word_get(&r->backwards) + word_get(&r->bad_account);
    printf("depth %4u %s: %llu reads (%llu of a new record), %llu torn, %llu backwards, cursor got %llu lost %llu (accounts wrong: "
           "%llu), %llu to try again\n",
           depth, front ? "front" : "plain", (unsigned long long)word_get(&r->reads), (unsigned long long)word_get(&r->fresh),
           (unsigned long long)word_get(&r->torn), (unsigned long long)word_get(&r->backwards),
           (unsigned long long)word_get(&r->got), (unsigned long long)word_get(&r->lost),
           (unsigned long long)word_get(&r->bad_account), (unsigned long long)word_get(&r->again));
    munmap(arena, sizeof *arena);
    return bad;
}

int main(int argc, char **argv)
{
    uint64_t reads = 1000000;
    bool threads = false, expect_torn = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0)
            threads = true;
        else if (strcmp(argv[i], "--expect-torn") == 0)
            expect_torn = true;
        else if (strcmp(argv[i], "--reads") == 0 && i + 1 < argc)
            reads = strtoull(argv[++i], NULL, 10);
        else
            return 2;
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    uint64_t bad = 0;
    static const uint32_t depths[] = {2, 1024};
    for (int d = 0; d < 2; d++)
        for (int front = 0; front < 2; front++)
            bad += run_one(depths[d], front == 1, threads, reads / 8);
    bool passed = expect_torn ? bad > 0 : bad == 0;
    printf("ring_torture: %d passed, %d failed, 0 skipped\n", passed, !passed);
    return passed ? 0 : 1;
}
