/* The broker's mirror of its clients. Their texts and numbers have gone through the broker's checks, and are checked once more. */
#include "client/sessions.h"

#include <math.h>
#include <string.h>

#include "shm/text.h"

int gputap_session_slots(gputap *tap)
{
    if (!tap)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        struct pass pass;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        int slots = (int)pass.mapping->view.session.count;
        if (pass_held(tap, &pass))
            return slots;
    }
    return client_fail_busy(tap);
}

int session_devices(const struct slot_numbers *numbers, uint64_t mask, int16_t out[LAYOUT_SPAN_DEVICES])
{
    int count = 0;
    if (mask == 0)
        return 0;
    for (int slot = 0; slot < LAYOUT_SPAN_DEVICES; slot++)
        if ((mask >> slot) & 1 && numbers->of[slot] >= 0)
            out[count++] = numbers->of[slot];
    return count > 0 ? count : -1;
}

void session_progress(double value, double max, double *out_value, double *out_max)
{
    bool known = isfinite(value) && isfinite(max);
    *out_value = known ? value : 0;
    *out_max = known ? max : 0;
}

#define TEXT(field) text_copy(out->field, sizeof out->field, from->field, sizeof from->field)

/* The two clocks now, together. */
struct now {
    uint64_t mono_ns, real_ns;
};

static void span_public(const struct layout_span *from, const struct slot_numbers *numbers, const struct now *now, gputap_span *out)
{
    uint64_t age = now->mono_ns > from->start_ns ? now->mono_ns - from->start_ns : 0;
    memset(out, 0, sizeof *out);
    out->id = from->id;
    out->parent = from->parent;
    out->start_ns = from->start_ns;
    out->start_ms = now->real_ns > age ? (int64_t)((now->real_ns - age) / 1000000u) : 0;
    out->seconds = (double)age / 1e9;
    session_progress(from->value, from->max, &out->value, &out->max);
    out->shared = from->shared != 0;
    out->device_count = from->flags & SPAN_NO_DEVICE ? -1 : session_devices(numbers, from->devices, out->devices);
    TEXT(job);
    TEXT(node);
    TEXT(name);
}

static int spans_public(const struct layout_session *from, const struct slot_numbers *numbers, const struct now *now,
                        gputap_span *spans, int capacity)
{
    int filled = 0;
    uint32_t count = from->span_count < LAYOUT_SESSION_SPANS ? from->span_count : (uint32_t)LAYOUT_SESSION_SPANS;
    for (uint32_t i = 0; spans && i < count && filled < capacity; i++)
        if (from->spans[i].id != 0)
            span_public(&from->spans[i], numbers, now, &spans[filled++]);
    return filled;
}

static void session_public(const struct layout_session *from, const struct slot_numbers *numbers, gputap_session *out)
{
    memset(out, 0, sizeof *out);
    out->generation = from->generation;
    out->pid = from->pid;
    out->uid = from->uid;
    out->since_ms = (int64_t)(from->since_real_ns / 1000000u);
    out->dropped = from->dropped;
    out->lost = from->lost;
    out->rejected = from->rejected;
    out->ended = from->ended;
    out->span_count = from->span_count < LAYOUT_SESSION_SPANS ? from->span_count : (uint32_t)LAYOUT_SESSION_SPANS;
    TEXT(label);
    TEXT(comm);
    for (uint32_t i = 0; i < LAYOUT_SESSION_GAUGES && i < from->gauge_count; i++) {
        const struct layout_gauge *gauge = &from->gauges[i];
        int device = slot_number(numbers, gauge->device);
        if (gauge->updated_ns > 0 && device >= 0)
            out->gauges[out->gauge_count++] = (gputap_gauge_value){
                .device = device, .allocated = gauge->allocated, .reserved = gauge->reserved, .dynamic = gauge->dynamic};
    }
}

static int read_mirror(const struct pass *pass, int slot, union session_words *out)
{
    struct ring ring;
    uint64_t last = 0;
    if (slot < 0 || (uint32_t)slot >= pass->mapping->view.session.count)
        return GPUTAP_EINVAL;
    view_entry(&pass->mapping->view, REGION_SESSION, (uint32_t)slot, &ring);
    switch (ring_latest_words(&ring, out->words, sizeof out->words / 8, &last, 0)) {
    case RING_OK: return out->entry.state == SESSION_OPEN ? GPUTAP_OK : GPUTAP_EEMPTY;
    case RING_EMPTY: return GPUTAP_EEMPTY;
    default: return GPUTAP_EAGAIN;
    }
}

static bool is_mine(const gputap *tap, int slot, uint32_t generation)
{
    uint32_t own = 0;
    return annotator_slot(tap, &own) == slot && own == generation;
}

int gputap_session_info(gputap *tap, int slot, gputap_session *out, gputap_span *spans, int capacity)
{
    union session_words raw;
    struct slot_numbers numbers;
    int result = GPUTAP_EAGAIN;
    if (!tap || !out || capacity < 0)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        struct pass pass;
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        result = read_mirror(&pass, slot, &raw);
        devices_numbers(tap, pass.mapping, &numbers);
        struct now now = {.mono_ns = pass_now(&pass), .real_ns = clock_real_ns()};
        if (!pass_held(tap, &pass) || result == GPUTAP_EAGAIN) {
            result = GPUTAP_EAGAIN;
            continue;
        }
        if (result != GPUTAP_OK)
            break;
        gputap_session known;
        session_public(&raw.entry, &numbers, &known);
        known.slot = slot;
        known.mine = is_mine(tap, slot, known.generation);
        result = client_copy_sized(tap, out, out->size, &known, sizeof known);
        return result == GPUTAP_OK ? spans_public(&raw.entry, &numbers, &now, spans, capacity) : result;
    }
    switch (result) {
    case GPUTAP_EAGAIN: return client_fail_busy(tap);
    case GPUTAP_EEMPTY: return client_fail(tap, result, "session slot %d is free", slot);
    default: return client_fail(tap, result, "%d is out of range", slot);
    }
}
