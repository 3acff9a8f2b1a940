/* What broker and worker say to each other over a SEQPACKET socket pair, which is descriptor 3 of the worker. A packet is one
 * struct below, of exactly its size. The worker may run a vendor's library, so the broker checks every field it gets.
 *
 *   broker                                    worker
 *                                             STATUS, DEVICE..., DEVICES (or HOST); STATUS absent and exit if nothing is here
 *   TICK n                                    device 0 is being read from here on
 *                                             SAMPLE n, device 0, next = 1: device 1 is being read from here on
 *                                             SAMPLE n, ..., next = NEXT_NONE: the tick is done
 *                                             (DONE n in its place where there are no devices)
 *
 * Every few seconds a TICK asks for a look for devices before reading: DEVICE... DEVICES if they changed, then READING 0.
 * So the broker always knows which device holds a worker up. */
#ifndef GPUTAP_BROKER_WORKER_PROTOCOL_H
#define GPUTAP_BROKER_WORKER_PROTOCOL_H

#include "broker/provider.h"

enum { WORKER_SOCKET = 3, READING_DISCOVERY = -1, NEXT_NONE = -2 };

enum message_type {
    MESSAGE_TICK = 1,
    MESSAGE_STATUS = 2,
    MESSAGE_DEVICE = 3,
    MESSAGE_DEVICES = 4,
    MESSAGE_HOST = 5,
    MESSAGE_READING = 6,
    MESSAGE_SAMPLE = 7,
    MESSAGE_DONE = 8
};

struct message_tick {
    uint32_t type;
    uint32_t discover; /* 1: look for devices first */
    uint64_t tick;
    uint64_t period_ns;
};

struct message_status {
    uint32_t type;
    uint32_t state; /* enum provider_state */
    char message[144];
};

struct message_device {
    uint32_t type;
    int32_t index; /* 0, 1, ... in one list; the list takes effect with DEVICES */
    struct layout_device facts;
};

struct message_devices {
    uint32_t type;
    int32_t count;
};

struct message_host {
    uint32_t type;
    uint32_t padding;
    struct layout_host facts;
};

struct message_reading {
    uint32_t type;
    int32_t device;
};

struct message_sample {
    uint32_t type;
    int32_t device; /* PROVIDER_HOST_DEVICE for the host */
    int32_t next;
    int32_t gone; /* errno of a device that is no more, else 0 */
    uint64_t tick;
    uint64_t cpu_ns; /* of the worker so far; 0 = not told now */
    struct sample sample;
};

struct message_done {
    uint32_t type;
    uint32_t padding;
    uint64_t tick;
    uint64_t cpu_ns;
};

union message {
    uint32_t type;
    struct message_tick tick;
    struct message_status status;
    struct message_device device;
    struct message_devices devices;
    struct message_host host;
    struct message_reading reading;
    struct message_sample sample;
    struct message_done done;
};

/* Bytes of a message of a type, 0 for an unknown type. */
size_t message_size(uint32_t type);

#endif
