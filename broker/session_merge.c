/* From a client's memory to what the broker believes. Nothing in that memory is trusted: places are constants, counts are bounded,
 * texts are cleaned, numbers and times are checked. A client that lies can lie about itself alone. */
#include <math.h>
#include <string.h>

#include "broker/sessions.h"
#include "shm/text.h"

#define MS UINT64_C(1000000)

static const uint64_t step_every_ns = 90 * MS; /* ticks of 100 ms come a little early or late */

static void reject(struct sessions *sessions, struct session *session)
{
    session->mirror.rejected++;
    sessions->rejected++;
    session->changed = true;
}

static int find_span(const struct session *session, uint64_t id)
{
    for (uint32_t i = 0; i < session->span_count; i++)
        if (session->spans[i].span.id == id)
            return (int)i;
    return -1;
}

/* --- checks ---------------------------------------------------------------------------------------------------------------------
 */

static void clean_text(char *field, size_t size)
{
    char raw[64];
    memcpy(raw, field, size);
    text_copy(field, size, raw, size);
}

/* Makes a span of a client's words. False where it makes no sense. */
static bool check_span(const struct sessions *sessions, struct layout_span *span, uint64_t now_ns)
{
    if (span->id == 0 || !isfinite(span->value) || !isfinite(span->max))
        return false;
    clean_text(span->job, sizeof span->job);
    clean_text(span->node, sizeof span->node);
    clean_text(span->name, sizeof span->name);
    if (span->start_ns > now_ns || span->start_ns == 0)
        span->start_ns = now_ns;
    if (span->updated_ns > now_ns || span->updated_ns < span->start_ns)
        span->updated_ns = span->start_ns;
    uint64_t named = span->devices;
    bool none = (span->flags & SPAN_NO_DEVICE) != 0;
    span->devices &= sessions_devices(sessions);
    span->flags = none || (named && !span->devices) ? SPAN_NO_DEVICE : 0;
    span->shared = 0;
    memset(span->reserved, 0, sizeof span->reserved);
    return true;
}

static void span_of_event(const struct layout_event *event, struct layout_span *out)
{
    *out = (struct layout_span){.id = event->span,
                                .parent = event->parent,
                                .start_ns = event->start_ns,
                                .updated_ns = event->start_ns,
                                .devices = event->devices,
                                .flags = event->flags & EVENT_NO_DEVICE ? SPAN_NO_DEVICE : 0,
                                .value = event->value,
                                .max = event->max};
    memcpy(out->job, event->job, sizeof out->job);
    memcpy(out->node, event->node, sizeof out->node);
    memcpy(out->name, event->name, sizeof out->name);
}

/* --- events ----------------------------------------------------------------------------------------------------------------------
 */

static void take_begin(struct sessions *sessions, int slot, const struct layout_event *event, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    struct layout_span span;
    span_of_event(event, &span);
    if (event->span != 0 && event->span <= session->last_id)
        return; /* after a loss it was concluded from the state that it is open, or over */
    if (!check_span(sessions, &span, now_ns) || session->span_count == LAYOUT_SESSION_SPANS)
        reject(sessions, session);
    else
        session_begin(sessions, slot, &span, 0, now_ns);
}

static void take_end(struct sessions *sessions, int slot, const struct layout_event *event, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    int index = find_span(session, event->span);
    if (index < 0 && event->span != 0 && event->span <= session->last_id)
        return;      /* after a loss it was concluded from the state that it is over */
    if (index < 0) { /* its BEGIN is lost; the END says it all once more */
        struct layout_span span;
        span_of_event(event, &span);
        if (!check_span(sessions, &span, now_ns) || session->span_count == LAYOUT_SESSION_SPANS) {
            reject(sessions, session);
            return;
        }
        session_begin(sessions, slot, &span, EVENT_RECOVERED, now_ns);
        index = (int)session->span_count - 1;
    }
    struct session_span *span = &session->spans[index];
    uint64_t start = span->span.start_ns;
    uint64_t end = event->mono_ns > now_ns ? now_ns : event->mono_ns < start ? start : event->mono_ns;
    if (isfinite(event->value) && isfinite(event->max)) {
        span->span.value = event->value;
        span->span.max = event->max;
    }
    session_end(sessions, slot, index, end, 0, now_ns);
}

static void take_instant(struct sessions *sessions, int slot, const struct layout_event *event, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    uint64_t earliest = session->mirror.since_mono_ns;
    struct layout_event out = {.mono_ns = event->mono_ns > now_ns     ? now_ns
                                          : event->mono_ns < earliest ? earliest
                                                                      : event->mono_ns,
                               .type = EVENT_INSTANT,
                               .parent = event->parent};
    text_copy(out.job, sizeof out.job, event->job, sizeof event->job);
    text_copy(out.node, sizeof out.node, event->node, sizeof event->node);
    text_copy(out.name, sizeof out.name, event->name, sizeof event->name);
    out.start_ns = out.mono_ns;
    sessions_say(sessions, slot, &out, NULL);
}

/* Up to a time: events of a client come in the order of their times. */
static void take_events(struct sessions *sessions, int slot, uint64_t until_ns, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    const struct ring *ring = &session->memory.events;
    union {
        struct layout_event event;
        uint64_t words[sizeof(struct layout_event) / 8];
    } raw;
    uint64_t head = ring_head(ring), missed = 0;
    if (ring_distance(session->next_event, head) <= 0)
        return;
    if (head - session->next_event > CLIENT_EVENT_DEPTH) {
        missed = head - session->next_event - CLIENT_EVENT_DEPTH / 2;
        session->next_event = head - CLIENT_EVENT_DEPTH / 2;
    }
    for (; session->next_event != head; session->next_event++) {
        if (ring_read(ring, session->next_event, raw.words) != RING_OK) {
            missed++;
            continue;
        }
        if (raw.event.mono_ns > until_ns)
            break;
        switch (raw.event.type) {
        case EVENT_BEGIN: take_begin(sessions, slot, &raw.event, now_ns); break;
        case EVENT_END: take_end(sessions, slot, &raw.event, now_ns); break;
        case EVENT_INSTANT: take_instant(sessions, slot, &raw.event, now_ns); break;
        default: reject(sessions, session); break;
        }
    }
    session->behind |= missed > 0;
    session->changed |= missed > 0;
    session->mirror.lost += missed;
    sessions->lost += missed;
}

void sessions_catch_up(struct sessions *sessions, int but, uint64_t until_ns, uint64_t now_ns)
{
    for (int slot = 0; slot < LAYOUT_SESSION_SLOTS; slot++)
        if (slot != but && sessions->items[slot].open)
            take_events(sessions, slot, until_ns, now_ns);
}

/* --- state ------------------------------------------------------------------------------------------------------------ */

static bool read_entry(const struct ring *ring, uint64_t *words, uint32_t count)
{
    uint64_t last = 0;
    return ring_latest_words(ring, words, count, &last, 0) == RING_OK;
}

union span_words {
    struct layout_span span;
    uint64_t words[sizeof(struct layout_span) / 8];
};

static void take_progress(struct sessions *sessions, int slot, const struct layout_span *fresh, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    int index = find_span(session, fresh->id);
    if (index < 0)
        return; /* its BEGIN is still to come, or its END has been read */
    if (!isfinite(fresh->value) || !isfinite(fresh->max)) {
        reject(sessions, session);
        return;
    }
    struct layout_span *span = &session->spans[index].span;
    if (fresh->value == span->value && fresh->max == span->max)
        return;
    span->value = fresh->value;
    span->max = fresh->max;
    span->updated_ns = fresh->updated_ns > now_ns || fresh->updated_ns < span->start_ns ? now_ns : fresh->updated_ns;
    session->changed = true;
}

/* Steps ring no bell; they become events here, ten a second at most. */
static void say_steps(struct sessions *sessions, int slot, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    for (uint32_t i = 0; i < session->span_count; i++) {
        struct session_span *span = &session->spans[i];
        bool told = span->told_value == span->span.value && span->told_max == span->span.max;
        if (told || now_ns - span->told_ns < step_every_ns)
            continue;
        span->told_value = span->span.value;
        span->told_max = span->span.max;
        span->told_ns = now_ns;
        sessions_say_span(sessions, slot, EVENT_STEP, 0, &span->span, span->span.updated_ns, NULL);
    }
}

static void take_states(struct sessions *sessions, int slot, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    union span_words raw;
    for (int i = 0; i < LAYOUT_SESSION_SPANS; i++) {
        uint64_t head = ring_head(&session->memory.spans[i]);
        if (head == session->span_heads[i])
            continue;
        session->span_heads[i] = head;
        if (read_entry(&session->memory.spans[i], raw.words, sizeof raw.words / 8) && raw.span.id != 0)
            take_progress(sessions, slot, &raw.span, now_ns);
    }
}

/* Place of the lowest id that is not known to be open, -1 = none. */
static int next_unknown(const struct session *session, const union span_words *raw, const bool *readable)
{
    int best = -1;
    for (int i = 0; i < LAYOUT_SESSION_SPANS; i++)
        if (readable[i] && raw[i].span.id != 0 && find_span(session, raw[i].span.id) < 0 &&
            (best < 0 || raw[i].span.id < raw[best].span.id))
            best = i;
    return best;
}

/* After a loss the state says what is open. Spans unknown there have ended. Spans unknown here have begun: they were not ended by
 * any event read before, since the client closes the entry first. That is believed only if no event came since those that were
 * read, else a BEGIN still to come would be taken for an old one once a higher id is known; the bell of that event brings us back
 * here. tests/models/sessions.pml shows what goes wrong otherwise. */
static void conclude(struct sessions *sessions, int slot, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    union span_words raw[LAYOUT_SESSION_SPANS];
    bool readable[LAYOUT_SESSION_SPANS];
    bool all = true;
    for (int i = 0; i < LAYOUT_SESSION_SPANS; i++) {
        readable[i] = read_entry(&session->memory.spans[i], raw[i].words, sizeof raw[i].words / 8);
        all = all && (readable[i] || ring_head(&session->memory.spans[i]) == CLIENT_FIRST_TICKET);
    }
    bool still = all && ring_head(&session->memory.events) == session->next_event;
    for (int open = (int)session->span_count - 1; open >= 0 && all; open--) {
        bool there = false;
        for (int i = 0; i < LAYOUT_SESSION_SPANS; i++)
            there = there || (readable[i] && raw[i].span.id == session->spans[open].span.id);
        if (!there)
            session_end(sessions, slot, open, now_ns, EVENT_RECOVERED, now_ns);
    }
    if (!still)
        return;
    session->behind = false;
    for (int i; (i = next_unknown(session, raw, readable)) >= 0 && session->span_count < LAYOUT_SESSION_SPANS;) {
        readable[i] = false;
        if (check_span(sessions, &raw[i].span, now_ns))
            session_begin(sessions, slot, &raw[i].span, EVENT_RECOVERED, now_ns);
    }
}

static void take_gauges(struct sessions *sessions, int slot, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    union {
        struct layout_gauge gauge;
        uint64_t words[sizeof(struct layout_gauge) / 8];
    } raw;
    for (int i = 0; i < LAYOUT_SESSION_GAUGES; i++) {
        uint64_t head = ring_head(&session->memory.gauges[i]);
        if (head != session->gauge_heads[i] && read_entry(&session->memory.gauges[i], raw.words, sizeof raw.words / 8)) {
            session->gauge_heads[i] = head;
            session->gauges[i] = raw.gauge;
            session->gauges[i].reserved0 = 0;
            if (raw.gauge.updated_ns == 0 || raw.gauge.updated_ns > now_ns)
                session->gauges[i].updated_ns = now_ns;
            if (raw.gauge.device >= word_peek(&sessions->publisher->writer.header->device_count))
                session->gauges[i].updated_ns = 0; /* of a device that is no more: not shown */
            session->changed = true;
        }
        uint64_t held = session->gauges[i].reserved;
        for (uint32_t j = 0; session->gauges[i].updated_ns > 0 && held != UINT64_MAX && j < session->span_count; j++)
            if (held > session->spans[j].own_peak[i])
                session->spans[j].own_peak[i] = held;
    }
}

void sessions_merge(struct sessions *sessions, int slot, uint64_t now_ns)
{
    struct session *session = &sessions->items[slot];
    uint64_t dropped = word_get(&session->memory.counters->dropped);
    take_events(sessions, slot, UINT64_MAX, now_ns);
    take_states(sessions, slot, now_ns);
    if (session->behind)
        conclude(sessions, slot, now_ns);
    take_gauges(sessions, slot, now_ns);
    say_steps(sessions, slot, now_ns);
    session->changed |= dropped != session->mirror.dropped;
    session->mirror.dropped = dropped;
}
