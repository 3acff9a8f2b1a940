/* What the commands share: opening, and judging how fresh the numbers are. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/json/document.h"

int cli_open(const struct cli *cli, gputap **out)
{
    int result = gputap_open(out, cli->instance, 0);
    if (result == GPUTAP_OK)
        return EXIT_FINE;
    fprintf(stderr, "gputap: %s\n", gputap_message(NULL));
    return result == GPUTAP_EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

static double patience(gputap *tap) { return 2.5 * (double)gputap_period(tap) / 1e9 + 0.1; }

double cli_newest_age(gputap *tap)
{
    int count = gputap_device_count(tap);
    double newest = -1;
    for (int device = GPUTAP_HOST; device < count; device++) {
        gputap_snapshot sample = GPUTAP_SNAPSHOT_INIT;
        if (gputap_latest(tap, device, &sample) == GPUTAP_OK && (newest < 0 || (double)sample.age_ns / 1e9 < newest))
            newest = (double)sample.age_ns / 1e9;
    }
    return newest;
}

/* A program that has just opened the segment has not seen the beat move. Where the newest sample is old, that is worth waiting
 * for: a stopped broker holds its lock. */
int cli_settled_status(gputap *tap)
{
    int bits = gputap_status(tap);
    double age = cli_newest_age(tap), limit = patience(tap);
    if (!(bits & GPUTAP_STATUS_RUNNING) || (age >= 0 && age <= limit))
        return bits;
    uint64_t tick = gputap_tick(tap);
    if (gputap_wait(tap, &tick, (int)(limit * 1000) + 50) == GPUTAP_OK)
        return gputap_status(tap) | bits;
    return gputap_status(tap);
}

int cli_refuse_old(gputap *tap, const struct cli *cli)
{
    int bits = cli_settled_status(tap);
    if ((bits & GPUTAP_STATUS_RUNNING) || cli->stale)
        return EXIT_FINE;
    char text[32];
    double age = cli_newest_age(tap);
    fprintf(stderr, "gputap: the broker %s", bits & GPUTAP_STATUS_DEAD ? "is gone" : "stands still");
    if (age >= 0)
        fprintf(stderr, "; its last numbers are %s old (gputap get --stale shows them)", print_duration(text, sizeof text, age));
    if (bits & GPUTAP_STATUS_DEAD)
        fprintf(stderr, "; start it with: gputapd%s%s", cli->instance ? " --instance " : "", cli->instance ? cli->instance : "");
    fputc('\n', stderr);
    return EXIT_FAILED;
}

int cli_check_gpu(gputap *tap, int gpu)
{
    gputap_device device = GPUTAP_DEVICE_INIT;
    int result = gpu < 0 ? GPUTAP_OK : gputap_device_info(tap, gpu, &device), count = gputap_device_count(tap);
    if (result == GPUTAP_OK)
        return EXIT_FINE;
    if (gpu < count)
        fprintf(stderr, "gputap: GPU %d is no more\n", gpu);
    else if (count == 0)
        fprintf(stderr, "gputap: there is no GPU %d: the broker found none\n", gpu);
    else
        fprintf(stderr, "gputap: there is no GPU %d: the broker found %d, numbered from 0\n", gpu, count);
    return EXIT_FAILED;
}

int cli_find_gpu(gputap *tap, const char *device, int *gpu)
{
    *gpu = -1;
    if (!device)
        return EXIT_FINE;
    size_t digits = strspn(device, "0123456789");
    if (digits > 0 && digits < 10 && !device[digits])
        return cli_check_gpu(tap, *gpu = (int)strtol(device, NULL, 10));
    *gpu = gputap_find(tap, device);
    if (*gpu >= 0)
        return EXIT_FINE;
    fprintf(stderr, "gputap: %s\n", *gpu == GPUTAP_EINVAL ? "a device is a number or an id" : gputap_message(tap));
    return EXIT_FAILED;
}

int cli_print_document(FILE *out, json_t *document)
{
    char *text = document_print(document);
    json_decref(document);
    if (!text) {
        fprintf(stderr, "gputap: out of memory\n");
        return EXIT_FAILED;
    }
    int result = fprintf(out, "%s\n", text) < 0 ? EXIT_FAILED : EXIT_FINE;
    free(text);
    return result;
}
