/* Partitions of an MI300 in CPX or DPX mode. The card stays a device of its own: power, temperatures, clocks and the whole memory
 * are the card's, and are neither divided nor repeated. A partition has its share of the memory and of the compute units, by its
 * node in the compute driver's topology (the whole card's memory for each is ROCm issue 4750), and its load, by the card's table.
 *
 * Partitions beyond the first have DRM nodes below /sys/devices/platform/amdgpu_xcp.N, which have neither sensors nor memory files:
 * there is nothing to be read there. How much of its memory a partition uses is told nowhere. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "broker/providers/amdgpu.h"
#include "shm/text.h"

/* gfx940 to gfx942 and gfx950 are the parts that can be divided. */
static bool can_be_divided(const struct amdgpu_device *card)
{
    return strncmp(card->facts.arch, "gfx94", 5) == 0 || strncmp(card->facts.arch, "gfx95", 5) == 0;
}

bool amdgpu_partitions_find(struct amdgpu_device *card, struct io *io)
{
    struct kfd_partition found[KFD_MOST_PARTITIONS];
    memset(found, 0, sizeof found);
    int count = can_be_divided(card) ? kfd_partitions(io, &card->display, found, KFD_MOST_PARTITIONS) : 0;
    bool changed = count != card->partition_count || memcmp(found, card->partitions, sizeof found) != 0;
    memcpy(card->partitions, found, sizeof found);
    card->partition_count = count;
    uint32_t units = 0;
    for (int i = 0; i < count; i++)
        units += found[i].facts.compute_units;
    if (units > 0)
        card->facts.compute_units = units;
    return changed;
}

void amdgpu_partition_describe(const struct amdgpu_device *card, int index, struct layout_device *out)
{
    const struct kfd_partition *partition = &card->partitions[index];
    char text[128];
    *out = card->facts;
    text_format(text, sizeof text, "%.32s/xcp%d", card->facts.id, partition->number);
    provider_text(out->id, sizeof out->id, text);
    text_format(text, sizeof text, "%.80s (partition %d)", card->facts.name, partition->number);
    provider_text(out->name, sizeof out->name, text);
    memset(out->uuid, 0, sizeof out->uuid);
    memset(out->limits, 0, sizeof out->limits);
    out->tgp = 0;
    out->kfd_index = partition->facts.index;
    out->compute_units = partition->facts.compute_units;
    out->vram_bus_bits = partition->facts.memory_bus_bits;
}

void amdgpu_partition_sample(const struct amdgpu_device *card, int index, struct sample *sample)
{
    const struct kfd_partition *partition = &card->partitions[index];
    bool told = partition->number < GM_MOST_PARTITIONS && (unsigned)partition->number < card->table.partitions;
    sample->state = card->state;
    if (card->state == DEVICE_ASLEEP)
        sample_all_unknown(sample, REASON_ASLEEP);
    else
        sample_flag(sample, card->state == DEVICE_SETTLING ? QUALITY_SETTLING : 0);
    sample_memory(sample, METRIC_VRAM_TOTAL, partition->facts.memory_bytes, METRIC_VRAM_USED, 0);
    sample_unknown(sample, METRIC_VRAM_USED, REASON_NOT_SUPPORTED);
    if (card->state == DEVICE_ASLEEP || !told)
        return;
    if (!isnan(card->table.partition_busy[partition->number]))
        sample_f64_within(sample, METRIC_GFX_BUSY, card->table.partition_busy[partition->number], 0, 100);
    if (!isnan(card->table.partition_media_busy[partition->number]))
        sample_f64_within(sample, METRIC_MEDIA_BUSY, card->table.partition_media_busy[partition->number], 0, 100);
}
