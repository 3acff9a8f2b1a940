/* Who may talk to the bridge: Host, Origin and token, by exact lists. Knows no sockets and no HTTP library, so that tests can try
 * every trick on it. */
#ifndef GPUTAP_BRIDGE_GUARD_H
#define GPUTAP_BRIDGE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUARD_TOKEN_LIMIT 256
#define GUARD_TOKEN_SHORTEST 16

struct guard_rules {
    const char *const *hosts;
    size_t host_count;
    const char *const *origins;
    size_t origin_count;
    char token[GUARD_TOKEN_LIMIT + 1]; /* empty = none is wanted */
};

/* The end of the connection on our side. */
struct guard_local {
    bool local_socket; /* bridge.sock: no browser can reach it */
    char address[64];  /* numeric, without brackets */
    uint16_t port;
};

/* "name", "name:port", "[v6]:port" taken apart; false where it is none of these. Port 0 = none was given. */
struct guard_authority {
    char name[256];
    bool bracketed;
    uint16_t port;
};
bool guard_split(const char *text, struct guard_authority *out);

bool guard_host_ok(const struct guard_rules *rules, const struct guard_local *local, const char *host);
/* NULL or empty: absent, which is allowed. */
bool guard_origin_ok(const struct guard_rules *rules, const struct guard_local *local, const char *origin);
/* The origin was named on the command line, so it may read answers from a foreign page. */
bool guard_origin_listed(const struct guard_rules *rules, const char *origin);
/* `authorization` and `protocols` are header values, NULL = absent. */
bool guard_token_ok(const struct guard_rules *rules, const char *authorization, const char *protocols);
/* `name` is an element of the comma-separated list. */
bool guard_protocol_offered(const char *protocols, const char *name);
bool guard_equal(const char *a, const char *b, size_t length);
/* Reads and checks a token file; on failure *why says what is wrong with it. */
bool guard_load_token(const char *path, char token[GUARD_TOKEN_LIMIT + 1], const char **why);

#endif
