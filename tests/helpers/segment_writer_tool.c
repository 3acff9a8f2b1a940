/* Stands in for the broker where a test wants full speed: creates a segment in a folder, holds its lock, and publishes snapshots
 * of tests/helpers/pattern.h until a count, a time, or a signal.
 *     segment_writer_tool FOLDER [--devices N] [--rate HZ] [--count N] [--seconds S] [--hold]
 * Prints {"published":N,...} at the end; --hold then stays until a signal. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shm/segment.h"
#include "tests/helpers/pattern.h"

static volatile sig_atomic_t ended;
static void on_signal(int number) { (void)number, ended = 1; }

static double option(int argc, char **argv, const char *name, double fallback)
{
    for (int i = 2; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return atof(argv[i + 1]);
    return fallback;
}

static void publish_entries(struct segment_writer *writer, uint32_t devices)
{
    for (uint32_t i = 0; i < devices; i++) {
        struct ring ring;
        union {
            struct layout_device device;
            uint64_t words[sizeof(struct layout_device) / 8];
        } entry;
        memset(&entry, 0, sizeof entry);
        snprintf(entry.device.id, sizeof entry.device.id, "sim:pattern:%u", i);
        segment_entry(writer, REGION_DEVICE, i, &ring);
        ring_publish(&ring, entry.words);
    }
    segment_set_devices(writer, devices);
}

static void pause_ns(double ns)
{
    struct timespec time = {(time_t)(ns / 1e9), (long)(ns - 1e9 * (double)(time_t)(ns / 1e9))};
    nanosleep(&time, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    uint32_t devices = (uint32_t)option(argc, argv, "--devices", 1);
    double rate = option(argc, argv, "--rate", 0), seconds = option(argc, argv, "--seconds", 1e9);
    uint64_t count = (uint64_t)option(argc, argv, "--count", 1e18);
    bool hold = strcmp(argv[argc - 1], "--hold") == 0;
    struct segment_config config = {
        .device_slots = devices + 1, .provider_slots = 2, .period_ns = 20000000, .mode = 0644, .group = -1, .version = "test"};
    struct segment_writer writer;
    char message[256] = "";
    struct lock lock = LOCK_NONE;
    int64_t holder;
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    while (lock_take(argv[1], 0644, -1, &lock, &holder, message, sizeof message) != REGION_OK) /* a killed one's last moments */
        pause_ns(1e6);
    if (segment_create(&writer, &config, argv[1], message, sizeof message) != REGION_OK) {
        fprintf(stderr, "%s\n", message);
        return 1;
    }
    publish_entries(&writer, devices);
    uint64_t seed, tick = 0, end = clock_mono_ns() + (uint64_t)(seconds * 1e9);
    memcpy(&seed, writer.header->epoch, sizeof seed);
    struct series *series = calloc(devices + 1, sizeof *series);
    if (!series)
        return 1;
    for (uint32_t i = 0; i < devices; i++)
        segment_device_series(&writer, i, &series[i]);
    segment_host_series(&writer, &series[devices]);
    while (!ended && tick < count && (tick % 256 || clock_mono_ns() < end)) {
        union {
            struct layout_snapshot sample;
            uint64_t words[LAYOUT_SNAPSHOT_WORDS - 1];
        } raw;
        tick++;
        pattern_fill(&raw.sample, seed, tick);
        for (uint32_t i = 0; i <= devices; i++)
            ring_publish(&series[i].ring, raw.words);
        if (rate > 0 || tick % 1024 == 1)
            segment_announce(&writer, tick);
        if (rate > 0)
            pause_ns(1e9 / rate);
    }
    segment_announce(&writer, tick);
    printf("{\"published\":%llu,\"seed\":%llu}\n", (unsigned long long)tick, (unsigned long long)seed);
    fflush(stdout);
    while (hold && !ended) {
        pause_ns(1e7);
        segment_beat(&writer);
    }
    free(series);
    segment_close(&writer);
    lock_release(&lock);
    return 0;
}
