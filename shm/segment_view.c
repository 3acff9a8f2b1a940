/* What a reader believes of a segment. Every byte here was written by another process, so everything is copied once, checked
 * against the mapping's size with arithmetic that cannot overflow, and never read again from shared memory. */
#include "shm/segment.h"

#include <string.h>

#include "shm/text.h"

struct wanted {
    uint16_t type;
    uint16_t index;
    bool ring;
    uint32_t minimum; /* element size that this ABI knows */
    size_t place;     /* in struct segment_view */
};

#define PLACE(member) offsetof(struct segment_view, member)
static const struct wanted wanted_regions[] = {
    {REGION_DEVICE, 0, true, LAYOUT_SLOT_BYTES(sizeof(struct layout_device)), PLACE(device)},
    {REGION_FRONT, REGION_OF_DEVICES, false, LAYOUT_SNAPSHOT_BYTES, PLACE(device_front)},
    {REGION_RING, REGION_OF_DEVICES, true, LAYOUT_SNAPSHOT_BYTES, PLACE(device_ring)},
    {REGION_COARSE, REGION_OF_DEVICES, true, LAYOUT_SLOT_BYTES(sizeof(struct layout_coarse)), PLACE(device_coarse)},
    {REGION_HOST, 0, true, LAYOUT_SLOT_BYTES(sizeof(struct layout_host)), PLACE(host)},
    {REGION_FRONT, REGION_OF_HOST, false, LAYOUT_SNAPSHOT_BYTES, PLACE(host_front)},
    {REGION_RING, REGION_OF_HOST, true, LAYOUT_SNAPSHOT_BYTES, PLACE(host_ring)},
    {REGION_COARSE, REGION_OF_HOST, true, LAYOUT_SLOT_BYTES(sizeof(struct layout_coarse)), PLACE(host_coarse)},
    {REGION_STATS, 0, true, LAYOUT_SLOT_BYTES(sizeof(struct layout_stats)), PLACE(stats)},
    {REGION_SCHEMA, 0, false, 2, PLACE(schema)},
    {REGION_PROVIDER, 0, true, LAYOUT_SLOT_BYTES(sizeof(struct layout_provider)), PLACE(provider)},
    {REGION_SESSION, 0, true, LAYOUT_SLOT_BYTES(sizeof(struct layout_session)), PLACE(session)},
    {REGION_EVENT, 0, true, LAYOUT_SLOT_BYTES(sizeof(struct layout_event)), PLACE(event)},
    {REGION_PROCESS, 0, true, LAYOUT_SLOT_BYTES(sizeof(struct layout_process_table)), PLACE(process)},
};

static bool power_of_two(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

/* A region lies whole inside the file, its elements inside its stride, and its words on their boundaries. */
static bool region_sound(const struct layout_region *region, const struct wanted *want, size_t bytes)
{
    if (region->count == 0 || region->count > LAYOUT_MAX_DEVICES || region->element_size < want->minimum)
        return false;
    if (region->offset < LAYOUT_HEADER_BYTES || region->offset > bytes || region->offset % 64 != 0 || region->stride % 64 != 0)
        return false;
    if (region->stride == 0 || (uint64_t)region->count * region->stride > bytes - region->offset)
        return false;
    if (!want->ring)
        return region->element_size <= region->stride && (want->type == REGION_SCHEMA || region->element_size % 64 == 0);
    if (!power_of_two(region->depth) || region->element_size % 64 != 0)
        return false;
    return RING_HEADER_BYTES + (uint64_t)region->depth * region->element_size <= region->stride;
}

static bool take_region(struct segment_view *view, const struct layout_header *header, const struct wanted *want, size_t bytes)
{
    for (uint32_t i = 0; i < header->region_count; i++) {
        const struct layout_region *region = &header->regions[i];
        if (region->type != want->type || region->index != want->index)
            continue;
        if (!region_sound(region, want, bytes))
            return false;
        memcpy((char *)view + want->place, region, sizeof *region);
        return true;
    }
    memset((char *)view + want->place, 0, sizeof(struct layout_region));
    return want->type >= REGION_SESSION; /* came with ABI 1.1 and later: a segment without it is sound, and the count is 0 */
}

static int check_header(const struct layout_header *header, size_t bytes, char *message, size_t size)
{
    if (memcmp(header->magic, LAYOUT_MAGIC, sizeof header->magic) != 0) {
        text_format(message, size, "not a gputap segment");
        return VIEW_ECORRUPT;
    }
    if (header->endian != LAYOUT_ENDIAN || header->word_bytes != 8) {
        text_format(message, size, "written by a machine of another byte order");
        return VIEW_ECORRUPT;
    }
    if (header->abi_major != LAYOUT_ABI_MAJOR) {
        text_format(message, size, "segment has ABI %u, this library reads ABI %d: update the older of broker and library",
                    header->abi_major, LAYOUT_ABI_MAJOR);
        return VIEW_EVERSION;
    }
    if (header->header_bytes < LAYOUT_HEADER_BYTES || header->total_bytes > bytes || header->total_bytes < LAYOUT_HEADER_BYTES ||
        header->region_bytes != sizeof(struct layout_region) || header->region_count > LAYOUT_MAX_REGIONS) {
        text_format(message, size, "segment is truncated or damaged (%zu bytes, header says %llu)", bytes,
                    (unsigned long long)header->total_bytes);
        return VIEW_ECORRUPT;
    }
    return VIEW_OK;
}

static bool same_counts(const struct segment_view *view)
{
    uint32_t devices = view->device.count;
    return view->device_front.count == devices && view->device_ring.count == devices && view->device_coarse.count == devices &&
           (view->process.count == 0 || view->process.count == devices) && view->host.count == 1 && view->host_ring.count == 1 &&
           view->host_front.count == 1 && view->host_coarse.count == 1;
}

int segment_view(struct segment_view *view, void *memory, size_t bytes, char *message, size_t message_size)
{
    memset(view, 0, sizeof *view);
    if (bytes < LAYOUT_HEADER_BYTES) {
        text_format(message, message_size, "segment is truncated: %zu bytes", bytes);
        return VIEW_ECORRUPT;
    }
    const struct layout_header *shared = memory;
    if (word32_get(&shared->state) == SEGMENT_INIT) {
        text_format(message, message_size,
                    memcmp(shared->magic, LAYOUT_MAGIC, sizeof shared->magic) == 0 ? "segment is still being set up"
                                                                                   : "not a gputap segment");
        return memcmp(shared->magic, LAYOUT_MAGIC, sizeof shared->magic) == 0 ? VIEW_EINIT : VIEW_ECORRUPT;
    }
    struct layout_header header;
    memcpy(&header, memory, offsetof(struct layout_header, state)); /* the part that never changes once live */
    memcpy(header.regions, shared->regions, sizeof header.regions);
    int result = check_header(&header, bytes, message, message_size);
    if (result != VIEW_OK)
        return result;
    for (size_t i = 0; i < sizeof wanted_regions / sizeof wanted_regions[0]; i++)
        if (!take_region(view, &header, &wanted_regions[i], (size_t)header.total_bytes)) {
            text_format(message, message_size, "segment is damaged: region %u is missing or out of bounds", wanted_regions[i].type);
            return VIEW_ECORRUPT;
        }
    if (!same_counts(view)) {
        text_format(message, message_size, "segment is damaged: regions disagree on the number of devices");
        return VIEW_ECORRUPT;
    }
    view->header = shared;
    view->memory = memory;
    view->bytes = bytes;
    view->used_bytes = (size_t)header.total_bytes;
    memcpy(view->epoch, header.epoch, sizeof view->epoch);
    memcpy(view->boot_id, header.boot_id, sizeof view->boot_id);
    text_copy(view->version, sizeof view->version, header.version, sizeof header.version);
    view->start_mono_ns = header.start_mono_ns;
    view->time_namespace = header.time_namespace;
    view->broker_pid = header.broker_pid;
    view->simulated = header.simulated != 0;
    view->schema_hash = header.schema_hash;
    view->device_slots = view->device.count;
    view->provider_slots = view->provider.count;
    return VIEW_OK;
}

static void bind_element(const struct segment_view *view, const struct layout_region *region, const struct layout_region *front,
                         uint32_t element, size_t payload, struct ring *out)
{
    uint8_t *memory = view->memory + region->offset + (uint64_t)element * region->stride;
    uint8_t *front_memory = front ? view->memory + front->offset + (uint64_t)element * front->stride : NULL;
    ring_bind(out, memory, front_memory, region->depth, region->element_size, LAYOUT_WORDS(payload));
}

void view_device_series(const struct segment_view *view, uint32_t device, struct series *out)
{
    bind_element(view, &view->device_ring, &view->device_front, device, sizeof(struct layout_snapshot), &out->ring);
    bind_element(view, &view->device_coarse, NULL, device, sizeof(struct layout_coarse), &out->coarse);
}

void view_host_series(const struct segment_view *view, struct series *out)
{
    bind_element(view, &view->host_ring, &view->host_front, 0, sizeof(struct layout_snapshot), &out->ring);
    bind_element(view, &view->host_coarse, NULL, 0, sizeof(struct layout_coarse), &out->coarse);
}

void view_entry(const struct segment_view *view, enum region_type type, uint32_t index, struct ring *out)
{
    switch (type) {
    case REGION_DEVICE: bind_element(view, &view->device, NULL, index, sizeof(struct layout_device), out); break;
    case REGION_HOST: bind_element(view, &view->host, NULL, index, sizeof(struct layout_host), out); break;
    case REGION_STATS: bind_element(view, &view->stats, NULL, index, sizeof(struct layout_stats), out); break;
    case REGION_SESSION: bind_element(view, &view->session, NULL, index, sizeof(struct layout_session), out); break;
    case REGION_EVENT: bind_element(view, &view->event, NULL, index, sizeof(struct layout_event), out); break;
    case REGION_PROCESS: bind_element(view, &view->process, NULL, index, sizeof(struct layout_process_table), out); break;
    default: bind_element(view, &view->provider, NULL, index, sizeof(struct layout_provider), out); break;
    }
}

uint32_t view_device_count(const struct segment_view *view)
{
    uint64_t count = word_get(&view->header->device_count);
    return count < view->device_slots ? (uint32_t)count : view->device_slots;
}
