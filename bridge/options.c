#include "bridge/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: gputap-bridge [option...]\n"
    "Brings the telemetry of an instance's broker to browsers: a dashboard, a WebSocket at /ws and JSON under /api/v1.\n"
    "\n"
    "  --instance NAME         instance of the broker ($GPUTAP_INSTANCE, else \"default\")\n"
    "  --listen HOST:PORT      listen there instead of 127.0.0.1:8288 and [::1]:8288; repeatable\n"
    "  --token-file FILE       /ws and /api want the token in FILE (16 characters or more, not readable by others);\n"
    "                          needed to listen on anything but loopback\n"
    "  --web DIR               serve the page from DIR instead of the built-in one\n"
    "  --allow-origin URL      let pages of this origin connect, such as http://127.0.0.1:8188; repeatable\n"
    "  --allow-host NAME       accept this name in Host, with or without :PORT; repeatable\n"
    "  --show-all              also send other users' processes and sessions\n"
    "  --max-connections N[:M] at most N connections (64), at most M of one address (16)\n"
    "  --version, --help\n";

void options_print_usage(void) { fputs(usage, stderr); }

static enum options_result wrong(const char *what, const char *value)
{
    fprintf(stderr, "gputap-bridge: error: %s%s%s\n%s", what, value ? ": " : "", value ? value : "", usage);
    return OPTIONS_USAGE;
}

static bool list_add(struct options_list *list, const char *item)
{
    if (list->count == OPTIONS_LIST)
        return false;
    list->item[list->count++] = item;
    return true;
}

static bool parse_connections(const char *text, struct options *options)
{
    char *end;
    long total = strtol(text, &end, 10), each = total;
    if (end == text || total < 1 || total > 10000)
        return false;
    if (*end == ':') {
        const char *second = end + 1;
        each = strtol(second, &end, 10);
        if (end == second || each < 1)
            return false;
    }
    options->connections = (int)total;
    options->per_address = (int)(each < total ? each : total);
    return *end == '\0';
}

static enum options_result take(struct options *options, const char *name, const char *value)
{
    bool fits = true;
    if (strcmp(name, "--instance") == 0)
        options->instance = value;
    else if (strcmp(name, "--listen") == 0)
        fits = list_add(&options->listen, value);
    else if (strcmp(name, "--token-file") == 0)
        options->token_file = value;
    else if (strcmp(name, "--web") == 0)
        options->web = value;
    else if (strcmp(name, "--allow-origin") == 0)
        fits = list_add(&options->origins, value);
    else if (strcmp(name, "--allow-host") == 0)
        fits = list_add(&options->hosts, value);
    else if (strcmp(name, "--max-connections") != 0)
        return wrong("unknown option", name);
    else if (!parse_connections(value, options))
        return wrong("--max-connections takes N or N:M, 1 to 10000", value);
    return fits ? OPTIONS_RUN : wrong("too many of one option", name);
}

static bool wants_value(const char *name)
{
    static const char *const names[] = {"--instance",     "--listen",     "--token-file",     "--web",
                                        "--allow-origin", "--allow-host", "--max-connections"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

enum options_result options_parse(int argc, char **argv, struct options *options)
{
    *options = (struct options){.connections = 64, .per_address = 16};
    for (int i = 1; i < argc; i++) {
        char *name = argv[i], *value = NULL;
        if (strcmp(name, "--help") == 0) {
            fputs(usage, stdout);
            return OPTIONS_DONE;
        }
        if (strcmp(name, "--version") == 0) {
            printf("gputap-bridge %s\n", GPUTAP_PROJECT_VERSION);
            return OPTIONS_DONE;
        }
        if (strcmp(name, "--show-all") == 0) {
            options->show_all = true;
            continue;
        }
        char *equals = strncmp(name, "--", 2) == 0 ? strchr(name, '=') : NULL;
        if (equals) {
            *equals = '\0';
            value = equals + 1;
        }
        if (!wants_value(name))
            return wrong("unknown argument", name);
        if (!value && i + 1 < argc)
            value = argv[++i];
        if (!value || !*value)
            return wrong("a value is missing after", name);
        enum options_result result = take(options, name, value);
        if (result != OPTIONS_RUN)
            return result;
    }
    return OPTIONS_RUN;
}
