/* What each path answers. Knows nothing of sockets. */
#ifndef GPUTAP_BRIDGE_ROUTES_H
#define GPUTAP_BRIDGE_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "bridge/bridge.h"
#include "bridge/request.h"

struct reply {
    int status;
    const char *type; /* NULL = no body */
    const unsigned char *body;
    size_t length;
    void *owned; /* to be freed after sending */
    char etag[40];
    bool gzip;         /* the body is compressed */
    bool varies;       /* another client may get it uncompressed */
    bool revalidate;   /* may be kept if it is asked for again; else it may not be kept */
    bool last;         /* the connection closes after it */
    const char *extra; /* more header lines */
    bool cors;
};

/* Checks first, then the route. Frees nothing; reply->owned is the caller's. */
void routes_answer(struct bridge *bridge, const struct guard_local *local, const struct request *request, struct reply *reply);

/* What stands in the way of an upgrade; false and a reply where something does. */
bool routes_may_upgrade(struct bridge *bridge, const struct guard_local *local, const struct request *request, struct reply *reply);

void reply_error(struct reply *reply, int status, const char *text);

#endif
