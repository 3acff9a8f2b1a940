/* The processes of each device: what workers sent, until it is published, and until it is too old. */
#ifndef GPUTAP_BROKER_PROCESS_TABLES_H
#define GPUTAP_BROKER_PROCESS_TABLES_H

#include "broker/devices.h"
#include "broker/publish.h"

struct process_slot {
    struct layout_process_table *table; /* NULL: nobody has told any */
    int provider;
    bool dirty; /* not published yet */
};

struct process_tables {
    struct process_slot slots[LAYOUT_MAX_DEVICES];
    uint64_t recreated; /* segments that publisher had made when all was published last */
};

/* Of several providers that know a device's processes the one is heard that stands highest on the ladder of process_vram. */
void process_tables_take(struct process_tables *tables, const struct devices *devices, const struct device *device, int provider,
                         const struct layout_process_table *table);
/* Publishes what is new; a table that was not renewed for `stale_ns`, or whose device is gone, becomes empty. */
void process_tables_publish(struct process_tables *tables, const struct devices *devices, struct publisher *publisher,
                            uint64_t now_ns, uint64_t stale_ns);
void process_tables_free(struct process_tables *tables);

#endif
