/* gputap annotate: spans from a shell script. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/holder.h"
#include "client/json/put.h"
#include "shm/text.h"

enum { WORDS = 4 };

/* What follows the name of the action: options with values, and words. */
struct words {
    const char *job, *node, *parent, *pid, *devices[HOLDER_DEVICES];
    int device_count;
    bool json;
    const char *word[WORDS]; /* empty where there is none */
    int count;
};

static int take_value(struct words *words, const char *option, const char *value)
{
    const char **place = strcmp(option, "--job") == 0      ? &words->job
                         : strcmp(option, "--node") == 0   ? &words->node
                         : strcmp(option, "--parent") == 0 ? &words->parent
                         : strcmp(option, "--pid") == 0    ? &words->pid
                                                           : NULL;
    if (strcmp(option, "--device") == 0) {
        if (words->device_count == HOLDER_DEVICES)
            return cli_usage_error("too many devices", NULL);
        place = &words->devices[words->device_count++];
    }
    if (!place)
        return cli_usage_error("unknown option", option);
    if (!value)
        return cli_usage_error("a value is missing after", option);
    *place = value;
    return EXIT_FINE;
}

/* `allowed`: the options of this action, each with a blank after it. */
static int parse_words(struct words *words, const struct cli *cli, const char *allowed, int wanted)
{
    bool options = true;
    memset(words, 0, sizeof *words);
    for (int i = 0; i < WORDS; i++)
        words->word[i] = "";
    for (int i = 1; i < cli->rest_count; i++) {
        const char *argument = cli->rest[i];
        char needle[32];
        text_format(needle, sizeof needle, "%s ", argument);
        if (options && strcmp(argument, "--") == 0) {
            options = false;
        } else if (options && argument[0] == '-' && argument[1] == '-') {
            if (!strstr(allowed, needle))
                return cli_usage_error("unknown option", argument);
            if (strcmp(argument, "--json") == 0) {
                words->json = true;
                continue;
            }
            const char *value = i + 1 < cli->rest_count ? cli->rest[++i] : NULL;
            int result = take_value(words, argument, value);
            if (result != EXIT_FINE)
                return result;
        } else if (words->count == wanted)
            return cli_usage_error("unexpected argument", argument);
        else
            words->word[words->count++] = argument;
    }
    return words->count == wanted ? EXIT_FINE : cli_usage_error("an argument is missing after", cli->rest[0]);
}

static bool parse_id(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out = value;
    return text[0] >= '0' && text[0] <= '9' && !*end && errno == 0;
}

static bool parse_real(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && isfinite(*out);
}

/* --- open -----------------------------------------------------------------------------------------------------------------------
 */

static void hold(struct holder_place *place, const struct cli *cli, const char *label)
{
    gputap *tap;
    if (gputap_open(&tap, cli->instance, GPUTAP_OPEN_DETACHED) != GPUTAP_OK) {
        holder_remove(place);
        return;
    }
    (void)gputap_attach(tap, label);
    holder_serve(place, tap);
}

static int open_session(const struct cli *cli)
{
    struct words words;
    struct holder_place place;
    gputap *tap;
    long pid = 0;
    bool failed = false;
    int result = parse_words(&words, cli, "--pid ", 1);
    if (result != EXIT_FINE)
        return result;
    uint64_t number = 0;
    if (!words.word[0][0] || (words.pid && (!parse_id(words.pid, &number) || number < 2 || number > INT_MAX)))
        return cli_usage_error("a label or a process number makes no sense", words.pid ? words.pid : words.word[0]);
    pid = (long)number;
    if (gputap_open(&tap, cli->instance, 0) == GPUTAP_EINVAL) {
        fprintf(stderr, "gputap: %s\n", gputap_message(NULL));
        return EXIT_USAGE;
    }
    if (!tap)
        fprintf(stderr, "gputap: %s; what is annotated is told to it when it runs\n", gputap_message(NULL));
    gputap_close(tap);
    if (!holder_prepare(&place, pid))
        return EXIT_FAILED;
    if (holder_detach(&place, &failed)) {
        hold(&place, cli, words.word[0]);
        return EXIT_FINE;
    }
    if (failed) {
        holder_remove(&place);
        return EXIT_FAILED;
    }
    printf("%s='", HOLDER_VARIABLE);
    for (const char *at = place.path; *at; at++) {
        if (*at == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*at);
    }
    printf("'; export %s\n", HOLDER_VARIABLE);
    return EXIT_FINE;
}

/* --- what is said then -------------------------------------------------------------------------------------------------------- */

static int ask(struct holder_request *request, struct holder_reply *reply)
{
    const char *path = getenv(HOLDER_VARIABLE);
    request->magic = HOLDER_MAGIC;
    if (!path || !path[0]) {
        fprintf(stderr, "gputap: this shell has no session: eval \"$(gputap annotate open LABEL)\"\n");
        return EXIT_FAILED;
    }
    if (!holder_ask(path, request, reply))
        return EXIT_FAILED;
    if (reply->result == GPUTAP_OK)
        return EXIT_FINE;
    reply->message[sizeof reply->message - 1] = '\0';
    fprintf(stderr, "gputap: %s\n", reply->message);
    return EXIT_FAILED;
}

/* A number as `gputap status` shows it, or an id. */
static bool device_id(gputap *tap, const char *text, char *out, size_t size)
{
    gputap_device device = GPUTAP_DEVICE_INIT;
    uint64_t number;
    int index = parse_id(text, &number) ? (number <= INT_MAX ? (int)number : INT_MAX) : gputap_find(tap, text);
    if (index < 0 || gputap_device_info(tap, index, &device) != GPUTAP_OK) {
        fprintf(stderr, "gputap: there is no GPU %s\n", text);
        return false;
    }
    text_format(out, size, "%s", device.id);
    return true;
}

static int find_devices(const struct cli *cli, const struct words *words, struct holder_request *request)
{
    gputap *tap;
    if (words->device_count == 0)
        return EXIT_FINE;
    int result = cli_open(cli, &tap);
    if (result != EXIT_FINE)
        return result;
    for (int i = 0; i < words->device_count && result == EXIT_FINE; i++)
        if (!device_id(tap, words->devices[i], request->devices[i], sizeof request->devices[i]))
            result = EXIT_FAILED;
    request->device_count = words->device_count;
    gputap_close(tap);
    return result;
}

static void set_text(char *out, size_t size, const char *text)
{
    if (text)
        text_copy(out, size, text, strlen(text));
}

static int begin_span(const struct cli *cli)
{
    static struct holder_reply reply;
    struct holder_request request = {.type = HOLDER_BEGIN};
    struct words words;
    int result = parse_words(&words, cli, "--job --node --parent --device ", 1);
    if (result != EXIT_FINE)
        return result;
    if (words.parent && !parse_id(words.parent, &request.span))
        return cli_usage_error("--parent wants the id of a span", words.parent);
    set_text(request.job, sizeof request.job, words.job);
    set_text(request.node, sizeof request.node, words.node);
    set_text(request.name, sizeof request.name, words.word[0]);
    result = find_devices(cli, &words, &request);
    if (result == EXIT_FINE)
        result = ask(&request, &reply);
    if (result == EXIT_FINE)
        printf("%llu\n", (unsigned long long)reply.span);
    return result;
}

static int step_span(const struct cli *cli)
{
    static struct holder_reply reply;
    struct holder_request request = {.type = HOLDER_STEP};
    struct words words;
    int result = parse_words(&words, cli, "", 3);
    if (result != EXIT_FINE)
        return result;
    if (!parse_id(words.word[0], &request.span) || !parse_real(words.word[1], &request.value) ||
        !parse_real(words.word[2], &request.max))
        return cli_usage_error("step wants ID VALUE MAX", NULL);
    return ask(&request, &reply);
}

/* Numbers of the holder's handle into ours. */
static void translate(gputap *tap, struct holder_reply *reply)
{
    reply->usage_count = reply->usage_count < 0 ? 0 : reply->usage_count;
    if (reply->usage_count > CLI_USAGES)
        reply->usage_count = CLI_USAGES;
    for (int i = 0; tap && i < reply->usage_count; i++) {
        reply->ids[i][sizeof reply->ids[i] - 1] = '\0';
        reply->usage[i].device = reply->ids[i][0] ? gputap_find(tap, reply->ids[i]) : -1;
    }
}

static int print_usage(gputap *tap, const struct holder_reply *reply, int count, bool json)
{
    if (!json) {
        cli_print_usage(stdout, tap, reply->usage, count);
        return EXIT_FINE;
    }
    struct put report = put_begin();
    put(&report, "v", json_integer(1));
    put(&report, "span", json_integer((json_int_t)reply->span));
    put(&report, "usage", cli_usage_document(reply->usage, count));
    return cli_print_document(stdout, put_end(&report));
}

static int end_span(const struct cli *cli)
{
    static struct holder_reply reply;
    struct holder_request request = {.type = HOLDER_END};
    struct cli_span span = {.slot = -1};
    struct words words;
    gputap *tap = NULL;
    int result = parse_words(&words, cli, "--json ", 1);
    if (result != EXIT_FINE)
        return result;
    if (!parse_id(words.word[0], &request.span))
        return cli_usage_error("end wants the id of a span", words.word[0]);
    if (gputap_open(&tap, cli->instance, 0) == GPUTAP_OK)
        (void)gputap_event_cursor_init(tap, &span.cursor, GPUTAP_FROM_NEWEST);
    result = ask(&request, &reply);
    if (result == EXIT_FINE) {
        span.slot = reply.slot;
        span.generation = reply.generation;
        span.id = reply.span = request.span;
        translate(tap, &reply);
        int count = tap ? cli_final_usage(tap, &span, reply.usage, reply.usage_count) : reply.usage_count;
        result = print_usage(tap, &reply, count, words.json);
    }
    gputap_close(tap);
    return result;
}

static int close_session(const struct cli *cli)
{
    static struct holder_reply reply;
    struct holder_request request = {.type = HOLDER_CLOSE};
    struct words words;
    int result = parse_words(&words, cli, "", 0);
    return result == EXIT_FINE ? ask(&request, &reply) : result;
}

int cli_annotate(const struct cli *cli)
{
    static const struct {
        const char *name;
        int (*run)(const struct cli *cli);
    } actions[] = {{"open", open_session}, {"begin", begin_span}, {"step", step_span}, {"end", end_span}, {"close", close_session}};
    if (cli->rest_count > 0 && (strcmp(cli->rest[0], "--help") == 0 || strcmp(cli->rest[0], "-h") == 0))
        return cli_print_help();
    for (size_t i = 0; cli->rest_count > 0 && i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(cli->rest[0], actions[i].name) == 0)
            return actions[i].run(cli);
    return cli_usage_error("annotate wants open, begin, step, end or close", cli->rest_count > 0 ? cli->rest[0] : NULL);
}
