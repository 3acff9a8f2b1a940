/* A handle's annotations. What is open is kept in private memory, under a mutex held for less than a microsecond; the memory
 * shared with the broker is only a copy of it, made anew for each broker. Private to client/.
 *
 * Made by the first call that needs one, and kept until gputap_close, so that threads need no agreement on its life. */
#ifndef GPUTAP_CLIENT_ANNOTATOR_H
#define GPUTAP_CLIENT_ANNOTATOR_H

#include "client/control_link.h"
#include "client/handle.h"
#include "shm/client_memory.h"

enum { ANNOTATOR_INDEX_BITS = 5 };
_Static_assert(1 << ANNOTATOR_INDEX_BITS == LAYOUT_SESSION_SPANS, "a span's id ends in its place");

/* Largest `reserved` that the gauge of a device told while a span was open. */
struct own_peak {
    int device;
    uint64_t peak;
};

/* `span` as it is published, but for start_ns (our clock) and devices (made from the numbers at each publication). */
struct open_span {
    struct layout_span span; /* id 0 = free */
    int32_t device_count;
    int16_t devices[LAYOUT_SPAN_DEVICES];
    int own_count;
    struct own_peak own[LAYOUT_SESSION_GAUGES]; /* the first own_count */
};

struct open_gauge {
    bool used;
    int device;
    struct layout_gauge gauge;
};

struct annotator {
    struct platform_mutex mutex;
    const shm_word32 *canary; /* fork_canary */
    uint32_t mark;

    bool attached;
    char label[48];
    uint64_t period_ns; /* wished for, 0 = none */
    uint64_t count;     /* of spans begun */
    uint64_t dropped;
    struct open_span spans[LAYOUT_SESSION_SPANS];
    struct open_gauge gauges[LAYOUT_SESSION_GAUGES];

    struct control_link link;
    struct client_memory shared; /* valid while the link is up with memory */
    uint64_t next_look;          /* by the coarse clock */
    uint64_t next_try;
    uint32_t connects;
    uint32_t slot, generation; /* of the session while it is connected; generation 0 = none */
    uint8_t epoch[16];
    int64_t clock_offset; /* broker's clock - ours */
    char why[160];        /* it is not connected */
};

static inline bool annotator_connected(const struct annotator *a) { return a->link.state == LINK_UP && a->link.memory != NULL; }

/* Is this the process that made it? */
static inline bool annotator_ours(const struct annotator *a) { return word32_get(a->canary) == a->mark; }

/* The handle's, or NULL. */
static inline struct annotator *annotator_of(const gputap *tap) { return (struct annotator *)(uintptr_t)word_get(&tap->annotator); }

/* --- annotate.c ------------------------------------------------------------------------------------------------------- */
/* Enters a call that needs a session: 0 with the mutex held, or an error without it. */
int annotator_enter(gputap *tap, struct annotator **out);
/* Cuts a caller's text into a field; NULL is empty. */
void annotator_text(char *out, size_t size, const char *text);

/* --- spans.c ---------------------------------------------------------------------------------------------------------- */
void annotator_own_peak(struct open_span *span, int device, uint64_t reserved);

/* --- annotator_service.c; all under the mutex ------------------------------------------------------------------------- */
/* Connects, hears the broker, notices that it is gone: as far as that is due. The price of a coarse clock where nothing is. */
void annotator_service(gputap *tap, struct annotator *a, uint64_t now, int wait_ms);
/* Is the session one of the segment that the handle reads now? */
bool annotator_current(const gputap *tap, const struct annotator *a);
/* Hangs up; what is open stays open here. */
void annotator_hang_up(struct annotator *a);
/* Copies into the shared memory, if there is one. */
void annotator_show_span(gputap *tap, struct annotator *a, int index);
void annotator_show_gauge(gputap *tap, struct annotator *a, int index);
/* Publishes an event and rings; true if there was a broker to hear it. */
bool annotator_say(gputap *tap, struct annotator *a, enum event_type type, const struct open_span *open);
void annotator_drop(struct annotator *a);

#endif
