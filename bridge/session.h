/* One WebSocket client: what it asked for, and what it still has to be sent. Nothing is queued but flags, so a slow client costs
 * no memory and always gets the newest. */
#ifndef GPUTAP_BRIDGE_SESSION_H
#define GPUTAP_BRIDGE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/event_log.h"
#include "bridge/protocol.h"

struct bridge;
struct hub_class;
struct lws;

#define SESSION_PONGS 8
#define SESSION_STALL_MS 15000
#define SESSION_CLOSING_MS 2000

enum session_wants {
    SESSION_HELLO = 1,
    SESSION_SNAP = 2,
    SESSION_GAP = 4, /* over the pause that ends */
    SESSION_STATE = 8,
    SESSION_DEVICES = 16,
    SESSION_HISTORY = 32,
    SESSION_ERR = 64,
    SESSION_EVENT_GAP = 128 /* as SESSION_GAP, in events */
};

struct session {
    struct lws *wsi;
    struct bridge *bridge;
    struct session *next, *previous;
    struct hub_class *class; /* NULL while paused */
    bool open;               /* the handshake was done: CLOSED also comes for connections that never got so far */
    bool paused, bye_sent;
    bool listens;   /* to what sessions say; not while paused. See hub_listen */
    bool events;    /* it asked for that */
    bool watches;   /* who holds the GPUs; not while paused. See hub_watch */
    bool processes; /* it asked for that */
    unsigned wants; /* enum session_wants */
    enum document_set set;
    int period;
    struct protocol_devices devices;
    struct protocol_devices changed; /* devices whose state is to be told */
    uint64_t sent_number;            /* of the frames of its class */
    uint64_t sent_seq;
    bool seq_known;     /* sent_seq is of this epoch */
    uint64_t sent_list; /* of the lists of sessions */
    uint64_t sent_processes;
    struct event_position events_sent;
    int turn;         /* which of frame, list, events and processes is sent first when all wait */
    int64_t asked_ms; /* since when it owes us room for more, 0 = it does not */
    int history_device, history_seconds, history_points;
    int64_t pongs[SESSION_PONGS];
    int pong_count;
    int close_code; /* what to close with once the err is out; 0 = stay open */
    int64_t close_ms;
    const char *err_code, *err_text;
    struct protocol_rate rate;
    unsigned char *partial; /* a message that comes in pieces */
    size_t received;
};

void session_open(struct session *session, struct bridge *bridge, struct lws *wsi);
void session_close(struct session *session);
/* For libwebsockets: 0 go on, -1 close. */
int session_receive(struct session *session, const void *bytes, size_t length);
int session_write(struct session *session);

/* What of `wants` may be sent now; most has to wait while the client pauses. */
unsigned session_wants_now(const struct session *session);
/* Sends one message: 0 sent, 1 there was nothing to send after all, -1 failed. */
int session_send_next(struct session *session);
int session_send_bye(struct session *session);

/* Flags what is to be sent and asks for room. */
void session_want(struct session *session, unsigned wants);
void session_poke(struct session *session);
/* Ends a client that takes nothing. */
void session_check(struct session *session, int64_t now_ms);

#endif
