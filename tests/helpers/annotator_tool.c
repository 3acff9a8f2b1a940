/* A client that annotates as fast as it can, for scenarios.
 *     annotator_tool [--label TEXT] [--seconds S] [--spans N] [--steps N] [--pause-us N] [--nested N] [--leave N] [--hold]
 *                    [--period MS] [--fork hold|exec|bare] [--usage]
 * Each turn begins a span (and --nested more inside it), steps it, and ends them all. --leave keeps that many open at the end;
 * --hold then stays, and polls, until a signal. --fork makes a child in the middle of a span that tries to annotate, tells what it
 * was answered, and lives on for a minute; with `exec` as another program. --usage prints what a span of a second took. Prints one
 * line of JSON: what was begun and ended, errors, and the slowest call. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "gputap.h"
#include "shm/platform.h"

enum { MOST_NESTED = 16 };

static volatile sig_atomic_t ended;
static void on_signal(int number) { (void)number, ended = 1; }

struct work {
    gputap *tap;
    int nested, steps;
    uint64_t spans, instants, errors, slowest_ns;
};

static const char *text_option(int argc, char **argv, const char *name, const char *fallback)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return fallback;
}

static double option(int argc, char **argv, const char *name, double fallback)
{
    const char *text = text_option(argc, argv, name, NULL);
    return text ? atof(text) : fallback;
}

static bool has(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return false;
}

static void pause_ns(double ns)
{
    struct timespec time = {(time_t)(ns / 1e9), (long)(ns - 1e9 * (double)(time_t)(ns / 1e9))};
    nanosleep(&time, NULL);
}

/* Notes how a call went that began at `start`. */
static void note(struct work *work, uint64_t start, int result)
{
    uint64_t took = clock_mono_ns() - start;
    work->errors += result < 0;
    work->slowest_ns = took > work->slowest_ns ? took : work->slowest_ns;
}

static uint64_t begin(struct work *work, const char *name, uint64_t parent)
{
    uint64_t span = 0, start = clock_mono_ns();
    note(work, start, gputap_span_begin(work->tap, "storm", "1", name, parent, NULL, 0, &span));
    work->spans += span != 0;
    return span;
}

static void turn(struct work *work)
{
    uint64_t spans[MOST_NESTED + 1], start;
    for (int i = 0; i <= work->nested; i++)
        spans[i] = begin(work, "turn", i ? spans[i - 1] : 0);
    for (int i = 1; i <= work->steps; i++) {
        start = clock_mono_ns();
        note(work, start, gputap_span_step(work->tap, spans[0], i, work->steps));
    }
    for (int i = work->nested; i >= 0; i--) {
        start = clock_mono_ns();
        note(work, start, gputap_span_end(work->tap, spans[i], NULL, 0));
    }
}

/* The child tries every call of a session that it inherited. */
static void try_in_child(gputap *tap, uint64_t span, const char *how)
{
    uint64_t other = 1;
    int codes[] = {gputap_span_begin(tap, "", "", "child", 0, NULL, 0, &other),
                   gputap_span_step(tap, span, 1, 2),
                   gputap_span_end(tap, span, NULL, 0),
                   gputap_instant(tap, "", "", "child"),
                   gputap_gauge(tap, 0, 1, 1, 1),
                   gputap_poll(tap),
                   gputap_detach(tap)};
    printf("{\"child\":%ld,\"codes\":[%d,%d,%d,%d,%d,%d,%d]}\n", (long)getpid(), codes[0], codes[1], codes[2], codes[3], codes[4],
           codes[5], codes[6]);
    fflush(stdout);
    if (strcmp(how, "exec") == 0)
        execlp("sleep", "sleep", "60", (char *)NULL);
    sleep(60);
    _exit(0);
}

static void fork_in_span(struct work *work, const char *how)
{
    uint64_t span = begin(work, "forked", 0);
    pid_t child = strcmp(how, "bare") == 0 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0)
        try_in_child(work->tap, span, how);
    work->errors += child < 0;
    pause_ns(3e8);
    uint64_t start = clock_mono_ns();
    note(work, start, gputap_span_step(work->tap, span, 1, 2));
}

static void print_usage(struct work *work)
{
    gputap_usage usage[4];
    pause_ns(5e8);
    uint64_t span = begin(work, "usage", 0);
    pause_ns(1e9);
    int count = gputap_span_end(work->tap, span, usage, 4);
    work->errors += count < 1;
    if (count > 0)
        printf("{\"usage\":%.6f,\"energy\":%.3f,\"flags\":%u,\"now_minus_mono\":%.3f}\n", usage[0].seconds, usage[0].energy,
               usage[0].flags, (double)(int64_t)(gputap_now(work->tap) - clock_mono_ns()) / 1e9);
}

int main(int argc, char **argv)
{
    struct work work = {.nested = (int)option(argc, argv, "--nested", 0), .steps = (int)option(argc, argv, "--steps", 3)};
    double seconds = option(argc, argv, "--seconds", 1e9), pause_us = option(argc, argv, "--pause-us", 0);
    uint64_t turns = (uint64_t)option(argc, argv, "--spans", 1e18), start = clock_mono_ns();
    const char *how = text_option(argc, argv, "--fork", NULL);
    if (work.nested < 0 || work.nested > MOST_NESTED)
        return 2;
    signal(SIGTERM, on_signal);
    if (gputap_open(&work.tap, NULL, GPUTAP_OPEN_DETACHED) != GPUTAP_OK) {
        fprintf(stderr, "%s\n", gputap_message(NULL));
        return 1;
    }
    if (option(argc, argv, "--period", 0) > 0)
        (void)gputap_request_period(work.tap, (int)option(argc, argv, "--period", 0));
    work.errors += gputap_attach(work.tap, text_option(argc, argv, "--label", "storm")) != GPUTAP_OK;
    /* The broker answers soon, if it is there. */
    for (int i = 0; i < 200 && gputap_poll(work.tap) == 0 && !has(argc, argv, "--impatient"); i++)
        pause_ns(1e7);
    if (how)
        fork_in_span(&work, how);
    if (has(argc, argv, "--usage"))
        print_usage(&work);
    for (uint64_t i = 0; i < turns && !ended && (double)(clock_mono_ns() - start) / 1e9 < seconds; i++) {
        turn(&work);
        if (pause_us > 0)
            pause_ns(pause_us * 1e3);
    }
    for (int i = 0; i < (int)option(argc, argv, "--leave", 0); i++)
        (void)begin(&work, "left", 0);
    gputap_annotator info = GPUTAP_ANNOTATOR_INIT;
    (void)gputap_annotator_info(work.tap, &info);
    printf("{\"spans\":%llu,\"errors\":%llu,\"slowest_us\":%.1f,\"connected\":%u,\"slot\":%d,\"dropped\":%llu,\"connects\":%u,"
           "\"open\":%u}\n",
           (unsigned long long)work.spans, (unsigned long long)work.errors, (double)work.slowest_ns / 1e3, info.connected,
           info.slot, (unsigned long long)info.dropped, info.connects, info.open_spans);
    fflush(stdout);
    while (has(argc, argv, "--hold") && !ended) {
        (void)gputap_poll(work.tap);
        pause_ns(5e7);
    }
    gputap_close(work.tap);
    return work.errors ? 1 : 0;
}
