#include "broker/publish.h"

#include <stdlib.h>
#include <string.h>

#include "shm/text.h"

/* Structs become words by copying: the layout has them in whole words without padding. */
#define PUBLISH_STRUCT(ring, value)                                                                                                \
    do {                                                                                                                           \
        uint64_t words[sizeof(*(value)) / 8];                                                                                      \
        memcpy(words, (value), sizeof words);                                                                                      \
        ring_publish((ring), words);                                                                                               \
    } while (0)

static void bind_all(struct publisher *publisher)
{
    for (uint32_t i = 0; i < publisher->capacity; i++) {
        segment_device_series(&publisher->writer, i, &publisher->devices[i].series);
        segment_entry(&publisher->writer, REGION_DEVICE, i, &publisher->devices[i].entry);
        segment_entry(&publisher->writer, REGION_PROCESS, i, &publisher->devices[i].processes);
    }
    segment_host_series(&publisher->writer, &publisher->host_series);
    segment_entry(&publisher->writer, REGION_HOST, 0, &publisher->host_entry);
    segment_entry(&publisher->writer, REGION_STATS, 0, &publisher->stats_entry);
    for (uint32_t i = 0; i < publisher->config.provider_slots; i++)
        segment_entry(&publisher->writer, REGION_PROVIDER, i, &publisher->provider_entries[i]);
}

int publisher_open(struct publisher *publisher, const struct options *options, const char *directory, uint32_t capacity,
                   char *message, size_t message_size)
{
    memset(publisher, 0, sizeof *publisher);
    publisher->config = (struct segment_config){.device_slots = capacity,
                                                .provider_slots = LAYOUT_MAX_PROVIDERS,
                                                .period_ns = options->period_ns,
                                                .simulated = options->simulate_count > 0,
                                                .mode = options->group >= 0 ? 0640 : 0644,
                                                .group = options->group,
                                                .version = GPUTAP_PROJECT_VERSION};
    text_format(publisher->directory, sizeof publisher->directory, "%s", directory);
    int result = segment_create(&publisher->writer, &publisher->config, directory, message, message_size);
    if (result != REGION_OK)
        return result;
    publisher->capacity = capacity;
    publisher->devices = calloc(capacity, sizeof publisher->devices[0]);
    if (!publisher->devices)
        abort();
    publisher->open = true;
    bind_all(publisher);
    return REGION_OK;
}

int publisher_recreate(struct publisher *publisher, char *message, size_t message_size)
{
    struct segment_writer fresh;
    int result = segment_create(&fresh, &publisher->config, publisher->directory, message, message_size);
    if (result != REGION_OK)
        return result;
    segment_mark(&publisher->writer, SEGMENT_SUPERSEDED);
    segment_close(&publisher->writer);
    publisher->writer = fresh;
    publisher->recreated++;
    bind_all(publisher);
    for (uint32_t i = 0; i < publisher->capacity; i++)
        memset(&publisher->devices[i].last, 0, sizeof publisher->devices[i].last);
    memset(&publisher->host_last, 0, sizeof publisher->host_last);
    memset(publisher->providers_last, 0, sizeof publisher->providers_last);
    return REGION_OK;
}

static uint64_t real_time_of(uint64_t mono_ns, uint64_t now_ns)
{
    uint64_t real = clock_real_ns();
    uint64_t age = now_ns > mono_ns ? now_ns - mono_ns : 0;
    return real > age ? real - age : 0;
}

static void fill_snapshot(struct layout_snapshot *out, const struct merged *merged, uint64_t tick, uint64_t now_ns, uint64_t state,
                          const double *sums)
{
    uint64_t mono = merged->mono_ns ? merged->mono_ns : now_ns;
    *out = (struct layout_snapshot){.tick = tick,
                                    .mono_ns = mono,
                                    .real_ns = real_time_of(mono, now_ns),
                                    .cost_ns = merged->cost_ns,
                                    .valid = {merged->valid[0], merged->valid[1]},
                                    .state = state};
    memcpy(out->metrics, merged->values, sizeof out->metrics);
    memcpy(out->sums, sums, sizeof out->sums);
}

void publish_device(struct publisher *publisher, uint32_t slot, const struct device *device, const struct merged *merged,
                    uint64_t tick, uint64_t now_ns, uint64_t gap_ns, bool fresh)
{
    struct published_device *out = &publisher->devices[slot];
    uint64_t state = merged->state | (uint64_t)device->generation << 32;
    track_sums(&out->track, merged, device->facts.pool, gap_ns);

    struct layout_snapshot snapshot;
    fill_snapshot(&snapshot, merged, tick, now_ns, state, out->track.sums);
    PUBLISH_STRUCT(&out->series.ring, &snapshot);
    struct layout_coarse closed;
    if (track_coarse(&out->track, false, merged, snapshot.real_ns, state, &closed)) {
        PUBLISH_STRUCT(&out->series.coarse, &closed);
        track_idle(&out->track, &closed, out->at_work);
    }
    struct layout_device entry = device->facts;
    entry.idle_watts = out->track.idle_watts_told;
    if (memcmp(&entry, &out->last, sizeof out->last) != 0) {
        out->last = entry;
        PUBLISH_STRUCT(&out->entry, &out->last);
        if (fresh)
            segment_bump_changes(&publisher->writer);
    }
}

void publish_processes(struct publisher *publisher, uint32_t slot, const struct layout_process_table *table)
{
    PUBLISH_STRUCT(&publisher->devices[slot].processes, table);
}

void publish_host(struct publisher *publisher, const struct layout_host *facts, const struct merged *merged, uint64_t tick,
                  uint64_t now_ns)
{
    struct layout_snapshot snapshot;
    struct layout_coarse closed;
    fill_snapshot(&snapshot, merged, tick, now_ns, 0, publisher->host_track.sums);
    PUBLISH_STRUCT(&publisher->host_series.ring, &snapshot);
    if (track_coarse(&publisher->host_track, true, merged, snapshot.real_ns, 0, &closed))
        PUBLISH_STRUCT(&publisher->host_series.coarse, &closed);
    if (memcmp(facts, &publisher->host_last, sizeof *facts) != 0) {
        publisher->host_last = *facts;
        PUBLISH_STRUCT(&publisher->host_entry, facts);
    }
}

void publish_provider(struct publisher *publisher, int index, const struct layout_provider *provider)
{
    if (memcmp(provider, &publisher->providers_last[index], sizeof *provider) == 0)
        return;
    publisher->providers_last[index] = *provider;
    PUBLISH_STRUCT(&publisher->provider_entries[index], provider);
}

void publish_stats(struct publisher *publisher, const struct layout_stats *stats)
{
    PUBLISH_STRUCT(&publisher->stats_entry, stats);
}

void publish_announce(struct publisher *publisher, uint64_t tick, uint32_t device_count)
{
    if (word_peek(&publisher->writer.header->device_count) != device_count) {
        segment_set_devices(&publisher->writer, device_count);
        segment_bump_changes(&publisher->writer);
    }
    segment_announce(&publisher->writer, tick);
}

void publisher_close(struct publisher *publisher)
{
    if (!publisher->open)
        return;
    segment_mark(&publisher->writer, SEGMENT_DEAD);
    segment_close(&publisher->writer);
    free(publisher->devices);
    publisher->open = false;
}
