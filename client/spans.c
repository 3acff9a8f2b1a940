/* Spans of the annotator: begin, step, end. See annotate.c for the order of things. */
#include <math.h>
#include <string.h>

#include "client/annotator.h"

static int check_devices(gputap *tap, const int *devices, int count)
{
    if (count < 0 || count > LAYOUT_SPAN_DEVICES || (count > 0 && !devices))
        return client_fail(tap, GPUTAP_EINVAL, "%d devices: 0 to %d are allowed", count, LAYOUT_SPAN_DEVICES);
    const struct mapping *mapping = handle_current(tap);
    for (int i = 0; i < count; i++) {
        if (devices[i] < 0 || (uint64_t)devices[i] >= word_get(&tap->numbers))
            return client_fail_device(tap, devices[i] < 0 ? GPUTAP_EINVAL : GPUTAP_ENODEV, devices[i]);
        int slot = mapping ? device_slot(tap, mapping, devices[i]) : 0;
        if (slot < 0)
            return client_fail_device(tap, slot, devices[i]);
        if (slot >= LAYOUT_SPAN_DEVICES)
            return client_fail(tap, GPUTAP_ENODEV, "device %d: a span can name the first %d devices alone", devices[i],
                               LAYOUT_SPAN_DEVICES);
    }
    return GPUTAP_OK;
}

static int free_place(const struct annotator *a)
{
    for (int i = 0; i < LAYOUT_SESSION_SPANS; i++)
        if (a->spans[i].span.id == 0)
            return i;
    return -1;
}

void annotator_own_peak(struct open_span *span, int device, uint64_t reserved)
{
    int i = 0;
    while (i < span->own_count && span->own[i].device != device)
        i++;
    if (i == span->own_count)
        span->own[span->own_count++] = (struct own_peak){device, reserved};
    else if (reserved > span->own[i].peak)
        span->own[i].peak = reserved;
}

static void fill_span(struct annotator *a, int index, const char *job, const char *node, const char *name, uint64_t parent,
                      const int *devices, int count)
{
    struct open_span *open = &a->spans[index];
    uint64_t now = clock_mono_ns();
    open->span = (struct layout_span){
        .id = ++a->count << ANNOTATOR_INDEX_BITS | (uint64_t)index, .parent = parent, .start_ns = now, .updated_ns = now};
    annotator_text(open->span.job, sizeof open->span.job, job);
    annotator_text(open->span.node, sizeof open->span.node, node);
    annotator_text(open->span.name, sizeof open->span.name, name);
    open->device_count = count;
    for (int i = 0; i < count; i++)
        open->devices[i] = (int16_t)devices[i];
    open->own_count = 0;
    for (int i = 0; i < LAYOUT_SESSION_GAUGES && a->gauges[i].used; i++) /* places are taken in turn, and kept */
        if (a->gauges[i].gauge.reserved != UINT64_MAX)
            annotator_own_peak(open, a->gauges[i].device, a->gauges[i].gauge.reserved);
}

int gputap_span_begin(gputap *tap, const char *job, const char *node, const char *name, uint64_t parent, const int *devices,
                      int count, uint64_t *span)
{
    struct annotator *a;
    if (!tap || !span)
        return GPUTAP_EINVAL;
    *span = 0;
    int result = annotator_enter(tap, &a);
    if (result != GPUTAP_OK)
        return result;
    result = check_devices(tap, devices, count);
    int index = free_place(a);
    if (result == GPUTAP_OK && index < 0) {
        annotator_drop(a);
        result = client_fail(tap, GPUTAP_EFULL, "%d spans are open", LAYOUT_SESSION_SPANS);
    }
    if (result == GPUTAP_OK) {
        fill_span(a, index, job, node, name, parent, devices, count);
        *span = a->spans[index].span.id;
        annotator_show_span(tap, a, index);
        annotator_say(tap, a, EVENT_BEGIN, &a->spans[index]);
    }
    mutex_unlock(&a->mutex);
    return result;
}

static struct open_span *span_of(struct annotator *a, uint64_t id)
{
    struct open_span *open = &a->spans[id & (LAYOUT_SESSION_SPANS - 1)];
    return id != 0 && open->span.id == id ? open : NULL;
}

int gputap_span_step(gputap *tap, uint64_t span, double value, double max)
{
    struct annotator *a;
    if (!tap || !isfinite(value) || !isfinite(max))
        return GPUTAP_EINVAL;
    if (span == 0)
        return GPUTAP_OK; /* what begin gave where it failed */
    int result = annotator_enter(tap, &a);
    if (result != GPUTAP_OK)
        return result;
    struct open_span *open = span_of(a, span);
    if (open) {
        open->span.value = value;
        open->span.max = max;
        open->span.updated_ns = clock_mono_coarse_ns();
        annotator_show_span(tap, a, (int)(open - a->spans));
    }
    mutex_unlock(&a->mutex);
    return open ? GPUTAP_OK : client_fail(tap, GPUTAP_EINVAL, "no span of that id is open");
}

static uint64_t own_peak_of(const struct open_span *span, int device)
{
    for (int i = 0; i < span->own_count; i++)
        if (span->own[i].device == device)
            return span->own[i].peak;
    return 0;
}

/* Does the broker see another session's span on the same devices? It says so in its mirror of ours. */
static bool seen_shared(gputap *tap, uint64_t id)
{
    uint32_t generation = 0;
    gputap_span spans[LAYOUT_SESSION_SPANS];
    gputap_session session = GPUTAP_SESSION_INIT;
    int slot = annotator_slot(tap, &generation);
    int count = slot < 0 ? 0 : gputap_session_info(tap, slot, &session, spans, LAYOUT_SESSION_SPANS);
    for (int i = 0; i < count && session.generation == generation; i++)
        if (spans[i].id == id)
            return spans[i].shared != 0;
    return false;
}

/* Of a span that is over: all of this without the mutex. `age_ns`: how long ago it began. */
static int usage_of(gputap *tap, const struct open_span *span, uint64_t age_ns, bool shared, gputap_usage *usage, int capacity)
{
    uint64_t end = gputap_now(tap);
    int count = span->device_count ? span->device_count : gputap_device_count(tap), filled = 0;
    for (int i = 0; i < count && filled < capacity && end > age_ns; i++) {
        int device = span->device_count ? span->devices[i] : i;
        if (gputap_usage_between(tap, device, end - age_ns, end, &usage[filled]) != GPUTAP_OK)
            continue;
        uint64_t own = own_peak_of(span, device);
        usage[filled].flags |= shared ? GPUTAP_USAGE_SHARED : 0u;
        usage[filled].own_vram_peak = own > 0 ? (double)own : (double)NAN;
        filled++;
    }
    return filled;
}

int gputap_span_end(gputap *tap, uint64_t span, gputap_usage *usage, int capacity)
{
    struct annotator *a;
    struct open_span ended;
    bool wanted = tap && usage && capacity > 0;
    if (!tap || (usage && capacity < 0))
        return GPUTAP_EINVAL;
    if (span == 0)
        return GPUTAP_OK;
    bool shared = wanted && seen_shared(tap, span); /* while the mirror still has it */
    int result = annotator_enter(tap, &a);
    if (result != GPUTAP_OK)
        return result;
    struct open_span *open = span_of(a, span);
    if (open) {
        open->span.id = 0;
        annotator_show_span(tap, a, (int)(open - a->spans)); /* closed first: see conclude() in broker/session_merge.c */
        open->span.id = span;
        if (!annotator_say(tap, a, EVENT_END, open))
            annotator_drop(a);
        if (wanted)
            ended = *open;
        open->span.id = 0;
    }
    mutex_unlock(&a->mutex);
    if (!open)
        return client_fail(tap, GPUTAP_EINVAL, "no span of that id is open");
    return wanted ? usage_of(tap, &ended, clock_mono_ns() - ended.span.start_ns, shared, usage, capacity) : GPUTAP_OK;
}
