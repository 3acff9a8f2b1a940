/* gputap run: `time` for GPUs. The command is one span of a session of its own, seen from outside. */
#include <string.h>

#include "client/cli/cli.h"
#include "client/json/document.h"
#include "client/json/put.h"
#include "shm/platform.h"
#include "shm/text.h"

struct measured {
    gputap *tap; /* NULL = there is none to measure by */
    struct cli_span span;
    gputap_usage usage[CLI_USAGES];
    int count;
    double seconds;
};

static void look_after(void *context)
{
    gputap *tap = context;
    if (tap)
        (void)gputap_poll(tap);
}

/* The command as one line, as long as it fits. */
static void line_of(char **argv, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t used = 0; *argv && used < size; argv++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", *argv);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The command runs all the same. */
static bool not_measured(struct measured *m, const char *why)
{
    fprintf(stderr, "gputap: %s; the command runs without being measured\n", why);
    gputap_close(m->tap);
    m->tap = NULL;
    return false;
}

/* A command of a few milliseconds would be over before a busy broker has heard of it. */
static void await_broker(gputap *tap)
{
    const uint64_t patience = UINT64_C(100000000), slice = UINT64_C(2000000);
    static const shm_word32 never;
    for (uint64_t began = clock_mono_ns(); gputap_poll(tap) == 0 && clock_mono_ns() - began < patience;)
        wake_wait(&never, 0, slice);
}

static bool begin(const struct cli *cli, struct measured *m)
{
    char line[256];
    if (gputap_open(&m->tap, cli->instance, 0) != GPUTAP_OK)
        return not_measured(m, gputap_message(NULL));
    if (gputap_status(m->tap) & GPUTAP_STATUS_DEAD) {
        text_format(line, sizeof line, "the broker is gone; start it with: gputapd%s%s", cli->instance ? " --instance " : "",
                    cli->instance ? cli->instance : "");
        return not_measured(m, line);
    }
    line_of(cli->rest, line, sizeof line);
    (void)gputap_event_cursor_init(m->tap, &m->span.cursor, GPUTAP_FROM_NEWEST);
    int result = gputap_attach(m->tap, cli->label ? cli->label : base_name(cli->rest[0]));
    await_broker(m->tap);
    if (result == GPUTAP_OK)
        result = gputap_span_begin(m->tap, NULL, NULL, line, 0, NULL, 0, &m->span.id);
    return result == GPUTAP_OK || not_measured(m, gputap_message(m->tap));
}

static void end(struct measured *m)
{
    gputap_annotator annotator = GPUTAP_ANNOTATOR_INIT;
    m->span.slot = gputap_annotator_info(m->tap, &annotator) == GPUTAP_OK ? annotator.slot : -1;
    m->span.generation = annotator.generation;
    int count = gputap_span_end(m->tap, m->span.id, m->usage, CLI_USAGES);
    m->count = cli_final_usage(m->tap, &m->span, m->usage, count > 0 ? count : 0);
}

static int report_json(const struct cli *cli, const struct measured *m, int code)
{
    struct put report = put_begin();
    json_t *command = json_array();
    for (int i = 0; i < cli->rest_count; i++)
        put_item(&command, document_text(cli->rest[i]));
    put(&report, "v", json_integer(1));
    put(&report, "command", command);
    put(&report, "exit", json_integer(code));
    put(&report, "seconds", document_number(m->seconds, 2));
    put(&report, "usage", m->tap ? cli_usage_document(m->usage, m->count) : json_null());
    return cli_print_document(stderr, put_end(&report));
}

static void report_text(const struct cli *cli, const struct measured *m, int code)
{
    char line[120], clean[120];
    line_of(cli->rest, line, sizeof line);
    text_copy(clean, sizeof clean, line, strlen(line));
    fprintf(stderr, "gputap: %s: %.2f s, exit code %d%s\n", clean, m->seconds, code, m->count == 0 ? "; no GPU has numbers" : "");
    cli_print_usage(stderr, m->tap, m->usage, m->count);
}

int cli_run(const struct cli *cli)
{
    static struct measured m;
    if (cli->rest_count == 0)
        return cli_usage_error("run wants a command", NULL);
    bool measuring = begin(cli, &m);
    uint64_t began = clock_mono_ns();
    int code = process_run(cli->rest, look_after, m.tap);
    m.seconds = (double)(clock_mono_ns() - began) / 1e9;
    if (measuring)
        end(&m);
    if (cli->json)
        (void)report_json(cli, &m, code);
    else if (measuring)
        report_text(cli, &m, code);
    gputap_close(m.tap);
    return code;
}
