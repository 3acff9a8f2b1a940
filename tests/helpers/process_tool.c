/* Stands in for a broker that looks for processes: a segment whose tables the test fills, a line at a time, each answered by `ok`.
 *     process_tool FOLDER [DEVICES]
 *     row PID UID VRAM GTT GFX COMPUTE COMM [FLAGS SHARERS CONTAINER]   one more row of the next table; - = unknown
 *     table DEVICE OTHERS HIDDEN PARTIAL EXTERNAL                       publishes it
 * It ticks 20 times a second until its input ends. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/segment.h"
#include "shm/text.h"

enum { MOST_DEVICES = 8, TICK_MS = 50 };

struct stage {
    struct segment_writer writer;
    uint32_t devices;
    uint64_t tick;
    uint64_t external[MOST_DEVICES];
    struct layout_process_table next;
};

static uint64_t bytes_of(const char *text) { return strcmp(text, "-") == 0 ? UINT64_MAX : strtoull(text, NULL, 10); }
static double busy_of(const char *text) { return strcmp(text, "-") == 0 ? (double)NAN : atof(text); }

/* All entries are whole words; `entry` is at most a table. */
static void publish(struct ring *ring, const void *entry, size_t size)
{
    static uint64_t words[sizeof(struct layout_process_table) / 8];
    memcpy(words, entry, size);
    ring_publish(ring, words);
}

static void add_device(struct stage *stage, uint32_t slot)
{
    struct layout_device device;
    struct ring ring;
    memset(&device, 0, sizeof device);
    snprintf(device.id, sizeof device.id, "0000:0%u:00.0", slot + 1);
    snprintf(device.name, sizeof device.name, "Card %u", slot);
    memset(device.reasons, REASON_NOT_SUPPORTED, sizeof device.reasons);
    memset(device.sources, 255, sizeof device.sources);
    device.kfd_index = device.nvml_index = -1;
    device.pool = POOL_DISCRETE;
    stage->external[slot] = UINT64_MAX;
    segment_entry(&stage->writer, REGION_DEVICE, slot, &ring);
    publish(&ring, &device, sizeof device);
}

static void know(struct layout_snapshot *sample, int metric, uint64_t value)
{
    sample->metrics[metric].u64 = value;
    metrics_set_valid(sample->valid, metric);
}

static void tick(struct stage *stage)
{
    struct series series;
    struct layout_snapshot sample;
    for (uint32_t slot = 0; slot <= stage->devices; slot++) {
        memset(&sample, 0, sizeof sample);
        sample.tick = stage->tick + 1;
        sample.mono_ns = clock_mono_ns();
        sample.real_ns = clock_real_ns();
        if (slot == stage->devices) {
            segment_host_series(&stage->writer, &series);
        } else {
            segment_device_series(&stage->writer, slot, &series);
            know(&sample, METRIC_VRAM_TOTAL, UINT64_C(24) << 30);
            know(&sample, METRIC_VRAM_USED, UINT64_C(20) << 30);
            if (stage->external[slot] != UINT64_MAX)
                know(&sample, METRIC_EXTERNAL_VRAM, stage->external[slot]);
        }
        publish(&series.ring, &sample, sizeof sample);
    }
    segment_announce(&stage->writer, ++stage->tick);
}

static bool add_row(struct stage *stage, char *const *word, int count)
{
    if (count < 8 || stage->next.count == LAYOUT_PROCESS_ROWS)
        return false;
    struct layout_process *row = &stage->next.rows[stage->next.count++];
    memset(row, 0, sizeof *row);
    row->pid = (uint32_t)strtoul(word[1], NULL, 10);
    row->uid = (uint32_t)strtoul(word[2], NULL, 10);
    row->vram = bytes_of(word[3]);
    row->gtt = bytes_of(word[4]);
    row->gfx_busy = busy_of(word[5]);
    row->compute_busy = busy_of(word[6]);
    row->copy_busy = row->encode_busy = row->decode_busy = row->media_busy = (double)NAN;
    text_copy(row->comm, sizeof row->comm, word[7], strlen(word[7]));
    if (count > 10) {
        row->flags = (uint32_t)strtoul(word[8], NULL, 10);
        row->sharers = (uint32_t)strtoul(word[9], NULL, 10);
        if (strcmp(word[10], "-") != 0)
            text_copy(row->container, sizeof row->container, word[10], strlen(word[10]));
    }
    return true;
}

static bool tell_table(struct stage *stage, char *const *word, int count)
{
    uint32_t slot = count > 5 ? (uint32_t)strtoul(word[1], NULL, 10) : MOST_DEVICES;
    struct ring ring;
    if (slot >= stage->devices)
        return false;
    stage->next.others = (uint32_t)strtoul(word[2], NULL, 10);
    stage->next.others_vram = stage->next.others * UINT64_C(1048576);
    stage->next.hidden = (uint32_t)strtoul(word[3], NULL, 10);
    stage->next.flags = strtoul(word[4], NULL, 10) ? PROCESS_TABLE_PARTIAL : 0;
    stage->external[slot] = bytes_of(word[5]);
    stage->next.updated_ns = clock_mono_ns();
    segment_entry(&stage->writer, REGION_PROCESS, slot, &ring);
    publish(&ring, &stage->next, sizeof stage->next);
    memset(&stage->next, 0, sizeof stage->next);
    tick(stage);
    return true;
}

static bool obey(struct stage *stage, char *text)
{
    static char nothing[1];
    char *word[12];
    int count = 0;
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        word[i] = nothing;
    for (char *at = strtok(text, " \n"); at && count < 12; at = strtok(NULL, " \n"))
        word[count++] = at;
    if (count > 0 && strcmp(word[0], "row") == 0)
        return add_row(stage, word, count);
    return count > 0 && strcmp(word[0], "table") == 0 && tell_table(stage, word, count);
}

static void listen_and_tick(struct stage *stage)
{
    char line[512];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        if (poll(&input, 1, TICK_MS) == 0) {
            tick(stage);
            continue;
        }
        if (!fgets(line, sizeof line, stdin))
            return;
        puts(obey(stage, line) ? "ok" : "what?");
    }
}

int main(int argc, char **argv)
{
    static struct stage stage;
    struct lock lock = LOCK_NONE;
    int64_t holder;
    char message[256] = "";
    if (argc < 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* nothing may wait in a buffer that poll does not see */
    stage.devices = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    struct segment_config config = {.device_slots = MOST_DEVICES,
                                    .provider_slots = 2,
                                    .period_ns = TICK_MS * UINT64_C(1000000),
                                    .mode = 0644,
                                    .group = -1,
                                    .version = "test"};
    if (stage.devices > MOST_DEVICES || lock_take(argv[1], 0644, -1, &lock, &holder, message, sizeof message) != REGION_OK ||
        segment_create(&stage.writer, &config, argv[1], message, sizeof message) != REGION_OK) {
        fprintf(stderr, "%s\n", message);
        return 1;
    }
    for (uint32_t slot = 0; slot < stage.devices; slot++)
        add_device(&stage, slot);
    segment_set_devices(&stage.writer, stage.devices);
    tick(&stage);
    puts("ok");
    listen_and_tick(&stage);
    segment_close(&stage.writer);
    lock_release(&lock);
    return 0;
}
