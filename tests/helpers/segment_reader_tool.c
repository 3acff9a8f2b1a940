/* Reads an instance in every way at once and checks each word.
 *     segment_reader_tool [--reads N] [--seconds S] [--threads N] [--cursor] [--pause-us N] [--plain]
 * --plain is for the real broker: time must not go back, a constant metric must not change, and the first sample of each epoch
 * tells how long after its birth it was seen.
 *     segment_reader_tool --ask
 * For each line on its input: opens the instance anew, reads the newest sample once, and prints
 * {"code":..,"sequence":..,"torn":..,"ns":..,"status":..}, status as of a handle that is kept.
 * Ends when each thread has made its reads, or its time is over. Prints one line of JSON; exit 1 if anything was torn, mixed,
 * older than before, or of an epoch that had been left. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shm/platform.h"
#include "tests/helpers/pattern.h"

enum { EPOCHS = 4096 };

struct counts {
    uint64_t reads, torn, older, revived, again, other_errors, epochs, got, lost;
    double longest_gap;    /* seconds without a fresh sample */
    double slowest_attach; /* seconds from a broker's first sample to the first that was read of it */
};
struct job {
    gputap *tap;
    uint64_t reads;
    double seconds, pause_us;
    bool cursor, plain;
    struct counts counts;
};

static double option(int argc, char **argv, const char *name, double fallback)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return atof(argv[i + 1]);
    return fallback;
}

static bool has(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return false;
}

struct epochs {
    uint64_t seeds[EPOCHS];
    uint32_t count;
    uint64_t tick;
};

static void judge(struct counts *counts, struct epochs *epochs, const gputap_snapshot *got)
{
    if (!pattern_holds(got))
        counts->torn++;
    if (got->tick != got->sequence)
        counts->torn++;
    if (epochs->count > 0 && epochs->seeds[epochs->count - 1] == got->mono_ns) {
        counts->older += got->tick < epochs->tick;
        epochs->tick = got->tick;
        return;
    }
    for (uint32_t i = 0; i < epochs->count; i++)
        counts->revived += epochs->seeds[i] == got->mono_ns;
    if (epochs->count < EPOCHS)
        epochs->seeds[epochs->count++] = got->mono_ns;
    epochs->tick = got->tick;
    counts->epochs = epochs->count;
}

static void judge_plain(struct counts *counts, struct epochs *epochs, gputap *tap, const gputap_snapshot *got)
{
    uint8_t epoch[16];
    uint64_t seed = 0;
    static const int total = GPUTAP_VRAM_TOTAL;
    double vram = gputap_snapshot_value(got, 0, total);
    counts->older += got->mono_ns < epochs->tick;
    counts->torn += got->mono_ns == 0 || got->sequence == 0 || (vram == vram && vram != 206158430208.0);
    if (gputap_epoch(tap, epoch) == GPUTAP_OK)
        memcpy(&seed, epoch, sizeof seed);
    if (epochs->count == 0 || epochs->seeds[epochs->count - 1] != seed) {
        double age = (double)got->age_ns / 1e9;
        if (epochs->count > 0 && got->mono_ns != epochs->tick && age > counts->slowest_attach)
            counts->slowest_attach = age;
        if (epochs->count < EPOCHS)
            epochs->seeds[epochs->count++] = seed;
        counts->epochs = epochs->count;
    }
    epochs->tick = got->mono_ns;
}

static void note(struct counts *counts, int result)
{
    if (result == GPUTAP_EAGAIN)
        counts->again++;
    else if (result < 0 && result != GPUTAP_EEMPTY && result != GPUTAP_ENODEV && result != GPUTAP_ENOBROKER)
        counts->other_errors++;
}

/* read is checked by two metrics that must be of one sample: the words are arbitrary bits, so only u64 ones compare. */
static void check_fields(struct counts *counts, gputap *tap)
{
    static const int metrics[] = {GPUTAP_VRAM_TOTAL, GPUTAP_VRAM_USED, GPUTAP_GTT_TOTAL};
    double values[3];
    note(counts, gputap_read(tap, 0, metrics, 3, values));
}

static void *run(void *argument)
{
    struct job *job = argument;
    struct epochs *epochs = calloc(1, sizeof *epochs);
    gputap_cursor cursor;
    uint64_t start = clock_mono_ns(), fresh = start, last_tick = 0, last_seed = 0;
    bool have_cursor = job->cursor && gputap_cursor_init(job->tap, &cursor, 0, GPUTAP_FROM_OLDEST) == GPUTAP_OK;
    while (epochs && job->counts.reads < job->reads) {
        gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
        int result = have_cursor ? gputap_next(job->tap, &cursor, &got) : gputap_latest(job->tap, 0, &got);
        job->counts.reads++;
        note(&job->counts, result);
        if (result == (have_cursor ? 1 : 0)) {
            if (job->plain)
                judge_plain(&job->counts, epochs, job->tap, &got);
            else
                judge(&job->counts, epochs, &got);
            if (got.tick != last_tick || got.mono_ns != last_seed)
                fresh = clock_mono_ns();
            last_tick = got.tick;
            last_seed = got.mono_ns;
        }
        if (job->counts.reads % 16 == 0) {
            double gap = (double)(clock_mono_ns() - fresh) / 1e9;
            job->counts.longest_gap = gap > job->counts.longest_gap ? gap : job->counts.longest_gap;
            check_fields(&job->counts, job->tap);
        }
        if (job->pause_us > 0)
            nanosleep(&(struct timespec){0, (long)(job->pause_us * 1000)}, NULL);
        if (job->counts.reads % 64 == 0 && (double)(clock_mono_ns() - start) / 1e9 > job->seconds)
            break;
    }
    if (have_cursor) {
        job->counts.got = cursor.got;
        job->counts.lost = cursor.lost;
    }
    free(epochs);
    return NULL;
}

static void add(struct counts *all, const struct counts *one)
{
    all->reads += one->reads;
    all->torn += one->torn;
    all->older += one->older;
    all->revived += one->revived;
    all->again += one->again;
    all->other_errors += one->other_errors;
    all->epochs = one->epochs > all->epochs ? one->epochs : all->epochs;
    all->got += one->got;
    all->lost += one->lost;
    all->slowest_attach = one->slowest_attach > all->slowest_attach ? one->slowest_attach : all->slowest_attach;
    all->longest_gap = one->longest_gap > all->longest_gap ? one->longest_gap : all->longest_gap;
}

static void answer(gputap *kept)
{
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    gputap *tap = NULL;
    int code = gputap_open(&tap, NULL, GPUTAP_OPEN_DETACHED);
    uint64_t start = clock_mono_ns();
    if (code == GPUTAP_OK)
        code = gputap_latest(tap, 0, &got);
    uint64_t took = clock_mono_ns() - start;
    bool torn = code == GPUTAP_OK && (!pattern_holds(&got) || got.tick != got.sequence);
    printf("{\"code\":%d,\"sequence\":%llu,\"torn\":%d,\"ns\":%llu,\"status\":%d}\n", code,
           code == GPUTAP_OK ? (unsigned long long)got.sequence : 0, torn, (unsigned long long)took, gputap_status(kept));
    fflush(stdout);
    gputap_close(tap);
}

static int answer_all(gputap *kept)
{
    char line[16];
    while (fgets(line, sizeof line, stdin))
        answer(kept);
    gputap_close(kept);
    return 0;
}

int main(int argc, char **argv)
{
    int threads = (int)option(argc, argv, "--threads", 1);
    struct job jobs[64];
    pthread_t ids[64];
    struct counts all = {0};
    gputap *tap;
    if (threads < 1 || threads > 64)
        return 2;
    if (gputap_open(&tap, NULL, GPUTAP_OPEN_DETACHED) != GPUTAP_OK) {
        fprintf(stderr, "%s\n", gputap_message(NULL));
        return 1;
    }
    if (has(argc, argv, "--ask"))
        return answer_all(tap);
    for (int i = 0; i < threads; i++) {
        jobs[i] = (struct job){.tap = tap,
                               .reads = (uint64_t)option(argc, argv, "--reads", 1e18),
                               .seconds = option(argc, argv, "--seconds", 1e9),
                               .pause_us = option(argc, argv, "--pause-us", 0),
                               .cursor = has(argc, argv, "--cursor"),
                               .plain = has(argc, argv, "--plain")};
        if (pthread_create(&ids[i], NULL, run, &jobs[i]) != 0)
            return 1;
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        add(&all, &jobs[i].counts);
    }
    int status = gputap_status(tap);
    gputap_close(tap);
    printf(
        "{\"reads\":%llu,\"torn\":%llu,\"older\":%llu,\"revived\":%llu,\"again\":%llu,\"errors\":%llu,\"epochs\":%llu,\"got\":%llu,"
        "\"lost\":%llu,\"longest_gap\":%.3f,\"slowest_attach\":%.3f,\"status\":%d}\n",
        (unsigned long long)all.reads, (unsigned long long)all.torn, (unsigned long long)all.older, (unsigned long long)all.revived,
        (unsigned long long)all.again, (unsigned long long)all.other_errors, (unsigned long long)all.epochs,
        (unsigned long long)all.got, (unsigned long long)all.lost, all.longest_gap, all.slowest_attach, status);
    return all.torn || all.older || all.revived || all.other_errors;
}
