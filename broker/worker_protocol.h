/* What broker and worker say to each other over a SEQPACKET socket pair, which is descriptor 3 of the worker. A packet is one
 * struct below, of exactly its size. The worker may run a vendor's library, so the broker checks every field it gets.
 *
 *   broker        worker
 *                 STATUS, DEVICE..., DEVICES (or HOST); STATUS absent and exit if nothing is here
 *   TICK n        looks for devices first if the tick asks for it: DEVICE... DEVICES where they changed
 *                 PROCESSES a device, where its table has changed
 *                 SAMPLE n a device, the last one marked; none for a device that had nothing to say a moment ago, and
 *                 DONE n where there is none at all, which says how long that will be so
 *
 * Samples go out in one burst, since each wake-up of the broker costs as much as reading several files. So that the broker knows
 * which device holds a worker up, the worker says in a page of memory, descriptor 4, at which step it is and since when. */
#ifndef GPUTAP_BROKER_WORKER_PROTOCOL_H
#define GPUTAP_BROKER_WORKER_PROTOCOL_H

#include "broker/provider.h"

enum { WORKER_SOCKET = 3, WORKER_PROGRESS = 4 };

/* Written by the worker: `since_ns` (monotonic), then `step`. Read by the broker alone, mapped read-only. A worker that dies leaves
 * the step at which it died. */
struct worker_progress {
    shm_word step; /* enum progress_step, or PROGRESS_DEVICE + the device being read */
    shm_word since_ns;
};
enum progress_step { PROGRESS_IDLE = 0, PROGRESS_DISCOVERY = 1, PROGRESS_DEVICE = 2 };

enum message_type {
    MESSAGE_TICK = 1,
    MESSAGE_STATUS = 2,
    MESSAGE_DEVICE = 3,
    MESSAGE_DEVICES = 4,
    MESSAGE_HOST = 5,
    MESSAGE_SAMPLE = 6,
    MESSAGE_DONE = 7,
    MESSAGE_PROCESSES = 8
};

struct message_tick {
    uint32_t type;
    uint32_t discover; /* 1: look for devices first */
    uint64_t at_work;  /* 1: a client has a span open, so no device is to be let go to sleep */
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
    uint32_t beyond; /* 1: there are more than a provider may have */
};

struct message_host {
    uint32_t type;
    uint32_t padding;
    struct layout_host facts;
};

struct message_sample {
    uint32_t type;
    int32_t device; /* PROVIDER_HOST_DEVICE for the host */
    int32_t last;   /* 1: the tick is done */
    int32_t gone;   /* errno of a device that is no more, else 0 */
    uint64_t tick;
    uint64_t cpu_ns; /* of the worker so far; 0 = not told now */
    struct sample sample;
};

struct message_done {
    uint32_t type;
    uint32_t rest_ms; /* it will have nothing to say for so long, and need not be asked but to look for devices */
    uint64_t tick;
    uint64_t cpu_ns;
};

struct message_processes {
    uint32_t type;
    int32_t device;
    uint64_t tick;
    struct layout_process_table table;
};

union message {
    uint32_t type;
    struct message_tick tick;
    struct message_status status;
    struct message_device device;
    struct message_devices devices;
    struct message_host host;
    struct message_sample sample;
    struct message_done done;
    struct message_processes processes;
};

/* Bytes of a message of a type, 0 for an unknown type. */
size_t message_size(uint32_t type);

#endif
