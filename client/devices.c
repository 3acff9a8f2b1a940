/* Device numbers. They belong to the handle and are bound to ids for its life; a mapping says in which slot a number's device
 * is found now. */
#include <stdlib.h>
#include <string.h>

#include "client/sessions.h"
#include "shm/text.h"

union device_words {
    struct layout_device entry;
    uint64_t words[sizeof(struct layout_device) / 8];
};
enum { DEVICE_WORDS = sizeof(struct layout_device) / 8, ID_BYTES = sizeof((struct layout_device *)0)->id };

static char *id_of(const gputap *tap, uint64_t number)
{
    struct id_chunk *chunk = (struct id_chunk *)(uintptr_t)word_get(&tap->id_chunks[number / HANDLE_IDS_A_CHUNK]);
    return chunk->ids[number % HANDLE_IDS_A_CHUNK];
}

/* The id's number, a new one if it has none. -1 when all are given out. Under `busy`. */
static int number_for(gputap *tap, const char *id)
{
    uint64_t count = word_get(&tap->numbers);
    for (uint64_t number = 0; number < count; number++)
        if (strcmp(id_of(tap, number), id) == 0)
            return (int)number;
    if (count >= HANDLE_MAX_NUMBERS)
        return -1;
    shm_word *chunk = &tap->id_chunks[count / HANDLE_IDS_A_CHUNK];
    if (!word_get(chunk)) {
        void *fresh = calloc(1, sizeof(struct id_chunk));
        if (!fresh)
            return -1;
        word_set(chunk, (uint64_t)(uintptr_t)fresh);
    }
    memcpy(id_of(tap, count), id, ID_BYTES);
    word_set(&tap->numbers, count + 1);
    return (int)count;
}

bool devices_adopt(gputap *tap, struct mapping *mapping)
{
    uint32_t count = view_device_count(&mapping->view), before = mapping->adopted;
    for (; mapping->adopted < count; mapping->adopted++) {
        union device_words raw;
        struct ring ring;
        uint64_t last = 0;
        char id[ID_BYTES];
        view_entry(&mapping->view, REGION_DEVICE, mapping->adopted, &ring);
        if (ring_latest_words(&ring, raw.words, DEVICE_WORDS, &last, 0) != RING_OK)
            break; /* being rewritten: next time */
        text_copy(id, sizeof id, raw.entry.id, sizeof raw.entry.id);
        int number = id[0] ? number_for(tap, id) : -1;
        if (number >= 0 && word32_get(&mapping->slot_of[number]) == 0)
            word32_set(&mapping->slot_of[number], mapping->adopted + 1);
    }
    return mapping->adopted != before;
}

void devices_numbers(const gputap *tap, const struct mapping *mapping, struct slot_numbers *out)
{
    uint64_t count = word_get(&tap->numbers);
    memset(out->of, 0xFF, sizeof out->of);
    for (uint64_t number = 0; number < count && number < HANDLE_MAX_NUMBERS; number++) {
        uint32_t slot = word32_get(&mapping->slot_of[number]);
        if (slot > 0 && slot <= LAYOUT_MAX_DEVICES)
            out->of[slot - 1] = (int16_t)number;
    }
}

int gputap_device_count(gputap *tap)
{
    if (!tap)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    return (int)word_get(&tap->numbers);
}

#define TEXT(field) text_copy(out->field, sizeof out->field, entry->field, sizeof entry->field)
static void device_public(const struct layout_device *entry, gputap_device *out)
{
    memset(out, 0, sizeof *out);
    out->state = entry->state < DEVICE_STATE_COUNT ? entry->state : (uint32_t)DEVICE_HUNG;
    out->generation = entry->generation;
    out->pool = entry->pool <= POOL_UNIFIED ? entry->pool : (uint32_t)POOL_UNKNOWN;
    out->simulated = entry->simulated != 0;
    out->vendor_id = entry->vendor_id;
    out->device_id = entry->device_id;
    out->subvendor_id = entry->subvendor_id;
    out->subdevice_id = entry->subdevice_id;
    out->revision = entry->revision;
    out->compute_units = entry->compute_units;
    out->vram_bus_bits = entry->vram_bus_bits;
    out->kfd_index = entry->kfd_index;
    out->nvml_index = entry->nvml_index;
    TEXT(id);
    TEXT(pci);
    TEXT(uuid);
    TEXT(vendor);
    TEXT(name);
    TEXT(driver);
    TEXT(driver_version);
    TEXT(arch);
    TEXT(vram_type);
    out->tgp_watts = entry->tgp;
    out->gfx_clock_max = entry->limits[LIMIT_GFX_CLOCK_MAX];
    out->memory_clock_max = entry->limits[LIMIT_MEMORY_CLOCK_MAX];
    out->temperature_edge_critical = entry->limits[LIMIT_EDGE_CRITICAL];
    out->temperature_junction_critical = entry->limits[LIMIT_JUNCTION_CRITICAL];
    out->temperature_memory_critical = entry->limits[LIMIT_MEMORY_CRITICAL];
    out->temperature_slowdown = entry->limits[LIMIT_SLOWDOWN];
    out->idle_watts = entry->idle_watts;
}

/* Not finite means that nobody knows, which is written as 0 here. */
static void device_clean_numbers(gputap_device *device)
{
    double *numbers[] = {&device->tgp_watts,
                         &device->gfx_clock_max,
                         &device->memory_clock_max,
                         &device->temperature_edge_critical,
                         &device->temperature_junction_critical,
                         &device->temperature_memory_critical,
                         &device->temperature_slowdown,
                         &device->idle_watts};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!(*numbers[i] > 0 && *numbers[i] < 1e12))
            *numbers[i] = 0;
}

int gputap_device_info(gputap *tap, int device, gputap_device *out)
{
    union device_words raw;
    if (!tap || !out)
        return GPUTAP_EINVAL;
    handle_tick(tap, clock_mono_coarse_ns());
    int result = entry_read(tap, REGION_DEVICE, device, raw.words, DEVICE_WORDS);
    if (result != GPUTAP_OK)
        return result;
    gputap_device known;
    device_public(&raw.entry, &known);
    device_clean_numbers(&known);
    return client_copy_sized(tap, out, out->size, &known, sizeof known);
}

static bool same_letters(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        char x = *a >= 'A' && *a <= 'Z' ? (char)(*a + 32) : *a, y = *b >= 'A' && *b <= 'Z' ? (char)(*b + 32) : *b;
        if (x != y)
            return false;
    }
    return *a == *b;
}

/* Ids before PCI addresses before uuids: partitions of a card share its address. */
int gputap_find(gputap *tap, const char *id)
{
    if (!tap || !id || !id[0])
        return GPUTAP_EINVAL;
    int count = gputap_device_count(tap);
    for (int kind = 0; kind < 3; kind++)
        for (int number = 0; number < count; number++) {
            gputap_device info = GPUTAP_DEVICE_INIT;
            if (gputap_device_info(tap, number, &info) != GPUTAP_OK)
                continue;
            if (same_letters(kind == 0 ? info.id : kind == 1 ? info.pci : info.uuid, id))
                return number;
        }
    return client_fail(tap, GPUTAP_ENODEV, "no device has the id, PCI address or uuid \"%.64s\"", id);
}
