#ifndef GPUTAP_BRIDGE_OPTIONS_H
#define GPUTAP_BRIDGE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_LIST 32

struct options_list {
    const char *item[OPTIONS_LIST];
    size_t count;
};

struct options {
    const char *instance; /* NULL: the environment's, else "default" */
    struct options_list listen, origins, hosts;
    const char *token_file, *web;
    bool show_all;
    int connections, per_address;
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_USAGE };

void options_print_usage(void); /* on stderr */

/* Prints help, version and what is wrong. Texts stay in argv. */
enum options_result options_parse(int argc, char **argv, struct options *options);

#endif
