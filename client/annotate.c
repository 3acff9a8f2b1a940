/* The calls of the annotator. Each looks after the connection first, changes what is kept here, and then shows it to the broker:
 * the entry before the event, the event before the bell. */
#include <stdlib.h>
#include <string.h>

#include "client/annotator.h"
#include "shm/text.h"

static const int attach_wait_ms = 10;

/* --- its life --------------------------------------------------------------------------------------------------------------------
 */

static struct annotator *annotator_new(void)
{
    struct annotator *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->canary = fork_canary(&a->mark);
    if (!a->canary) {
        free(a);
        return NULL;
    }
    mutex_init(&a->mutex);
    link_init(&a->link);
    return a;
}

static void annotator_free(struct annotator *a)
{
    if (annotator_ours(a))
        link_close(&a->link);
    else
        link_forget(&a->link);
    mutex_destroy(&a->mutex);
    free(a);
}

/* The handle's annotator, made if there is none. What a child inherited is its parent's: it is left alone, since another thread may
 * have held its mutex at the fork, and replaced. */
static struct annotator *annotator_need(gputap *tap)
{
    uint64_t known = word_get(&tap->annotator);
    struct annotator *there = (struct annotator *)(uintptr_t)known;
    if (there && annotator_ours(there))
        return there;
    struct annotator *fresh = annotator_new();
    if (!fresh)
        return NULL;
    if (word_replace(&tap->annotator, &known, (uint64_t)(uintptr_t)fresh))
        return fresh;
    annotator_free(fresh); /* another thread was faster */
    return (struct annotator *)(uintptr_t)known;
}

void annotator_destroy(gputap *tap)
{
    struct annotator *a = annotator_of(tap);
    if (a)
        annotator_free(a);
    word_set(&tap->annotator, 0);
}

int annotator_slot(const gputap *tap, uint32_t *generation)
{
    struct annotator *a = annotator_of(tap);
    int slot = -1;
    if (!a || !annotator_ours(a))
        return -1;
    mutex_lock(&a->mutex);
    if (annotator_connected(a) && annotator_current(tap, a)) {
        slot = (int)a->slot;
        *generation = a->generation;
    }
    mutex_unlock(&a->mutex);
    return slot;
}

/* `session`: a wish for a period alone is not enough. 0 with *out and its mutex held. */
static int enter(gputap *tap, struct annotator **out, bool session)
{
    if (!tap)
        return GPUTAP_EINVAL;
    struct annotator *a = annotator_of(tap);
    if (a && !annotator_ours(a)) {
        (void)client_fail(tap, GPUTAP_EFORKED, "the session belongs to the parent process: call gputap_attach in this one");
        return GPUTAP_EFORKED;
    }
    if (a) {
        mutex_lock(&a->mutex);
        if (a->attached || (!session && a->period_ns > 0)) {
            annotator_service(tap, a, clock_mono_coarse_ns(), 0);
            *out = a;
            return GPUTAP_OK;
        }
        mutex_unlock(&a->mutex);
    }
    (void)client_fail(tap, GPUTAP_EDETACHED, "no session: call gputap_attach first");
    return GPUTAP_EDETACHED;
}

int annotator_enter(gputap *tap, struct annotator **out) { return enter(tap, out, true); }

void annotator_text(char *out, size_t size, const char *text) { text_copy(out, size, text ? text : "", text ? strlen(text) : 0); }

/* --- session ---------------------------------------------------------------------------------------------------------- */

static void forget_session(struct annotator *a)
{
    annotator_hang_up(a);
    memset(a->spans, 0, sizeof a->spans);
    memset(a->gauges, 0, sizeof a->gauges);
    a->attached = false;
    a->next_look = 0;
    a->next_try = 0;
}

int gputap_attach(gputap *tap, const char *label)
{
    if (!tap)
        return GPUTAP_EINVAL;
    if (!label || !label[0])
        return client_fail(tap, GPUTAP_EINVAL, "a session wants a label");
    struct annotator *a = annotator_need(tap);
    if (!a)
        return client_fail(tap, GPUTAP_ENOMEM, "out of memory");
    mutex_lock(&a->mutex);
    forget_session(a);
    a->dropped = 0;
    a->attached = true;
    annotator_text(a->label, sizeof a->label, label);
    annotator_service(tap, a, clock_mono_coarse_ns(), attach_wait_ms);
    mutex_unlock(&a->mutex);
    return GPUTAP_OK;
}

int gputap_detach(gputap *tap)
{
    struct annotator *a = NULL;
    if (!tap)
        return GPUTAP_EINVAL;
    a = annotator_of(tap);
    if (!a)
        return GPUTAP_OK;
    if (!annotator_ours(a))
        return client_fail(tap, GPUTAP_EFORKED, "the session belongs to the parent process");
    mutex_lock(&a->mutex);
    forget_session(a);
    a->label[0] = '\0';
    annotator_service(tap, a, clock_mono_coarse_ns(), 0); /* a wish for a period lives on */
    mutex_unlock(&a->mutex);
    return GPUTAP_OK;
}

int gputap_poll(gputap *tap)
{
    struct annotator *a = NULL;
    char why[sizeof a->why];
    int result = enter(tap, &a, false);
    if (result != GPUTAP_OK)
        return result;
    result = a->link.state == LINK_UP;
    memcpy(why, a->why, sizeof why);
    mutex_unlock(&a->mutex);
    return result ? result : client_fail(tap, 0, "%s", why);
}

int gputap_request_period(gputap *tap, int period_ms)
{
    if (!tap || period_ms < 0 || period_ms > 60000)
        return GPUTAP_EINVAL;
    struct annotator *a = annotator_need(tap);
    if (!a)
        return client_fail(tap, GPUTAP_ENOMEM, "out of memory");
    mutex_lock(&a->mutex);
    a->period_ns = (uint64_t)period_ms * 1000000u;
    if (a->link.state == LINK_UP)
        link_send_period(&a->link, a->period_ns);
    else if (a->link.state == LINK_DOWN)
        a->next_look = 0;
    annotator_service(tap, a, clock_mono_coarse_ns(), 0);
    mutex_unlock(&a->mutex);
    return GPUTAP_OK;
}

int gputap_annotator_info(gputap *tap, gputap_annotator *out)
{
    struct annotator *a;
    gputap_annotator known = {.slot = -1};
    if (!tap || !out)
        return GPUTAP_EINVAL;
    int result = annotator_enter(tap, &a);
    if (result != GPUTAP_OK)
        return result;
    known.connected = annotator_connected(a);
    known.slot = known.connected ? (int32_t)a->slot : -1;
    known.generation = known.connected ? a->generation : 0;
    known.dropped = a->dropped;
    known.connects = a->connects;
    for (int i = 0; i < LAYOUT_SESSION_SPANS; i++)
        known.open_spans += a->spans[i].span.id != 0;
    mutex_unlock(&a->mutex);
    return client_copy_sized(tap, out, out->size, &known, sizeof known);
}

/* --- what has no length ----------------------------------------------------------------------------------------------- */

int gputap_instant(gputap *tap, const char *job, const char *node, const char *name)
{
    struct annotator *a;
    struct open_span point;
    int result = annotator_enter(tap, &a);
    if (result != GPUTAP_OK)
        return result;
    memset(&point, 0, sizeof point);
    point.span.start_ns = clock_mono_ns();
    annotator_text(point.span.job, sizeof point.span.job, job);
    annotator_text(point.span.node, sizeof point.span.node, node);
    annotator_text(point.span.name, sizeof point.span.name, name);
    if (!annotator_say(tap, a, EVENT_INSTANT, &point))
        annotator_drop(a);
    mutex_unlock(&a->mutex);
    return GPUTAP_OK;
}

static int gauge_place(const struct annotator *a, int device)
{
    int place = -1;
    for (int i = LAYOUT_SESSION_GAUGES - 1; i >= 0; i--) {
        if (a->gauges[i].used && a->gauges[i].device == device)
            return i;
        if (!a->gauges[i].used)
            place = i;
    }
    return place;
}

static void raise_own_peaks(struct annotator *a, int device, uint64_t reserved)
{
    for (int i = 0; i < LAYOUT_SESSION_SPANS && reserved != UINT64_MAX; i++)
        if (a->spans[i].span.id)
            annotator_own_peak(&a->spans[i], device, reserved);
}

int gputap_gauge(gputap *tap, int device, uint64_t allocated, uint64_t reserved, uint64_t dynamic)
{
    struct annotator *a;
    int result = annotator_enter(tap, &a);
    if (result != GPUTAP_OK)
        return result;
    int place = -1;
    if (device < 0 || (uint64_t)device >= word_get(&tap->numbers))
        result = client_fail_device(tap, device < 0 ? GPUTAP_EINVAL : GPUTAP_ENODEV, device);
    else if ((place = gauge_place(a, device)) < 0)
        result = client_fail(tap, GPUTAP_EFULL, "gauges of %d devices are set already", LAYOUT_SESSION_GAUGES);
    if (result == GPUTAP_OK) {
        a->gauges[place] = (struct open_gauge){
            .used = true,
            .device = device,
            .gauge = {.updated_ns = clock_mono_coarse_ns(), .allocated = allocated, .reserved = reserved, .dynamic = dynamic}};
        raise_own_peaks(a, device, reserved);
        annotator_show_gauge(tap, a, place);
    }
    mutex_unlock(&a->mutex);
    return result;
}
