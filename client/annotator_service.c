/* The annotator's dealings with the broker. */
#include <string.h>

#include "client/annotator.h"
#include "shm/text.h"

#define MS UINT64_C(1000000)

static const uint64_t try_every_ns = 250 * MS;
static const uint64_t look_every_ns = 250 * MS;
static const uint64_t look_asked_ns = MS;

/* --- devices ---------------------------------------------------------------------------------------------------------- */

static int slot_of(const struct mapping *mapping, int device)
{
    if (device < 0 || device >= HANDLE_MAX_NUMBERS)
        return -1;
    uint32_t slot = word32_get(&mapping->slot_of[device]);
    return (int)slot - 1;
}

static bool same_epoch(const struct annotator *a, const struct mapping *mapping)
{
    uint64_t words[2];
    memcpy(words, a->epoch, sizeof words);
    return words[0] == word_get(&mapping->epoch[0]) && words[1] == word_get(&mapping->epoch[1]);
}

bool annotator_current(const gputap *tap, const struct annotator *a)
{
    const struct mapping *mapping = handle_current(tap);
    return mapping && same_epoch(a, mapping);
}

/* The broker lives and made its segment anew, as it does when somebody removed the file: the session goes on in that. */
static void follow_epoch(const gputap *tap, struct annotator *a)
{
    const struct mapping *mapping = handle_current(tap);
    if (!mapping)
        return;
    uint64_t words[2] = {word_get(&mapping->epoch[0]), word_get(&mapping->epoch[1])};
    memcpy(a->epoch, words, sizeof a->epoch);
}

/* The broker's name for the span's devices; 0 for a span that names some of which none is left. */
static uint64_t device_mask(gputap *tap, const struct open_span *span)
{
    const struct mapping *mapping = handle_current(tap);
    uint64_t mask = 0;
    for (int i = 0; mapping && i < span->device_count; i++) {
        int slot = slot_of(mapping, span->devices[i]);
        if (slot >= 0 && slot < LAYOUT_SPAN_DEVICES)
            mask |= UINT64_C(1) << slot;
    }
    return mask;
}

/* --- publishing ----------------------------------------------------------------------------------------------------------------
 */

void annotator_show_span(gputap *tap, struct annotator *a, int index)
{
    union {
        struct layout_span span;
        uint64_t words[sizeof(struct layout_span) / 8];
    } raw;
    if (!annotator_connected(a))
        return;
    raw.span = a->spans[index].span;
    if (raw.span.id) {
        raw.span.start_ns += (uint64_t)a->clock_offset;
        raw.span.updated_ns += (uint64_t)a->clock_offset;
        raw.span.devices = device_mask(tap, &a->spans[index]);
        raw.span.flags = a->spans[index].device_count > 0 && !raw.span.devices ? SPAN_NO_DEVICE : 0;
    }
    ring_publish(&a->shared.spans[index], raw.words);
}

void annotator_show_gauge(gputap *tap, struct annotator *a, int index)
{
    union {
        struct layout_gauge gauge;
        uint64_t words[sizeof(struct layout_gauge) / 8];
    } raw;
    const struct mapping *mapping = handle_current(tap);
    if (!annotator_connected(a) || !mapping)
        return;
    int slot = slot_of(mapping, a->gauges[index].device);
    raw.gauge = a->gauges[index].gauge;
    raw.gauge.device = slot < 0 ? UINT32_MAX : (uint32_t)slot;
    raw.gauge.updated_ns += (uint64_t)a->clock_offset;
    ring_publish(&a->shared.gauges[index], raw.words);
}

bool annotator_say(gputap *tap, struct annotator *a, enum event_type type, const struct open_span *open)
{
    union {
        struct layout_event event;
        uint64_t words[sizeof(struct layout_event) / 8];
    } raw = {0};
    const struct layout_span *span = &open->span;
    if (!annotator_connected(a))
        return false;
    raw.event.mono_ns = (type == EVENT_END ? clock_mono_ns() : span->start_ns) + (uint64_t)a->clock_offset;
    raw.event.type = (uint32_t)type;
    raw.event.span = span->id;
    raw.event.parent = span->parent;
    raw.event.devices = device_mask(tap, open);
    raw.event.flags = open->device_count > 0 && !raw.event.devices ? EVENT_NO_DEVICE : 0;
    raw.event.value = span->value;
    raw.event.max = span->max;
    raw.event.start_ns = span->start_ns + (uint64_t)a->clock_offset;
    memcpy(raw.event.job, span->job, sizeof raw.event.job);
    memcpy(raw.event.node, span->node, sizeof raw.event.node);
    memcpy(raw.event.name, span->name, sizeof raw.event.name);
    ring_publish(&a->shared.events, raw.words);
    link_ring(&a->link);
    return true;
}

void annotator_drop(struct annotator *a)
{
    a->dropped++;
    if (annotator_connected(a))
        word_set(&a->shared.counters->dropped, a->dropped);
}

/* A new broker knows nothing of what is open. */
static void show_all(gputap *tap, struct annotator *a)
{
    word_set(&a->shared.counters->dropped, a->dropped);
    for (int i = 0; i < LAYOUT_SESSION_GAUGES; i++)
        if (a->gauges[i].used)
            annotator_show_gauge(tap, a, i);
    for (uint64_t last = 0;;) { /* ids only grow, for the broker */
        int next = -1;
        for (int i = 0; i < LAYOUT_SESSION_SPANS; i++)
            if (a->spans[i].span.id > last && (next < 0 || a->spans[i].span.id < a->spans[next].span.id))
                next = i;
        if (next < 0)
            return;
        last = a->spans[next].span.id;
        annotator_show_span(tap, a, next);
        annotator_say(tap, a, EVENT_BEGIN, &a->spans[next]);
    }
}

/* --- the connection --------------------------------------------------------------------------------------------------- */

void annotator_hang_up(struct annotator *a)
{
    link_close(&a->link);
    a->generation = 0;
}

static void lost(struct annotator *a)
{
    a->dropped += link_unheard(&a->link);
    annotator_hang_up(a);
    text_format(a->why, sizeof a->why, "the broker has hung up");
}

static void ask(gputap *tap, struct annotator *a, uint64_t now)
{
    const struct mapping *mapping = handle_current(tap);
    struct control_hello hello = {.magic = CONTROL_MAGIC,
                                  .type = CONTROL_HELLO,
                                  .abi_major = LAYOUT_ABI_MAJOR,
                                  .abi_minor = LAYOUT_ABI_MINOR,
                                  .flags = a->attached ? CONTROL_SESSION : 0,
                                  .period_ns = a->period_ns};
    memcpy(hello.label, a->label, sizeof hello.label);
    a->next_try = now + try_every_ns;
    if (!mapping)
        text_format(a->why, sizeof a->why, "no broker was found");
    else if (!link_ask(&a->link, tap->places[word_get(&mapping->place)].path, &hello))
        text_format(a->why, sizeof a->why, "nobody answers at the broker's " PLACE_CONTROL);
}

static int64_t offset_of(const struct mapping *mapping, const struct control_grant *grant)
{
    if (word_get(&mapping->same_clock))
        return 0;
    int64_t theirs = (int64_t)(grant->mono_ns - grant->real_ns), ours = (int64_t)(clock_mono_ns() - clock_real_ns());
    return theirs - ours;
}

static void granted(gputap *tap, struct annotator *a, const struct control_grant *grant, uint64_t now)
{
    memcpy(a->epoch, grant->epoch, sizeof a->epoch);
    struct mapping *mapping = handle_current(tap);
    if (!mapping || !same_epoch(a, mapping)) { /* the broker is newer than the segment that is mapped */
        handle_check(tap, clock_mono_ns(), true);
        mapping = handle_current(tap);
    }
    if (!mapping || !same_epoch(a, mapping)) {
        annotator_hang_up(a);
        text_format(a->why, sizeof a->why, "the broker is just being replaced");
        return;
    }
    a->clock_offset = offset_of(mapping, grant);
    a->connects++;
    a->next_look = now + look_every_ns;
    a->why[0] = '\0';
    if (!a->link.memory)
        return;
    a->slot = grant->slot;
    a->generation = grant->generation;
    client_memory_format(&a->shared, a->link.memory);
    show_all(tap, a);
}

static void listen_to_broker(gputap *tap, struct annotator *a, uint64_t now, int wait_ms)
{
    struct control_grant grant;
    struct control_refuse refuse;
    a->next_look = now + (a->link.state == LINK_UP ? look_every_ns : look_asked_ns);
    switch (link_listen(&a->link, &grant, &refuse, wait_ms)) {
    case LINK_GRANTED: granted(tap, a, &grant, now); break;
    case LINK_REFUSED: {
        char text[sizeof refuse.text];
        text_copy(text, sizeof text, refuse.text, sizeof refuse.text);
        text_format(a->why, sizeof a->why, "the broker refuses: %s", text);
        uint64_t wait = refuse.retry_ms < 60000 ? refuse.retry_ms * MS : 60000 * MS;
        a->next_try = now + (wait > try_every_ns ? wait : try_every_ns);
        break;
    }
    case LINK_GONE: lost(a); break;
    case LINK_NOTHING:
        if (a->link.state == LINK_UP)
            follow_epoch(tap, a);
        break;
    }
}

void annotator_service(gputap *tap, struct annotator *a, uint64_t now, int wait_ms)
{
    if ((int64_t)(now - a->next_look) < 0)
        return;
    a->next_look = now + look_every_ns;
    if (!a->attached && a->period_ns == 0) {
        annotator_hang_up(a);
        return;
    }
    handle_tick(tap, clock_mono_coarse_ns());
    if (a->link.state != LINK_DOWN)
        listen_to_broker(tap, a, now, 0);
    if (a->link.state == LINK_DOWN && (int64_t)(now - a->next_try) >= 0) {
        ask(tap, a, now);
        if (a->link.state == LINK_ASKED)
            listen_to_broker(tap, a, now, wait_ms);
    }
    if (a->link.state == LINK_DOWN)
        a->next_look = a->next_try;
}
