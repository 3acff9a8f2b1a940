/* The last events as they are sent: encoded once, shared by all clients, bounded in number and bytes. A client keeps a position in
 * it and is told how many events it was too slow for. */
#ifndef GPUTAP_BRIDGE_EVENT_LOG_H
#define GPUTAP_BRIDGE_EVENT_LOG_H

#include "bridge/buffer.h"

enum { EVENT_LOG_BATCHES = 64, EVENT_LOG_BYTES = 512 * 1024 };

struct event_batch {
    struct buffer text;
    uint64_t first, end; /* numbers of its events */
};

struct event_log {
    struct event_batch items[EVENT_LOG_BATCHES];
    uint64_t oldest, next; /* batches by number: kept are oldest .. next - 1 */
    uint64_t events;       /* number of the event that comes next */
    size_t bytes;
};

/* Where a client is. */
struct event_position {
    uint64_t batch;
    uint64_t event;
};

void event_log_free(struct event_log *log);
/* Takes over the text of `count` events. What failed to be encoded counts as lost. */
void event_log_add(struct event_log *log, struct buffer *text, uint64_t count);
/* Events that were but are in no batch. */
void event_log_lose(struct event_log *log, uint64_t count);

void event_log_newest(const struct event_log *log, struct event_position *position);
bool event_log_behind(const struct event_log *log, const struct event_position *position);
/* How many events the client at this position will never get before the next batch; it is moved over them. */
uint64_t event_log_missed(const struct event_log *log, struct event_position *position);
/* The next batch, NULL at the end. */
const struct buffer *event_log_take(const struct event_log *log, struct event_position *position);

#endif
