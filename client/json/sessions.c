/* What runs, what was said, and what it took. */
#include <math.h>
#include <stdio.h>

#include "client/json/document.h"
#include "client/json/put.h"

static json_t *id_of(uint64_t id) { return id ? document_count(id) : json_null(); }

/* null = all of them. */
static json_t *gpus_of(const int16_t *devices, int count)
{
    if (count == 0)
        return json_null();
    json_t *gpus = json_array();
    for (int i = 0; i < count && i < GPUTAP_SPAN_DEVICES; i++)
        put_item(&gpus, json_integer(devices[i]));
    return gpus;
}

static void put_progress(struct put *into, double value, double max)
{
    bool told = max > 0 || value != 0;
    put(into, "value", told ? document_number(value, 3) : json_null());
    put(into, "max", max > 0 ? document_number(max, 3) : json_null());
}

static json_t *document_span(const gputap_span *span)
{
    struct put entry = put_begin();
    put(&entry, "id", id_of(span->id));
    put(&entry, "parent", id_of(span->parent));
    put(&entry, "job", document_text(span->job));
    put(&entry, "node", document_text(span->node));
    put(&entry, "name", document_text(span->name));
    put_progress(&entry, span->value, span->max);
    put(&entry, "start", json_integer(span->start_ms));
    put(&entry, "seconds", document_number(span->seconds, 2));
    put(&entry, "gpus", gpus_of(span->devices, span->device_count));
    put(&entry, "shared", json_boolean(span->shared));
    return put_end(&entry);
}

static json_t *document_gauge(const gputap_gauge_value *gauge)
{
    struct put entry = put_begin();
    put(&entry, "gpu", json_integer(gauge->device));
    put(&entry, "allocated", document_bytes(gauge->allocated));
    put(&entry, "reserved", document_bytes(gauge->reserved));
    put(&entry, "dynamic", document_bytes(gauge->dynamic));
    return put_end(&entry);
}

json_t *document_session(const gputap_session *session, const gputap_span *spans, int count)
{
    struct put entry = put_begin();
    json_t *gauges = json_array(), *open = json_array();
    put(&entry, "slot", json_integer(session->slot));
    put(&entry, "generation", json_integer(session->generation));
    put(&entry, "pid", json_integer(session->pid));
    put(&entry, "uid", json_integer(session->uid));
    put(&entry, "label", document_text(session->label));
    put(&entry, "comm", document_text(session->comm));
    put(&entry, "since", json_integer(session->since_ms));
    put(&entry, "dropped", document_count(session->dropped));
    put(&entry, "lost", document_count(session->lost));
    put(&entry, "rejected", document_count(session->rejected));
    put(&entry, "ended", document_count(session->ended));
    for (uint32_t i = 0; i < session->gauge_count && i < GPUTAP_MAX_GAUGES; i++)
        put_item(&gauges, document_gauge(&session->gauges[i]));
    put(&entry, "gauges", gauges);
    for (int i = 0; i < count; i++)
        put_item(&open, document_span(&spans[i]));
    put(&entry, "spans", open);
    return put_end(&entry);
}

json_t *document_sessions(gputap *tap, int64_t uid)
{
    json_t *sessions = json_array();
    int slots = gputap_session_slots(tap);
    for (int slot = 0; slot < slots; slot++) {
        gputap_session session = GPUTAP_SESSION_INIT;
        gputap_span spans[GPUTAP_MAX_SPANS];
        int count = gputap_session_info(tap, slot, &session, spans, GPUTAP_MAX_SPANS);
        if (count >= 0 && (uid < 0 || (uint32_t)uid == session.uid))
            put_item(&sessions, document_session(&session, spans, count));
    }
    return sessions;
}

json_t *document_usage(const gputap_usage *usage)
{
    struct put entry = put_begin();
    put(&entry, "gpu", usage->device < 0 ? json_null() : json_integer(usage->device));
    put(&entry, "seconds", document_number(usage->seconds, 2));
    put(&entry, "sampled_seconds", document_number(usage->sampled_seconds, 2));
    put(&entry, "energy", document_number(usage->energy, 2));
    put(&entry, "net_energy", document_number(usage->net_energy, 2));
    put(&entry, "busy_mean", document_number(usage->busy_mean, 1));
    put(&entry, "busy_peak", document_number(usage->busy_peak, 1));
    put(&entry, "throttled_seconds", document_number(usage->throttled_seconds, 2));
    put(&entry, "vram_mean", document_number(round(usage->vram_mean), 0));
    put(&entry, "vram_peak", document_number(usage->vram_peak, 0));
    put(&entry, "unified_peak", document_number(usage->unified_peak, 0));
    put(&entry, "own_vram_peak", document_number(usage->own_vram_peak, 0));
    put(&entry, "temperature_peak", document_number(usage->temperature_peak, 1));
    put(&entry, "samples", document_count(usage->samples));
    put(&entry, "partial", json_boolean(usage->flags & GPUTAP_USAGE_PARTIAL));
    put(&entry, "estimated", json_boolean(usage->flags & GPUTAP_USAGE_ESTIMATED));
    put(&entry, "shared", json_boolean(usage->flags & GPUTAP_USAGE_SHARED));
    put(&entry, "unified", json_boolean(usage->flags & GPUTAP_USAGE_UNIFIED));
    return put_end(&entry);
}

const char *document_event_type(uint32_t type)
{
    switch (type) {
    case GPUTAP_EVENT_ATTACH: return "attach";
    case GPUTAP_EVENT_DETACH: return "detach";
    case GPUTAP_EVENT_BEGIN: return "begin";
    case GPUTAP_EVENT_STEP: return "step";
    case GPUTAP_EVENT_END: return "end";
    case GPUTAP_EVENT_INSTANT: return "instant";
    case GPUTAP_EVENT_USAGE: return "usage";
    default: return "unknown";
    }
}

json_t *document_event(const gputap_event *event)
{
    char session[32];
    struct put entry = put_begin();
    snprintf(session, sizeof session, "%d.%u", event->slot, event->generation);
    put(&entry, "type", json_string(document_event_type(event->type)));
    put(&entry, "t", json_integer(event->real_ms));
    put(&entry, "session", json_string(session));
    put(&entry, "label", document_text(event->label));
    put(&entry, "pid", json_integer(event->pid));
    put(&entry, "uid", json_integer(event->uid));
    put(&entry, "span", id_of(event->span));
    put(&entry, "parent", id_of(event->parent));
    put(&entry, "gpus", gpus_of(event->devices, event->device_count));
    put(&entry, "job", document_text(event->job));
    put(&entry, "node", document_text(event->node));
    put(&entry, "name", document_text(event->name));
    put_progress(&entry, event->value, event->max);
    put(&entry, "seconds", document_number(event->seconds, 2));
    put(&entry, "abandoned", json_boolean(event->flags & GPUTAP_EVENT_ABANDONED));
    put(&entry, "recovered", json_boolean(event->flags & GPUTAP_EVENT_RECOVERED));
    if (event->type == GPUTAP_EVENT_USAGE)
        put(&entry, "usage", document_usage(&event->usage));
    return put_end(&entry);
}
