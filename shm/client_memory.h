/* The 64 KiB that one client writes and the broker reads: what it has open, and what it said.
 *
 * Who writes: the client, one thread at a time. Who reads: the broker, mapped read-only, which believes nothing of it: the places
 * of all rings are constants of this header, and every word is copied and checked (broker/sessions.c). Order of a change: the
 * span's or gauge's entry ring, then the event ring, then the doorbell. A client that dies between any two of these leaves whole
 * records; what it had open is ended by the broker when its socket hangs up. A broker that dies leaves the memory to the client,
 * which drops it and gets another from the next broker.
 *
 * The first page is the broker's, written before the client gets the memory: what is found there at the client's end says which
 * broker it was. Rings start at a ticket of the broker's choice. */
#ifndef GPUTAP_SHM_CLIENT_MEMORY_H
#define GPUTAP_SHM_CLIENT_MEMORY_H

#include "shm/layout.h"
#include "shm/ring.h"

enum {
    CLIENT_MEMORY_BYTES = 65536,
    CLIENT_EVENT_DEPTH = 64,
    CLIENT_FIRST_TICKET = 1,

    CLIENT_SPAN_SLOT = LAYOUT_SLOT_BYTES(sizeof(struct layout_span)),
    CLIENT_SPAN_RING = RING_HEADER_BYTES + LAYOUT_ENTRY_DEPTH * CLIENT_SPAN_SLOT,
    CLIENT_GAUGE_SLOT = LAYOUT_SLOT_BYTES(sizeof(struct layout_gauge)),
    CLIENT_GAUGE_RING = RING_HEADER_BYTES + LAYOUT_ENTRY_DEPTH * CLIENT_GAUGE_SLOT,
    CLIENT_EVENT_SLOT = LAYOUT_SLOT_BYTES(sizeof(struct layout_event)),

    CLIENT_COUNTERS_AT = 4096,
    CLIENT_SPANS_AT = CLIENT_COUNTERS_AT + 64,
    CLIENT_GAUGES_AT = CLIENT_SPANS_AT + LAYOUT_SESSION_SPANS * CLIENT_SPAN_RING,
    CLIENT_EVENTS_AT = CLIENT_GAUGES_AT + LAYOUT_SESSION_GAUGES * CLIENT_GAUGE_RING,
    CLIENT_END = CLIENT_EVENTS_AT + RING_HEADER_BYTES + CLIENT_EVENT_DEPTH * CLIENT_EVENT_SLOT
};
_Static_assert((int)CLIENT_END <= (int)CLIENT_MEMORY_BYTES, "client memory layout");
_Static_assert(CLIENT_SPANS_AT % 64 == 0 && CLIENT_GAUGES_AT % 64 == 0 && CLIENT_EVENTS_AT % 64 == 0, "client memory layout");

/* Counters of the client's, each written when it changes. */
struct client_counters {
    shm_word dropped; /* spans beyond its room, and what was said while no broker was there */
    uint64_t reserved[7];
};
_Static_assert(sizeof(struct client_counters) == 64, "client memory layout");

/* One end's view. Pointers only; binding reads nothing but each ring's `first`, and never trusts it. */
struct client_memory {
    struct client_counters *counters;
    struct ring spans[LAYOUT_SESSION_SPANS];
    struct ring gauges[LAYOUT_SESSION_GAUGES];
    struct ring events;
};

/* The client's end of fresh memory: formats the rings. */
void client_memory_format(struct client_memory *view, void *memory);
/* The broker's end. Memory that is not formatted yet reads as empty. */
void client_memory_bind(struct client_memory *view, const void *memory);

#endif
