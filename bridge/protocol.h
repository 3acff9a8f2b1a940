/* What clients may say: the only untrusted input after the handshake. Pure functions on bytes; protocol.schema.json says the same
 * for machines. */
#ifndef GPUTAP_BRIDGE_PROTOCOL_H
#define GPUTAP_BRIDGE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/json/document.h"

#define PROTOCOL_NAME "gputap.v1"
#define PROTOCOL_DEVICES 256
#define PROTOCOL_PERIOD_DEFAULT 500
#define PROTOCOL_HISTORY_DEFAULT 300
#define PROTOCOL_RETRY_MS 2000

/* Which devices a client wants; all where it did not say. */
struct protocol_devices {
    uint64_t bits[PROTOCOL_DEVICES / 64];
};
extern const struct protocol_devices protocol_all_devices;
bool protocol_wants(const struct protocol_devices *devices, int device);

enum protocol_kind {
    PROTOCOL_IGNORED, /* of a type that a later version may know */
    PROTOCOL_SUB,
    PROTOCOL_PAUSE,
    PROTOCOL_RESUME,
    PROTOCOL_HISTORY,
    PROTOCOL_PING,
    PROTOCOL_BAD,    /* a known type with wrong fields: told, the connection stays */
    PROTOCOL_GARBAGE /* no message at all: told and closed */
};

struct protocol_message {
    enum protocol_kind kind;
    enum document_set set;
    int period;
    struct protocol_devices devices;
    bool events, processes;
    int seconds, points;
    int64_t id;
    const char *text; /* what is wrong; static */
};

void protocol_parse(const char *bytes, size_t length, struct protocol_message *message);

/* How much a client may say: a bucket of messages that fills at the protocol's rate, and one of pieces of messages, since a message
 * may come in very many fragments. */
struct protocol_rate {
    int64_t at_ms;
    double messages, pieces;
};
void protocol_rate_begin(struct protocol_rate *rate, int64_t now_ms);
bool protocol_rate_take(struct protocol_rate *rate, int64_t now_ms, bool message_begins);

#endif
