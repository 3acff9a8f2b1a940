/* What the broker's loop waits on. */
#ifndef GPUTAP_BROKER_EVENTS_H
#define GPUTAP_BROKER_EVENTS_H

#include "broker/control.h"
#include "broker/pool.h"

struct events {
    int timer;
    int signals;
    uint64_t expirations; /* of the timer since the last wait */
    bool child_ended;
    bool stop;
    int ready[POOL_MAX_WORKERS];            /* workers with something to read */
    struct pollfd control[CONTROL_ENTRIES]; /* what control_handle is to look at */
    int control_count;
};

void events_open(struct events *events);
/* A periodic timer; the first expiration is first_ns from now. */
void events_start_timer(struct events *events, uint64_t period_ns, uint64_t first_ns);
/* Waits at most timeout_ns. Returns how many workers are ready, and sets the other members. */
int events_wait(struct events *events, const struct pool *pool, struct control *control, uint64_t timeout_ns);
/* Processor time of this process. */
uint64_t events_cpu_ns(void);

#endif
