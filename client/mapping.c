/* A segment mapped by a handle. See handle.h for why mappings live as long as their handle. */
#include <stdlib.h>
#include <string.h>

#include "client/handle.h"
#include "shm/text.h"

/* ThreadSanitizer takes mapping over a range for a write to all of it, and so for a race with readers of that range; that they
 * may be there and are turned away by the generation is the very protocol. Everywhere else it sees them in full. */
#ifdef SHM_THREAD_SANITIZER
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define REMAP_BEGIN() AnnotateIgnoreWritesBegin(__FILE__, __LINE__)
#define REMAP_END() AnnotateIgnoreWritesEnd(__FILE__, __LINE__)
#else
#define REMAP_BEGIN() (void)0
#define REMAP_END() (void)0
#endif

static int error_of_region(int error)
{
    switch (error) {
    case REGION_ENOENT: return GPUTAP_ENOBROKER;
    case REGION_EPERM:
    case REGION_EUNTRUSTED: return GPUTAP_EPERM;
    default: return GPUTAP_ESYSTEM;
    }
}

static int error_of_view(int error) { return error == VIEW_EVERSION ? GPUTAP_EVERSION : GPUTAP_ECORRUPT; }

/* The members of a view from `device` on are the regions; sizes and slots stand before them. */
static bool same_geometry(const struct segment_view *a, const struct segment_view *b)
{
    size_t regions = offsetof(struct segment_view, device);
    return a->bytes == b->bytes && a->device_slots == b->device_slots && a->provider_slots == b->provider_slots &&
           memcmp((const char *)a + regions, (const char *)b + regions, sizeof *a - regions) == 0;
}

static void bind_track(struct track *track, const struct series *series)
{
    track->ring = series->ring;
    track->coarse = series->coarse;
}

static struct mapping *mapping_new(gputap *tap, const struct segment_view *view)
{
    struct mapping *mapping = calloc(1, sizeof *mapping + ((size_t)view->device_slots + 1) * sizeof(struct track));
    struct series series;
    if (!mapping)
        return NULL;
    mapping->view = *view;
    for (uint32_t slot = 0; slot < view->device_slots; slot++) {
        view_device_series(view, slot, &series);
        bind_track(&mapping->tracks[slot], &series);
    }
    view_host_series(view, &series);
    bind_track(&mapping->tracks[view->device_slots], &series);
    mapping->next = tap->mappings;
    tap->mappings = mapping;
    return mapping;
}

static bool clocks_agree(const gputap *tap, const struct layout_header *header)
{
    static const uint8_t unknown[16];
    return tap->time_namespace != 0 && header->time_namespace == tap->time_namespace &&
           memcmp(header->boot_id, tap->boot_id, sizeof tap->boot_id) == 0 && memcmp(tap->boot_id, unknown, sizeof unknown) != 0;
}

/* Sets what belongs to the segment mapped now. A reader that still works on what was mapped here before will be turned away by
 * the generation, and must only find whole words. */
static void mapping_fill(gputap *tap, struct mapping *mapping, int place, const struct region_identity *identity)
{
    const struct layout_header *header = mapping->view.header;
    uint64_t attach = ++tap->attachments, epoch[2];
    memcpy(epoch, header->epoch, sizeof epoch);
    mapping->retired = false;
    mapping->adopted = 0;
    mapping->identity = *identity;
    word_set(&mapping->attach, attach);
    word_set(&mapping->epoch[0], epoch[0]);
    word_set(&mapping->epoch[1], epoch[1]);
    word_set(&mapping->same_clock, clocks_agree(tap, header));
    word_set(&mapping->place, (uint64_t)place);
    for (int number = 0; number < HANDLE_MAX_NUMBERS; number++)
        word32_set(&mapping->slot_of[number], 0);
    for (uint32_t i = 0; i <= mapping->view.device_slots; i++) {
        struct track *track = &mapping->tracks[i];
        word_set(&track->first, word_get(&track->ring.header->first));
        word_set(&track->coarse_first, word_get(&track->coarse.header->first));
        word_set(&track->last, attach << 48);
    }
}

static int open_and_view(const struct handle_place *place, struct region *region, struct segment_view *view, struct mapping *over,
                         char *message, size_t message_size)
{
    char why[256] = "";
    int result = region_open(region, place->path, PLACE_SEGMENT, place->trust, over ? over->view.memory : NULL,
                             over ? over->view.bytes : 0, message, message_size);
    if (result != REGION_OK && region->bytes == 0 && result == REGION_ESYSTEM) {
        text_format(message, message_size, "%s/%s: segment is truncated", place->path, PLACE_SEGMENT);
        return GPUTAP_ECORRUPT;
    }
    if (result != REGION_OK)
        return error_of_region(result);
    result = segment_view(view, region->memory, region->bytes, why, sizeof why);
    if (result == VIEW_OK) {
        region_populate(region->memory, view->used_bytes);
        return GPUTAP_OK;
    }
    text_format(message, message_size, "%s/%s: %s", place->path, PLACE_SEGMENT, why);
    if (!over)
        region_unmap(region->memory, region->bytes);
    return error_of_view(result);
}

static struct mapping *retired_like(const gputap *tap, const struct segment_view *view)
{
    for (struct mapping *mapping = tap->mappings; mapping; mapping = mapping->next)
        if (mapping->retired && same_geometry(&mapping->view, view))
            return mapping;
    return NULL;
}

/* Maps the place's segment once more, over a range that served its like before. */
static int map_over(const struct handle_place *place, struct mapping *mapping, struct region_identity *identity, char *message,
                    size_t message_size)
{
    struct region region;
    struct segment_view view;
    REMAP_BEGIN();
    int result = open_and_view(place, &region, &view, mapping, message, message_size);
    if (result == GPUTAP_OK && !same_geometry(&view, &mapping->view)) {
        text_format(message, message_size, "%s/%s: replaced while it was opened", place->path, PLACE_SEGMENT);
        result = GPUTAP_ENOBROKER;
    }
    if (result != GPUTAP_OK)
        mapping->retired = region_retire(mapping->view.memory, mapping->view.bytes);
    REMAP_END();
    *identity = region.identity;
    return result;
}

int mapping_open(gputap *tap, int place_index, struct mapping **out, char *message, size_t message_size)
{
    const struct handle_place *place = &tap->places[place_index];
    struct region region;
    struct segment_view view;
    int result = open_and_view(place, &region, &view, NULL, message, message_size);
    if (result != GPUTAP_OK)
        return result;
    struct mapping *mapping = retired_like(tap, &view);
    if (mapping) {
        region_unmap(region.memory, region.bytes);
        result = map_over(place, mapping, &region.identity, message, message_size);
        if (result != GPUTAP_OK)
            return result;
    } else {
        mapping = mapping_new(tap, &view);
        if (!mapping) {
            region_unmap(region.memory, region.bytes);
            text_format(message, message_size, "out of memory");
            return GPUTAP_ENOMEM;
        }
    }
    mapping_fill(tap, mapping, place_index, &region.identity);
    *out = mapping;
    return GPUTAP_OK;
}

void mapping_retire(struct mapping *mapping)
{
    REMAP_BEGIN();
    mapping->retired = region_retire(mapping->view.memory, mapping->view.bytes);
    REMAP_END();
}

void mapping_destroy(struct mapping *mapping)
{
    region_unmap(mapping->view.memory, mapping->view.bytes);
    free(mapping);
}
