/* What annotating and reading cost a client of a running broker, against the alternatives, as ratios within one run:
 *     annotate_bench FOLDER [ROUNDS]
 * FOLDER is for the alternatives' files. An annotation is one event, so a begin and an end are two; the doorbell is counted apart,
 * as what an eventfd's write costs in the same round. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gputap.h"
#include "shm/platform.h"
#include "tests/bench/alternatives.h"
#include "tests/bench/report.h"

enum { TURNS = 200, SLOW_TURNS = 20 };

enum method { STEP, BEGIN_END, BELL, FORMAT, DATAGRAM, INSERT, READ, READ_THREE, HTTP, SELECT, METHODS };

static gputap *tap;
static int bell;
static uint64_t open_span;

static void once(enum method method, int turn)
{
    static const int metrics[3] = {GPUTAP_GFX_BUSY, GPUTAP_VRAM_USED, GPUTAP_POWER_NOW};
    gputap_snapshot snapshot = GPUTAP_SNAPSHOT_INIT;
    uint64_t one = 1, span;
    double values[3];
    char line[256];
    switch (method) {
    case STEP: (void)gputap_span_step(tap, open_span, turn, TURNS); break;
    case BEGIN_END:
        (void)gputap_span_begin(tap, "8f3c-prompt", "3", "KSampler", 0, NULL, 0, &span);
        (void)gputap_span_end(tap, span, NULL, 0);
        break;
    case BELL:
        if (write(bell, &one, sizeof one) != (ssize_t)sizeof one)
            _exit(1);
        break;
    case FORMAT: (void)json_line(line, sizeof line, turn); break;
    case DATAGRAM: datagram_send(line, (size_t)json_line(line, sizeof line, turn)); break;
    case READ: (void)gputap_latest(tap, 0, &snapshot); break;
    case READ_THREE: (void)gputap_read(tap, 0, metrics, 3, values); break;
    case HTTP: (void)http_get(); break;
#ifdef BENCH_SQLITE
    case INSERT: (void)sqlite_insert(turn); break;
    case SELECT: (void)sqlite_select(); break;
#endif
    default: break;
    }
}

static double cost_ns(enum method method)
{
    int turns = method == DATAGRAM || method == INSERT || method == HTTP ? SLOW_TURNS : TURNS;
    uint64_t start = clock_mono_ns();
    for (int i = 0; i < turns; i++)
        once(method, i);
    return (double)(clock_mono_ns() - start) / turns;
}

static double rows[METHODS][REPORT_MAX_ROUNDS], copy[REPORT_MAX_ROUNDS];

static void row(const char *name, enum method over, double share, double less_bells, enum method under, int rounds,
                const char *target)
{
    for (int i = 0; i < rounds; i++)
        copy[i] = rows[over][i] * share - less_bells * rows[BELL][i];
    report_ratio(name, copy, rows[under], rounds, target);
}

static bool prepare(const char *folder)
{
    bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (bell < 0 || gputap_open(&tap, NULL, 0) != GPUTAP_OK || gputap_attach(tap, "bench") != GPUTAP_OK)
        return false;
    for (int i = 0; i < 500 && gputap_poll(tap) != 1; i++)
        usleep(10000);
#ifdef BENCH_SQLITE
    if (!sqlite_open(folder) || !sqlite_insert(0))
        return false;
#else
    (void)folder;
#endif
    return gputap_poll(tap) == 1 && datagram_open() && http_open() && http_get() &&
           gputap_span_begin(tap, "8f3c-prompt", "1", "outer", 0, NULL, 0, &open_span) == GPUTAP_OK;
}

static void report(int rounds)
{
    row("span step / snprintf of the same JSON line", STEP, 1, 0, FORMAT, rounds, "<= 0.2");
    row("begin or end, doorbell apart / snprintf of the JSON line", BEGIN_END, 0.5, 1, FORMAT, rounds, "<= 0.2");
    row("begin or end with its doorbell / snprintf of the JSON line", BEGIN_END, 0.5, 0, FORMAT, rounds, "-");
    row("span step / JSON line to a UNIX datagram", STEP, 1, 0, DATAGRAM, rounds, "<= 0.05");
    row("begin or end with its doorbell / JSON line to a datagram", BEGIN_END, 0.5, 0, DATAGRAM, rounds, "-");
    row("newest sample, whole / HTTP GET of JSON from localhost", READ, 1, 0, HTTP, rounds, "-");
    row("newest sample, three fields / HTTP GET of JSON", READ_THREE, 1, 0, HTTP, rounds, "-");
#ifdef BENCH_SQLITE
    row("begin or end with its doorbell / SQLite insert, no sync", BEGIN_END, 0.5, 0, INSERT, rounds, "-");
    row("newest sample, whole / SQLite select by rowid", READ, 1, 0, SELECT, rounds, "-");
#else
    printf("SQLite: skipped, libsqlite3-dev is not installed\n");
#endif
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 300;
    if (argc < 2 || rounds < 10 || rounds > REPORT_MAX_ROUNDS)
        return 2;
    if (!prepare(argv[1])) {
        fprintf(stderr, "annotate_bench: no broker, or no alternatives: %s\n", gputap_message(tap));
        return 1;
    }
    for (int n = 0; n < rounds; n++)
        for (int i = 0; i < METHODS; i++) {
            enum method method = (enum method)((i + n) % METHODS);
            rows[method][n] = cost_ns(method);
        }
    report(rounds);
    gputap_close(tap);
#ifdef BENCH_SQLITE
    sqlite_end();
#endif
    return 0;
}
