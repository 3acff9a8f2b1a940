/* gputap watch: a live table, or a line a sample where nobody looks at a terminal. */
#include <math.h>
#include <time.h>

#include "client/cli/cli.h"

enum { WATCH_SLICE_MS = 100, SPARK_SECONDS = 60, SPARK_MOST = 60, LINE_BYTES = 1024 };

struct row {
    double busy, clock, temperature, power, cap, used, total;
};

static double first_known(double a, double b) { return isnan(a) ? b : a; }

/* Of one GPU; of a unified pool the memory is the unified pair. */
static bool read_row(gputap *tap, int device, struct row *row)
{
    static const int metrics[] = {GPUTAP_GFX_BUSY,   GPUTAP_GFX_CLOCK,     GPUTAP_TEMPERATURE_EDGE, GPUTAP_TEMPERATURE_JUNCTION,
                                  GPUTAP_POWER_NOW,  GPUTAP_POWER_AVERAGE, GPUTAP_POWER_CAP,        GPUTAP_VRAM_USED,
                                  GPUTAP_VRAM_TOTAL, GPUTAP_UNIFIED_USED,  GPUTAP_UNIFIED_TOTAL};
    double v[sizeof metrics / sizeof metrics[0]];
    if (gputap_read(tap, device, metrics, sizeof metrics / sizeof metrics[0], v) != GPUTAP_OK)
        return false;
    row->busy = v[0];
    row->clock = v[1];
    row->temperature = first_known(v[2], v[3]);
    row->power = first_known(v[4], v[5]);
    row->cap = v[6];
    row->used = isnan(v[10]) ? v[7] : v[9];
    row->total = isnan(v[10]) ? v[8] : v[10];
    return true;
}

static const char *number(char *out, size_t size, double value, int decimals, const char *unit)
{
    if (isnan(value))
        snprintf(out, size, "%s", print_dash());
    else
        snprintf(out, size, "%.*f%s", decimals, value, unit);
    return out;
}

static const char *degree(void) { return print_utf8() ? " \302\260C" : " C"; }

static void host_line(gputap *tap, char *out, size_t size)
{
    static const int metrics[] = {GPUTAP_HOST_CPU_BUSY, GPUTAP_HOST_MEMORY_USED, GPUTAP_HOST_MEMORY_TOTAL};
    double v[3] = {NAN, NAN, NAN};
    char cpu[32], memory[64];
    (void)gputap_read(tap, GPUTAP_HOST, metrics, 3, v);
    snprintf(out, size, "CPU %s  RAM %s", number(cpu, sizeof cpu, v[0], 1, " %"), print_gib(memory, sizeof memory, v[1], v[2]));
}

static void clock_text(char *out, size_t size, bool milliseconds)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    struct tm *parts = localtime(&now.tv_sec);
    size_t used = parts ? strftime(out, size, "%H:%M:%S", parts) : 0;
    if (used == 0)
        snprintf(out, size, "--:--:--");
    else if (milliseconds)
        snprintf(out + used, size - used, ".%03ld", now.tv_nsec / 1000000);
}

/* --- one line a sample ---------------------------------------------------------------------------------------------------- */
static void print_line(gputap *tap, const struct cli *cli)
{
    char text[5][48], host[LINE_BYTES];
    int count = gputap_device_count(tap);
    clock_text(text[0], sizeof text[0], gputap_period(tap) < 1000000000u);
    printf("%s", text[0]);
    for (int i = 0; i < count; i++) {
        gputap_device info = GPUTAP_DEVICE_INIT;
        struct row row;
        if ((cli->gpu >= 0 && cli->gpu != i) || !read_row(tap, i, &row))
            continue;
        bool simulated = gputap_device_info(tap, i, &info) == GPUTAP_OK && info.simulated;
        printf("  GPU%d%s %s %s %s %s %s", i, simulated ? " (simulated)" : "", number(text[0], 48, row.busy, 1, " %"),
               number(text[1], 48, row.clock, 0, " MHz"), number(text[2], 48, row.temperature, 1, degree()),
               print_gib(text[3], 48, row.used, row.total), number(text[4], 48, row.power, 1, " W"));
    }
    host_line(tap, host, sizeof host);
    printf("  %s\n", host);
}

/* --- the table ------------------------------------------------------------------------------------------------------------ */
static void spark_of(gputap *tap, int device, int width, char *out, size_t size)
{
    static const int busy = GPUTAP_GFX_BUSY;
    int64_t times[SPARK_MOST];
    double rows[SPARK_MOST], shares[SPARK_MOST];
    int got = gputap_history(tap, device, &busy, 1, SPARK_SECONDS, width, times, rows), pad = width - (got > 0 ? got : 0);
    for (int i = 0; i < width; i++)
        shares[i] = i < pad ? (double)NAN : rows[i - pad] / 100;
    print_spark(out, size, shares, width);
}

static void draw_device(gputap *tap, int device, int columns)
{
    gputap_device info = GPUTAP_DEVICE_INIT;
    char name[128], bar[256], spark[256], text[4][64];
    struct row row;
    int width = columns >= 100 ? 24 : columns >= 70 ? 14 : 8, graph = columns - width - 30;
    if (gputap_device_info(tap, device, &info) != GPUTAP_OK) {
        printf("GPU %d  gone\033[K\n\033[K\n", device);
        return;
    }
    printf("\033[1mGPU %d  %.*s\033[0m  %s\033[K\n", device, columns > 30 ? columns - 24 : 8,
           print_device_name(name, sizeof name, &info), info.state == GPUTAP_DEVICE_OK ? "" : gputap_state_text((int)info.state));
    if (!read_row(tap, device, &row)) {
        printf("  not sampled yet\033[K\n\033[K\n\033[K\n");
        return;
    }
    print_bar(bar, sizeof bar, row.busy / 100, width);
    spark_of(tap, device, graph > SPARK_MOST ? SPARK_MOST : graph < 4 ? 4 : graph, spark, sizeof spark);
    printf("  busy %s %-8s %s\033[K\n", bar, number(text[0], 64, row.busy, 1, " %"), columns >= 60 ? spark : "");
    print_bar(bar, sizeof bar, row.used / row.total, width);
    printf("  mem  %s %s\033[K\n", bar, print_gib(text[0], 64, row.used, row.total));
    printf("  %s   %s   %s", number(text[0], 64, row.clock, 0, " MHz"), number(text[1], 64, row.temperature, 1, degree()),
           number(text[2], 64, row.power, 1, " W"));
    if (!isnan(row.cap) && !isnan(row.power) && row.cap > 0)
        printf(" of %s (%.0f %%)", number(text[3], 64, row.cap, 0, " W"), 100 * row.power / row.cap);
    printf("\033[K\n");
}

static void draw(gputap *tap, const struct cli *cli, int bits)
{
    char now[16], host[LINE_BYTES], age[32];
    int columns, rows, count = gputap_device_count(tap), drawn = 0;
    terminal_size(&columns, &rows);
    clock_text(now, sizeof now, false);
    print_duration(age, sizeof age, cli_newest_age(tap));
    printf("\033[Hgputap  %s  q quits%s\033[K\n", now, bits & GPUTAP_STATUS_SIMULATED ? "  \033[33mSIMULATED devices\033[0m" : "");
    if (bits & GPUTAP_STATUS_RUNNING)
        printf("\033[K\n");
    else
        printf("\033[31mthe broker is %s; last numbers are %s old\033[0m\033[K\n", print_status(bits), age);
    host_line(tap, host, sizeof host);
    printf("%s\033[K\n\033[K\n", host);
    for (int i = 0; i < count; i++)
        if (cli->gpu < 0 || cli->gpu == i) {
            if (4 + 5 * ++drawn > rows) {
                printf("  ... and more: enlarge the window, or --gpu N\033[K");
                break;
            }
            draw_device(tap, i, columns);
            printf("\033[K%s", i + 1 < count ? "\n" : "");
        }
    if (count == 0)
        printf("no GPU was found (gputap doctor says why)\033[K");
    printf("\033[J");
    fflush(stdout);
}

/* --- the loop ------------------------------------------------------------------------------------------------------------- */
static bool report_change(int bits, bool was_running)
{
    bool running = (bits & GPUTAP_STATUS_RUNNING) != 0;
    if (running != was_running)
        fprintf(stderr, "gputap: the broker %s\n",
                running                     ? "is back"
                : bits & GPUTAP_STATUS_DEAD ? "is gone; waiting for it"
                                            : "stands still");
    return running;
}

/* The signal that asked for the end may have cut a write short: that is no failure. */
static int end_asked(void)
{
    clearerr(stdout);
    return EXIT_FINE;
}

static int watch(gputap *tap, const struct cli *cli, bool screen)
{
    uint64_t tick = 0;
    bool running = true;
    for (long shown = 0; !terminal_quit();) {
        int result = gputap_wait(tap, &tick, WATCH_SLICE_MS), bits = gputap_status(tap);
        if (terminal_quit())
            return end_asked();
        if (screen)
            draw(tap, cli, bits);
        else
            running = report_change(bits, running);
        if (result != GPUTAP_OK)
            continue;
        if (!screen && !cli->json)
            print_line(tap, cli);
        else if (cli->json && cli_print_snapshot(tap, cli) != EXIT_FINE)
            return terminal_quit() ? end_asked() : EXIT_FAILED;
        if (!screen && (fflush(stdout) != 0 || ferror(stdout)))
            return terminal_quit() ? end_asked() : EXIT_FAILED;
        if (cli->count > 0 && ++shown >= cli->count)
            return EXIT_FINE;
    }
    return end_asked();
}

int cli_watch(const struct cli *cli)
{
    gputap *tap;
    int result = cli_open(cli, &tap);
    if (result != EXIT_FINE)
        return result;
    result = cli_refuse_old(tap, cli);
    if (result == EXIT_FINE)
        result = cli_check_gpu(tap, cli->gpu);
    if (result == EXIT_FINE) {
        bool screen = !cli->json && terminal_is(stdout) && terminal_is(stdin);
        if (screen)
            terminal_enter();
        else
            terminal_catch_signals();
        result = watch(tap, cli, screen);
        terminal_leave();
    }
    gputap_close(tap);
    return result;
}
