#include "shm/client_memory.h"

#include <string.h>

enum action { ACTION_FORMAT, ACTION_BIND };

static void attach_ring(struct ring *ring, uint8_t *memory, uint32_t depth, uint32_t slot, size_t payload, enum action action)
{
    if (action == ACTION_FORMAT)
        ring_format(ring, memory, NULL, depth, slot, LAYOUT_WORDS(payload), CLIENT_FIRST_TICKET);
    else
        ring_bind(ring, memory, NULL, depth, slot, LAYOUT_WORDS(payload));
    ring->first = CLIENT_FIRST_TICKET;
}

static void attach_all(struct client_memory *view, uint8_t *memory, enum action action)
{
    view->counters = (struct client_counters *)(void *)(memory + CLIENT_COUNTERS_AT);
    for (int i = 0; i < LAYOUT_SESSION_SPANS; i++)
        attach_ring(&view->spans[i], memory + CLIENT_SPANS_AT + i * CLIENT_SPAN_RING, LAYOUT_ENTRY_DEPTH, CLIENT_SPAN_SLOT,
                    sizeof(struct layout_span), action);
    for (int i = 0; i < LAYOUT_SESSION_GAUGES; i++)
        attach_ring(&view->gauges[i], memory + CLIENT_GAUGES_AT + i * CLIENT_GAUGE_RING, LAYOUT_ENTRY_DEPTH, CLIENT_GAUGE_SLOT,
                    sizeof(struct layout_gauge), action);
    attach_ring(&view->events, memory + CLIENT_EVENTS_AT, CLIENT_EVENT_DEPTH, CLIENT_EVENT_SLOT, sizeof(struct layout_event),
                action);
}

void client_memory_format(struct client_memory *view, void *memory) { attach_all(view, memory, ACTION_FORMAT); }

void client_memory_bind(struct client_memory *view, const void *memory)
{
    attach_all(view, (uint8_t *)(uintptr_t)memory, ACTION_BIND);
}
