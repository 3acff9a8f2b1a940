/* What ties the broker's ticks to the clients: a thread waits for a tick or for something said by a session, and wakes the service
 * loop, which reads everything once and encodes a frame once a class. */
#ifndef GPUTAP_BRIDGE_HUB_H
#define GPUTAP_BRIDGE_HUB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bridge/annotations.h"
#include "bridge/frames.h"
#include "bridge/processes.h"
#include "bridge/session.h"

/* All clients that get the same bytes. */
struct hub_class {
    struct hub_class *next;
    int members;
    int period;
    enum document_set set;
    struct protocol_devices devices;
    struct buffer frame;
    uint64_t number; /* of the frame; counts what was due, so that a client knows how many it missed */
    uint64_t seq;
    uint64_t broker_gap; /* first tick that nobody was sent before this frame, 0 = none */
    int64_t due_ms;
};

struct hub_device {
    gputap_device facts;
    uint64_t valid[2];
    bool present;
};

struct hub {
    gputap *tap;
    struct document_moment moment; /* as of the last wake */
    const char *state;
    struct frames_sample sample;
    struct hub_device *devices; /* by device number */
    int device_count;
    struct hub_class *classes;
    struct session *sessions;
    int session_count;
    int asked_period; /* ms, of the broker; 0 = none */
    struct annotations annotations;
    struct processes processes;
    int64_t checked_ms, looked_ms;
    pthread_t waiter;
    bool waiting;
    atomic_bool ended;
    atomic_bool prompt; /* somebody listens to what sessions say */
    atomic_bool hurry;  /* there is more of it than one update took */
    void (*wake)(void *context);
    void *wake_context;
};

struct hub_config {
    gputap *tap;
    bool show_all;
    uint32_t uid; /* whose sessions and processes are shown in any case */
    void (*wake)(void *context);
    void *wake_context;
};
int hub_start(struct hub *hub, const struct hub_config *config);
void hub_stop(struct hub *hub);
/* In the service loop, at each wake. */
void hub_update(struct hub *hub);
/* The newest moment, for a document that is made now. */
void hub_moment(struct hub *hub, struct document_moment *moment);

void hub_add(struct hub *hub, struct session *session);
void hub_remove(struct hub *hub, struct session *session);
/* Puts a client into the class of its subscription; false when memory ran out. */
bool hub_join(struct hub *hub, struct session *session);
void hub_leave(struct hub *hub, struct session *session);
/* Does a client want to hear what sessions say? Counted here, so that nothing is encoded for nobody. */
void hub_listen(struct hub *hub, struct session *session, bool listens);
/* The same for who holds the GPUs. */
void hub_watch(struct hub *hub, struct session *session, bool watches);

/* A clock that never jumps. */
int64_t hub_now_ms(void);

#endif
