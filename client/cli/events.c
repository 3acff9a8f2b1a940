/* gputap events: what sessions say, a line an event, until nobody listens. */
#include <math.h>
#include <time.h>

#include "client/cli/cli.h"
#include "client/json/document.h"

enum { EVENTS_SLICE_MS = 200 };

static void print_time(int64_t real_ms)
{
    time_t seconds = (time_t)(real_ms / 1000);
    struct tm *parts = localtime(&seconds);
    char text[16];
    if (!parts || strftime(text, sizeof text, "%H:%M:%S", parts) == 0)
        snprintf(text, sizeof text, "--:--:--");
    printf("%s.%03d", text, (int)(real_ms % 1000));
}

static void print_usage_part(const gputap_usage *usage)
{
    char text[32];
    printf("  GPU %d", usage->device);
    if (!isnan(usage->energy))
        printf("  %.1f J", usage->energy);
    bool unified = !isnan(usage->unified_peak); /* of an APU the carve-out alone says little */
    double peak = unified ? usage->unified_peak : usage->vram_peak;
    if (!isnan(peak))
        printf("  %s peak %s", unified ? "unified" : "VRAM", print_bytes(text, sizeof text, peak, ""));
    if (!isnan(usage->busy_mean))
        printf("  busy %.0f %%", usage->busy_mean);
    if (!isnan(usage->temperature_peak))
        printf("  %.0f C", usage->temperature_peak);
    printf("%s%s%s", usage->flags & GPUTAP_USAGE_PARTIAL ? "  partial" : "",
           usage->flags & GPUTAP_USAGE_ESTIMATED ? "  estimated" : "", usage->flags & GPUTAP_USAGE_SHARED ? "  shared" : "");
}

static void print_event(const gputap_event *event)
{
    char text[32];
    bool usage = event->type == GPUTAP_EVENT_USAGE,
         session = event->type == GPUTAP_EVENT_ATTACH || event->type == GPUTAP_EVENT_DETACH;
    double seconds = usage ? event->usage.seconds : event->seconds;
    print_time(event->real_ms);
    printf("  %-7s  %d.%u %s", document_event_type(event->type), event->slot, event->generation,
           event->label[0] ? event->label : print_dash());
    if (session)
        printf("  pid %u", event->pid);
    else
        printf("  %s", event->name[0] ? event->name : print_dash());
    if (event->max > 0)
        printf("  %g/%g", event->value, event->max);
    if (!isnan(seconds))
        printf("  %s", print_duration(text, sizeof text, seconds));
    if (usage)
        print_usage_part(&event->usage);
    if (!session)
        print_where(stdout, event->node, event->job, event->devices, usage ? 0 : event->device_count);
    printf("%s%s\n", event->flags & GPUTAP_EVENT_ABANDONED ? "  abandoned" : "",
           event->flags & GPUTAP_EVENT_RECOVERED ? "  recovered" : "");
}

/* What is there. EXIT_FINE to go on. */
static int print_new(gputap *tap, const struct cli *cli, gputap_cursor *cursor, long *shown)
{
    gputap_event event = GPUTAP_EVENT_INIT;
    uint64_t lost = cursor->lost;
    while (!terminal_quit() && (cli->count == 0 || *shown < cli->count) && gputap_next_event(tap, cursor, &event) == 1) {
        if (cursor->lost > lost)
            fprintf(stderr, "gputap: %llu events were lost: they came faster than they were written\n",
                    (unsigned long long)(cursor->lost - lost));
        lost = cursor->lost;
        ++*shown;
        if (!cli->json)
            print_event(&event);
        else if (cli_print_document(stdout, document_event(&event)) != EXIT_FINE && !ferror(stdout))
            return EXIT_FAILED;
        if (ferror(stdout))
            break;
    }
    return EXIT_FINE;
}

static int follow(gputap *tap, const struct cli *cli)
{
    gputap_cursor cursor;
    uint64_t change = 0;
    long shown = 0;
    int result = gputap_event_cursor_init(tap, &cursor, cli->from_oldest ? GPUTAP_FROM_OLDEST : GPUTAP_FROM_NEWEST);
    if (result != GPUTAP_OK) {
        fprintf(stderr, "gputap: %s\n", gputap_message(tap));
        return EXIT_FAILED;
    }
    while (!terminal_quit() && !terminal_closed(stdout)) {
        result = print_new(tap, cli, &cursor, &shown);
        if (result != EXIT_FINE || fflush(stdout) != 0 || ferror(stdout)) /* whoever read it has had enough */
            break;
        if (cli->count > 0 && shown >= cli->count)
            break;
        (void)gputap_wait_change(tap, &change, EVENTS_SLICE_MS);
    }
    return result;
}

int cli_events(const struct cli *cli)
{
    gputap *tap;
    int result = cli_open(cli, &tap);
    if (result != EXIT_FINE)
        return result;
    terminal_catch_signals();
    result = cli_refuse_old(tap, cli);
    if (result == EXIT_FINE)
        result = follow(tap, cli);
    gputap_close(tap);
    return result;
}
