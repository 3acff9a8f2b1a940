/* Who holds which GPU, from shared memory to the message `processes`, encoded once for all clients that asked for it: whenever it
 * changed, but once a second at most. Where nobody asked nothing is read. */
#ifndef GPUTAP_BRIDGE_PROCESSES_H
#define GPUTAP_BRIDGE_PROCESSES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bridge/buffer.h"
#include "gputap.h"

enum { PROCESSES_EVERY_MS = 1000 };

struct processes {
    gputap *tap;
    int64_t uid; /* whose are shown, -1 = everybody's */
    int listeners;
    int64_t due_ms;     /* when to look again */
    uint64_t number;    /* of the message */
    struct buffer gpus; /* as last told */
    struct buffer message;
};

void processes_start(struct processes *processes, gputap *tap, bool show_all, uint32_t uid);
void processes_stop(struct processes *processes);
/* A client wants them, or no longer does. */
void processes_listen(struct processes *processes, int change);
/* True if there is a new message. */
bool processes_update(struct processes *processes, int64_t now_ms);
/* What is known now, as "processes" of a snapshot. 0, or -1 when memory ran out. */
int processes_put(const struct processes *processes, json_t *into);

#endif
