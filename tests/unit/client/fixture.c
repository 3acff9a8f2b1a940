#include "tests/unit/client/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/helpers/os.h"

#define MUST(condition)                                                                                                            \
    do {                                                                                                                           \
        if (!(condition)) {                                                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                        \
            exit(1);                                                                                                               \
        }                                                                                                                          \
    } while (0)

void fixture_start(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->lock = (struct lock)LOCK_NONE;
    MUST(os_set_env("GPUTAP_INSTANCE", "t"));
    if (os_named_places()) {
        MUST(os_set_env("GPUTAP_DIR", NULL) && place_create("t", -1, f->folder, sizeof f->folder, NULL, 0) == REGION_OK);
        return;
    }
    MUST(os_make_private_folder(f->base, sizeof f->base));
    snprintf(f->folder, sizeof f->folder, "%s/t", f->base);
    MUST(os_make_folder(f->folder) && os_set_env("GPUTAP_DIR", f->base));
}

void fixture_end(struct fixture *f)
{
    static const char *const names[] = {PLACE_SEGMENT, PLACE_LOCK, PLACE_OWNER};
    char path[256];
    fixture_abandon(f);
    fixture_unlock(f);
    if (f->replaced.memory)
        region_destroy(&f->replaced);
    if (os_named_places())
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", f->folder, names[i]);
        (void)os_remove_file(path);
    }
    MUST(os_remove_folder(f->folder) && os_remove_folder(f->base));
}

void fixture_lock(struct fixture *f)
{
    char message[256] = "";
    int64_t holder;
    MUST(lock_take(f->folder, 0644, -1, &f->lock, &holder, message, sizeof message) == REGION_OK);
}

void fixture_unlock(struct fixture *f) { lock_release(&f->lock); }

void fixture_abandon(struct fixture *f)
{
    if (f->open)
        segment_close(&f->writer);
    f->open = false;
}

struct layout_device fixture_entry(char name)
{
    struct layout_device entry;
    memset(&entry, 0, sizeof entry);
    snprintf(entry.id, sizeof entry.id, "dev:%c", name);
    snprintf(entry.pci, sizeof entry.pci, "0000:c%c:00.0", name);
    snprintf(entry.uuid, sizeof entry.uuid, "GPU-uuid-%c", name);
    snprintf(entry.name, sizeof entry.name, "Card %c", name);
    memset(entry.reasons, REASON_NOT_SUPPORTED, sizeof entry.reasons);
    memset(entry.sources, 255, sizeof entry.sources);
    entry.kfd_index = entry.nvml_index = -1;
    return entry;
}

void fixture_device(struct fixture *f, uint32_t slot, const struct layout_device *entry)
{
    uint64_t words[sizeof *entry / 8];
    struct ring ring;
    memcpy(words, entry, sizeof words);
    segment_entry(&f->writer, REGION_DEVICE, slot, &ring);
    ring_publish(&ring, words);
}

void fixture_segment(struct fixture *f, uint32_t slots, const char *names)
{
    struct segment_config config = {
        .device_slots = slots, .provider_slots = 2, .period_ns = 20000000, .mode = 0644, .group = -1, .version = "unit"};
    char message[256] = "";
    fixture_abandon(f);
    MUST(segment_create(&f->writer, &config, f->folder, message, sizeof message) == REGION_OK);
    f->open = true;
    f->tick = 0;
    for (uint32_t i = 0; names[i]; i++) {
        struct layout_device entry = fixture_entry(names[i]);
        fixture_device(f, i, &entry);
    }
    segment_set_devices(&f->writer, (uint32_t)strlen(names));
}

static void publish(struct ring *ring, const void *payload, size_t size)
{
    uint64_t words[LAYOUT_COARSE_WORDS];
    memcpy(words, payload, size);
    ring_publish(ring, words);
}

void fixture_publish(struct fixture *f, uint32_t slot, const struct layout_snapshot *sample)
{
    struct series series;
    segment_device_series(&f->writer, slot, &series);
    publish(&series.ring, sample, sizeof *sample);
}

void fixture_publish_host(struct fixture *f, const struct layout_snapshot *sample)
{
    struct series series;
    segment_host_series(&f->writer, &series);
    publish(&series.ring, sample, sizeof *sample);
}

void fixture_publish_coarse(struct fixture *f, uint32_t slot, const struct layout_coarse *record)
{
    struct series series;
    segment_device_series(&f->writer, slot, &series);
    publish(&series.coarse, record, sizeof *record);
}

struct layout_snapshot fixture_sample(double busy, uint64_t used)
{
    struct layout_snapshot sample;
    memset(&sample, 0, sizeof sample);
    sample.mono_ns = clock_mono_ns();
    sample.real_ns = clock_real_ns();
    sample.metrics[METRIC_GFX_BUSY].f64 = busy;
    sample.metrics[METRIC_VRAM_USED].u64 = used;
    metrics_set_valid(sample.valid, METRIC_GFX_BUSY);
    metrics_set_valid(sample.valid, METRIC_VRAM_USED);
    return sample;
}

struct layout_session fixture_session_entry(const char *label)
{
    struct layout_session session;
    memset(&session, 0, sizeof session);
    session.state = SESSION_OPEN;
    session.generation = 1;
    session.pid = 4321;
    session.uid = 1000;
    session.since_mono_ns = clock_mono_ns();
    session.since_real_ns = clock_real_ns();
    snprintf(session.label, sizeof session.label, "%s", label);
    snprintf(session.comm, sizeof session.comm, "python3");
    return session;
}

void fixture_session(struct fixture *f, uint32_t slot, const struct layout_session *session)
{
    uint64_t words[sizeof *session / 8];
    struct ring ring;
    memcpy(words, session, sizeof words);
    segment_entry(&f->writer, REGION_SESSION, slot, &ring);
    ring_publish(&ring, words);
}

struct layout_process fixture_process(uint32_t pid, uint32_t uid, uint64_t vram, const char *comm)
{
    struct layout_process row;
    memset(&row, 0, sizeof row);
    row.pid = pid;
    row.uid = uid;
    row.start_ms = 1764540000000;
    row.vram = vram;
    row.gtt = 4096;
    row.gfx_busy = 12.5;
    row.compute_busy = row.copy_busy = row.encode_busy = row.decode_busy = row.media_busy = 0;
    snprintf(row.comm, sizeof row.comm, "%s", comm);
    return row;
}

struct layout_process_table fixture_process_table(const struct layout_process *rows, uint32_t count)
{
    struct layout_process_table table;
    memset(&table, 0, sizeof table);
    MUST(count <= LAYOUT_PROCESS_ROWS);
    table.updated_ns = clock_mono_ns();
    table.count = count;
    if (count > 0)
        memcpy(table.rows, rows, count * sizeof *rows);
    return table;
}

void fixture_processes(struct fixture *f, uint32_t slot, const struct layout_process_table *table)
{
    uint64_t words[sizeof *table / 8];
    struct ring ring;
    memcpy(words, table, sizeof words);
    segment_entry(&f->writer, REGION_PROCESS, slot, &ring);
    ring_publish(&ring, words);
}

uint64_t fixture_event(struct fixture *f, const struct layout_event *event)
{
    uint64_t words[sizeof *event / 8];
    struct ring ring;
    memcpy(words, event, sizeof words);
    segment_entry(&f->writer, REGION_EVENT, 0, &ring);
    return ring_publish(&ring, words);
}

void fixture_announce(struct fixture *f) { segment_announce(&f->writer, ++f->tick); }

void fixture_poke(struct fixture *f, size_t offset, const void *bytes, size_t count)
{
    MUST(offset + count <= f->writer.region.bytes);
    memcpy((char *)f->writer.region.memory + offset, bytes, count);
}

static void replace_object(struct fixture *f, const void *bytes, size_t count)
{
    if (f->replaced.memory)
        region_destroy(&f->replaced);
    MUST(region_create(&f->replaced, f->folder, PLACE_SEGMENT, count, 0644, -1, NULL, 0) == REGION_OK);
    memcpy(f->replaced.memory, bytes, count);
    MUST(region_publish(&f->replaced, f->folder, PLACE_SEGMENT, NULL, 0) == REGION_OK);
}

void fixture_replace(struct fixture *f, const void *bytes, size_t count)
{
    char path[256], fresh[264];
    if (os_named_places()) {
        replace_object(f, bytes, count);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", f->folder, PLACE_SEGMENT);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "wb");
    MUST(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0 && os_rename(fresh, path));
}

void fixture_sleep_ms(int ms) { os_sleep_ms(ms); }

gputap *fixture_open(unsigned flags)
{
    gputap *tap;
    if (gputap_open(&tap, "t", flags) == GPUTAP_OK)
        return tap;
    fprintf(stderr, "gputap_open: %s\n", gputap_message(NULL));
    exit(1);
}
