/* What changes only with the devices or the broker: hello. */
#include "client/json/document.h"

#include <string.h>

#include "client/json/put.h"

const int document_periods[DOCUMENT_PERIODS] = {100, 200, 500, 1000, 2000, 5000};

static const char *const set_names[DOCUMENT_SETS] = {"capsule", "full", "host"};

const char *document_set_name(enum document_set set) { return set_names[set]; }

int document_set_find(const char *name)
{
    for (int set = 0; set < DOCUMENT_SETS; set++)
        if (strcmp(name, set_names[set]) == 0)
            return set;
    return -1;
}

int document_set_metrics(enum document_set set, int device, int *metrics, int limit)
{
    int count = 0;
    if (set == DOCUMENT_HOST && device != GPUTAP_HOST)
        return 0;
    for (int metric = 0; count < limit; metric++) {
        const gputap_metric *info = gputap_metric_info(device, metric);
        if (!info)
            break;
        if (set != DOCUMENT_CAPSULE || info->capsule)
            metrics[count++] = metric;
    }
    return count;
}

static json_t *set_fields(enum document_set set, int device)
{
    int metrics[GPUTAP_METRIC_SLOTS];
    int count = document_set_metrics(set, device, metrics, GPUTAP_METRIC_SLOTS);
    json_t *fields = json_array();
    for (int i = 0; i < count; i++)
        put_item(&fields, json_string(gputap_metric_info(device, metrics[i])->name));
    return fields;
}

static json_t *all_sets(void)
{
    struct put sets = put_begin();
    for (int set = 0; set < DOCUMENT_SETS; set++) {
        struct put columns = put_begin();
        put(&columns, "gpu", set_fields((enum document_set)set, 0));
        put(&columns, "host", set_fields((enum document_set)set, GPUTAP_HOST));
        put(&sets, set_names[set], put_end(&columns));
    }
    return put_end(&sets);
}

static void put_metric_tables(struct put *hello)
{
    struct put units = put_begin(), decimals = put_begin(), help = put_begin();
    for (int device = GPUTAP_HOST; device <= 0; device++)
        for (int metric = 0; gputap_metric_info(device, metric); metric++) {
            const gputap_metric *info = gputap_metric_info(device, metric);
            put(&units, info->name, json_string(info->unit));
            put(&decimals, info->name, json_integer(info->decimals));
            put(&help, info->name, json_string(info->help));
        }
    put(hello, "units", put_end(&units));
    put(hello, "decimals", put_end(&decimals));
    put(hello, "help", put_end(&help));
}

static json_t *positive(double value) { return value > 0 ? document_number(value, 1) : json_null(); }

static json_t *device_limits(const gputap_device *facts)
{
    struct put limits = put_begin();
    put(&limits, "gfx_clock_max", positive(facts->gfx_clock_max));
    put(&limits, "memory_clock_max", positive(facts->memory_clock_max));
    put(&limits, "temperature_edge_critical", positive(facts->temperature_edge_critical));
    put(&limits, "temperature_junction_critical", positive(facts->temperature_junction_critical));
    put(&limits, "temperature_memory_critical", positive(facts->temperature_memory_critical));
    put(&limits, "temperature_slowdown", positive(facts->temperature_slowdown));
    return put_end(&limits);
}

json_t *document_device_facts(gputap *tap, int device)
{
    gputap_device facts;
    struct put entry = put_begin();
    document_identity(&entry, tap, device, &facts);
    put(&entry, "uuid", document_text(facts.uuid));
    put(&entry, "driver", document_text(facts.driver));
    put(&entry, "driver_version", document_text(facts.driver_version));
    put(&entry, "vendor_id", positive(facts.vendor_id));
    put(&entry, "device_id", positive(facts.device_id));
    put(&entry, "revision", positive(facts.revision));
    put(&entry, "generation", json_integer(facts.generation));
    put(&entry, "compute_units", positive(facts.compute_units));
    put(&entry, "tgp", positive(facts.tgp_watts));
    put(&entry, "vram_type", document_text(facts.vram_type));
    put(&entry, "limits", device_limits(&facts));
    return put_end(&entry);
}

static json_t *all_facts(gputap *tap)
{
    json_t *devices = json_array();
    int count = gputap_device_count(tap);
    for (int device = 0; device < count; device++) {
        gputap_device facts = GPUTAP_DEVICE_INIT;
        if (gputap_device_info(tap, device, &facts) == GPUTAP_OK)
            put_item(&devices, document_device_facts(tap, device));
    }
    return devices;
}

static json_t *protocol_limits(void)
{
    struct put limits = put_begin();
    json_t *periods = json_array();
    for (int i = 0; i < DOCUMENT_PERIODS; i++)
        put_item(&periods, json_integer(document_periods[i]));
    put(&limits, "max_message", json_integer(DOCUMENT_MAX_MESSAGE));
    put(&limits, "messages_per_second", json_integer(DOCUMENT_MESSAGES_PER_SECOND));
    put(&limits, "periods", periods);
    put(&limits, "history_seconds", json_integer(DOCUMENT_HISTORY_SECONDS));
    return put_end(&limits);
}

static json_t *system_facts(const gputap_host *host)
{
    struct put system = put_begin();
    put(&system, "cpu_name", document_text(host->cpu_name));
    put(&system, "cpu_threads", positive(host->cpu_threads));
    put(&system, "kernel", document_text(host->kernel));
    put(&system, "os", document_text(host->os));
    return put_end(&system);
}

json_t *document_hello(gputap *tap, const struct document_moment *moment, enum document_set set, int period_ms)
{
    gputap_host host = GPUTAP_HOST_INIT;
    char hostname[256];
    if (gputap_host_info(tap, &host) != GPUTAP_OK)
        host = (gputap_host)GPUTAP_HOST_INIT;
    document_hostname(tap, hostname, sizeof hostname);
    struct put hello = put_begin();
    put(&hello, "type", json_string("hello"));
    put(&hello, "v", json_integer(1));
    put(&hello, "version", json_string(gputap_version()));
    put(&hello, "host", document_text(hostname));
    put(&hello, "boot", document_text(host.boot_id));
    put(&hello, "epoch", document_epoch(moment));
    put(&hello, "t", json_integer(document_now_ms()));
    put(&hello, "state", json_string(document_state_text(moment)));
    put(&hello, "simulated", json_boolean(moment->status & GPUTAP_STATUS_SIMULATED));
    put(&hello, "set", json_string(set_names[set]));
    put(&hello, "period", json_integer(period_ms));
    put(&hello, "fields", set_fields(set, 0));
    put(&hello, "host_fields", set_fields(set, GPUTAP_HOST));
    put(&hello, "sets", all_sets());
    put_metric_tables(&hello);
    put(&hello, "system", system_facts(&host));
    put(&hello, "devices", all_facts(tap));
    put(&hello, "limits", protocol_limits());
    return put_end(&hello);
}
