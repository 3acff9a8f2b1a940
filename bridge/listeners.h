/* Our own listening sockets. libwebsockets 4.1 would bind every address where one was asked for, so it is given connections that
 * are already accepted and counted. */
#ifndef GPUTAP_BRIDGE_LISTENERS_H
#define GPUTAP_BRIDGE_LISTENERS_H

#include <stdbool.h>

#include "bridge/address.h"
#include "bridge/guard.h"
#include "bridge/options.h"

#define LISTENERS_MOST (2 * OPTIONS_LIST + 2)
#define LISTENERS_PORT 8288

struct listener {
    int fd;
    struct guard_local local; /* as bound */
};

struct listeners {
    struct listener item[LISTENERS_MOST];
    int count;
};

/* One accepted connection; the place in the table is freed by listeners_release. */
struct peer {
    bool used;
    int fd;
    struct guard_local local;
    struct address_key from;
    bool counted;   /* against the limit of its address */
    bool websocket; /* the handshake was done */
};

struct peers {
    struct peer *item;
    int total, per_address; /* limits */
    int used;
};

/* Opens what the options name, else systemd's sockets, else the default. Says what fails; `has_token` allows more than loopback.
 * Returns 0, or the exit code: 1 failed, 2 usage. */
int listeners_open(struct listeners *listeners, const struct options *options, bool has_token);
void listeners_print(const struct listeners *listeners);
void listeners_close(struct listeners *listeners);

int peers_init(struct peers *peers, int total, int per_address);
/* Accepts one connection: a peer, NULL when there is none to take now. *again: a connection was there, call again. */
struct peer *peers_accept(struct peers *peers, const struct listener *listener, bool *again);
void peers_release(struct peers *peers, struct peer *peer);
void peers_free(struct peers *peers);

/* "HOST:PORT" with a numeric host or localhost. */
bool listeners_parse(const char *text, struct guard_local *out);

#endif
