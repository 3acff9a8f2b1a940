/* What clients say of themselves: their memory is read and checked, the outcome is published as the session mirror and as events.
 * No I/O but the rings: connections are control.h's. */
#ifndef GPUTAP_BROKER_SESSIONS_H
#define GPUTAP_BROKER_SESSIONS_H

#include "broker/publish.h"
#include "shm/client_memory.h"

enum { SESSIONS_MAX_ENDED = 512, SESSIONS_ENDED_EACH = 128, SESSIONS_RECENT = 256 };

/* One span that the broker believes in. */
struct session_span {
    struct layout_span span; /* checked: times in order, texts clean, devices that exist */
    double told_value, told_max;
    uint64_t told_ns;                         /* of the last STEP event */
    uint64_t own_peak[LAYOUT_SESSION_GAUGES]; /* largest `reserved` seen while it was open, by gauge; 0 = none */
};

struct session {
    bool open;
    bool changed;         /* the mirror is to be published */
    bool behind;          /* events were lost, and what is open was not concluded since */
    uint64_t released_ns; /* since when the slot is free */
    struct client_memory memory;
    uint64_t next_event;                         /* ticket of the client's ring */
    uint64_t span_heads[LAYOUT_SESSION_SPANS];   /* as of the last look */
    uint64_t gauge_heads[LAYOUT_SESSION_GAUGES]; /* as of the last look */
    struct layout_gauge gauges[LAYOUT_SESSION_GAUGES];
    uint64_t last_id;    /* highest span id seen */
    double event_budget; /* events that it may publish now */
    uint64_t budget_ns;
    uint32_t span_count;
    struct session_span spans[LAYOUT_SESSION_SPANS]; /* the first span_count of them, in the order of their start */
    struct layout_session mirror;                    /* what is published, but for gauges and spans */
};

/* A span that is over and waits for the sample that follows its end, to be summed up. */
struct ended_span {
    struct layout_event event; /* head of its USAGE events */
    uint64_t start_ns, end_ns;
    uint64_t shared;
    uint64_t end_ticket;
    uint64_t give_up_ns;
    uint64_t pending;                               /* bit s: device slot s is not summed up yet */
    struct layout_gauge own[LAYOUT_SESSION_GAUGES]; /* reserved = the peak */
};

/* A span that ended lately: one that began before its end may still be on its way to us. */
struct recent_span {
    int slot;
    uint64_t id;
    uint64_t start_ns, end_ns; /* end 0 = none */
    uint64_t devices;
};

struct sessions {
    struct publisher *publisher;
    struct ring entries[LAYOUT_SESSION_SLOTS];
    struct ring events;
    struct session items[LAYOUT_SESSION_SLOTS];
    struct ended_span ended[SESSIONS_MAX_ENDED];
    struct recent_span recent[SESSIONS_RECENT];
    int recent_next;
    bool catching_up;
    int ended_count;
    int turn;     /* place in `ended` of the last one that was looked at */
    bool backlog; /* some of them could be summed up, but this call had done enough */
    uint32_t open_count;
    bool left;           /* mirrors of sessions that are over, or of another segment, are to be published */
    uint32_t span_count; /* open ones, of all sessions */
    uint64_t total, published, lost, rejected;
    uint64_t told; /* of the events published, those that readers were woken for */
    bool edge;     /* a span began or ended since this was cleared: a sample now makes its numbers exact */
};

/* Binds to the publisher's segment; again after that was made anew, when everything is published once more. */
void sessions_bind(struct sessions *sessions, struct publisher *publisher);
/* A slot for a client, free for at least a second, the longest free one; -1 where there is none. */
int sessions_free_slot(const struct sessions *sessions, uint64_t now_ns);
/* Slots that a user keeps from others: open ones, and those that rest after his. */
int sessions_of_user(const struct sessions *sessions, uint32_t uid, uint64_t now_ns);
/* Gives it to a client. `memory` is its CLIENT_MEMORY_BYTES, mapped until sessions_close. */
void sessions_open(struct sessions *sessions, int slot, const struct layout_session *who, const void *memory, uint64_t now_ns);
/* Reads what the client has said since; ends what is open as abandoned; frees the slot. */
void sessions_close(struct sessions *sessions, int slot, uint64_t now_ns);
/* Reads what a client has said. */
void sessions_merge(struct sessions *sessions, int slot, uint64_t now_ns);
void sessions_merge_all(struct sessions *sessions, uint64_t now_ns);
/* Publishes the mirrors that have changed. True if there were any, or events since the last call. */
bool sessions_publish(struct sessions *sessions, uint64_t now_ns);
/* Sums up ended spans whose closing sample is in, or will not come. So many a session and call: a walk over both rings of a device
 * costs a tenth of a millisecond, and who says that his spans began long ago must not hold up the tick. */
void sessions_sum_up(struct sessions *sessions, const struct devices *devices, uint64_t now_ns, uint64_t gap_ns);
/* Is a span open on that device slot? */
bool sessions_busy(const struct sessions *sessions, uint32_t device);

/* --- inside: sessions.c, session_merge.c, span_usage.c -------------------------------------------------------------------------
 */
/* Publishes an event; *ticket (may be NULL) is its place. */
void sessions_say(struct sessions *sessions, int slot, struct layout_event *event, uint64_t *ticket);
void sessions_say_span(struct sessions *sessions, int slot, enum event_type type, uint32_t flags, const struct layout_span *span,
                       uint64_t mono_ns, uint64_t *ticket);
/* The same for a USAGE event, whose session may be gone. */
void sessions_publish_usage(struct sessions *sessions, struct layout_event *event, uint64_t now_ns);
/* Device slots that exist, as far as a span can name them. */
uint64_t sessions_devices(const struct sessions *sessions);
/* Reads the events of all sessions but one, as far as they are of before a time. */
void sessions_catch_up(struct sessions *sessions, int but, uint64_t until_ns, uint64_t now_ns);
void session_begin(struct sessions *sessions, int slot, const struct layout_span *span, uint32_t flags, uint64_t now_ns);
void session_end(struct sessions *sessions, int slot, int index, uint64_t end_ns, uint32_t flags, uint64_t now_ns);
/* Devices of a span as a mask: all where it names none. */
static inline uint64_t span_mask(const struct layout_span *span)
{
    return span->flags & SPAN_NO_DEVICE ? 0 : span->devices ? span->devices : UINT64_MAX;
}

#endif
