#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/json/document.h"

static bool wanted(const struct cli *cli, const char *name)
{
    for (int i = 0; i < cli->metric_count; i++)
        if (strcmp(cli->metrics[i], name) == 0)
            return true;
    return cli->metric_count == 0;
}

static int check_metrics(const struct cli *cli)
{
    for (int i = 0; i < cli->metric_count; i++) {
        bool host = gputap_metric_find(GPUTAP_HOST, cli->metrics[i]) >= 0;
        if (gputap_metric_find(0, cli->metrics[i]) < 0 && !host) {
            fprintf(stderr, "gputap: there is no metric \"%s\"; gputap get lists them all\n", cli->metrics[i]);
            return EXIT_USAGE;
        }
        if (host && cli->gpu >= 0) {
            fprintf(stderr, "gputap: \"%s\" is a metric of the machine, not of a GPU: leave out --gpu\n", cli->metrics[i]);
            return EXIT_USAGE;
        }
    }
    return EXIT_FINE;
}

/* Which of a table's metrics were asked for. */
static int count_wanted(const struct cli *cli, int device)
{
    const gputap_metric *info;
    int count = 0;
    for (int metric = 0; (info = gputap_metric_info(device, metric)) != NULL; metric++)
        count += wanted(cli, info->name);
    return count;
}

static void print_metrics(gputap *tap, const struct cli *cli, int device)
{
    gputap_snapshot sample = GPUTAP_SNAPSHOT_INIT;
    const gputap_metric *info;
    int result = gputap_latest(tap, device, &sample);
    for (int metric = 0; (info = gputap_metric_info(device, metric)) != NULL; metric++) {
        char text[96];
        if (!wanted(cli, info->name))
            continue;
        double value = result == GPUTAP_OK ? gputap_snapshot_value(&sample, device == GPUTAP_HOST, metric) : (double)NAN;
        printf("  %-22s %s", info->name, print_value(text, sizeof text, info, value));
        if (isnan(value)) {
            int reason = gputap_reason(tap, device, metric);
            printf("  (%s)", gputap_reason_text(reason > 0 ? reason : GPUTAP_REASON_NOT_SAMPLED));
        }
        printf("\n");
    }
}

static void print_age(gputap *tap)
{
    char age[32];
    int bits = gputap_status(tap);
    if (!(bits & GPUTAP_STATUS_RUNNING))
        printf("STALE: the newest of these numbers are %s old, the broker is %s\n",
               print_duration(age, sizeof age, cli_newest_age(tap)), print_status(bits));
}

static int print_people(gputap *tap, const struct cli *cli)
{
    int count = gputap_device_count(tap);
    print_age(tap);
    for (int i = 0; i < count; i++) {
        gputap_device device = GPUTAP_DEVICE_INIT;
        char name[128];
        if ((cli->gpu >= 0 && cli->gpu != i) || count_wanted(cli, i) == 0 || gputap_device_info(tap, i, &device) != GPUTAP_OK)
            continue;
        printf("GPU %d: %s, %s, %s\n", i, print_device_name(name, sizeof name, &device), device.id,
               gputap_state_text((int)device.state));
        print_metrics(tap, cli, i);
    }
    bool host = cli->gpu < 0 && count_wanted(cli, GPUTAP_HOST) > 0;
    if (host) {
        printf("host\n");
        print_metrics(tap, cli, GPUTAP_HOST);
    }
    if (count > 0 || host)
        return EXIT_FINE;
    fprintf(stderr, "gputap: no GPU was found here\n");
    return EXIT_FAILED;
}

static void keep_wanted(const struct cli *cli, json_t *object)
{
    static const char *const parts[] = {"metrics", "unknown", "sources"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        json_t *part = json_object_get(object, parts[i]);
        const char *key;
        json_t *value;
        void *next;
        json_object_foreach_safe(part, next, key, value)
        {
            if (!wanted(cli, key))
                json_object_del(part, key);
        }
    }
}

/* The document is the whole machine; --gpu and METRIC leave out the rest of it. */
static void narrow(const struct cli *cli, json_t *document)
{
    json_t *gpus = json_object_get(document, "gpus");
    for (size_t i = json_array_size(gpus); i-- > 0;) {
        json_t *gpu = json_array_get(gpus, i);
        if (cli->gpu >= 0 && json_integer_value(json_object_get(gpu, "index")) != cli->gpu)
            json_array_remove(gpus, i);
        else
            keep_wanted(cli, gpu);
    }
    keep_wanted(cli, json_object_get(document, "system"));
}

int cli_print_snapshot(gputap *tap, const struct cli *cli)
{
    json_t *document = document_snapshot(tap);
    if (document)
        narrow(cli, document);
    return cli_print_document(stdout, document);
}

int cli_get(const struct cli *cli)
{
    gputap *tap;
    int result = check_metrics(cli);
    if (result == EXIT_FINE)
        result = cli_open(cli, &tap);
    if (result != EXIT_FINE)
        return result;
    result = cli_refuse_old(tap, cli);
    if (result == EXIT_FINE)
        result = cli_check_gpu(tap, cli->gpu);
    if (result == EXIT_FINE && cli->json)
        result = cli_print_snapshot(tap, cli);
    else if (result == EXIT_FINE)
        result = print_people(tap, cli);
    gputap_close(tap);
    return result;
}
