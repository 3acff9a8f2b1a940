/* The control socket: who is there, which memory and doorbell each has, how fast each wants samples. Nothing here waits for a
 * client. */
#ifndef GPUTAP_BROKER_CONTROL_H
#define GPUTAP_BROKER_CONTROL_H

#include <poll.h>

#include "broker/sessions.h"

enum {
    CONTROL_MAX_CLIENTS = 128,
    CONTROL_MAX_A_USER = 64,      /* connections */
    CONTROL_SESSIONS_A_USER = 32, /* of LAYOUT_SESSION_SLOTS */
    CONTROL_ENTRIES = 1 + 3 * CONTROL_MAX_CLIENTS
};

enum control_client_state { CLIENT_FREE, CLIENT_SILENT, CLIENT_GRANTED };

struct control_client {
    enum control_client_state state;
    int socket, bell, process; /* -1 = none; process: readable when it is gone */
    int slot;                  /* of its session, -1 = none */
    const void *memory;
    uint32_t pid, uid;
    uint64_t wish_ns;    /* period, 0 = none */
    uint64_t since_ns;   /* connected */
    uint64_t deaf_until; /* it was heard within the last millisecond */
};

/* How often a user connected lately. */
struct control_rate {
    bool used;
    uint32_t uid;
    double budget;
    uint64_t budget_ns;
};

struct control {
    struct sessions *sessions;
    int listener; /* -1 = none */
    uint64_t inode;
    char path[108];
    int told; /* errno that the log has already */
    uint64_t min_period_ns;
    uint64_t deaf_until; /* no connection is accepted before */
    int used;            /* clients that are not free */
    struct control_client clients[CONTROL_MAX_CLIENTS];
    struct control_rate rates[32];
    uint64_t refused;
    int owner[CONTROL_ENTRIES]; /* client of a poll entry, -1 = the listener */
};

void control_init(struct control *control, struct sessions *sessions, uint64_t min_period_ns);
/* Opens the socket in the broker's folder: 0666 so that anybody may annotate, or 0660 for a group. Without it everything else goes
 * on. Does nothing where it is open and in place. */
void control_listen(struct control *control, const char *directory, int64_t group);
void control_close(struct control *control);
/* Fills poll entries, at most CONTROL_ENTRIES. */
int control_poll_entries(struct control *control, struct pollfd *entries, uint64_t now_ns);
/* Deals with the answers to those entries. */
void control_handle(struct control *control, const struct pollfd *entries, int count, uint64_t now_ns);
/* When a client that was just heard is to be listened to again, or a silent one to be dropped. UINT64_MAX = never. */
uint64_t control_next_wake(const struct control *control);
/* Drops clients that never said HELLO. */
void control_tend(struct control *control, uint64_t now_ns);
/* The fastest period that anybody wishes for, 0 = nobody does. */
uint64_t control_wish(const struct control *control);

#endif
