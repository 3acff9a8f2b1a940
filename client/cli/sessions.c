/* gputap sessions: who says what it runs. */
#include <string.h>
#include <time.h>

#include "client/cli/cli.h"
#include "client/json/document.h"
#include "client/json/put.h"

static int print_json(gputap *tap)
{
    struct document_moment moment;
    document_moment_read(tap, gputap_status(tap), &moment);
    struct put page = put_begin();
    put(&page, "v", json_integer(1));
    put(&page, "t", json_integer(document_now_ms()));
    put(&page, "epoch", document_epoch(&moment));
    put(&page, "state", json_string(document_state_text(&moment)));
    put(&page, "sessions", document_sessions(tap, -1));
    return cli_print_document(stdout, put_end(&page));
}

static void print_span(const gputap_span *span)
{
    char text[32];
    printf("    %-10s %s", print_duration(text, sizeof text, span->seconds), span->name[0] ? span->name : print_dash());
    if (span->max > 0)
        printf("  %g/%g (%.0f %%)", span->value, span->max, 100 * span->value / span->max);
    else if (span->value != 0)
        printf("  %g", span->value);
    print_where(stdout, span->node, span->job, span->devices, span->device_count);
    printf("%s\n", span->shared ? "  shared" : "");
}

static void print_held(const char *what, uint64_t bytes)
{
    char text[32];
    if (bytes != UINT64_MAX)
        printf("  %s %s", what, print_bytes(text, sizeof text, (double)bytes, ""));
}

static void print_session(const gputap_session *session, const gputap_span *spans, int count)
{
    char text[32];
    double age = (double)(document_now_ms() - session->since_ms) / 1e3;
    printf("%d.%u  %s  (%s, pid %u, user %u)  since %s, %llu spans ended", session->slot, session->generation,
           session->label[0] ? session->label : print_dash(), session->comm[0] ? session->comm : print_dash(), session->pid,
           session->uid, print_duration(text, sizeof text, age > 0 ? age : 0), (unsigned long long)session->ended);
    if (session->dropped || session->lost || session->rejected)
        printf(", %llu dropped, %llu lost, %llu rejected", (unsigned long long)session->dropped, (unsigned long long)session->lost,
               (unsigned long long)session->rejected);
    printf("\n");
    for (uint32_t i = 0; i < session->gauge_count; i++) {
        printf("    holds on GPU %d:", session->gauges[i].device);
        print_held("allocated", session->gauges[i].allocated);
        print_held("reserved", session->gauges[i].reserved);
        print_held("dynamic", session->gauges[i].dynamic);
        printf("\n");
    }
    for (int i = 0; i < count; i++)
        print_span(&spans[i]);
}

static void print_table(gputap *tap)
{
    int slots = gputap_session_slots(tap), shown = 0;
    for (int slot = 0; slot < slots; slot++) {
        gputap_session session = GPUTAP_SESSION_INIT;
        gputap_span spans[GPUTAP_MAX_SPANS];
        int count = gputap_session_info(tap, slot, &session, spans, GPUTAP_MAX_SPANS);
        if (count >= 0) {
            print_session(&session, spans, count);
            shown++;
        }
    }
    if (slots == 0)
        printf("this broker knows no sessions: it is of before 0.2\n");
    else if (shown == 0)
        printf("no session is open\n");
}

int cli_sessions(const struct cli *cli)
{
    gputap *tap;
    int result = cli_open(cli, &tap);
    if (result != EXIT_FINE)
        return result;
    result = cli_refuse_old(tap, cli);
    if (result == EXIT_FINE && cli->json)
        result = print_json(tap);
    else if (result == EXIT_FINE)
        print_table(tap);
    gputap_close(tap);
    return result;
}
