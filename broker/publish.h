/* From the table of devices into the segment. */
#ifndef GPUTAP_BROKER_PUBLISH_H
#define GPUTAP_BROKER_PUBLISH_H

#include "broker/devices.h"
#include "broker/options.h"
#include "broker/track.h"
#include "shm/segment.h"

struct published_device {
    struct track track;
    struct series series;
    struct ring entry, processes;
    struct layout_device last; /* what the entry holds */
    bool at_work;              /* a client has a span open on it: its power now is not that of an idle device */
};

struct publisher {
    struct segment_config config;
    char directory[PLACE_PATH_MAX];
    struct segment_writer writer;
    struct published_device *devices; /* capacity of them */
    uint32_t capacity;
    struct track host_track;
    struct series host_series;
    struct ring host_entry, stats_entry;
    struct ring provider_entries[LAYOUT_MAX_PROVIDERS];
    struct layout_host host_last;
    struct layout_provider providers_last[LAYOUT_MAX_PROVIDERS];
    bool open;
    uint64_t recreated;
};

/* Builds the segment for `capacity` devices. REGION_OK or an error with a text. */
int publisher_open(struct publisher *publisher, const struct options *options, const char *directory, uint32_t capacity,
                   char *message, size_t message_size);
/* Replaces a segment whose file somebody removed: a new epoch, with the sums going on. */
int publisher_recreate(struct publisher *publisher, char *message, size_t message_size);
/* One tick of one device. `fresh`: its facts or state changed. */
void publish_device(struct publisher *publisher, uint32_t slot, const struct device *device, const struct merged *merged,
                    uint64_t tick, uint64_t now_ns, uint64_t gap_ns, bool fresh);
void publish_processes(struct publisher *publisher, uint32_t slot, const struct layout_process_table *table);
void publish_host(struct publisher *publisher, const struct layout_host *facts, const struct merged *merged, uint64_t tick,
                  uint64_t now_ns);
void publish_provider(struct publisher *publisher, int index, const struct layout_provider *provider);
void publish_stats(struct publisher *publisher, const struct layout_stats *stats);
void publish_announce(struct publisher *publisher, uint64_t tick, uint32_t device_count);
void publisher_close(struct publisher *publisher);

#endif
