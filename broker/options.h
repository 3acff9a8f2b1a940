/* The command line of gputapd. */
#ifndef GPUTAP_BROKER_OPTIONS_H
#define GPUTAP_BROKER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { OPTIONS_MAX_LIST = 128 };

struct options {
    const char *instance;
    uint64_t period_ns;
    uint64_t min_period_ns;
    char root[1024]; /* "" or absolute, without final slash */
    const char *simulate[OPTIONS_MAX_LIST];
    int simulate_count;
    const char *sim_load;
    const char *no_provider[OPTIONS_MAX_LIST];
    int no_provider_count;
    int max_devices; /* 0 = as many as found, and some more */
    int64_t group;   /* gid, -1 = everybody may read */
    bool check;      /* only look whether the options are right */
    /* Of a worker, never given by people. */
    const char *worker;
    const char *exclude[OPTIONS_MAX_LIST];
    int exclude_count;
    const char *only;
};

/* Was the provider switched off by name? */
bool options_leave_out(const struct options *options, const char *provider);

enum options_result { OPTIONS_RUN, OPTIONS_EXIT_OK, OPTIONS_EXIT_USAGE };

/* Reads argv, prints help, version or a complaint. */
enum options_result options_parse(struct options *options, int argc, char **argv);

#endif
