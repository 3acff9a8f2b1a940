/* A table of file operations that lies on purpose: errors for the n-th read, short reads, NUL padding, delays, and a clock that
 * stands still until told otherwise. Keeps a trace of every path that is opened. */
#ifndef GPUTAP_TESTS_FAULT_IO_H
#define GPUTAP_TESTS_FAULT_IO_H

#include "broker/io.h"

enum { FAULT_RULES = 64, FAULT_TRACE = 4096, FAULT_FDS = 1024 };

struct fault_rule {
    char match[128];   /* a path that contains it; empty = unused */
    bool at_open;      /* the error is open's, not read's */
    bool at_ioctl;     /* likewise */
    bool at_link;      /* readlink's, which is also how io_exists asks */
    int first, last;   /* reads (or opens, ...) counted from 1; last 0 = for ever */
    int error;         /* errno, 0 = none */
    size_t short_read; /* at most so many bytes a read; 0 = all */
    bool pad;          /* with NULs, up to the size asked for */
    uint64_t delay_ns; /* moves the clock */
    int count;
};

/* Answers requests to files whose path contains `match`: >= 0 or -errno. */
struct fault_ioctl {
    const char *match;
    int (*answer)(void *context, unsigned long request, void *argument);
    void *context;
};

struct fault_io {
    struct io io;   /* hand this one out */
    struct io base; /* the real thing below the root */
    struct fault_rule rules[FAULT_RULES];
    char paths[FAULT_FDS][512]; /* by descriptor */
    char *trace[FAULT_TRACE];
    int traced;
    uint64_t now;
    int ioctls;
    struct fault_ioctl ioctl; /* none unless match is set */
};

void fault_io_init(struct fault_io *fault, const char *root);
void fault_io_free(struct fault_io *fault);
/* Adds a rule for every read of a path that contains `match`, from the next one on; change its fields as wanted. */
struct fault_rule *fault_io_rule(struct fault_io *fault, const char *match, int error);
void fault_io_clear_rules(struct fault_io *fault);
void fault_io_clear_trace(struct fault_io *fault);
/* Lets the provider believe that it is on a real machine, where device nodes are asked; they are still those of the test's root. */
void fault_io_hide_root(struct fault_io *fault);
/* A rule for "FOLDER|list" makes listing that folder fail, or slow. */
/* How many opened paths contain it. */
int fault_io_opened(const struct fault_io *fault, const char *part);
/* Descriptors that are open now. */
int fault_io_open_now(const struct fault_io *fault);

#endif
