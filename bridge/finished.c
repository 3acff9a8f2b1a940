#include "bridge/finished.h"

#include <stdlib.h>
#include <string.h>

#include "client/json/document.h"

void finished_free(struct finished *finished)
{
    for (int i = 0; i < FINISHED_SPANS; i++)
        free(finished->items[i].usage);
    memset(finished, 0, sizeof *finished);
}

static uint64_t kept(const struct finished *finished)
{
    return finished->total < FINISHED_SPANS ? finished->total : FINISHED_SPANS;
}

/* Usage comes soon after the end, so the search begins at the newest. */
static struct finished_span *find(struct finished *finished, const uint8_t epoch[16], const gputap_event *event)
{
    for (uint64_t back = 1; back <= kept(finished); back++) {
        struct finished_span *span = &finished->items[(finished->total - back) % FINISHED_SPANS];
        if (span->end.span == event->span && span->end.slot == event->slot && span->end.generation == event->generation &&
            memcmp(span->epoch, epoch, sizeof span->epoch) == 0)
            return span;
    }
    return NULL;
}

static struct finished_span *add(struct finished *finished, const uint8_t epoch[16], const gputap_event *event)
{
    struct finished_span *span = &finished->items[finished->total++ % FINISHED_SPANS];
    free(span->usage);
    *span = (struct finished_span){.end = *event};
    memcpy(span->epoch, epoch, sizeof span->epoch);
    return span;
}

static void add_usage(struct finished_span *span, const gputap_usage *usage)
{
    if (span->count == FINISHED_DEVICES)
        return;
    gputap_usage *grown = realloc(span->usage, (size_t)(span->count + 1) * sizeof *grown);
    if (!grown)
        return;
    grown[span->count++] = *usage;
    span->usage = grown;
}

void finished_take(struct finished *finished, const uint8_t epoch[16], const gputap_event *event)
{
    if (event->type != GPUTAP_EVENT_END && event->type != GPUTAP_EVENT_USAGE)
        return;
    struct finished_span *span = find(finished, epoch, event);
    if (!span)
        span = add(finished, epoch, event);
    if (event->type == GPUTAP_EVENT_USAGE)
        add_usage(span, &event->usage);
}

/* The END as it was told, with its type left out, and `epoch` and `usage` added. */
static json_t *span_document(const struct finished_span *span)
{
    gputap_event end = span->end;
    if (end.type == GPUTAP_EVENT_USAGE)
        end.seconds = end.usage.seconds;
    end.type = GPUTAP_EVENT_END;
    struct document_moment moment = {.attached = true};
    memcpy(moment.epoch, span->epoch, sizeof moment.epoch);
    json_t *document = document_event(&end), *usage = json_array();
    bool failed = json_object_del(document, "type") != 0 || json_object_set_new(document, "epoch", document_epoch(&moment)) != 0;
    for (int i = 0; i < span->count; i++)
        failed |= json_array_append_new(usage, document_usage(&span->usage[i])) != 0;
    failed |= json_object_set_new(document, "usage", usage) != 0;
    if (!failed)
        return document;
    json_decref(document);
    return NULL;
}

json_t *finished_document(const struct finished *finished)
{
    json_t *list = json_array();
    for (uint64_t at = finished->total - kept(finished); at != finished->total; at++)
        if (json_array_append_new(list, span_document(&finished->items[at % FINISHED_SPANS])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}
