/* Says what it does for a while, and prints what that took: at once as known then, and the final numbers as they come.
 *     cc annotate.c $(pkg-config --cflags --libs gputap) -o annotate */
#include <gputap.h>
#include <stdio.h>

static void print_usage(const char *what, const gputap_usage *usage)
{
    printf("%s  GPU %d  %.2f s  %.1f J  busy %.0f %%  VRAM peak %.2f GiB%s\n", what, usage->device, usage->seconds, usage->energy,
           usage->busy_mean, usage->vram_peak / 1073741824.0, /* nan = unknown */
           usage->flags & GPUTAP_USAGE_ESTIMATED ? "  (estimated)" : "");
}

int main(void)
{
    gputap *tap;
    gputap_cursor cursor;
    gputap_event event = GPUTAP_EVENT_INIT;
    gputap_usage usage[16];
    uint64_t span, tick = 0;

    if (gputap_open(&tap, NULL, 0) != GPUTAP_OK) {
        fprintf(stderr, "%s\n", gputap_message(NULL));
        return 1;
    }
    gputap_attach(tap, "examples/annotate");
    gputap_event_cursor_init(tap, &cursor, GPUTAP_FROM_NEWEST);
    gputap_span_begin(tap, "job 7", "3", "denoise", 0, NULL, 0, &span);
    for (int step = 1; step <= 20; step++) {
        gputap_wait(tap, &tick, 100); /* the work; ticks come every 100 ms while a span is open */
        gputap_span_step(tap, span, step, 20);
    }
    int known = gputap_span_end(tap, span, usage, 16), left = known;
    for (int i = 0; i < known; i++)
        print_usage("so far", &usage[i]);
    while (left > 0 && gputap_wait(tap, &tick, 2000) == GPUTAP_OK)
        while (gputap_next_event(tap, &cursor, &event) == 1)
            if (event.type == GPUTAP_EVENT_USAGE && event.span == span) {
                print_usage("final ", &event.usage);
                left--;
            }
    gputap_close(tap);
    return left > 0;
}
