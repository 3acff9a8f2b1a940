#include "bridge/annotations.h"

#include <stdlib.h>
#include <string.h>

#include "client/json/document.h"

/* One update takes so many events, so that a process that never stops talking does not hold up the samples. */
#define EVENTS_AN_UPDATE 128
/* What may lie in the ring when the bridge starts, and then some. */
#define EVENTS_AT_START 16384

static bool shown(const struct annotations *annotations, uint32_t uid) { return annotations->show_all || uid == annotations->uid; }

static int slot_count(const struct annotations *annotations)
{
    int count = gputap_session_slots(annotations->tap);
    return count < ANNOTATIONS_SLOTS ? count : ANNOTATIONS_SLOTS;
}

/* ---- events ---- */

/* The label of a session whose slot has lost it already. */
static void keep_label(struct annotations *annotations, gputap_event *event)
{
    if (event->slot < 0 || event->slot >= ANNOTATIONS_SLOTS)
        return;
    struct annotations_slot *slot = &annotations->slots[event->slot];
    bool names = event->type == GPUTAP_EVENT_ATTACH || event->type == GPUTAP_EVENT_DETACH;
    const char *label = names ? event->name : event->label;
    if (label[0]) {
        slot->generation = event->generation;
        memset(slot->label, 0, sizeof slot->label);
        memcpy(slot->label, label, strnlen(label, sizeof slot->label - 1));
    }
    if (slot->generation == event->generation)
        memcpy(event->label, slot->label, sizeof event->label);
}

static void follow_epoch(struct annotations *annotations)
{
    if (annotations->cursor.restarts == annotations->restarts)
        return;
    annotations->restarts = annotations->cursor.restarts;
    annotations->lost = 0;
    annotations->look = true;
    gputap_epoch(annotations->tap, annotations->epoch);
    for (int i = 0; i < ANNOTATIONS_SLOTS; i++)
        annotations->slots[i].label[0] = '\0';
}

static bool place_cursor(struct annotations *annotations)
{
    if (!annotations->placed) {
        annotations->placed = gputap_event_cursor_init(annotations->tap, &annotations->cursor, GPUTAP_FROM_OLDEST) == GPUTAP_OK;
        annotations->look = annotations->placed;
        annotations->restarts = annotations->cursor.restarts;
        gputap_epoch(annotations->tap, annotations->epoch);
    }
    return annotations->placed;
}

static json_t *epoch_document(const uint8_t epoch[16])
{
    struct document_moment moment = {.attached = true};
    memcpy(moment.epoch, epoch, sizeof moment.epoch);
    return document_epoch(&moment);
}

/* Adds an event to the batch that is being made. */
static void encode(struct annotations *annotations, const gputap_event *event, struct buffer *batch, uint64_t count)
{
    if (count == 0) {
        buffer_text(batch, "{\"type\":\"event\",\"epoch\":");
        buffer_json(batch, epoch_document(annotations->epoch));
        buffer_text(batch, ",\"events\":[");
    } else {
        buffer_text(batch, ",");
    }
    buffer_json(batch, document_event(event));
}

/* Steps are told by the list alone, which carries the newest. */
static bool told_as_event(const struct annotations *annotations, const gputap_event *event)
{
    return event->type != GPUTAP_EVENT_STEP && shown(annotations, event->uid);
}

static void take_event(struct annotations *annotations, gputap_event *event, struct buffer *batch, uint64_t *count)
{
    annotations->look |= event->type == GPUTAP_EVENT_ATTACH || event->type == GPUTAP_EVENT_DETACH;
    keep_label(annotations, event);
    if (!told_as_event(annotations, event))
        return;
    finished_take(&annotations->finished, annotations->epoch, event);
    if (annotations->listeners > 0)
        encode(annotations, event, batch, (*count)++);
    else
        event_log_lose(&annotations->log, 1);
}

static void tell_lost(struct annotations *annotations)
{
    if (annotations->cursor.lost == annotations->lost)
        return;
    event_log_lose(&annotations->log, annotations->cursor.lost - annotations->lost);
    annotations->lost = annotations->cursor.lost;
    annotations->look = true;
}

static void take_events(struct annotations *annotations, int limit)
{
    gputap_event event;
    struct buffer batch = {0};
    uint64_t count = 0;
    int taken = 0;
    for (; taken < limit; taken++) {
        event = (gputap_event)GPUTAP_EVENT_INIT;
        if (gputap_next_event(annotations->tap, &annotations->cursor, &event) != 1)
            break;
        follow_epoch(annotations);
        tell_lost(annotations);
        take_event(annotations, &event, &batch, &count);
    }
    follow_epoch(annotations);
    annotations->backlog = taken == limit;
    if (count > 0) {
        buffer_text(&batch, "]}");
        event_log_add(&annotations->log, &batch, count);
    }
    buffer_free(&batch);
}

/* ---- the list ---- */

static bool same_list(const struct annotations_session *a, const struct annotations_session *b)
{
    bool same = a->count == b->count && a->session.generation == b->session.generation &&
                a->session.gauge_count == b->session.gauge_count && strcmp(a->session.label, b->session.label) == 0;
    for (int i = 0; same && i < a->count; i++)
        same = a->spans[i].id == b->spans[i].id;
    return same;
}

static bool same_gauge(const gputap_gauge_value *a, const gputap_gauge_value *b)
{
    return a->device == b->device && a->allocated == b->allocated && a->reserved == b->reserved && a->dynamic == b->dynamic;
}

/* Of two of the same list. */
static bool same_numbers(const struct annotations_session *a, const struct annotations_session *b)
{
    bool same = a->session.dropped == b->session.dropped && a->session.lost == b->session.lost &&
                a->session.rejected == b->session.rejected && a->session.ended == b->session.ended;
    for (uint32_t i = 0; same && i < a->session.gauge_count && i < GPUTAP_MAX_GAUGES; i++)
        same = same_gauge(&a->session.gauges[i], &b->session.gauges[i]);
    for (int i = 0; same && i < a->count; i++)
        same = memcmp(&a->spans[i].value, &b->spans[i].value, sizeof a->spans[i].value) == 0 &&
               memcmp(&a->spans[i].max, &b->spans[i].max, sizeof a->spans[i].max) == 0 && a->spans[i].shared == b->spans[i].shared;
    return same;
}

/* 1 a session to be shown, 0 none, -1 another user's, -2 not readable just now. */
static int read_session(const struct annotations *annotations, int slot, struct annotations_session *out)
{
    out->session = (gputap_session)GPUTAP_SESSION_INIT;
    out->count = gputap_session_info(annotations->tap, slot, &out->session, out->spans, GPUTAP_MAX_SPANS);
    if (out->count < 0)
        return out->count == GPUTAP_EAGAIN ? -2 : 0;
    return shown(annotations, out->session.uid) ? 1 : -1;
}

enum difference { NOTHING, NUMBERS, LIST };

static enum difference keep_session(struct annotations *annotations, struct annotations_slot *slot,
                                    const struct annotations_session *fresh)
{
    enum difference difference = LIST;
    if (!slot->open) {
        slot->open = malloc(sizeof *slot->open);
        if (!slot->open)
            return NOTHING;
        annotations->open++;
    } else if (same_list(slot->open, fresh)) {
        difference = same_numbers(slot->open, fresh) ? NOTHING : NUMBERS;
    }
    *slot->open = *fresh;
    return difference;
}

static enum difference drop_session(struct annotations *annotations, struct annotations_slot *slot)
{
    if (!slot->open)
        return NOTHING;
    free(slot->open);
    slot->open = NULL;
    annotations->open--;
    return LIST;
}

static enum difference look_at(struct annotations *annotations, int at)
{
    struct annotations_slot *slot = &annotations->slots[at];
    struct annotations_session fresh;
    int what = at < slot_count(annotations) ? read_session(annotations, at, &fresh) : 0;
    if (what == -2)
        return NOTHING;
    enum difference difference = what == 1 ? keep_session(annotations, slot, &fresh) : drop_session(annotations, slot);
    if (slot->hidden != (what == -1)) {
        slot->hidden = what == -1;
        annotations->hidden += slot->hidden ? 1 : -1;
        difference = LIST;
    }
    return difference;
}

static enum difference look_at_all(struct annotations *annotations)
{
    enum difference most = NOTHING;
    bool everywhere = annotations->look;
    annotations->look = false;
    if (!everywhere && annotations->open == 0)
        return NOTHING;
    for (int i = 0; i < ANNOTATIONS_SLOTS; i++) {
        enum difference one = everywhere || annotations->slots[i].open ? look_at(annotations, i) : NOTHING;
        most = one > most ? one : most;
    }
    return most;
}

static void put_head(const struct annotations *annotations, struct buffer *out)
{
    buffer_format(out, "{\"type\":\"sessions\",\"t\":%lld,\"epoch\":", (long long)document_now_ms());
    buffer_json(out, epoch_document(annotations->epoch));
}

static bool encode_list(struct annotations *annotations)
{
    struct buffer *out = &annotations->list;
    const char *between = "";
    buffer_clear(out);
    put_head(annotations, out);
    buffer_text(out, ",\"sessions\":[");
    for (int i = 0; i < ANNOTATIONS_SLOTS; i++) {
        const struct annotations_session *open = annotations->slots[i].open;
        if (!open)
            continue;
        buffer_text(out, between);
        buffer_json(out, document_session(&open->session, open->spans, open->count));
        between = ",";
    }
    buffer_format(out, "],\"hidden\":%d}", annotations->hidden);
    return !out->failed;
}

/* Progress waits for its turn, what begins and ends does not. The turn is counted from when it should have been. */
static bool list_is_due(struct annotations *annotations, enum difference difference, int64_t now_ms)
{
    int64_t since = now_ms - annotations->due_ms;
    annotations->pending |= difference != NOTHING;
    if (!annotations->pending || (difference != LIST && since < 0))
        return false;
    annotations->due_ms =
        since < ANNOTATIONS_STEPS_MS && since >= 0 ? annotations->due_ms + ANNOTATIONS_STEPS_MS : now_ms + ANNOTATIONS_STEPS_MS;
    annotations->pending = false;
    return true;
}

bool annotations_update(struct annotations *annotations, int64_t now_ms)
{
    if (!place_cursor(annotations))
        return false;
    uint64_t before = annotations->log.events;
    take_events(annotations, EVENTS_AN_UPDATE);
    if (annotations->listeners == 0)
        return false;
    bool list = list_is_due(annotations, look_at_all(annotations), now_ms);
    if (list && encode_list(annotations))
        annotations->number++;
    return list || annotations->log.events != before;
}

/* ---- its life, and documents of this moment ---- */

void annotations_start(struct annotations *annotations, gputap *tap, bool show_all, uint32_t uid)
{
    *annotations = (struct annotations){.tap = tap, .show_all = show_all, .uid = uid};
    if (place_cursor(annotations))
        take_events(annotations, EVENTS_AT_START);
}

void annotations_stop(struct annotations *annotations)
{
    for (int i = 0; i < ANNOTATIONS_SLOTS; i++)
        free(annotations->slots[i].open);
    buffer_free(&annotations->list);
    finished_free(&annotations->finished);
    event_log_free(&annotations->log);
}

void annotations_listen(struct annotations *annotations, int change)
{
    annotations->look |= annotations->listeners == 0;
    annotations->listeners += change;
}

int annotations_put(const struct annotations *annotations, json_t *into)
{
    json_t *list = json_array();
    int hidden = 0, count = slot_count(annotations);
    struct annotations_session session;
    bool failed = false;
    for (int i = 0; i < count; i++) {
        int what = read_session(annotations, i, &session);
        hidden += what == -1;
        if (what == 1)
            failed |= json_array_append_new(list, document_session(&session.session, session.spans, session.count)) != 0;
    }
    failed |= json_object_set_new(into, "sessions", list) != 0;
    failed |= json_object_set_new(into, "hidden", json_integer(hidden)) != 0;
    return failed ? -1 : 0;
}

json_t *annotations_document(const struct annotations *annotations)
{
    uint8_t epoch[16];
    bool attached = gputap_epoch(annotations->tap, epoch) == GPUTAP_OK;
    json_t *document = json_object();
    bool failed = json_object_set_new(document, "v", json_integer(1)) != 0;
    failed |= json_object_set_new(document, "t", json_integer(document_now_ms())) != 0;
    failed |= json_object_set_new(document, "epoch", attached ? epoch_document(epoch) : json_null()) != 0;
    failed |= annotations_put(annotations, document) != 0;
    failed |= json_object_set_new(document, "finished", finished_document(&annotations->finished)) != 0;
    if (!failed)
        return document;
    json_decref(document);
    return NULL;
}
