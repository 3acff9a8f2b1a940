/* What changes at every sample: the snapshot document and the history. */
#include "client/json/document.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/json/put.h"

#define NS_PER_MS 1000000u

static int metric_count(int device) { return device == GPUTAP_HOST ? GPUTAP_HOST_METRIC_COUNT : GPUTAP_METRIC_COUNT; }

int64_t document_now_ms(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int read_latest(gputap *tap, int device, gputap_snapshot *out)
{
    *out = (gputap_snapshot)GPUTAP_SNAPSHOT_INIT;
    return device == GPUTAP_HOST ? gputap_host_latest(tap, out) : gputap_latest(tap, device, out);
}

void document_moment_read(gputap *tap, int status, struct document_moment *moment)
{
    *moment = (struct document_moment){.status = status, .age_ms = -1};
    moment->attached = gputap_epoch(tap, moment->epoch) == GPUTAP_OK;
    moment->seq = gputap_tick(tap);
    uint64_t newest = 0, age = 0;
    int count = gputap_device_count(tap);
    for (int device = GPUTAP_HOST; device < count; device++) {
        gputap_snapshot snapshot;
        if (read_latest(tap, device, &snapshot) != GPUTAP_OK || (moment->sampled && snapshot.real_ns <= newest))
            continue;
        moment->sampled = true;
        newest = snapshot.real_ns;
        age = snapshot.age_ns;
    }
    moment->t_ms = moment->sampled ? (int64_t)(newest / NS_PER_MS) : document_now_ms();
    if (moment->sampled)
        moment->age_ms = (int64_t)(age / NS_PER_MS);
}

const char *document_state_text(const struct document_moment *moment)
{
    if (!moment->attached)
        return "absent";
    if (moment->status & GPUTAP_STATUS_RUNNING && !(moment->status & GPUTAP_STATUS_STALE))
        return "live";
    return moment->status & GPUTAP_STATUS_STALE ? "stale" : "dead";
}

void document_hostname(gputap *tap, char *out, size_t size)
{
    gputap_host host = GPUTAP_HOST_INIT;
    out[0] = '\0';
    if (gputap_host_info(tap, &host) == GPUTAP_OK && host.hostname[0] && strlen(host.hostname) < size)
        memcpy(out, host.hostname, strlen(host.hostname) + 1);
    else if (document_system_hostname(out, size) != 0)
        out[0] = '\0';
}

/* gputap_reason may not know yet what a snapshot already lacks. */
static const char *reason_text(gputap *tap, int device, int metric)
{
    int reason = gputap_reason(tap, device, metric);
    return gputap_reason_text(reason > 0 ? reason : GPUTAP_REASON_NOT_SAMPLED);
}

static void put_metrics(gputap *tap, int device, struct put *into)
{
    gputap_snapshot snapshot;
    bool known = read_latest(tap, device, &snapshot) == GPUTAP_OK;
    struct put metrics = put_begin(), unknown = put_begin(), sources = put_begin();
    for (int metric = 0; metric < metric_count(device); metric++) {
        const gputap_metric *info = gputap_metric_info(device, metric);
        if (!info)
            continue;
        json_t *value = known ? document_value(&snapshot, device, metric) : json_null();
        bool missing = json_is_null(value);
        put(&metrics, info->name, value);
        char source[32] = "";
        if (missing)
            put(&unknown, info->name, document_text(reason_text(tap, device, metric)));
        else if (device != GPUTAP_HOST && gputap_source(tap, device, metric, source, sizeof source) == GPUTAP_OK && source[0])
            put(&sources, info->name, document_text(source));
    }
    put(into, "metrics", put_end(&metrics));
    put(into, "unknown", put_end(&unknown));
    if (device != GPUTAP_HOST)
        put(into, "sources", put_end(&sources));
    else
        json_decref(put_end(&sources));
}

json_t *document_unknown(gputap *tap, int device)
{
    gputap_snapshot snapshot;
    bool known = read_latest(tap, device, &snapshot) == GPUTAP_OK;
    struct put unknown = put_begin();
    for (int metric = 0; metric < metric_count(device); metric++) {
        const gputap_metric *info = gputap_metric_info(device, metric);
        if (info && !(known && snapshot.valid[metric / 64] >> (metric % 64) & 1))
            put(&unknown, info->name, document_text(reason_text(tap, device, metric)));
    }
    return put_end(&unknown);
}

void document_identity(struct put *entry, gputap *tap, int device, gputap_device *facts)
{
    *facts = (gputap_device)GPUTAP_DEVICE_INIT;
    if (gputap_device_info(tap, device, facts) != GPUTAP_OK)
        facts->state = GPUTAP_DEVICE_GONE;
    put(entry, "index", json_integer(device));
    put(entry, "id", document_text(facts->id));
    put(entry, "pci", document_text(facts->pci));
    put(entry, "name", document_text(facts->name));
    put(entry, "vendor", document_text(facts->vendor));
    put(entry, "arch", document_text(facts->arch));
    put(entry, "pool", document_text(gputap_pool_text((int)facts->pool)));
    put(entry, "state", document_text(gputap_state_text((int)facts->state)));
    put(entry, "simulated", json_boolean(facts->simulated));
}

json_t *document_device(gputap *tap, int device)
{
    gputap_device facts;
    struct put entry = put_begin();
    document_identity(&entry, tap, device, &facts);
    put_metrics(tap, device, &entry);
    return put_end(&entry);
}

json_t *document_system(gputap *tap)
{
    struct put system = put_begin();
    put_metrics(tap, GPUTAP_HOST, &system);
    return put_end(&system);
}

static json_t *all_devices(gputap *tap)
{
    json_t *devices = json_array();
    int count = gputap_device_count(tap);
    for (int device = 0; device < count; device++) {
        gputap_device facts = GPUTAP_DEVICE_INIT;
        if (gputap_device_info(tap, device, &facts) == GPUTAP_OK)
            put_item(&devices, document_device(tap, device));
    }
    return devices;
}

json_t *document_epoch(const struct document_moment *moment)
{
    static const char digits[] = "0123456789abcdef";
    char text[33];
    if (!moment->attached)
        return json_null();
    for (int i = 0; i < 16; i++) {
        text[2 * i] = digits[moment->epoch[i] >> 4];
        text[2 * i + 1] = digits[moment->epoch[i] & 15];
    }
    text[32] = '\0';
    return json_string(text);
}

json_t *document_snapshot_at(gputap *tap, const struct document_moment *moment)
{
    char host[256];
    struct put snapshot = put_begin();
    document_hostname(tap, host, sizeof host);
    put(&snapshot, "v", json_integer(1));
    put(&snapshot, "host", document_text(host));
    put(&snapshot, "t", json_integer(moment->t_ms));
    put(&snapshot, "epoch", document_epoch(moment));
    put(&snapshot, "state", json_string(document_state_text(moment)));
    put(&snapshot, "age_ms", moment->age_ms < 0 ? json_null() : json_integer(moment->age_ms));
    put(&snapshot, "simulated", json_boolean(moment->status & GPUTAP_STATUS_SIMULATED));
    put(&snapshot, "gpus", all_devices(tap));
    put(&snapshot, "system", document_system(tap));
    return put_end(&snapshot);
}

json_t *document_snapshot(gputap *tap)
{
    struct document_moment moment;
    document_moment_read(tap, gputap_status(tap), &moment);
    return document_snapshot_at(tap, &moment);
}

static json_t *history_row(const double *row, int device, const int *metrics, int count)
{
    json_t *out = json_array();
    for (int i = 0; i < count; i++) {
        const gputap_metric *info = gputap_metric_info(device, metrics[i]);
        put_item(&out, document_number(row[i], info ? info->decimals : 0));
    }
    return out;
}

json_t *document_history(gputap *tap, int device, enum document_set set, int seconds, int points)
{
    int metrics[GPUTAP_METRIC_SLOTS];
    gputap_device facts = GPUTAP_DEVICE_INIT;
    if (device != GPUTAP_HOST)
        (void)gputap_device_info(tap, device, &facts);
    int count = document_set_metrics(set, device, metrics, GPUTAP_METRIC_SLOTS);
    int64_t *times = calloc((size_t)points, sizeof *times);
    double *rows = calloc((size_t)points * (size_t)(count ? count : 1), sizeof *rows);
    json_t *fields = json_array(), *t = json_array(), *values = json_array();
    int got = 0;
    if (times && rows && count > 0)
        got = gputap_history(tap, device, metrics, count, seconds, points, times, rows);
    for (int i = 0; i < count; i++)
        put_item(&fields, json_string(gputap_metric_info(device, metrics[i])->name));
    for (int i = 0; i < got; i++) {
        put_item(&t, json_integer(times[i]));
        put_item(&values, history_row(rows + (ptrdiff_t)i * count, device, metrics, count));
    }
    struct put history = put_begin();
    history.failed |= !times || !rows;
    put(&history, "type", json_string("history"));
    put(&history, "gpu", device == GPUTAP_HOST ? json_null() : json_integer(device));
    put(&history, "simulated", json_boolean(facts.simulated));
    put(&history, "fields", fields);
    put(&history, "t", t);
    put(&history, "rows", values);
    free(times);
    free(rows);
    return put_end(&history);
}
