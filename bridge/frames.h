/* The frame of one tick, written by hand: numbers only, in the order that hello announced. */
#ifndef GPUTAP_BRIDGE_FRAMES_H
#define GPUTAP_BRIDGE_FRAMES_H

#include "bridge/buffer.h"
#include "bridge/protocol.h"

struct frames_row {
    int device;
    bool known; /* the snapshot holds a sample */
    gputap_snapshot snapshot;
};

/* Everything that a tick says, read once for all frames. */
struct frames_sample {
    uint64_t seq;
    int64_t t_ms;
    struct frames_row host;
    struct frames_row *rows; /* one a device of hello, in its order */
    int count;
};

/* Replaces what is in the buffer; rows of devices that are not wanted become null. */
void frames_write(struct buffer *buffer, const struct frames_sample *sample, enum document_set set,
                  const struct protocol_devices *devices);

#endif
