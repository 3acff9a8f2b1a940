/* The head of an HTTP request, copied out of libwebsockets and bounded. */
#ifndef GPUTAP_BRIDGE_REQUEST_H
#define GPUTAP_BRIDGE_REQUEST_H

#include <stdbool.h>

struct lws;

enum request_method { REQUEST_GET, REQUEST_HEAD, REQUEST_OTHER };

struct request {
    enum request_method method;
    char path[1024];
    char query[256]; /* as NAME=VALUE lines */
    char host[320];
    char origin[320];
    char authorization[320];
    char protocols[640];
    char version[8];
    char upgrade[16];
    char accept_encoding[160];
    char none_match[160];
    bool has_body;
    bool too_long; /* something that is needed did not fit */
};

void request_read(struct lws *wsi, struct request *request);

/* The value of a query argument, NULL if there is none. */
const char *request_argument(const struct request *request, const char *name);

#endif
