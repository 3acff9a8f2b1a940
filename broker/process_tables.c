#include "broker/process_tables.h"

#include <stdlib.h>
#include <string.h>

static bool heard(const struct devices *devices, const struct device *device, const struct process_slot *slot, int provider)
{
    const uint8_t *rank = devices->rank[METRIC_PROCESS_VRAM];
    return !slot->table || slot->provider == provider || slot->table->updated_ns == 0 || rank[provider] < rank[slot->provider] ||
           !device->sources[slot->provider].present;
}

void process_tables_take(struct process_tables *tables, const struct devices *devices, const struct device *device, int provider,
                         const struct layout_process_table *table)
{
    struct process_slot *slot = &tables->slots[device - devices->items];
    if (!heard(devices, device, slot, provider))
        return;
    if (!slot->table)
        slot->table = malloc(sizeof *slot->table);
    if (!slot->table)
        abort();
    *slot->table = *table;
    slot->provider = provider;
    slot->dirty = true;
}

static bool is_over(const struct device *device, const struct process_slot *slot, uint64_t now_ns, uint64_t stale_ns)
{
    uint64_t updated = slot->table->updated_ns;
    return device->gone || !device->sources[slot->provider].present || (now_ns > updated && now_ns - updated > stale_ns);
}

void process_tables_publish(struct process_tables *tables, const struct devices *devices, struct publisher *publisher,
                            uint64_t now_ns, uint64_t stale_ns)
{
    bool anew = tables->recreated != publisher->recreated;
    tables->recreated = publisher->recreated;
    for (uint32_t i = 0; i < devices->count; i++) {
        struct process_slot *slot = &tables->slots[i];
        if (!slot->table)
            continue;
        if (slot->table->updated_ns != 0 && is_over(&devices->items[i], slot, now_ns, stale_ns)) {
            memset(slot->table, 0, sizeof *slot->table);
            slot->dirty = true;
        }
        if (slot->dirty || anew)
            publish_processes(publisher, i, slot->table);
        slot->dirty = false;
    }
}

void process_tables_free(struct process_tables *tables)
{
    for (int i = 0; i < LAYOUT_MAX_DEVICES; i++)
        free(tables->slots[i].table);
    memset(tables, 0, sizeof *tables);
}
