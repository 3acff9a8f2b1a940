#include "broker/options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/provider.h"
#include "broker/providers/sim_models.h"
#include "shm/platform.h"

static const char usage_text[] =
    "usage: gputapd [--instance NAME] [--period MS] [--min-period MS] [--root DIR] [--simulate MODEL[:COUNT]]...\n"
    "               [--sim-load static|wave|workflow] [--no-provider NAME]... [--max-devices N] [--group GROUP]\n"
    "       gputapd --check [OPTION]... | --help | --version\n"
    "\n"
    "Samples this machine's GPUs and host, and publishes the numbers in shared memory.\n"
    "\n"
    "  --instance NAME      name of this broker for its readers (default: $GPUTAP_INSTANCE, else \"default\")\n"
    "  --period MS          sampling period while nobody asks for a faster one, 10 to 60000 (default 1000)\n"
    "  --min-period MS      fastest period that a client may ask for, 1 to 60000 (default 10)\n"
    "  --root DIR           read /sys and /proc below DIR: a dump of another machine\n"
    "  --simulate M[:N]     add N simulated devices (1 to 64) of model M to the real ones; may be given again\n"
    "  --sim-load KIND      what simulated devices do: static (default), wave, workflow\n"
    "  --no-provider NAME   leave a source of numbers out; may be given again\n"
    "  --max-devices N      room for N devices, 1 to 1024 (default: those found and 8 more, at least 16);\n"
    "                       a provider reads at most 128\n"
    "  --group GROUP        only this group may read (files 0640, folders 0750)\n"
    "  --check              only check the other options: 0 if they are right\n";

static enum options_result complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "gputapd: ");
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n%s", usage_text);
    return OPTIONS_EXIT_USAGE;
}

static bool number_within(const char *text, long low, long high, long *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < low || value > high)
        return false;
    *out = value;
    return true;
}

static bool group_named(const char *text, int64_t *out)
{
    long number;
    const struct group *entry = getgrnam(text);
    if (entry)
        *out = (int64_t)entry->gr_gid;
    else if (number_within(text, 0, INT_MAX, &number))
        *out = number;
    else
        return false;
    return true;
}

static bool root_folder(const char *text, char out[1024])
{
    char resolved[PATH_MAX];
    if (!realpath(text, resolved) || strlen(resolved) >= 1024)
        return false;
    memcpy(out, strcmp(resolved, "/") == 0 ? "" : resolved, strcmp(resolved, "/") == 0 ? 1 : strlen(resolved) + 1);
    return true;
}

static bool list_add(const char **list, int *count, const char *text)
{
    if (*count >= OPTIONS_MAX_LIST)
        return false;
    list[(*count)++] = text;
    return true;
}

enum option_id {
    OPTION_INSTANCE = 256,
    OPTION_PERIOD,
    OPTION_MIN_PERIOD,
    OPTION_ROOT,
    OPTION_SIMULATE,
    OPTION_SIM_LOAD,
    OPTION_NO_PROVIDER,
    OPTION_MAX_DEVICES,
    OPTION_GROUP,
    OPTION_WORKER,
    OPTION_EXCLUDE,
    OPTION_ONLY,
    OPTION_CHECK,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option long_options[] = {
    {"instance", required_argument, NULL, OPTION_INSTANCE},
    {"period", required_argument, NULL, OPTION_PERIOD},
    {"min-period", required_argument, NULL, OPTION_MIN_PERIOD},
    {"root", required_argument, NULL, OPTION_ROOT},
    {"simulate", required_argument, NULL, OPTION_SIMULATE},
    {"sim-load", required_argument, NULL, OPTION_SIM_LOAD},
    {"no-provider", required_argument, NULL, OPTION_NO_PROVIDER},
    {"max-devices", required_argument, NULL, OPTION_MAX_DEVICES},
    {"group", required_argument, NULL, OPTION_GROUP},
    {"worker", required_argument, NULL, OPTION_WORKER},
    {"exclude", required_argument, NULL, OPTION_EXCLUDE},
    {"only", required_argument, NULL, OPTION_ONLY},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static enum options_result apply(struct options *options, int id, const char *value)
{
    char message[512];
    long number;
    switch (id) {
    case OPTION_INSTANCE: options->instance = value; return OPTIONS_RUN;
    case OPTION_PERIOD:
        if (!number_within(value, 10, 60000, &number))
            return complain("bad period '%s': 10 to 60000 milliseconds", value);
        options->period_ns = (uint64_t)number * 1000000u;
        return OPTIONS_RUN;
    case OPTION_MIN_PERIOD:
        if (!number_within(value, 1, 60000, &number))
            return complain("bad minimum period '%s': 1 to 60000 milliseconds", value);
        options->min_period_ns = (uint64_t)number * 1000000u;
        return OPTIONS_RUN;
    case OPTION_ROOT:
        return root_folder(value, options->root) ? OPTIONS_RUN : complain("bad root '%s': %s", value, strerror(errno));
    case OPTION_SIMULATE:
        if (sim_check_spec(value, message, sizeof message) != 0)
            return complain("%s", message);
        return list_add(options->simulate, &options->simulate_count, value) ? OPTIONS_RUN : complain("too many --simulate");
    case OPTION_SIM_LOAD:
        if (sim_check_load(value, message, sizeof message) != 0)
            return complain("%s", message);
        options->sim_load = value;
        return OPTIONS_RUN;
    case OPTION_NO_PROVIDER:
        if (provider_find(value) < 0)
            return complain("no provider '%s'", value);
        return list_add(options->no_provider, &options->no_provider_count, value) ? OPTIONS_RUN
                                                                                  : complain("too many --no-provider");
    case OPTION_MAX_DEVICES:
        if (!number_within(value, 1, LAYOUT_MAX_DEVICES, &number))
            return complain("bad number of devices '%s': 1 to %d", value, LAYOUT_MAX_DEVICES);
        options->max_devices = (int)number;
        return OPTIONS_RUN;
    case OPTION_GROUP: return group_named(value, &options->group) ? OPTIONS_RUN : complain("no group '%s'", value);
    case OPTION_WORKER: options->worker = value; return OPTIONS_RUN;
    case OPTION_EXCLUDE:
        return list_add(options->exclude, &options->exclude_count, value) ? OPTIONS_RUN : complain("too many --exclude");
    case OPTION_ONLY: options->only = value; return OPTIONS_RUN;
    case OPTION_CHECK: options->check = true; return OPTIONS_RUN;
    case OPTION_HELP: printf("%s\nModels: %s\n", usage_text, sim_model_list()); return OPTIONS_EXIT_OK;
    case OPTION_VERSION: puts("gputapd " GPUTAP_PROJECT_VERSION); return OPTIONS_EXIT_OK;
    default: return complain("unknown or incomplete option");
    }
}

bool options_leave_out(const struct options *options, const char *provider)
{
    for (int i = 0; i < options->no_provider_count; i++)
        if (strcmp(options->no_provider[i], provider) == 0)
            return true;
    return false;
}

static void simulate_from_environment(struct options *options)
{
    static char spec[64];
    if (options->worker || !sim_from_environment(spec, sizeof spec))
        return;
    (void)list_add(options->simulate, &options->simulate_count, spec);
}

enum options_result options_parse(struct options *options, int argc, char **argv)
{
    memset(options, 0, sizeof *options);
    options->instance = place_default_instance();
    options->period_ns = UINT64_C(1000000000);
    options->min_period_ns = UINT64_C(10000000);
    options->sim_load = "static";
    options->group = -1;
    opterr = 0;
    for (int id; (id = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        if (id == '?')
            return complain("unknown or incomplete option '%s'", argv[optind - 1]);
        enum options_result result = apply(options, id, optarg);
        if (result != OPTIONS_RUN)
            return result;
    }
    if (optind < argc)
        return complain("unexpected argument '%s'", argv[optind]);
    if (!place_valid_instance(options->instance))
        return complain("bad instance name '%s': 1 to 64 of A-Z a-z 0-9 . _ -, not starting with a dot", options->instance);
    if (options->period_ns < options->min_period_ns)
        return complain("the period (%llu ms) is below the minimum period (%llu ms)",
                        (unsigned long long)options->period_ns / 1000000, (unsigned long long)options->min_period_ns / 1000000);
    simulate_from_environment(options);
    if (options->simulate_count > 0 && options_leave_out(options, "sim"))
        return complain("--simulate (or GPUTAP_SIM) and --no-provider sim contradict each other");
    return options->check ? OPTIONS_EXIT_OK : OPTIONS_RUN;
}
