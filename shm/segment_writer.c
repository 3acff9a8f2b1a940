#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/segment.h"
#include "shm/text.h"

/* Shape of every region, in file order. */
struct plan {
    struct layout_region regions[LAYOUT_MAX_REGIONS];
    uint32_t count;
    uint64_t bytes;
};

static void plan_add(struct plan *plan, uint16_t type, uint16_t index, uint32_t count, uint32_t depth, uint32_t element,
                     uint64_t stride)
{
    assert(plan->count < LAYOUT_MAX_REGIONS && stride % 64 == 0 && stride <= UINT32_MAX);
    plan->regions[plan->count++] = (struct layout_region){.type = type,
                                                          .index = index,
                                                          .count = count,
                                                          .offset = plan->bytes,
                                                          .stride = (uint32_t)stride,
                                                          .element_size = element,
                                                          .depth = depth};
    plan->bytes += stride * count;
}

static void plan_rings(struct plan *plan, uint16_t type, uint16_t index, uint32_t count, uint32_t depth, size_t payload)
{
    uint32_t slot = LAYOUT_SLOT_BYTES(payload);
    plan_add(plan, type, index, count, depth, slot, ring_bytes(depth, slot));
}

static void plan_make(struct plan *plan, const struct segment_config *config)
{
    size_t schema = (metrics_schema_json(NULL, 0) + 63) / 64 * 64;
    memset(plan, 0, sizeof *plan);
    plan->bytes = LAYOUT_HEADER_BYTES;
    for (uint16_t index = REGION_OF_DEVICES; index <= (uint16_t)REGION_OF_HOST; index++) {
        uint32_t count = index == REGION_OF_HOST ? 1 : config->device_slots;
        plan_add(plan, REGION_FRONT, index, count, 1, LAYOUT_SNAPSHOT_BYTES, LAYOUT_SNAPSHOT_BYTES);
        plan_rings(plan, REGION_RING, index, count, LAYOUT_RING_DEPTH, sizeof(struct layout_snapshot));
        plan_rings(plan, REGION_COARSE, index, count, LAYOUT_COARSE_DEPTH, sizeof(struct layout_coarse));
    }
    plan_rings(plan, REGION_DEVICE, 0, config->device_slots, LAYOUT_ENTRY_DEPTH, sizeof(struct layout_device));
    plan_rings(plan, REGION_HOST, 0, 1, LAYOUT_ENTRY_DEPTH, sizeof(struct layout_host));
    plan_rings(plan, REGION_STATS, 0, 1, LAYOUT_ENTRY_DEPTH, sizeof(struct layout_stats));
    plan_rings(plan, REGION_PROVIDER, 0, config->provider_slots, LAYOUT_ENTRY_DEPTH, sizeof(struct layout_provider));
    plan_rings(plan, REGION_SESSION, 0, LAYOUT_SESSION_SLOTS, LAYOUT_ENTRY_DEPTH, sizeof(struct layout_session));
    plan_rings(plan, REGION_EVENT, 0, 1, LAYOUT_EVENT_DEPTH, sizeof(struct layout_event));
    plan_rings(plan, REGION_PROCESS, 0, config->device_slots, LAYOUT_ENTRY_DEPTH, sizeof(struct layout_process_table));
    plan_add(plan, REGION_SCHEMA, 0, 1, 0, (uint32_t)metrics_schema_json(NULL, 0), schema);
}

size_t segment_bytes(const struct segment_config *config)
{
    struct plan plan;
    plan_make(&plan, config);
    return (size_t)plan.bytes;
}

static const struct layout_region *find_region(const struct layout_header *header, enum region_type type, uint16_t index)
{
    for (uint32_t i = 0; i < header->region_count; i++)
        if (header->regions[i].type == type && header->regions[i].index == index)
            return &header->regions[i];
    abort(); /* the plan made every type */
}

static size_t region_payload_words(uint16_t type)
{
    switch (type) {
    case REGION_RING: return LAYOUT_WORDS(sizeof(struct layout_snapshot));
    case REGION_COARSE: return LAYOUT_WORDS(sizeof(struct layout_coarse));
    case REGION_DEVICE: return LAYOUT_WORDS(sizeof(struct layout_device));
    case REGION_HOST: return LAYOUT_WORDS(sizeof(struct layout_host));
    case REGION_STATS: return LAYOUT_WORDS(sizeof(struct layout_stats));
    case REGION_SESSION: return LAYOUT_WORDS(sizeof(struct layout_session));
    case REGION_EVENT: return LAYOUT_WORDS(sizeof(struct layout_event));
    case REGION_PROCESS: return LAYOUT_WORDS(sizeof(struct layout_process_table));
    default: return LAYOUT_WORDS(sizeof(struct layout_provider));
    }
}

static void *element_at(const struct segment_writer *writer, enum region_type type, uint16_t index, uint32_t element)
{
    const struct layout_region *region = find_region(writer->header, type, index);
    assert(element < region->count);
    return (uint8_t *)writer->region.memory + region->offset + (uint64_t)element * region->stride;
}

static void ring_at(const struct segment_writer *writer, enum region_type type, uint16_t index, uint32_t element, bool format,
                    struct ring *out)
{
    const struct layout_region *region = find_region(writer->header, type, index);
    void *memory = element_at(writer, type, index, element);
    void *front = type == REGION_RING ? element_at(writer, REGION_FRONT, index, element) : NULL;
    uint32_t words = (uint32_t)region_payload_words((uint16_t)type);
    if (format)
        ring_format(out, memory, front, region->depth, region->element_size, words, writer->first);
    else
        ring_bind(out, memory, front, region->depth, region->element_size, words);
}

void segment_device_series(const struct segment_writer *writer, uint32_t device, struct series *out)
{
    ring_at(writer, REGION_RING, REGION_OF_DEVICES, device, false, &out->ring);
    ring_at(writer, REGION_COARSE, REGION_OF_DEVICES, device, false, &out->coarse);
}

void segment_host_series(const struct segment_writer *writer, struct series *out)
{
    ring_at(writer, REGION_RING, REGION_OF_HOST, 0, false, &out->ring);
    ring_at(writer, REGION_COARSE, REGION_OF_HOST, 0, false, &out->coarse);
}

void segment_entry(const struct segment_writer *writer, enum region_type type, uint32_t index, struct ring *out)
{
    ring_at(writer, type, 0, index, false, out);
}

/* Random, so that a slot of one epoch never passes for a slot of another. Debug builds start a few tickets before the stamp's wrap.
 */
static uint64_t first_ticket(void)
{
#ifdef NDEBUG
    uint64_t first;
    platform_random(&first, sizeof first);
    return first >> 16;
#else
    uint8_t lead;
    platform_random(&lead, sizeof lead);
    return (UINT64_C(1) << 63) - 3 - lead % 16;
#endif
}

static void format_header(struct segment_writer *writer, const struct plan *plan, const struct segment_config *config)
{
    struct layout_header *header = writer->header;
    memcpy(header->magic, LAYOUT_MAGIC, sizeof header->magic);
    header->endian = LAYOUT_ENDIAN;
    header->abi_major = LAYOUT_ABI_MAJOR;
    header->abi_minor = LAYOUT_ABI_MINOR;
    header->header_bytes = LAYOUT_HEADER_BYTES;
    header->word_bytes = 8;
    header->total_bytes = plan->bytes;
    platform_random(header->epoch, sizeof header->epoch);
    header->start_mono_ns = clock_mono_ns();
    header->start_real_ns = clock_real_ns();
    header->broker_pid = (uint32_t)getpid();
    header->simulated = config->simulated;
    header->time_namespace = clock_namespace();
    clock_boot_id(header->boot_id);
    text_copy(header->version, sizeof header->version, config->version, strlen(config->version));
    header->region_count = plan->count;
    header->region_bytes = sizeof(struct layout_region);
    memcpy(header->regions, plan->regions, sizeof header->regions);
    word_poke(&header->period_ns, config->period_ns);
}

static void format_regions(struct segment_writer *writer)
{
    struct layout_header *header = writer->header;
    for (uint32_t i = 0; i < header->region_count; i++) {
        const struct layout_region *region = &header->regions[i];
        if (region->type == REGION_FRONT)
            continue;
        if (region->type == REGION_SCHEMA) {
            char *text = (char *)writer->region.memory + region->offset;
            size_t length = metrics_schema_json(NULL, 0);
            char *copy = malloc(length + 1);
            if (!copy)
                abort();
            metrics_schema_json(copy, length + 1);
            memcpy(text, copy, length);
            header->schema_hash = metrics_hash(copy, length);
            free(copy);
            continue;
        }
        struct ring ring;
        for (uint32_t element = 0; element < region->count; element++)
            ring_at(writer, (enum region_type)region->type, region->index, element, true, &ring);
    }
}

/* A reader of the predecessor learns at once that a new file is there. */
static void supersede(struct region *old)
{
    struct layout_header *header = old->memory;
    if (old->bytes >= LAYOUT_HEADER_BYTES && memcmp(header->magic, LAYOUT_MAGIC, sizeof header->magic) == 0) {
        word32_set(&header->state, SEGMENT_SUPERSEDED);
        word32_add(&header->wake, 1);
        wake_all(&header->wake);
    }
    region_destroy(old);
}

int segment_create(struct segment_writer *writer, const struct segment_config *config, const char *directory, char *message,
                   size_t message_size)
{
    struct plan plan;
    plan_make(&plan, config);
    memset(writer, 0, sizeof *writer);
    region_sweep(directory, PLACE_SEGMENT);
    int result = region_create(&writer->region, directory, PLACE_SEGMENT, (size_t)plan.bytes, config->mode, config->group, message,
                               message_size);
    if (result != REGION_OK)
        return result;
    writer->header = writer->region.memory;
    writer->device_slots = config->device_slots;
    writer->provider_slots = config->provider_slots;
    writer->first = first_ticket();
    format_header(writer, &plan, config);
    format_regions(writer);
    word32_set(&writer->header->state, SEGMENT_LIVE);

    struct region old;
    bool had_old = region_open_owned(&old, directory, PLACE_SEGMENT) == REGION_OK;
    result = region_publish(&writer->region, directory, PLACE_SEGMENT, message, message_size);
    if (result != REGION_OK) {
        if (had_old)
            region_destroy(&old);
        region_destroy(&writer->region);
        return result;
    }
    if (had_old)
        supersede(&old);
    return REGION_OK;
}

void segment_set_period(struct segment_writer *writer, uint64_t period_ns) { word_set(&writer->header->period_ns, period_ns); }

void segment_beat(struct segment_writer *writer) { word_set(&writer->header->beat, word_peek(&writer->header->beat) + 1); }

void segment_wake(struct segment_writer *writer)
{
    word32_add(&writer->header->wake, 1);
    wake_all(&writer->header->wake);
}

void segment_announce(struct segment_writer *writer, uint64_t tick)
{
    segment_beat(writer);
    word_set(&writer->header->tick, tick);
    segment_wake(writer);
}

void segment_set_devices(struct segment_writer *writer, uint32_t count) { word_set(&writer->header->device_count, count); }

void segment_bump_changes(struct segment_writer *writer)
{
    word_set(&writer->header->changes, word_peek(&writer->header->changes) + 1);
}

bool segment_in_place(const struct segment_writer *writer, const char *directory)
{
    return region_in_place(&writer->region, directory, PLACE_SEGMENT);
}

void segment_mark(struct segment_writer *writer, enum segment_state state)
{
    word32_set(&writer->header->state, (uint32_t)state);
    segment_wake(writer);
}

void segment_close(struct segment_writer *writer) { region_destroy(&writer->region); }
