/* Values, their reasons and sources, tables and texts. */
#include <math.h>

#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

static struct fixture f;
static gputap *tap;

static void begin(void)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 4, "ab");
    tap = fixture_open(0);
}

static void end(void)
{
    gputap_close(tap);
    fixture_end(&f);
}

static void newest_sample_is_read_whole(void)
{
    begin();
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_EEMPTY);
    for (int i = 1; i <= 3; i++) {
        struct layout_snapshot sample = fixture_sample(i, (uint64_t)i << 40);
        sample.tick = (uint64_t)i;
        sample.state = DEVICE_SETTLING | (UINT64_C(7) << 32);
        sample.sums[ACCUMULATE_ENERGY] = 10.0 * i;
        sample.sums[ACCUMULATE_VRAM] = 5.0 * i;
        sample.cost_ns = 99;
        fixture_publish(&f, 1, &sample);
        CU_ASSERT_EQUAL(gputap_latest(tap, 1, &got), GPUTAP_OK);
        CU_ASSERT_EQUAL(got.sequence, (uint64_t)i);
        CU_ASSERT_EQUAL(got.tick, (uint64_t)i);
        CU_ASSERT_EQUAL(got.mono_ns, sample.mono_ns);
        CU_ASSERT_EQUAL(got.real_ns, sample.real_ns);
        CU_ASSERT_EQUAL(got.cost_ns, 99);
        CU_ASSERT_EQUAL(got.state, GPUTAP_DEVICE_SETTLING);
        CU_ASSERT_EQUAL(got.generation, 7);
        CU_ASSERT_EQUAL(got.values[GPUTAP_VRAM_USED].u64, (uint64_t)i << 40);
        CU_ASSERT_EQUAL(got.sums.energy_joules, 10.0 * i);
        CU_ASSERT_EQUAL(got.sums.vram_byte_seconds, 5.0 * i);
        CU_ASSERT(got.age_ns < 5000000000u);
        CU_ASSERT_EQUAL(gputap_snapshot_value(&got, 0, GPUTAP_GFX_BUSY), i);
        CU_ASSERT(isnan(gputap_snapshot_value(&got, 0, GPUTAP_POWER_NOW)));
        CU_ASSERT(isnan(gputap_snapshot_value(&got, 0, -1)) && isnan(gputap_snapshot_value(&got, 0, GPUTAP_METRIC_COUNT)));
        CU_ASSERT(isnan(gputap_snapshot_value(NULL, 0, 0)));
    }
    end();
}

static void few_fields_come_as_doubles(void)
{
    begin();
    static const int metrics[] = {GPUTAP_VRAM_USED, GPUTAP_POWER_NOW, GPUTAP_GFX_BUSY};
    static const int bad[] = {GPUTAP_METRIC_COUNT};
    double values[65];
    struct layout_snapshot sample = fixture_sample(12.5, 4096);
    fixture_publish(&f, 0, &sample);
    CU_ASSERT_EQUAL(gputap_read(tap, 0, metrics, 3, values), GPUTAP_OK);
    CU_ASSERT(values[0] == 4096 && isnan(values[1]) && values[2] == 12.5);
    CU_ASSERT_EQUAL(gputap_read(tap, 0, metrics, 0, values), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_read(tap, 0, metrics, 65, values), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_read(tap, 0, bad, 1, values), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_read(tap, 0, NULL, 1, values), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_read(tap, 2, metrics, 1, values), GPUTAP_ENODEV);
    CU_ASSERT_EQUAL(gputap_read(tap, -2, metrics, 1, values), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_read(tap, INT32_MAX, metrics, 1, values), GPUTAP_ENODEV);
    CU_ASSERT_EQUAL(gputap_read(tap, 1, metrics, 1, values), GPUTAP_EEMPTY);
    int most[64];
    for (int i = 0; i < 64; i++)
        most[i] = GPUTAP_GFX_BUSY;
    CU_ASSERT_EQUAL(gputap_read(tap, 0, most, 64, values), GPUTAP_OK);
    CU_ASSERT_EQUAL(values[63], 12.5);
    end();
}

static void numbers_that_are_none_are_unknown(void)
{
    begin();
    static const int metric = GPUTAP_GFX_BUSY;
    double value = 1;
    struct layout_snapshot sample = fixture_sample(INFINITY, 1);
    fixture_publish(&f, 0, &sample);
    CU_ASSERT_EQUAL(gputap_read(tap, 0, &metric, 1, &value), GPUTAP_OK);
    CU_ASSERT(isnan(value));
    end();
}

static void reason_and_source_of_each_metric(void)
{
    begin();
    union {
        struct layout_provider provider;
        uint64_t words[sizeof(struct layout_provider) / 8];
    } raw;
    char text[32];
    struct ring ring;
    struct layout_device entry = fixture_entry('a');
    entry.reasons[METRIC_POWER_NOW] = REASON_NO_PERMISSION;
    entry.reasons[METRIC_ENERGY] = 200;
    entry.reasons[METRIC_VRAM_TOTAL] = REASON_NONE;
    entry.sources[METRIC_GFX_BUSY] = 1;
    fixture_device(&f, 0, &entry);
    memset(&raw, 0, sizeof raw);
    strcpy(raw.provider.name, "amdgpu");
    raw.provider.state = PROVIDER_RUNNING;
    raw.provider.devices = 2;
    strcpy(raw.provider.message, "two cards");
    segment_entry(&f.writer, REGION_PROVIDER, 1, &ring);
    ring_publish(&ring, raw.words);

    CU_ASSERT_EQUAL(gputap_reason(tap, 0, GPUTAP_GFX_BUSY), GPUTAP_REASON_NOT_SUPPORTED); /* nothing sampled: what the table says */
    struct layout_snapshot sample = fixture_sample(1, 1);
    fixture_publish(&f, 0, &sample);
    CU_ASSERT_EQUAL(gputap_reason(tap, 0, GPUTAP_GFX_BUSY), GPUTAP_REASON_NONE);
    CU_ASSERT_EQUAL(gputap_reason(tap, 0, GPUTAP_POWER_NOW), GPUTAP_REASON_NO_PERMISSION);
    CU_ASSERT_EQUAL(gputap_reason(tap, 0, GPUTAP_ENERGY), GPUTAP_REASON_NOT_SAMPLED);
    CU_ASSERT_EQUAL(gputap_reason(tap, 0, GPUTAP_VRAM_TOTAL), GPUTAP_REASON_NOT_SAMPLED);
    CU_ASSERT_EQUAL(gputap_reason(tap, 0, GPUTAP_METRIC_COUNT), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_reason(tap, 9, 0), GPUTAP_ENODEV);
    CU_ASSERT_EQUAL(gputap_reason(tap, GPUTAP_HOST, GPUTAP_HOST_LOAD1), GPUTAP_REASON_NOT_SAMPLED);
    CU_ASSERT_EQUAL(gputap_source(tap, 0, GPUTAP_GFX_BUSY, text, sizeof text), GPUTAP_OK);
    CU_ASSERT_STRING_EQUAL(text, "amdgpu");
    CU_ASSERT_EQUAL(gputap_source(tap, 0, GPUTAP_POWER_NOW, text, sizeof text), GPUTAP_OK);
    CU_ASSERT_STRING_EQUAL(text, "");
    CU_ASSERT_EQUAL(gputap_source(tap, 0, GPUTAP_POWER_NOW, text, 15), GPUTAP_ESIZE);
    gputap_provider provider = GPUTAP_PROVIDER_INIT;
    CU_ASSERT_EQUAL(gputap_provider_count(tap), 2);
    CU_ASSERT_EQUAL(gputap_provider_info(tap, 0, &provider), GPUTAP_EEMPTY);
    CU_ASSERT_EQUAL(gputap_provider_info(tap, 2, &provider), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_provider_info(tap, 1, &provider), GPUTAP_OK);
    CU_ASSERT_STRING_EQUAL(provider.message, "two cards");
    CU_ASSERT_EQUAL(provider.devices, 2);
    end();
}

static void sized_structs_of_other_sizes_work(void)
{
    begin();
    struct layout_snapshot sample = fixture_sample(3, 3);
    fixture_publish(&f, 0, &sample);
    struct {
        gputap_snapshot known;
        uint64_t later[4];
    } bigger;
    memset(&bigger, 0xEE, sizeof bigger);
    bigger.known.size = sizeof bigger;
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &bigger.known), GPUTAP_OK);
    CU_ASSERT(bigger.known.size == sizeof bigger && bigger.known.sequence == 1 && bigger.later[0] == 0 && bigger.later[3] == 0);
    gputap_snapshot older;
    memset(&older, 0xEE, sizeof older);
    older.size = 32;
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &older), GPUTAP_OK);
    CU_ASSERT(older.sequence == 1 && older.mono_ns == UINT64_C(0xEEEEEEEEEEEEEEEE));
    CU_ASSERT(isnan(gputap_snapshot_value(&older, 0, GPUTAP_GFX_BUSY)));
    older.size = 4;
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &older), GPUTAP_ESIZE);
    gputap_device device = {.size = 0};
    CU_ASSERT_EQUAL(gputap_device_info(tap, 0, &device), GPUTAP_ESIZE);
    end();
}

static void facts_are_cleaned(void)
{
    begin();
    struct layout_device entry = fixture_entry('a');
    memset(entry.name, 0xFF, sizeof entry.name);
    memcpy(entry.driver, "ab\ncd\x1B[31m", 11);
    entry.state = 77;
    entry.pool = 12345;
    entry.tgp = NAN;
    entry.limits[LIMIT_GFX_CLOCK_MAX] = 2900;
    fixture_device(&f, 0, &entry);
    gputap_device device = GPUTAP_DEVICE_INIT;
    CU_ASSERT_EQUAL(gputap_device_info(tap, 0, &device), GPUTAP_OK);
    CU_ASSERT_STRING_EQUAL(device.name, "");
    CU_ASSERT_STRING_EQUAL(device.driver, "abcd[31m");
    CU_ASSERT_EQUAL(device.state, GPUTAP_DEVICE_HUNG);
    CU_ASSERT_EQUAL(device.pool, GPUTAP_POOL_UNKNOWN);
    CU_ASSERT(device.tgp_watts == 0 && device.gfx_clock_max == 2900 && device.kfd_index == -1);
    CU_ASSERT_EQUAL(gputap_device_info(tap, GPUTAP_HOST, &device), GPUTAP_EINVAL);
    end();
}

static void devices_are_found_by_id_address_and_uuid(void)
{
    begin();
    CU_ASSERT_EQUAL(gputap_find(tap, "dev:b"), 1);
    CU_ASSERT_EQUAL(gputap_find(tap, "0000:CA:00.0"), 0);
    CU_ASSERT_EQUAL(gputap_find(tap, "gpu-UUID-b"), 1);
    CU_ASSERT_EQUAL(gputap_find(tap, "dev:c"), GPUTAP_ENODEV);
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(tap), "dev:c"));
    CU_ASSERT_EQUAL(gputap_find(tap, ""), GPUTAP_EINVAL);
    end();
}

static void host_stats_and_schema_are_read(void)
{
    begin();
    union {
        struct layout_host host;
        uint64_t words[sizeof(struct layout_host) / 8];
    } raw;
    union {
        struct layout_stats stats;
        uint64_t words[sizeof(struct layout_stats) / 8];
    } cost;
    struct ring ring;
    gputap_host host = GPUTAP_HOST_INIT;
    gputap_stats stats = GPUTAP_STATS_INIT;
    CU_ASSERT_EQUAL(gputap_host_info(tap, &host), GPUTAP_EEMPTY);
    memset(&raw, 0, sizeof raw);
    strcpy(raw.host.hostname, "node-1");
    raw.host.cpu_threads = 16;
    segment_entry(&f.writer, REGION_HOST, 0, &ring);
    ring_publish(&ring, raw.words);
    CU_ASSERT_EQUAL(gputap_host_info(tap, &host), GPUTAP_OK);
    CU_ASSERT_STRING_EQUAL(host.hostname, "node-1");
    CU_ASSERT_STRING_EQUAL(host.broker_version, "unit");
    CU_ASSERT(host.cpu_threads == 16 && host.broker_pid != 0);
    CU_ASSERT(host.boot_id[0] == '\0' || (strlen(host.boot_id) == 36 && host.boot_id[8] == '-'));
    memset(&cost, 0, sizeof cost);
    cost.stats.ticks = 5;
    cost.stats.recreated = 2;
    segment_entry(&f.writer, REGION_STATS, 0, &ring);
    ring_publish(&ring, cost.words);
    CU_ASSERT_EQUAL(gputap_broker_stats(tap, &stats), GPUTAP_OK);
    CU_ASSERT(stats.ticks == 5 && stats.recreated == 2);
    int length = gputap_schema(tap, NULL, 0);
    CU_ASSERT(length > 1000);
    char *text = malloc((size_t)length + 1), few[8];
    CU_ASSERT_EQUAL(gputap_schema(tap, text, (size_t)length + 1), length);
    CU_ASSERT_EQUAL(strlen(text), (size_t)length);
    CU_ASSERT(text[0] == '{' && strstr(text, "\"vram_used\""));
    CU_ASSERT_EQUAL(gputap_schema(tap, few, sizeof few), length);
    CU_ASSERT_EQUAL(strlen(few), 7);
    free(text);
    end();
}

static void host_samples_are_read(void)
{
    begin();
    static const int metric = GPUTAP_HOST_CPU_BUSY;
    double value;
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    struct layout_snapshot sample = fixture_sample(0, 0);
    memset(sample.valid, 0, sizeof sample.valid);
    sample.metrics[HOST_METRIC_CPU_BUSY].f64 = 42;
    metrics_set_valid(sample.valid, HOST_METRIC_CPU_BUSY);
    CU_ASSERT_EQUAL(gputap_host_latest(tap, &got), GPUTAP_EEMPTY);
    fixture_publish_host(&f, &sample);
    CU_ASSERT_EQUAL(gputap_host_latest(tap, &got), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_snapshot_value(&got, 1, GPUTAP_HOST_CPU_BUSY), 42);
    CU_ASSERT_EQUAL(gputap_read(tap, GPUTAP_HOST, &metric, 1, &value), GPUTAP_OK);
    CU_ASSERT_EQUAL(value, 42);
    char text[16];
    CU_ASSERT_EQUAL(gputap_source(tap, GPUTAP_HOST, metric, text, sizeof text), GPUTAP_OK);
    CU_ASSERT_STRING_EQUAL(text, "system");
    end();
}

static void age_falls_back_to_the_wall_clock(void)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 2, "a");
    uint64_t other = 1;
    fixture_poke(&f, offsetof(struct layout_header, time_namespace), &other, sizeof other);
    tap = fixture_open(0);
    gputap_snapshot got = GPUTAP_SNAPSHOT_INIT;
    struct layout_snapshot sample = fixture_sample(1, 1);
    sample.mono_ns += UINT64_C(1000000000000000); /* a clock of another world */
    sample.real_ns -= UINT64_C(5000000000);
    fixture_publish(&f, 0, &sample);
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
    CU_ASSERT(got.age_ns >= UINT64_C(5000000000) && got.age_ns < UINT64_C(60000000000));
    sample.real_ns += UINT64_C(3600000000000);
    fixture_publish(&f, 0, &sample);
    CU_ASSERT_EQUAL(gputap_latest(tap, 0, &got), GPUTAP_OK);
    CU_ASSERT_EQUAL(got.age_ns, 0);
    end();
}

static void tables_and_texts_have_an_answer_for_everything(void)
{
    CU_ASSERT_STRING_EQUAL(gputap_metric_info(0, GPUTAP_VRAM_USED)->name, "vram_used");
    CU_ASSERT_STRING_EQUAL(gputap_metric_info(GPUTAP_HOST, GPUTAP_HOST_LOAD1)->name, "load1");
    CU_ASSERT_PTR_NULL(gputap_metric_info(0, GPUTAP_METRIC_COUNT));
    CU_ASSERT_PTR_NULL(gputap_metric_info(0, -1));
    CU_ASSERT_PTR_NULL(gputap_metric_info(-2, 0));
    CU_ASSERT_EQUAL(gputap_metric_find(0, "gfx_busy"), GPUTAP_GFX_BUSY);
    CU_ASSERT_EQUAL(gputap_metric_find(GPUTAP_HOST, "cpu_busy"), GPUTAP_HOST_CPU_BUSY);
    CU_ASSERT_EQUAL(gputap_metric_find(0, "cpu_busy"), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_metric_find(0, NULL), GPUTAP_EINVAL);
    for (int i = -20; i < 20; i++) {
        CU_ASSERT(gputap_strerror(i)[0] != '\0' && gputap_reason_text(i)[0] != '\0');
        CU_ASSERT(gputap_state_text(i)[0] != '\0' && gputap_pool_text(i)[0] != '\0');
    }
    CU_ASSERT_STRING_EQUAL(gputap_version(), GPUTAP_VERSION);
}

static void new_devices_appear_in_a_live_segment(void)
{
    begin();
    CU_ASSERT_EQUAL(gputap_device_count(tap), 2);
    (void)gputap_status(tap);
    struct layout_device entry = fixture_entry('c');
    fixture_device(&f, 2, &entry);
    segment_set_devices(&f.writer, 3);
    segment_bump_changes(&f.writer);
    fixture_sleep_ms(120);
    CU_ASSERT_EQUAL(gputap_device_count(tap), 3);
    CU_ASSERT_EQUAL(gputap_find(tap, "dev:c"), 2);
    CU_ASSERT(gputap_status(tap) & GPUTAP_STATUS_CHANGED);
    CU_ASSERT_FALSE(gputap_status(tap) & GPUTAP_STATUS_CHANGED);
    end();
}

TESTS({"newest_sample_is_read_whole", newest_sample_is_read_whole}, {"few_fields_come_as_doubles", few_fields_come_as_doubles},
      {"numbers_that_are_none_are_unknown", numbers_that_are_none_are_unknown},
      {"reason_and_source_of_each_metric", reason_and_source_of_each_metric},
      {"sized_structs_of_other_sizes_work", sized_structs_of_other_sizes_work}, {"facts_are_cleaned", facts_are_cleaned},
      {"devices_are_found_by_id_address_and_uuid", devices_are_found_by_id_address_and_uuid},
      {"host_stats_and_schema_are_read", host_stats_and_schema_are_read}, {"host_samples_are_read", host_samples_are_read},
      {"age_falls_back_to_the_wall_clock", age_falls_back_to_the_wall_clock},
      {"tables_and_texts_have_an_answer_for_everything", tables_and_texts_have_an_answer_for_everything},
      {"new_devices_appear_in_a_live_segment", new_devices_appear_in_a_live_segment})
