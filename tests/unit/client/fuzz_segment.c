/* Any bytes in place of a segment: open and every call must come back, with whatever answer. With libFuzzer (FUZZING defined) its
 * main is used; else this is a bounded run of random damage, the seed of which it prints.
 *
 * Input: pairs of {u16 where, u8 how, u8 what}, applied to a good segment. `where` picks a place among those that matter: header
 * bytes, ring headers, stamps, entries. */
#include <stdint.h>

#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

static struct fixture f;
static uint8_t *good;
static size_t good_bytes;

static void make_good(void)
{
    fixture_start(&f);
    fixture_segment(&f, 2, "ab");
    for (int i = 1; i < 40; i++) {
        struct layout_snapshot sample = fixture_sample(i, (uint64_t)i);
        fixture_publish(&f, 0, &sample);
        fixture_publish_host(&f, &sample);
    }
    struct layout_session session = fixture_session_entry("s");
    session.span_count = session.gauge_count = 1;
    session.spans[0].id = 32;
    session.gauges[0].updated_ns = 1;
    fixture_session(&f, 0, &session);
    for (uint32_t type = EVENT_ATTACH; type <= EVENT_USAGE; type++)
        fixture_event(&f, &(struct layout_event){.type = type, .generation = 1, .span = 32});
    struct layout_process row = fixture_process(1, 1000, 1 << 20, "p");
    struct layout_process_table table = fixture_process_table(&row, 1);
    fixture_processes(&f, 0, &table);
    fixture_announce(&f);
    good_bytes = f.writer.region.bytes;
    good = malloc(good_bytes);
    if (!good)
        exit(1);
    memcpy(good, f.writer.region.memory, good_bytes);
    fixture_abandon(&f);
}

static size_t place_of(uint16_t where, const uint8_t *segment)
{
    const struct layout_header *header = (const struct layout_header *)(const void *)segment;
    size_t at;
    if (where < 0x4000)
        return where % 512; /* the header proper */
    if (where < 0x8000)
        return offsetof(struct layout_header, regions) + where % 448; /* the region table */
    const struct layout_region *region = &header->regions[where % header->region_count];
    at = (size_t)region->offset + (where >> 4) % 4096;
    return at < good_bytes ? at : good_bytes - 1;
}

static void check_processes(gputap *tap, int device)
{
    gputap_process_table table = GPUTAP_PROCESS_TABLE_INIT;
    gputap_process rows[GPUTAP_MAX_PROCESSES];
    int count = gputap_processes(tap, device, &table, rows, GPUTAP_MAX_PROCESSES);
    for (int i = 0; i < count; i++)
        if (rows[i].gfx_busy < 0 || rows[i].gfx_busy > 100 || !memchr(rows[i].comm, 0, sizeof rows[i].comm))
            abort();
}

static void call_sessions(gputap *tap)
{
    uint64_t now = gputap_now(tap);
    gputap_span spans[GPUTAP_MAX_SPANS];
    gputap_event event = GPUTAP_EVENT_INIT;
    gputap_cursor cursor;
    gputap_usage usage;
    char text[2048];
    for (int slot = 0, slots = gputap_session_slots(tap); slot < slots; slot++)
        (void)gputap_session_info(tap, slot, &(gputap_session)GPUTAP_SESSION_INIT, spans, GPUTAP_MAX_SPANS);
    if (gputap_event_cursor_init(tap, &cursor, GPUTAP_FROM_OLDEST) == GPUTAP_OK)
        for (int i = 0; i < 100 && gputap_next_event(tap, &cursor, &event) == 1; i++)
            ;
    for (int device = 0, count = gputap_device_count(tap); device < count; device++) {
        check_processes(tap, device);
        (void)gputap_usage_between(tap, device, 0, 0, &usage);
        (void)gputap_usage_between(tap, device, now - 1000000000u, now, &usage);
        (void)gputap_memory(tap, device, &(gputap_memory_info)GPUTAP_MEMORY_INIT);
        (void)gputap_fits(tap, device, 1 << 30, NULL);
        (void)gputap_oom_report(tap, device, text, sizeof text);
        (void)gputap_device_tuning(tap, device, &(gputap_tuning_info)GPUTAP_TUNING_INIT);
    }
}

static void call_everything(gputap *tap)
{
    static const int metrics[] = {0, 9, 22};
    static int64_t times[64];
    static double rows[64 * 3];
    char text[256];
    uint8_t epoch[16];
    uint64_t tick = 0;
    double values[3];
    int count = gputap_device_count(tap);
    (void)gputap_status(tap);
    (void)gputap_epoch(tap, epoch);
    (void)gputap_period(tap);
    (void)gputap_tick(tap);
    (void)gputap_find(tap, "dev:a");
    (void)gputap_host_info(tap, &(gputap_host)GPUTAP_HOST_INIT);
    (void)gputap_broker_stats(tap, &(gputap_stats)GPUTAP_STATS_INIT);
    (void)gputap_schema(tap, text, sizeof text);
    (void)gputap_directory(tap, text, sizeof text);
    for (int i = 0, providers = gputap_provider_count(tap); i < providers; i++)
        (void)gputap_provider_info(tap, i, &(gputap_provider)GPUTAP_PROVIDER_INIT);
    for (int device = GPUTAP_HOST; device < count; device++) {
        gputap_snapshot snapshot = GPUTAP_SNAPSHOT_INIT;
        gputap_device info = GPUTAP_DEVICE_INIT;
        gputap_cursor cursor;
        (void)gputap_device_info(tap, device, &info);
        (void)gputap_latest(tap, device, &snapshot);
        (void)gputap_read(tap, device, metrics, 2, values);
        for (int metric = 0; metric < 4; metric++) {
            (void)gputap_reason(tap, device, metric);
            (void)gputap_source(tap, device, metric, text, sizeof text);
            (void)gputap_snapshot_value(&snapshot, device < 0, metric);
        }
        (void)gputap_history(tap, device, metrics, 2, 3600, 64, times, rows);
        if (gputap_cursor_init(tap, &cursor, device, GPUTAP_FROM_OLDEST) == GPUTAP_OK)
            for (int i = 0; i < 2000 && gputap_next(tap, &cursor, &snapshot) == 1; i++)
                ;
    }
    (void)gputap_wait(tap, &tick, 0);
    (void)gputap_wait_change(tap, &tick, 0);
    call_sessions(tap);
}

static void one_input(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(good_bytes);
    gputap *tap;
    if (!copy)
        exit(1);
    memcpy(copy, good, good_bytes);
    for (size_t i = 0; i + 4 <= size; i += 4) {
        size_t at = place_of((uint16_t)(data[i] | data[i + 1] << 8), good);
        copy[at] = data[i + 2] & 1 ? (uint8_t)(copy[at] + data[i + 3]) : data[i + 3];
    }
    fixture_replace(&f, copy, size % 4 == 3 && size > 0 ? good_bytes * data[0] / 256 : good_bytes);
    if (gputap_open(&tap, "t", 0) == GPUTAP_OK) {
        call_everything(tap);
        gputap_close(tap);
    }
    free(copy);
}

#ifdef FUZZING
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!good)
        make_good();
    one_input(data, size);
    return 0;
}
#else
static void any_bytes_are_survived(void)
{
    const char *rounds = getenv("FUZZ_ROUNDS"), *chosen = getenv("FUZZ_SEED");
    uint64_t seed = chosen ? strtoull(chosen, NULL, 0) : clock_real_ns();
    printf("seed %llu\n", (unsigned long long)seed);
    make_good();
    for (long round = rounds ? atol(rounds) : 400; round > 0; round--) {
        uint8_t data[64];
        for (size_t i = 0; i < sizeof data; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            data[i] = (uint8_t)(seed >> 56);
        }
        one_input(data, 1 + data[63] % 40);
    }
    free(good);
    fixture_end(&f);
}

TESTS({"any_bytes_are_survived", any_bytes_are_survived})
#endif
