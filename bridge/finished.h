/* The last spans that have ended, each with what it took on its GPUs, for clients that come later. */
#ifndef GPUTAP_BRIDGE_FINISHED_H
#define GPUTAP_BRIDGE_FINISHED_H

#include <jansson.h>

#include "gputap.h"

enum { FINISHED_SPANS = 200, FINISHED_DEVICES = 64 };

struct finished_span {
    uint8_t epoch[16];
    gputap_event end;    /* of type END, or the first USAGE where that came without one */
    gputap_usage *usage; /* one a device, `count` of them */
    int count;
};

struct finished {
    struct finished_span items[FINISHED_SPANS];
    uint64_t total; /* so far; the newest FINISHED_SPANS of them are kept */
};

void finished_free(struct finished *finished);
/* Takes END and USAGE, ignores the rest. */
void finished_take(struct finished *finished, const uint8_t epoch[16], const gputap_event *event);
/* Oldest first; NULL when memory ran out. */
json_t *finished_document(const struct finished *finished);

#endif
