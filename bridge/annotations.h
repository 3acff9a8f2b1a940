/* What the processes of this machine say they do, from shared memory to messages that all clients share: `sessions`, the whole list
 * whenever it changed, and `event`. Where no session is open and nothing was said, an update reads one ring's head. */
#ifndef GPUTAP_BRIDGE_ANNOTATIONS_H
#define GPUTAP_BRIDGE_ANNOTATIONS_H

#include <jansson.h>

#include "bridge/event_log.h"
#include "bridge/finished.h"
#include "gputap.h"

enum {
    ANNOTATIONS_SLOTS = 256,
    ANNOTATIONS_STEPS_MS = 100 /* progress and gauges change a list no more often than this */
};

/* A session as it was last seen. */
struct annotations_session {
    gputap_session session;
    int count;
    gputap_span spans[GPUTAP_MAX_SPANS];
};

struct annotations_slot {
    struct annotations_session *open; /* NULL: none, or not to be shown */
    bool hidden;                      /* another user's */
    uint32_t generation;              /* that the label belongs to */
    char label[48];                   /* an END of a client that died comes when its slot has no label any more */
};

struct annotations {
    gputap *tap;
    bool show_all;
    uint32_t uid; /* whose sessions are shown */
    int listeners;
    gputap_cursor cursor;
    bool placed; /* the cursor is */
    uint32_t restarts;
    uint64_t lost; /* of the cursor, as told */
    uint8_t epoch[16];
    struct annotations_slot slots[ANNOTATIONS_SLOTS];
    int open, hidden;   /* how many of the slots are */
    bool look, pending; /* every slot is to be looked at; the list has changed and was not encoded yet */
    int64_t due_ms;     /* when progress may next be told */
    uint64_t number;    /* of the list */
    struct buffer list;
    struct finished finished;
    struct event_log log;
    bool backlog; /* there are more events than one update took */
};

void annotations_start(struct annotations *annotations, gputap *tap, bool show_all, uint32_t uid);
void annotations_stop(struct annotations *annotations);
/* A client wants them, or no longer does. Without clients nothing is encoded. */
void annotations_listen(struct annotations *annotations, int change);
/* Reads what is new. True if a list or events are to be sent. */
bool annotations_update(struct annotations *annotations, int64_t now_ms);

/* As of this moment, read anew: members `sessions` and `hidden` are set in an object, -1 when memory ran out. */
int annotations_put(const struct annotations *annotations, json_t *into);
/* GET /api/v1/sessions. */
json_t *annotations_document(const struct annotations *annotations);

#endif
