/* What a span took: waiting for the final numbers, and showing them. */
#include <math.h>

#include "client/cli/cli.h"
#include "client/json/document.h"
#include "client/json/put.h"
#include "shm/platform.h"

enum { USAGE_SLICE_MS = 100 };

static int place_of(const gputap_usage *usage, int count, int device)
{
    int place = 0;
    while (place < count && usage[place].device != device)
        place++;
    return place;
}

static bool final_is_in(const bool *final, int count)
{
    for (int i = 0; i < count; i++)
        if (!final[i])
            return false;
    return count > 0;
}

int cli_final_usage(gputap *tap, struct cli_span *span, gputap_usage *usage, int count)
{
    bool final[CLI_USAGES] = {false};
    uint64_t change = 0, began = clock_mono_ns(), patience = 2 * gputap_period(tap) + 1000000000u;
    while (span->slot >= 0 && !final_is_in(final, count) && clock_mono_ns() - began < patience && !process_asked_to_end()) {
        gputap_event event = GPUTAP_EVENT_INIT;
        while (gputap_next_event(tap, &span->cursor, &event) == 1) {
            bool ours = event.type == GPUTAP_EVENT_USAGE && event.slot == span->slot && event.generation == span->generation &&
                        event.span == span->id && event.usage.device >= 0;
            int place = ours ? place_of(usage, count, event.usage.device) : CLI_USAGES;
            if (place == CLI_USAGES)
                continue;
            count = place == count ? count + 1 : count;
            usage[place] = event.usage;
            final[place] = true;
        }
        if (final_is_in(final, count))
            break;
        (void)gputap_wait_change(tap, &change, USAGE_SLICE_MS);
        uint64_t period = gputap_period(tap); /* without a span it may be longer again */
        patience = 2 * period + 1000000000u > patience ? 2 * period + 1000000000u : patience;
    }
    return count;
}

static const char *cell(char *out, size_t size, double value, int decimals, const char *unit)
{
    if (isnan(value))
        snprintf(out, size, "%s", print_dash());
    else
        snprintf(out, size, "%.*f%s", decimals, value, unit);
    return out;
}

static const char *bytes_cell(char *out, size_t size, double bytes)
{
    return isnan(bytes) ? cell(out, size, bytes, 0, "") : print_bytes(out, size, bytes, "");
}

/* A dash is one place on the screen and three bytes, so that columns are filled by hand. */
static void column(FILE *out, const char *text, int width)
{
    int shown = 0;
    for (const char *at = text; *at; at++)
        shown += ((unsigned char)*at & 0xC0) != 0x80;
    fprintf(out, "%*s%s", width > shown ? width - shown : 0, "", text);
}

void cli_print_usage(FILE *out, gputap *tap, const gputap_usage *usage, int count)
{
    char text[48];
    if (count > 0)
        fprintf(out, "%6s%10s%12s%12s%12s%8s%8s  %s\n", "GPU", "seconds", "energy", "above idle", "VRAM peak", "busy", "peak",
                "name");
    for (int i = 0; i < count; i++) {
        const gputap_usage *u = &usage[i];
        gputap_device device = GPUTAP_DEVICE_INIT;
        bool unified = !isnan(u->unified_peak);
        column(out, cell(text, sizeof text, u->device, 0, ""), 6);
        column(out, cell(text, sizeof text, u->seconds, 2, ""), 10);
        column(out, cell(text, sizeof text, u->energy, 1, " J"), 12);
        column(out, cell(text, sizeof text, u->net_energy, 1, " J"), 12);
        column(out, bytes_cell(text, sizeof text, unified ? u->unified_peak : u->vram_peak), 12);
        column(out, cell(text, sizeof text, u->busy_mean, 0, " %"), 8);
        column(out, cell(text, sizeof text, u->temperature_peak, 0, " C"), 8);
        char name[128] = "";
        if (tap && gputap_device_info(tap, u->device, &device) == GPUTAP_OK)
            print_device_name(name, sizeof name, &device);
        fprintf(out, "  %s%s%s%s%s\n", name, unified ? "  (unified memory)" : "",
                u->flags & GPUTAP_USAGE_PARTIAL ? "  partial" : "", u->flags & GPUTAP_USAGE_ESTIMATED ? "  estimated" : "",
                u->flags & GPUTAP_USAGE_SHARED ? "  shared" : "");
    }
}

json_t *cli_usage_document(const gputap_usage *usage, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        put_item(&list, document_usage(&usage[i]));
    return list;
}
