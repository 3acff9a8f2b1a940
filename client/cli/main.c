#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "shm/platform.h"

static const char usage_text[] =
    "usage: gputap [--instance NAME] COMMAND [options]\n"
    "\n"
    "  status                             is the broker alive, and what does it see\n"
    "  get [options] [METRIC...]          the newest numbers\n"
    "      --json                         as JSON, the document of GET /api/v1/snapshot\n"
    "      --gpu N                        of one GPU\n"
    "      --stale                        also when the broker is gone or stands still\n"
    "  watch [--json] [--gpu N] [--count N]\n"
    "                                     live table; one line a sample when piped; q ends it\n"
    "  doctor                             what was found, what is unknown and why\n"
    "  ps [--json] [--sort KEY] [--watch] [--count N] [--stale] [DEVICE]\n"
    "                                     which processes hold which GPU; KEY is vram, gtt, busy, pid or name;\n"
    "                                     DEVICE a number or an id\n"
    "\n"
    "  sessions [--json]                  which programs say what they run, and what that is\n"
    "  events [--json] [--from-oldest] [--count N]\n"
    "                                     what they say, a line an event, as it comes\n"
    "  run [--label L] [--json] [--] COMMAND...\n"
    "                                     runs it, then says what it took; its exit code is this one's\n"
    "  annotate open [--pid PID] LABEL    opens a session for the shell that evals the output\n"
    "  annotate begin [--node N] [--job J] [--parent ID] [--device D]... NAME\n"
    "                                     begins a span and prints its id\n"
    "  annotate step ID VALUE MAX         its progress\n"
    "  annotate end [--json] ID           ends it and prints what it took\n"
    "  annotate close                     ends the session; so does the shell's end\n"
    "\n"
    "  --instance NAME   broker instance (default: $GPUTAP_INSTANCE, else \"default\")\n"
    "  --version, --help\n"
    "\n"
    "exit codes: 0 fine, 1 failed, 2 usage\n";

struct command {
    const char *name;
    int (*run)(const struct cli *cli);
    const char
        *options; /* letters of what it takes: j --json, g --gpu, s --stale, c --count, l --label, o --from-oldest,
                     k --sort, w --watch, d DEVICE, m METRIC..., r the rest from the first that is no option, a all that follows */
};
static const struct command commands[] = {{"status", cli_status, ""},    {"get", cli_get, "jgsm"}, {"watch", cli_watch, "jgc"},
                                          {"doctor", cli_doctor, ""},    {"ps", cli_ps, "jskwcd"}, {"sessions", cli_sessions, "j"},
                                          {"events", cli_events, "jco"}, {"run", cli_run, "jlr"},  {"annotate", cli_annotate, "a"}};

int cli_usage_error(const char *problem, const char *what)
{
    fprintf(stderr, "gputap: %s%s%s\n\n%s", problem, what ? ": " : "", what ? what : "", usage_text);
    return EXIT_USAGE;
}

static bool parse_number(const char *text, long lowest, long highest, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out >= lowest && *out <= highest;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* --name VALUE or --name=VALUE; *value is NULL where it is missing. */
static bool takes(const char *argument, const char *name, int argc, char **argv, int *i, const char **value)
{
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0 || (argument[length] && argument[length] != '='))
        return false;
    *value = argument[length] ? argument + length + 1 : *i + 1 < argc ? argv[++*i] : NULL;
    return true;
}

static int parse_option(struct cli *cli, const char *allowed, int argc, char **argv, int *i)
{
    const char *argument = argv[*i], *value;
    long number;
    if (strcmp(argument, "--json") == 0 && strchr(allowed, 'j'))
        cli->json = true;
    else if (strcmp(argument, "--stale") == 0 && strchr(allowed, 's'))
        cli->stale = true;
    else if (strcmp(argument, "--from-oldest") == 0 && strchr(allowed, 'o'))
        cli->from_oldest = true;
    else if (strchr(allowed, 'l') && takes(argument, "--label", argc, argv, i, &cli->label)) {
        if (!cli->label || !cli->label[0])
            return cli_usage_error("--label wants a text", NULL);
    } else if (strcmp(argument, "--watch") == 0 && strchr(allowed, 'w')) {
        cli->watch = true;
    } else if (strchr(allowed, 'k') && takes(argument, "--sort", argc, argv, i, &cli->sort)) {
        if (!cli->sort)
            return cli_usage_error("--sort wants a key", NULL);
    } else if (strchr(allowed, 'g') && takes(argument, "--gpu", argc, argv, i, &value)) {
        if (!value || !parse_number(value, 0, INT_MAX, &number))
            return cli_usage_error("--gpu wants a number", value);
        cli->gpu = (int)number;
    } else if (strchr(allowed, 'c') && takes(argument, "--count", argc, argv, i, &value)) {
        if (!value || !parse_number(value, 1, LONG_MAX, &cli->count))
            return cli_usage_error("--count wants a number from 1", value);
    } else
        return cli_usage_error("unknown option", argument);
    return EXIT_FINE;
}

int cli_print_help(void) { return fputs(usage_text, stdout) < 0 ? EXIT_FAILED : EXIT_FINE; }

static int parse_word(struct cli *cli, const struct command **command, const char *argument)
{
    if (!*command) {
        *command = find_command(argument);
        return *command ? EXIT_FINE : cli_usage_error("unknown command", argument);
    }
    if (strchr((*command)->options, 'd') && !cli->device) {
        cli->device = argument;
        return EXIT_FINE;
    }
    if (!strchr((*command)->options, 'm'))
        return cli_usage_error("unexpected argument", argument);
    if (cli->metric_count == CLI_METRICS_MAX)
        return cli_usage_error("too many metrics", NULL);
    cli->metrics[cli->metric_count++] = argument;
    return EXIT_FINE;
}

/* What follows is the command's own. */
static bool rest_begins(const struct command *command, const char *argument)
{
    return command && (strchr(command->options, 'a') || (strchr(command->options, 'r') && argument[0] != '-') ||
                       (strchr(command->options, 'r') && strcmp(argument, "--") == 0));
}

/* --help and --version before the rest. */
static bool asks(int argc, char **argv, const char *name, const char *letter)
{
    const struct command *command = NULL;
    for (int i = 1; i < argc && !rest_begins(command, argv[i]); i++) {
        if (strcmp(argv[i], name) == 0 || strcmp(argv[i], letter) == 0)
            return true;
        if (!command && argv[i][0] != '-')
            command = find_command(argv[i]);
    }
    return false;
}

static int parse(struct cli *cli, const struct command **command, int argc, char **argv)
{
    int result = EXIT_FINE;
    for (int i = 1; i < argc && result == EXIT_FINE; i++) {
        const char *argument = argv[i];
        if (rest_begins(*command, argument)) {
            i += strcmp(argument, "--") == 0;
            cli->rest = argv + i;
            cli->rest_count = argc - i;
            return EXIT_FINE;
        }
        if (takes(argument, "--instance", argc, argv, &i, &cli->instance)) {
            if (!cli->instance)
                return cli_usage_error("--instance wants a name", NULL);
        } else if (argument[0] == '-')
            result = parse_option(cli, *command ? (*command)->options : "", argc, argv, &i);
        else
            result = parse_word(cli, command, argument);
    }
    return result == EXIT_FINE && !*command ? cli_usage_error("a command is missing", NULL) : result;
}

int main(int argc, char **argv)
{
    process_open_standard_files();
    struct cli cli = {.gpu = -1};
    const struct command *command = NULL;
    if (asks(argc, argv, "--help", "-h"))
        return cli_print_help();
    bool version = asks(argc, argv, "--version", "--version");
    if (version && argc != 2)
        return cli_usage_error("unexpected argument beside --version", argv[strcmp(argv[1], "--version") == 0 ? 2 : 1]);
    if (version)
        return printf("gputap %s\n", gputap_version()) < 0 ? EXIT_FAILED : EXIT_FINE;
    int result = parse(&cli, &command, argc, argv);
    if (result == EXIT_FINE)
        result = command->run(&cli);
    if ((fflush(stdout) != 0 || ferror(stdout)) && result == EXIT_FINE) {
        if (errno != EPIPE) /* whoever read it has had enough: that is no news */
            fprintf(stderr, "gputap: cannot write: %s\n", strerror(errno));
        result = EXIT_FAILED;
    }
    return result;
}
