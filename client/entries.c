/* Tables of the segment: what changes rarely. Bytes come from another process, so every text is cleaned and every number that
 * is an index or a size is checked. */
#include <stdio.h>
#include <string.h>

#include "client/handle.h"
#include "shm/text.h"

static int read_once(gputap *tap, const struct pass *pass, enum region_type type, int index, uint64_t *out, uint32_t words)
{
    if (type == REGION_DEVICE && (index = device_slot(tap, pass->mapping, index)) < 0)
        return index;
    if (type == REGION_PROVIDER && (index < 0 || (uint32_t)index >= pass->mapping->view.provider_slots))
        return GPUTAP_EINVAL;
    struct ring ring;
    uint64_t last = 0;
    view_entry(&pass->mapping->view, type, (uint32_t)index, &ring);
    switch (ring_latest_words(&ring, out, words, &last, 0)) {
    case RING_OK: return GPUTAP_OK;
    case RING_EMPTY: return GPUTAP_EEMPTY;
    default: return GPUTAP_EAGAIN;
    }
}

int entry_read(gputap *tap, enum region_type type, int index, uint64_t *out, uint32_t words)
{
    struct pass pass;
    int result = GPUTAP_EAGAIN;
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        result = read_once(tap, &pass, type, index, out, words);
        if (pass_held(tap, &pass))
            break;
        result = GPUTAP_EAGAIN;
    }
    switch (result) {
    case GPUTAP_OK: return GPUTAP_OK;
    case GPUTAP_EAGAIN: return client_fail_busy(tap);
    case GPUTAP_EEMPTY: return client_fail(tap, result, "the broker has not filled this in yet");
    default:
        return type == REGION_DEVICE ? client_fail_device(tap, result, index)
                                     : client_fail(tap, result, "%d is out of range", index);
    }
}

static void boot_id_text(const uint8_t id[16], char out[37])
{
    size_t used = 0;
    bool known = false;
    for (int i = 0; i < 16; i++)
        known = known || id[i];
    out[0] = '\0';
    for (int i = 0; known && i < 16; i++)
        used += (size_t)snprintf(out + used, 37 - used, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
}

/* The constant part of the header, copied whole. */
static int read_header(gputap *tap, struct layout_header *out)
{
    struct pass pass;
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        memcpy(out, pass.mapping->view.memory, offsetof(struct layout_header, state));
        if (pass_held(tap, &pass))
            return GPUTAP_OK;
    }
    return client_fail_busy(tap);
}

int gputap_host_info(gputap *tap, gputap_host *out)
{
    union {
        struct layout_host entry;
        uint64_t words[sizeof(struct layout_host) / 8];
    } raw = {0};
    struct layout_header header = {0};
    if (!tap || !out)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    int result = entry_read(tap, REGION_HOST, 0, raw.words, sizeof raw.words / 8);
    if (result == GPUTAP_OK)
        result = read_header(tap, &header);
    if (result != GPUTAP_OK)
        return result;
    gputap_host known;
    memset(&known, 0, sizeof known);
    known.cpu_threads = raw.entry.cpu_threads;
    text_copy(known.hostname, sizeof known.hostname, raw.entry.hostname, sizeof raw.entry.hostname);
    text_copy(known.cpu_name, sizeof known.cpu_name, raw.entry.cpu_name, sizeof raw.entry.cpu_name);
    text_copy(known.kernel, sizeof known.kernel, raw.entry.kernel, sizeof raw.entry.kernel);
    text_copy(known.os, sizeof known.os, raw.entry.os, sizeof raw.entry.os);
    text_copy(known.broker_version, sizeof known.broker_version, header.version, sizeof header.version);
    known.broker_pid = header.broker_pid;
    boot_id_text(header.boot_id, known.boot_id);
    return client_copy_sized(tap, out, out->size, &known, sizeof known);
}

union provider_words {
    struct layout_provider entry;
    uint64_t words[sizeof(struct layout_provider) / 8];
};

static int provider_slots(gputap *tap)
{
    struct pass pass;
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        int slots = (int)pass.mapping->view.provider_slots;
        if (pass_held(tap, &pass))
            return slots;
    }
    return client_fail_busy(tap);
}

int gputap_provider_count(gputap *tap)
{
    if (!tap)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    int count = provider_slots(tap);
    union provider_words raw;
    while (count > 0 &&
           (entry_read(tap, REGION_PROVIDER, count - 1, raw.words, sizeof raw.words / 8) != GPUTAP_OK || !raw.entry.name[0]))
        count--;
    return count;
}

int gputap_provider_info(gputap *tap, int provider, gputap_provider *out)
{
    union provider_words raw;
    if (!tap || !out)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    int result = entry_read(tap, REGION_PROVIDER, provider, raw.words, sizeof raw.words / 8);
    if (result != GPUTAP_OK)
        return result;
    gputap_provider known;
    memset(&known, 0, sizeof known);
    known.state = raw.entry.state <= PROVIDER_OFF ? raw.entry.state : (uint32_t)PROVIDER_FAILED;
    known.devices = raw.entry.devices;
    known.restarts = raw.entry.restarts;
    known.hung = raw.entry.hung;
    text_copy(known.name, sizeof known.name, raw.entry.name, sizeof raw.entry.name);
    text_copy(known.message, sizeof known.message, raw.entry.message, sizeof raw.entry.message);
    return client_copy_sized(tap, out, out->size, &known, sizeof known);
}

int gputap_broker_stats(gputap *tap, gputap_stats *out)
{
    union {
        struct layout_stats entry;
        uint64_t words[sizeof(struct layout_stats) / 8];
    } raw;
    if (!tap || !out)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    int result = entry_read(tap, REGION_STATS, 0, raw.words, sizeof raw.words / 8);
    if (result != GPUTAP_OK)
        return result;
    const struct layout_stats *s = &raw.entry;
    gputap_stats known = {.ticks = s->ticks,
                          .missed_ticks = s->missed_ticks,
                          .late_samples = s->late_samples,
                          .publish_ns = s->publish_ns,
                          .broker_cpu_ns = s->broker_cpu_ns,
                          .workers_cpu_ns = s->workers_cpu_ns,
                          .workers_alive = s->workers_alive,
                          .worker_restarts = s->worker_restarts,
                          .workers_killed = s->workers_killed,
                          .workers_abandoned = s->workers_abandoned,
                          .bad_messages = s->bad_messages,
                          .recreated = s->recreated,
                          .sessions_open = s->sessions_open,
                          .sessions_total = s->sessions_total,
                          .sessions_refused = s->sessions_refused,
                          .events = s->events,
                          .events_lost = s->events_lost,
                          .records_rejected = s->records_rejected};
    return client_copy_sized(tap, out, out->size, &known, sizeof known);
}

int gputap_schema(gputap *tap, char *out, size_t size)
{
    struct pass pass;
    if (!tap || (!out && size > 0))
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    for (int attempt = 0; attempt < HANDLE_RETRIES; attempt++) {
        pass_begin(tap, &pass);
        if (!pass.mapping)
            return client_fail_absent(tap);
        const struct layout_region *region = &pass.mapping->view.schema;
        const char *text = (const char *)pass.mapping->view.memory + region->offset;
        const char *end = memchr(text, '\0', region->element_size);
        size_t length = end ? (size_t)(end - text) : region->element_size;
        if (size > 0) {
            size_t copied = length < size ? length : size - 1;
            memcpy(out, text, copied);
            out[copied] = '\0';
        }
        if (pass_held(tap, &pass))
            return length <= INT32_MAX ? (int)length : client_fail(tap, GPUTAP_ECORRUPT, "the schema is absurdly long");
    }
    return client_fail_busy(tap);
}
