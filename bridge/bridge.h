/* The whole program's state; there is one. */
#ifndef GPUTAP_BRIDGE_BRIDGE_H
#define GPUTAP_BRIDGE_BRIDGE_H

#include "bridge/guard.h"
#include "bridge/hub.h"
#include "bridge/instance_socket.h"
#include "bridge/listeners.h"
#include "bridge/options.h"

#define BRIDGE_FAREWELL_MS 1500

struct lws_context;
struct lws_vhost;

struct bridge {
    struct options options;
    struct guard_rules rules;
    gputap *tap;
    struct listeners listeners;
    struct peers peers;
    struct instance_socket socket;
    struct listener socket_listener;
    struct lws *socket_wsi;
    struct hub hub;
    struct buffer scratch; /* for one message at a time */
    struct lws_context *context;
    struct lws_vhost *vhost;
    int stop_fd; /* readable when a signal asked to stop */
    bool stopping;
    int64_t stop_ms;
};

/* The service loop, until a signal ends it. Returns the exit code. */
int bridge_run(struct bridge *bridge);

#endif
