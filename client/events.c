/* The ring of what sessions said, read by a cursor as samples are. */
#include <math.h>
#include <string.h>

#include "client/cursor.h"
#include "client/sessions.h"
#include "shm/text.h"

union event_words {
    struct layout_event event;
    uint64_t words[sizeof(struct layout_event) / 8];
};

static int event_ring(gputap *tap, const struct pass *pass, int device, struct ring *out)
{
    (void)tap, (void)device;
    if (pass->mapping->view.event.count == 0)
        return 0; /* a broker of before 0.2: the next may be a later one */
    view_entry(&pass->mapping->view, REGION_EVENT, 0, out);
    return 1;
}

int gputap_event_cursor_init(gputap *tap, gputap_cursor *cursor, int start)
{
    gputap_cursor fresh = {.device = GPUTAP_HOST};
    if (!tap || !cursor)
        return GPUTAP_EINVAL;
    int result = cursor_start(tap, &fresh, event_ring, start);
    if (result == GPUTAP_OK)
        *cursor = fresh;
    return result;
}

/* The session's label, as long as its slot is its own. */
static void label_of(const struct pass *pass, const struct layout_event *event, char *out, size_t size)
{
    enum { FIRST = offsetof(struct layout_session, state) / 8, LABEL = offsetof(struct layout_session, label) / 8, WORDS = 6 };
    static const uint32_t offsets[1 + WORDS] = {FIRST, LABEL, LABEL + 1, LABEL + 2, LABEL + 3, LABEL + 4, LABEL + 5};
    _Static_assert(sizeof((struct layout_session *)0)->label == WORDS * 8, "words of a label");
    union {
        uint64_t words[1 + WORDS];
        struct {
            uint32_t state, generation;
            char label[WORDS * 8];
        } part;
    } raw;
    struct ring ring;
    uint64_t last = 0;
    out[0] = '\0';
    if (event->slot >= pass->mapping->view.session.count)
        return;
    view_entry(&pass->mapping->view, REGION_SESSION, event->slot, &ring);
    if (ring_latest_fields(&ring, offsets, 1 + WORDS, raw.words, &last, 0) == RING_OK && raw.part.generation == event->generation)
        text_copy(out, size, raw.part.label, sizeof raw.part.label);
}

#define TEXT(field) text_copy(out->field, sizeof out->field, from->field, sizeof from->field)

static void texts_of(const struct layout_event *from, gputap_event *out)
{
    TEXT(job);
    TEXT(node);
    TEXT(name);
}

/* A USAGE has no room for the texts of its span: they stand in the END that it names. */
static void texts_of_end(const struct ring *ring, const struct layout_event *usage, gputap_event *out)
{
    union event_words raw;
    bool there = ring_read(ring, usage->end_ticket, raw.words) == RING_OK && raw.event.type == EVENT_END &&
                 raw.event.span == usage->span && raw.event.slot == usage->slot && raw.event.generation == usage->generation;
    if (there)
        texts_of(&raw.event, out);
    else
        out->flags |= GPUTAP_EVENT_NO_TEXTS;
}

static void payload_public(const struct layout_event *from, const struct slot_numbers *numbers, const struct ring *ring,
                           gputap_event *out)
{
    if (from->type == EVENT_USAGE) {
        usage_public(&from->usage, slot_number(numbers, from->usage.device), &out->usage);
        texts_of_end(ring, from, out);
        return;
    }
    if (from->type == 0 || from->type >= EVENT_TYPE_COUNT)
        return; /* of a later broker: what it carries is not known here */
    texts_of(from, out);
    session_progress(from->value, from->max, &out->value, &out->max);
    if ((from->type == EVENT_END || from->type == EVENT_STEP) && from->start_ns > 0 && from->mono_ns >= from->start_ns)
        out->seconds = (double)(from->mono_ns - from->start_ns) / 1e9;
}

static void event_public(gputap *tap, const struct cursor_found *found, const struct layout_event *from, gputap_event *out)
{
    struct slot_numbers numbers;
    devices_numbers(tap, found->pass.mapping, &numbers);
    memset(out, 0, sizeof *out);
    out->type = from->type;
    out->flags = from->flags & (GPUTAP_EVENT_ABANDONED | GPUTAP_EVENT_RECOVERED);
    out->slot = from->slot <= INT32_MAX ? (int32_t)from->slot : -1;
    out->generation = from->generation;
    out->pid = from->pid;
    out->uid = from->uid;
    out->device_count = from->flags & EVENT_NO_DEVICE ? -1 : session_devices(&numbers, from->devices, out->devices);
    out->span = from->span;
    out->parent = from->parent;
    out->mono_ns = from->mono_ns;
    out->real_ms = (int64_t)(from->real_ns / 1000000u);
    out->seconds = (double)NAN;
    payload_public(from, &numbers, &found->ring, out);
    if (from->type == EVENT_ATTACH || from->type == EVENT_DETACH)
        text_copy(out->label, sizeof out->label, out->name, sizeof out->name);
    else
        label_of(&found->pass, from, out->label, sizeof out->label);
}

int gputap_next_event(gputap *tap, gputap_cursor *cursor, gputap_event *out)
{
    union event_words raw = {0};
    struct cursor_found found;
    gputap_event known;
    if (!tap || !cursor || !out)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        int result = cursor_find(tap, cursor, event_ring, raw.words, &found);
        if (result != 1)
            return result;
        event_public(tap, &found, &raw.event, &known);
        if (!pass_held(tap, &found.pass))
            continue;
        result = client_copy_sized(tap, out, out->size, &known, sizeof known);
        if (result != GPUTAP_OK)
            return result;
        cursor_advance(cursor);
        return 1;
    }
    return client_fail_busy(tap);
}
