/* gputap, the command line. */
#ifndef GPUTAP_CLI_H
#define GPUTAP_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "gputap.h"

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, CLI_METRICS_MAX = 128 };

struct cli {
    const char *instance; /* NULL = default */
    bool json;
    bool stale; /* old numbers are welcome */
    int gpu;    /* -1 = all */
    long count; /* 0 = without end */
    const char *metrics[CLI_METRICS_MAX];
    int metric_count;
    const char *label;  /* NULL = none */
    const char *device; /* number or id, NULL = all */
    const char *sort;   /* key, NULL = as it comes */
    bool watch;
    bool from_oldest;
    char **rest; /* what a command takes as it is, with NULL after it */
    int rest_count;
};

/* Commands; each returns the exit code. */
int cli_status(const struct cli *cli);
int cli_get(const struct cli *cli);
int cli_watch(const struct cli *cli);
int cli_doctor(const struct cli *cli);
/* doctor_words.c: prints, in words, why numbers of a device are unknown; nothing where there is nothing to explain. */
void doctor_explain(gputap *tap, int device, const gputap_device *info);
int cli_ps(const struct cli *cli);
int cli_sessions(const struct cli *cli);
int cli_events(const struct cli *cli);
int cli_run(const struct cli *cli);
int cli_annotate(const struct cli *cli);

/* Says what is wrong with the arguments, and how it is right. Returns EXIT_USAGE. */
/* --help. */
int cli_print_help(void);
int cli_usage_error(const char *problem, const char *what);

/* Opens the instance, or says why not and returns EXIT_FAILED. */
int cli_open(const struct cli *cli, gputap **out);
/* Status bits after giving a broker that seems to stand still the time to show that it lives. */
int cli_settled_status(gputap *tap);
/* Age in seconds of the newest sample of anything, -1 where there is none. */
double cli_newest_age(gputap *tap);
/* 0 if the numbers are fresh or old ones are welcome, else EXIT_FAILED after a line that says what is wrong. */
int cli_refuse_old(gputap *tap, const struct cli *cli);
/* 0, or EXIT_FAILED after saying that the GPU does not exist. */
int cli_check_gpu(gputap *tap, int gpu);
/* A GPU by number or id; *gpu is -1 for NULL. 0, or EXIT_FAILED after saying that it does not exist. */
int cli_find_gpu(gputap *tap, const char *device, int *gpu);
/* One line: the snapshot document, of the GPU and the metrics that were asked for. */
int cli_print_snapshot(gputap *tap, const struct cli *cli);

/* Prints the document as one line and drops it. EXIT_FAILED without one. */
int cli_print_document(FILE *out, json_t *document);

/* --- usage.c: what a span took -------------------------------------------------------------------------------------------- */
enum { CLI_USAGES = GPUTAP_SPAN_DEVICES };
/* Which span's final usage is waited for, and from where on. */
struct cli_span {
    gputap_cursor cursor; /* from before its end */
    int32_t slot;         /* of its session, -1 = no broker has it */
    uint32_t generation;
    uint64_t id;
};
/* Puts the final numbers in place of those that span_end gave, as far as they come within two periods and a second. Returns how
 * many there are then. */
int cli_final_usage(gputap *tap, struct cli_span *span, gputap_usage *usage, int count);
void cli_print_usage(FILE *out, gputap *tap, const gputap_usage *usage, int count);
json_t *cli_usage_document(const gputap_usage *usage, int count);

/* --- process_posix.c ------------------------------------------------------------------------------------------------------ */
/* Runs a program to its end, with the terminal's signals going to it, and calls `meanwhile` twice a second. Returns its exit code,
 * 128 + the signal that ended it, 127 where there is none of that name, 126 where it cannot be run. */
int process_run(char **argv, void (*meanwhile)(void *context), void *context);
/* Has somebody asked this program to end since? */
bool process_asked_to_end(void);

/* --- print.c: numbers for people ----------------------------------------------------------------------------------------- */
/* True where the terminal's locale is UTF-8: bars, dashes and degree signs are drawn as such. */
bool print_utf8(void);
/* "92.0 %", "3.21 GiB", or a dash for NaN. */
const char *print_value(char *out, size_t size, const gputap_metric *metric, double value);
const char *print_gib(char *out, size_t size, double used, double total);
const char *print_bytes(char *out, size_t size, double bytes, const char *suffix);
const char *print_duration(char *out, size_t size, double seconds);
const char *print_dash(void);
/* Name of a device, with a mark where it is simulated and its name does not say so. */
const char *print_device_name(char *out, size_t size, const gputap_device *device);
const char *print_status(int bits);
/* Node, job and GPUs of a span, as far as they are told; device_count 0 is all of them and not worth a word. */
void print_where(FILE *out, const char *node, const char *job, const int16_t *devices, int device_count);
/* A bar of `width` cells for 0 to 1; empty for NaN. */
void print_bar(char *out, size_t size, double share, int width);
/* One cell a value, 0 to 1; a blank for NaN. */
void print_spark(char *out, size_t size, const double *shares, int count);

/* --- user_posix.c: name of a user, or its number. */
const char *user_name(char *out, size_t size, uint32_t uid);

/* --- terminal_posix.c ---------------------------------------------------------------------------------------------------- */
bool terminal_is(FILE *stream);
/* Takes over keyboard and screen; from then on signals only set flags. */
void terminal_enter(void);
void terminal_leave(void);
void terminal_size(int *columns, int *rows);
/* Ctrl-C, a termination signal, or q was pressed. */
bool terminal_quit(void);
/* Only the signal flags, without a keyboard: what a piped watch needs. */
void terminal_catch_signals(void);
unsigned long terminal_user(void);
/* Nobody reads what is written any more. */
bool terminal_closed(FILE *stream);

#endif
