/* gputap ps: which processes hold which GPU. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/json/document.h"

enum { WATCH_SLICE_MS = 100, REDRAW_MS = 1000, CELL_BYTES = 64 };

struct gpu {
    int device, count; /* of rows; negative: why there are none */
    gputap_process_table table;
    gputap_process rows[GPUTAP_MAX_PROCESSES];
};

/* What is written, and how many lines still fit where somebody watches. */
struct page {
    const char *line_end;
    int left;
};

/* --- order ---------------------------------------------------------------------------------------------------------------- */

static double larger(double a, double b) { return isnan(a) || b > a ? b : a; }

static double busiest(const gputap_process *row)
{
    double most = larger(row->gfx_busy, row->compute_busy);
    most = larger(larger(most, row->copy_busy), row->encode_busy);
    return larger(larger(most, row->decode_busy), row->media_busy);
}

static double amount(uint64_t bytes) { return bytes == UINT64_MAX ? (double)NAN : (double)bytes; }

/* The largest first, what is unknown last. */
static int by_number(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a < b) - (a > b);
}

static int by_vram(const void *a, const void *b)
{
    return by_number(amount(((const gputap_process *)a)->vram), amount(((const gputap_process *)b)->vram));
}

static int by_gtt(const void *a, const void *b)
{
    return by_number(amount(((const gputap_process *)a)->gtt), amount(((const gputap_process *)b)->gtt));
}

static int by_busy(const void *a, const void *b) { return by_number(busiest(a), busiest(b)); }

static int by_pid(const void *a, const void *b)
{
    uint32_t x = ((const gputap_process *)a)->pid, y = ((const gputap_process *)b)->pid;
    return (x > y) - (x < y);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const gputap_process *)a)->comm, ((const gputap_process *)b)->comm);
}

struct order {
    const char *key;
    int (*compare)(const void *a, const void *b);
};
static const struct order orders[] = {{"vram", by_vram}, {"gtt", by_gtt}, {"busy", by_busy}, {"pid", by_pid}, {"name", by_name}};

static const struct order *find_order(const char *key)
{
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        if (strcmp(orders[i].key, key) == 0)
            return &orders[i];
    return NULL;
}

/* --- the table ------------------------------------------------------------------------------------------------------------ */

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
line(struct page *page, const char *format, ...)
{
    va_list args;
    if (page->left == 0)
        return;
    page->left -= page->left > 0;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fputs(page->line_end, stdout);
}

/* In characters, not bytes; negative is to the left. */
static const char *pad(char *out, size_t size, const char *text, int width)
{
    int characters = 0, wide = abs(width);
    for (const char *at = text; *at; at++)
        characters += (*at & 0xC0) != 0x80;
    int blanks = wide > characters ? wide - characters : 0;
    snprintf(out, size, "%*s%s%*s", width > 0 ? blanks : 0, "", text, width < 0 ? blanks : 0, "");
    return out;
}

static const char *dash_text(char *out, size_t size)
{
    snprintf(out, size, "%s", print_dash());
    return out;
}

static const char *bytes_text(char *out, size_t size, uint64_t bytes, bool least)
{
    char text[32];
    if (bytes == UINT64_MAX)
        return dash_text(out, size);
    const char *mark = !least ? "" : print_utf8() ? "\342\211\245 " : ">= ";
    snprintf(out, size, "%s%s", mark, print_bytes(text, sizeof text, (double)bytes, ""));
    return out;
}

static const char *busy_text(char *out, size_t size, double busy)
{
    if (isnan(busy))
        return dash_text(out, size);
    snprintf(out, size, "%.0f %%", busy);
    return out;
}

/* Only some drivers have one engine for both of encoding and decoding. */
static bool media_known(const struct gpu *gpus, int count)
{
    for (int i = 0; i < count; i++)
        for (int row = 0; row < gpus[i].count; row++)
            if (!isnan(gpus[i].rows[row].media_busy))
                return true;
    return false;
}

static void print_row(struct page *page, int device, const gputap_process *row, bool media)
{
    char text[CELL_BYTES], cell[10][CELL_BYTES], name[48];
    bool least = row->flags & GPUTAP_PROCESS_PARTIAL;
    snprintf(name, sizeof name, row->sharers ? "%s (+%u sharing)" : "%s", row->comm[0] ? row->comm : print_dash(), row->sharers);
    line(page, "%3d %8u  %s %s %s %s %s %s %s%s%s  %s  %s", device, row->pid,
         pad(cell[0], CELL_BYTES, user_name(text, sizeof text, row->uid), -10),
         pad(cell[1], CELL_BYTES, bytes_text(text, sizeof text, row->vram, least), 12),
         pad(cell[2], CELL_BYTES, bytes_text(text, sizeof text, row->gtt, least), 12),
         pad(cell[3], CELL_BYTES, busy_text(text, sizeof text, row->gfx_busy), 6),
         pad(cell[4], CELL_BYTES, busy_text(text, sizeof text, row->compute_busy), 8),
         pad(cell[5], CELL_BYTES, busy_text(text, sizeof text, row->encode_busy), 6),
         pad(cell[6], CELL_BYTES, busy_text(text, sizeof text, row->decode_busy), 6), media ? " " : "",
         media ? pad(cell[7], CELL_BYTES, busy_text(text, sizeof text, row->media_busy), 6) : "",
         pad(cell[8], CELL_BYTES, row->container[0] ? row->container : print_dash(), -12), name);
}

static const char *processes_text(uint32_t count) { return count == 1 ? "process" : "processes"; }

static void print_notes(struct page *page, const struct gpu *gpu)
{
    const gputap_process_table *table = &gpu->table;
    char vram[CELL_BYTES], gtt[CELL_BYTES];
    if (table->others > 0)
        line(page, "GPU %d: %u more %s, which hold VRAM %s, GTT %s", gpu->device, table->others, processes_text(table->others),
             bytes_text(vram, sizeof vram, table->others_vram, false), bytes_text(gtt, sizeof gtt, table->others_gtt, false));
    if (table->hidden > 0)
        line(page, "GPU %d: %u %s of other users could not be read (run gputapd as root, or with CAP_SYS_PTRACE, to see them)",
             gpu->device, table->hidden, processes_text(table->hidden));
    else if (table->partial)
        line(page, "GPU %d: processes may be missing", gpu->device);
    if (table->external_vram != UINT64_MAX)
        line(page, "GPU %d: %s of VRAM in use by no process that is known", gpu->device,
             bytes_text(vram, sizeof vram, table->external_vram, false));
}

static void print_empty(struct page *page, const struct gpu *gpu)
{
    if (gpu->count < 0)
        line(page, "GPU %d: nobody looks for its processes on this system%s", gpu->device,
             gpu->count == GPUTAP_EEMPTY ? "" : " just now");
    else if (gpu->count == 0 && gpu->table.others == 0 && gpu->table.hidden == 0)
        line(page, "GPU %d: no process holds it", gpu->device);
}

static void print_gpus(struct page *page, const struct gpu *gpus, int count)
{
    bool media = media_known(gpus, count), head = false;
    for (int i = 0; i < count; i++)
        for (int row = 0; row < gpus[i].count; row++) {
            if (!head)
                line(page, "GPU      PID  USER               VRAM          GTT    GFX  COMPUTE    ENC    DEC%s  CONTAINER     NAME",
                     media ? "  MEDIA" : "");
            head = true;
            print_row(page, gpus[i].device, &gpus[i].rows[row], media);
        }
    for (int i = 0; i < count; i++) {
        print_empty(page, &gpus[i]);
        if (gpus[i].count >= 0)
            print_notes(page, &gpus[i]);
    }
}

/* Returns how many were read; a device that is no more is left out. */
static int read_gpus(gputap *tap, int wanted, const struct order *order, struct gpu *gpus, int capacity)
{
    int filled = 0;
    for (int device = 0; device < capacity; device++) {
        gputap_device facts = GPUTAP_DEVICE_INIT;
        if ((wanted >= 0 && wanted != device) || gputap_device_info(tap, device, &facts) != GPUTAP_OK)
            continue;
        struct gpu *gpu = &gpus[filled++];
        gpu->device = device;
        gpu->table = (gputap_process_table)GPUTAP_PROCESS_TABLE_INIT;
        gpu->count = gputap_processes(tap, device, &gpu->table, gpu->rows, GPUTAP_MAX_PROCESSES);
        if (order && gpu->count > 0)
            qsort(gpu->rows, (size_t)gpu->count, sizeof gpu->rows[0], order->compare);
    }
    return filled;
}

static int print_table(gputap *tap, int wanted, const struct order *order, struct page *page)
{
    int count = gputap_device_count(tap);
    struct gpu *gpus = calloc(count > 0 ? (size_t)count : 1, sizeof *gpus);
    if (!gpus) {
        fprintf(stderr, "gputap: out of memory\n");
        return EXIT_FAILED;
    }
    int filled = read_gpus(tap, wanted, order, gpus, count);
    print_gpus(page, gpus, filled);
    if (filled == 0)
        line(page, "no GPU was found (gputap doctor says why)");
    free(gpus);
    return EXIT_FINE;
}

/* --- the command ---------------------------------------------------------------------------------------------------------- */

static int print_json(gputap *tap, int wanted)
{
    struct document_moment moment;
    document_moment_read(tap, gputap_status(tap), &moment);
    return cli_print_document(stdout, document_processes(tap, &moment, wanted, -1));
}

static int print_once(gputap *tap, const struct cli *cli, int wanted, const struct order *order, bool screen)
{
    struct page page = {.line_end = "\n", .left = -1};
    if (cli->json)
        return print_json(tap, wanted);
    if (!screen)
        return print_table(tap, wanted, order, &page);
    int columns, rows, bits = gputap_status(tap);
    terminal_size(&columns, &rows);
    page = (struct page){.line_end = "\033[K\n", .left = rows - 1};
    fputs("\033[H", stdout);
    if (!(bits & GPUTAP_STATUS_RUNNING))
        line(&page, "the broker is %s: these are its last words", print_status(bits));
    int result = print_table(tap, wanted, order, &page);
    fputs("\033[J", stdout);
    return result;
}

/* Asked to end: a write that the signal cut short is no failure. */
static int end_asked(void)
{
    clearerr(stdout);
    return EXIT_FINE;
}

/* Tables change once a second at most. */
static int watch(gputap *tap, const struct cli *cli, int wanted, const struct order *order, bool screen)
{
    uint64_t tick = 0;
    int64_t next_ms = 0;
    for (long shown = 0; !terminal_quit();) {
        int64_t now_ms = document_now_ms();
        if (now_ms < next_ms && next_ms - now_ms <= REDRAW_MS) {
            (void)gputap_wait(tap, &tick, WATCH_SLICE_MS);
            continue;
        }
        next_ms = now_ms + REDRAW_MS;
        int result = print_once(tap, cli, wanted, order, screen);
        if (result != EXIT_FINE || fflush(stdout) != 0 || ferror(stdout))
            return terminal_quit() ? end_asked() : EXIT_FAILED;
        if (cli->count > 0 && ++shown >= cli->count)
            return EXIT_FINE;
    }
    return end_asked();
}

static int show(gputap *tap, const struct cli *cli, int wanted, const struct order *order)
{
    bool screen = cli->watch && !cli->json && terminal_is(stdout) && terminal_is(stdin);
    if (!cli->watch)
        return print_once(tap, cli, wanted, order, false);
    if (screen)
        terminal_enter();
    else
        terminal_catch_signals();
    int result = watch(tap, cli, wanted, order, screen);
    terminal_leave();
    return result;
}

int cli_ps(const struct cli *cli)
{
    gputap *tap;
    int wanted;
    const struct order *order = cli->sort ? find_order(cli->sort) : NULL;
    if (cli->sort && !order)
        return cli_usage_error("--sort is vram, gtt, busy, pid or name", cli->sort);
    if (cli->count > 0 && !cli->watch)
        return cli_usage_error("--count goes with --watch", NULL);
    int result = cli_open(cli, &tap);
    if (result != EXIT_FINE)
        return result;
    result = cli_refuse_old(tap, cli);
    if (result == EXIT_FINE)
        result = cli_find_gpu(tap, cli->device, &wanted);
    if (result == EXIT_FINE)
        result = show(tap, cli, wanted, order);
    gputap_close(tap);
    return result;
}
