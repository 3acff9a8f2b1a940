#include "broker/sessions.h"

#include <string.h>

#include "shm/text.h"

#define SECOND UINT64_C(1000000000)

static const uint64_t rest_ns = SECOND;               /* readers of the last client's mirror have noticed by then */
static const uint64_t usage_patience_ns = 5 * SECOND; /* for a device that gives no samples */
static const double events_a_second = 4096, events_burst = 1024;

static uint64_t real_of(uint64_t mono_ns, uint64_t now_ns) { return clock_real_ns() - (now_ns > mono_ns ? now_ns - mono_ns : 0); }

void sessions_bind(struct sessions *sessions, struct publisher *publisher)
{
    sessions->publisher = publisher;
    for (uint32_t i = 0; i < LAYOUT_SESSION_SLOTS; i++) {
        segment_entry(&publisher->writer, REGION_SESSION, i, &sessions->entries[i]);
        sessions->items[i].changed = sessions->items[i].mirror.generation > 0;
    }
    segment_entry(&publisher->writer, REGION_EVENT, 0, &sessions->events);
    sessions->left = true;
}

/* --- events --------------------------------------------------------------------------------------------------------------------
 */

/* One client that never stops talking must not wash the others' events out of the ring. */
static bool may_say(struct sessions *sessions, struct session *session, const struct layout_event *event, uint64_t now_ns)
{
    session->event_budget += (double)(now_ns - session->budget_ns) / 1e9 * events_a_second;
    session->event_budget = session->event_budget < events_burst ? session->event_budget : events_burst;
    session->budget_ns = now_ns;
    if (event->type == EVENT_ATTACH || event->type == EVENT_DETACH)
        return true;
    if (session->event_budget < 1) {
        session->mirror.lost++;
        sessions->lost++;
        session->changed = true;
        return false;
    }
    session->event_budget -= 1;
    return true;
}

static uint64_t put_event(struct sessions *sessions, struct layout_event *event, uint64_t now_ns)
{
    uint64_t words[sizeof *event / 8];
    event->real_ns = real_of(event->mono_ns, now_ns);
    memcpy(words, event, sizeof words);
    sessions->published++;
    return ring_publish(&sessions->events, words);
}

void sessions_say(struct sessions *sessions, int slot, struct layout_event *event, uint64_t *ticket)
{
    struct session *session = &sessions->items[slot];
    uint64_t now_ns = clock_mono_ns();
    event->slot = (uint32_t)slot;
    event->generation = session->mirror.generation;
    event->pid = session->mirror.pid;
    event->uid = session->mirror.uid;
    if (ticket)
        *ticket = ring_head(&sessions->events);
    if (may_say(sessions, session, event, now_ns))
        put_event(sessions, event, now_ns);
    else if (ticket)
        *ticket = UINT64_MAX; /* names no event */
}

void sessions_publish_usage(struct sessions *sessions, struct layout_event *event, uint64_t now_ns)
{
    put_event(sessions, event, now_ns);
}

void sessions_say_span(struct sessions *sessions, int slot, enum event_type type, uint32_t flags, const struct layout_span *span,
                       uint64_t mono_ns, uint64_t *ticket)
{
    struct layout_event event = {.mono_ns = mono_ns,
                                 .type = (uint32_t)type,
                                 .flags = flags | (span->flags & SPAN_NO_DEVICE ? (uint32_t)EVENT_NO_DEVICE : 0),
                                 .span = span->id,
                                 .parent = span->parent,
                                 .devices = span->devices,
                                 .value = span->value,
                                 .max = span->max,
                                 .start_ns = span->start_ns};
    memcpy(event.job, span->job, sizeof event.job);
    memcpy(event.node, span->node, sizeof event.node);
    memcpy(event.name, span->name, sizeof event.name);
    sessions_say(sessions, slot, &event, ticket);
}

static void say_of_session(struct sessions *sessions, int slot, enum event_type type, uint64_t now_ns)
{
    struct layout_event event = {.mono_ns = now_ns, .type = (uint32_t)type};
    text_copy(event.name, sizeof event.name, sessions->items[slot].mirror.label, sizeof sessions->items[slot].mirror.label);
    sessions_say(sessions, slot, &event, NULL);
}

/* --- spans -----------------------------------------------------------------------------------------------------------------------
 */

/* Spans of different sessions on one device share it: neither may take the device's numbers for its own. Times decide, since
 * clients are read one after the other: a span that is still open here may have ended before the other began. So a span is compared
 * with those that ended lately when it begins, and when it ends with these and with those that are open, once everybody has been
 * read up to that moment. */

static bool overlap(uint64_t start_a, uint64_t end_a, uint64_t start_b, uint64_t end_b)
{
    return start_a < end_b && start_b < end_a;
}

static void mark_ended(struct sessions *sessions, const struct recent_span *recent, uint64_t common)
{
    for (int i = 0; i < sessions->ended_count; i++)
        if (sessions->ended[i].event.slot == (uint32_t)recent->slot && sessions->ended[i].event.span == recent->id)
            sessions->ended[i].shared |= common;
}

/* Against what ended lately: marks both. */
static void share_with_recent(struct sessions *sessions, int slot, struct layout_span *span, uint64_t end_ns)
{
    for (int i = 0; i < SESSIONS_RECENT; i++) {
        const struct recent_span *recent = &sessions->recent[i];
        uint64_t common = recent->devices & span_mask(span);
        if (recent->end_ns == 0 || recent->slot == slot || !common ||
            !overlap(span->start_ns, end_ns, recent->start_ns, recent->end_ns))
            continue;
        span->shared |= common;
        mark_ended(sessions, recent, common);
    }
}

/* Against what is open, when this one ends: marks both. */
static void share_with_open(struct sessions *sessions, int slot, struct layout_span *span, uint64_t end_ns)
{
    for (int other = 0; other < LAYOUT_SESSION_SLOTS; other++) {
        struct session *session = &sessions->items[other];
        for (uint32_t i = 0; other != slot && session->open && i < session->span_count; i++) {
            uint64_t common = span_mask(span) & span_mask(&session->spans[i].span);
            if (!common || session->spans[i].span.start_ns >= end_ns)
                continue;
            session->spans[i].span.shared |= common;
            span->shared |= common;
        }
    }
}

/* For the mirror, while both are open; what is shared in the end is decided at the end. */
static uint64_t shared_now(const struct sessions *sessions, int slot, const struct layout_span *span)
{
    uint64_t shared = span->shared;
    for (int other = 0; other < LAYOUT_SESSION_SLOTS; other++) {
        const struct session *session = &sessions->items[other];
        for (uint32_t i = 0; other != slot && session->open && i < session->span_count; i++)
            shared |= span_mask(span) & span_mask(&session->spans[i].span);
    }
    return shared;
}

static void show_anew(struct sessions *sessions, const struct layout_span *span)
{
    for (int other = 0; other < LAYOUT_SESSION_SLOTS; other++)
        for (uint32_t i = 0; i < sessions->items[other].span_count; i++)
            if (span_mask(span) & span_mask(&sessions->items[other].spans[i].span))
                sessions->items[other].changed = true;
}

static void keep_recent(struct sessions *sessions, int slot, const struct layout_span *span, uint64_t end_ns)
{
    sessions->recent[sessions->recent_next] = (struct recent_span){
        .slot = slot, .id = span->id, .start_ns = span->start_ns, .end_ns = end_ns, .devices = span_mask(span)};
    sessions->recent_next = (sessions->recent_next + 1) % SESSIONS_RECENT;
}

void session_begin(struct sessions *sessions, int slot, const struct layout_span *span, uint32_t flags, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    if (session->span_count == LAYOUT_SESSION_SPANS)
        return; /* the caller has looked */
    struct session_span *fresh = &session->spans[session->span_count++];
    *fresh = (struct session_span){.span = *span, .told_value = span->value, .told_max = span->max, .told_ns = now_ns};
    fresh->span.shared = 0;
    share_with_recent(sessions, slot, &fresh->span, UINT64_MAX);
    if (sessions->open_count > 1)
        show_anew(sessions, &fresh->span);
    sessions->span_count++;
    sessions->edge = true;
    session->changed = true;
    if (span->id > session->last_id)
        session->last_id = span->id;
    sessions_say_span(sessions, slot, EVENT_BEGIN, flags, &fresh->span, fresh->span.start_ns, NULL);
}

uint64_t sessions_devices(const struct sessions *sessions)
{
    uint64_t count = word_peek(&sessions->publisher->writer.header->device_count);
    return count >= LAYOUT_SPAN_DEVICES ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static void keep_ended(struct sessions *sessions, int slot, const struct session_span *span, uint64_t end_ns, uint64_t end_ticket,
                       uint64_t now_ns)
{
    const struct session *session = &sessions->items[slot];
    uint64_t pending = span_mask(&span->span) & sessions_devices(sessions);
    int own = 0;
    for (int i = 0; i < sessions->ended_count; i++)
        own += sessions->ended[i].event.slot == (uint32_t)slot;
    if (pending == 0)
        return;
    if (sessions->ended_count == SESSIONS_MAX_ENDED || own >= SESSIONS_ENDED_EACH) {
        sessions->items[slot].mirror.lost++; /* its usage will not be told */
        sessions->lost++;
        return;
    }
    struct ended_span *ended = &sessions->ended[sessions->ended_count++];
    *ended = (struct ended_span){.event = {.type = EVENT_USAGE,
                                           .slot = (uint32_t)slot,
                                           .generation = session->mirror.generation,
                                           .pid = session->mirror.pid,
                                           .uid = session->mirror.uid,
                                           .span = span->span.id,
                                           .parent = span->span.parent,
                                           .devices = span->span.devices},
                                 .start_ns = span->span.start_ns,
                                 .end_ns = end_ns,
                                 .shared = span->span.shared,
                                 .end_ticket = end_ticket,
                                 .give_up_ns = now_ns + usage_patience_ns,
                                 .pending = pending};
    for (int i = 0; i < LAYOUT_SESSION_GAUGES; i++) {
        ended->own[i] = session->gauges[i];
        ended->own[i].reserved = span->own_peak[i];
    }
}

void session_end(struct sessions *sessions, int slot, int index, uint64_t end_ns, uint32_t flags, uint64_t now_ns)
{
    if (sessions->open_count > 1 && !sessions->catching_up) {
        sessions->catching_up = true;
        sessions_catch_up(sessions, slot, end_ns, now_ns);
        sessions->catching_up = false;
    }
    struct session *session = &sessions->items[slot];
    struct session_span span = session->spans[index];
    uint64_t ticket;
    memmove(&session->spans[index], &session->spans[index + 1],
            (session->span_count - (uint32_t)index - 1) * sizeof session->spans[0]);
    session->span_count--;
    sessions->span_count--;
    sessions->edge = true;
    session->changed = true;
    session->mirror.ended++;
    if (sessions->open_count > 1) {
        share_with_recent(sessions, slot, &span.span, end_ns);
        share_with_open(sessions, slot, &span.span, end_ns);
        show_anew(sessions, &span.span);
    }
    keep_recent(sessions, slot, &span.span, end_ns);
    sessions_say_span(sessions, slot, EVENT_END, flags, &span.span, end_ns, &ticket);
    keep_ended(sessions, slot, &span, end_ns, ticket, now_ns);
}

/* --- sessions --------------------------------------------------------------------------------------------------------- */

static bool rested(const struct session *session, uint64_t now_ns)
{
    return session->released_ns == 0 || now_ns - session->released_ns >= rest_ns;
}

int sessions_of_user(const struct sessions *sessions, uint32_t uid, uint64_t now_ns)
{
    int count = 0;
    for (int i = 0; i < LAYOUT_SESSION_SLOTS; i++) {
        const struct session *session = &sessions->items[i];
        count += session->mirror.uid == uid && session->mirror.generation > 0 && (session->open || !rested(session, now_ns));
    }
    return count;
}

int sessions_free_slot(const struct sessions *sessions, uint64_t now_ns)
{
    int best = -1;
    for (int i = 0; i < LAYOUT_SESSION_SLOTS; i++) {
        const struct session *session = &sessions->items[i];
        if (!session->open && rested(session, now_ns) && (best < 0 || session->released_ns < sessions->items[best].released_ns))
            best = i;
    }
    return best;
}

void sessions_open(struct sessions *sessions, int slot, const struct layout_session *who, const void *memory, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    uint32_t generation = session->mirror.generation + 1;
    memset(session, 0, sizeof *session);
    session->open = true;
    session->mirror = *who;
    session->mirror.state = SESSION_OPEN;
    session->mirror.generation = generation ? generation : 1;
    session->mirror.since_mono_ns = now_ns;
    session->mirror.since_real_ns = clock_real_ns();
    session->next_event = CLIENT_FIRST_TICKET;
    session->event_budget = events_burst;
    session->budget_ns = now_ns;
    session->changed = true;
    client_memory_bind(&session->memory, memory);
    sessions->open_count++;
    sessions->total++;
    say_of_session(sessions, slot, EVENT_ATTACH, now_ns);
}

void sessions_close(struct sessions *sessions, int slot, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    if (!session->open)
        return;
    sessions_merge(sessions, slot, now_ns);
    while (session->span_count > 0)
        session_end(sessions, slot, (int)session->span_count - 1, now_ns, EVENT_ABANDONED, now_ns);
    say_of_session(sessions, slot, EVENT_DETACH, now_ns);
    session->open = false;
    session->changed = true;
    session->released_ns = now_ns;
    session->mirror.state = SESSION_FREE;
    sessions->left = true;
    sessions->open_count--;
}

void sessions_merge_all(struct sessions *sessions, uint64_t now_ns)
{
    for (int slot = 0; sessions->open_count > 0 && slot < LAYOUT_SESSION_SLOTS; slot++)
        if (sessions->items[slot].open)
            sessions_merge(sessions, slot, now_ns);
}

static void publish_mirror(struct sessions *sessions, int slot, uint64_t now_ns)
{
    static union {
        struct layout_session session;
        uint64_t words[sizeof(struct layout_session) / 8];
    } raw;
    struct session *session = &sessions->items[slot];
    memset(&raw, 0, sizeof raw);
    raw.session = session->mirror;
    raw.session.updated_ns = now_ns;
    for (int i = 0; i < LAYOUT_SESSION_GAUGES; i++)
        if (session->gauges[i].updated_ns > 0)
            raw.session.gauges[raw.session.gauge_count++] = session->gauges[i];
    raw.session.span_count = session->span_count;
    for (uint32_t i = 0; i < session->span_count; i++) {
        raw.session.spans[i] = session->spans[i].span;
        if (sessions->open_count > 1)
            raw.session.spans[i].shared = shared_now(sessions, slot, &session->spans[i].span);
    }
    ring_publish(&sessions->entries[slot], raw.words);
    session->changed = false;
}

bool sessions_publish(struct sessions *sessions, uint64_t now_ns)
{
    bool any = sessions->published != sessions->told;
    sessions->told = sessions->published;
    if (sessions->open_count == 0 && !sessions->left) /* a walk over all slots costs a cache miss for each */
        return any;
    sessions->left = false;
    for (int slot = 0; slot < LAYOUT_SESSION_SLOTS; slot++)
        if (sessions->items[slot].changed) {
            publish_mirror(sessions, slot, now_ns);
            any = true;
        }
    return any;
}

bool sessions_busy(const struct sessions *sessions, uint32_t device)
{
    uint64_t bit = device < LAYOUT_SPAN_DEVICES ? UINT64_C(1) << device : 0;
    for (int slot = 0; sessions->span_count > 0 && slot < LAYOUT_SESSION_SLOTS; slot++) {
        const struct session *session = &sessions->items[slot];
        for (uint32_t i = 0; session->open && i < session->span_count; i++)
            if (span_mask(&session->spans[i].span) & bit)
                return true;
    }
    return false;
}
