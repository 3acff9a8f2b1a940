#include <math.h>

#include "broker/devices.h"
#include "broker/process_check.h"
#include "tests/unit/check.h"

static const uint64_t second = UINT64_C(1000000000);
static struct devices devices;
static struct merged merged;
static int kernel, generic; /* amdgpu stands above drm on every ladder */

static struct device *fresh(const char *id)
{
    devices_free(&devices);
    devices_init(&devices, 4);
    kernel = provider_find("amdgpu");
    generic = provider_find("drm");
    struct device *device = devices_add(&devices, id);
    struct layout_device facts = {.kfd_index = -1, .nvml_index = -1};
    provider_text(facts.id, sizeof facts.id, id);
    devices_take_facts(device, kernel, &facts);
    devices_take_facts(device, generic, &facts);
    return device;
}

static void give(struct device *device, int provider, uint64_t at_ns, int metric, double value)
{
    struct sample sample;
    sample_begin(&sample, at_ns);
    int count;
    const struct metric_info *table = metrics_table(false, &count);
    if (table[metric].type == METRIC_U64)
        sample_u64(&sample, metric, (uint64_t)value);
    else
        sample_f64(&sample, metric, value);
    devices_take_sample(device, provider, 0, &sample);
}

static void highest_rung_that_knows_wins(void)
{
    struct device *device = fresh("0000:03:00.0");
    give(device, generic, second, METRIC_TEMPERATURE_EDGE, 41);
    give(device, kernel, second, METRIC_TEMPERATURE_EDGE, 42);
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.values[METRIC_TEMPERATURE_EDGE].f64, 42);
    CU_ASSERT_EQUAL(device->facts.sources[METRIC_TEMPERATURE_EDGE], kernel);
    give(device, kernel, second, METRIC_POWER_NOW, 10); /* no longer knows the temperature */
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.values[METRIC_TEMPERATURE_EDGE].f64, 41);
    CU_ASSERT_EQUAL(device->facts.sources[METRIC_TEMPERATURE_EDGE], generic);
    CU_ASSERT_EQUAL(merged.values[METRIC_POWER_NOW].f64, 10);
}

static void unknown_keeps_the_most_telling_reason(void)
{
    struct device *device = fresh("0000:03:00.0");
    struct sample sample;
    sample_begin(&sample, second);
    sample_unknown(&sample, METRIC_POWER_NOW, REASON_NO_PERMISSION);
    devices_take_sample(device, generic, 0, &sample);
    sample_begin(&sample, second);
    devices_take_sample(device, kernel, 0, &sample);
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_FALSE(metrics_valid(merged.valid, METRIC_POWER_NOW));
    CU_ASSERT_EQUAL(device->facts.reasons[METRIC_POWER_NOW], REASON_NO_PERMISSION);
    CU_ASSERT_EQUAL(device->facts.reasons[METRIC_FAN_RPM], REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(device->facts.sources[METRIC_FAN_RPM], 255);
}

static void old_samples_become_stale(void)
{
    struct device *device = fresh("0000:03:00.0");
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_EQUAL(device->facts.reasons[METRIC_GFX_BUSY], REASON_NOT_SAMPLED);
    give(device, kernel, second, METRIC_GFX_BUSY, 50);
    devices_merge(&devices, device, 3 * second, 2 * second, &merged);
    CU_ASSERT(metrics_valid(merged.valid, METRIC_GFX_BUSY));
    devices_merge(&devices, device, 3 * second + 1, 2 * second, &merged);
    CU_ASSERT_FALSE(metrics_valid(merged.valid, METRIC_GFX_BUSY));
    CU_ASSERT_EQUAL(device->facts.reasons[METRIC_GFX_BUSY], REASON_STALE);
}

static void no_nan_leaves(void)
{
    struct device *device = fresh("0000:03:00.0");
    struct sample sample;
    sample_begin(&sample, second);
    sample.values[METRIC_GFX_BUSY].f64 = NAN; /* as a broken worker could send it */
    metrics_set_valid(sample.valid, METRIC_GFX_BUSY);
    sample.state = 77;
    devices_take_sample(device, kernel, 0, &sample);
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_FALSE(metrics_valid(merged.valid, METRIC_GFX_BUSY));
    CU_ASSERT_EQUAL(device->facts.reasons[METRIC_GFX_BUSY], REASON_ERROR);
    CU_ASSERT_EQUAL(merged.state, DEVICE_OK);
}

static void counter_that_falls_is_dropped_then_taken_for_a_reset(void)
{
    struct device *device = fresh("0000:03:00.0");
    give(device, kernel, second, METRIC_ENERGY, 1000);
    devices_merge(&devices, device, second, 2 * second, &merged);
    uint32_t generation = device->generation;
    for (int i = 0; i < 4; i++) {
        give(device, kernel, second, METRIC_ENERGY, 10);
        devices_merge(&devices, device, second, 2 * second, &merged);
        CU_ASSERT_FALSE(metrics_valid(merged.valid, METRIC_ENERGY));
        CU_ASSERT_EQUAL(device->facts.reasons[METRIC_ENERGY], REASON_IMPLAUSIBLE);
    }
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT(metrics_valid(merged.valid, METRIC_ENERGY));
    CU_ASSERT_EQUAL(device->generation, generation + 1);
}

static void device_that_went_and_came_back_has_a_new_generation(void)
{
    struct device *device = fresh("0000:03:00.0");
    const char ids[1][48] = {"0000:03:00.0"};
    CU_ASSERT(devices_merge(&devices, device, second, 2 * second, &merged));
    CU_ASSERT_FALSE(devices_merge(&devices, device, second, 2 * second, &merged));
    devices_take_list(&devices, kernel, "", ids, 0);
    CU_ASSERT_FALSE(device->gone); /* drm still lists it */
    devices_take_list(&devices, generic, "", ids, 0);
    CU_ASSERT(device->gone);
    CU_ASSERT(devices_merge(&devices, device, second, 2 * second, &merged));
    CU_ASSERT_EQUAL(merged.state, DEVICE_GONE);
    CU_ASSERT_EQUAL(merged.valid[0], 0);
    CU_ASSERT_STRING_EQUAL(device->facts.id, "0000:03:00.0");
    uint32_t generation = device->generation;
    struct layout_device facts = {.id = "0000:03:00.0"};
    devices_take_facts(device, generic, &facts);
    CU_ASSERT(devices_merge(&devices, device, second, 2 * second, &merged));
    CU_ASSERT_EQUAL(device->facts.generation, generation + 1);
    CU_ASSERT_EQUAL(device->facts.state, DEVICE_OK);
}

static void hung_device_stays_in_the_table_until_it_answers(void)
{
    struct device *device = fresh("0000:03:00.0");
    const char none[1][48] = {""};
    devices_take_hung(device, kernel);
    devices_take_list(&devices, kernel, "", none, 0); /* the main worker's list is without it */
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.state, DEVICE_HUNG);
    give(device, kernel, second, METRIC_GFX_BUSY, 1);
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.state, DEVICE_OK);
    devices_take_list(&devices, kernel, "", none, 0); /* the main worker lists again, still without it */
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT(metrics_valid(merged.valid, METRIC_GFX_BUSY));
    devices_take_list(&devices, kernel, "0000:03:00.0", none, 0); /* its own worker no longer has it */
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_FALSE(metrics_valid(merged.valid, METRIC_GFX_BUSY));
}

static void ids_are_ordered_with_trailing_numbers_by_value(void)
{
    devices_free(&devices);
    devices_init(&devices, 6);
    static const char *const given[] = {"sim:mi300x:10", "0000:c7:00.0", "sim:mi300x:9",
                                        "0000:03:00.0",  "0000:1a:00.0", "0000:10:00.0"};
    static const char *const wanted[] = {"0000:03:00.0", "0000:10:00.0", "0000:1a:00.0",
                                         "0000:c7:00.0", "sim:mi300x:9", "sim:mi300x:10"};
    for (int i = 0; i < 6; i++)
        CU_ASSERT_PTR_NOT_NULL(devices_add(&devices, given[i]));
    CU_ASSERT_PTR_NULL(devices_add(&devices, "one too many"));
    devices_sort(&devices);
    for (int i = 0; i < 6; i++)
        CU_ASSERT_STRING_EQUAL(devices.items[i].id, wanted[i]);
}

static void facts_come_from_the_best_provider_that_has_them(void)
{
    struct device *device = fresh("0000:03:00.0");
    struct layout_device low = {
        .id = "0000:03:00.0", .name = "AMD GPU 1002:150e", .vendor = "amd", .kfd_index = -1, .nvml_index = -1};
    struct layout_device high = {
        .id = "0000:03:00.0", .name = "AMD Radeon 890M", .kfd_index = 1, .nvml_index = -1, .pool = POOL_UNIFIED};
    devices_take_facts(device, generic, &low);
    devices_take_facts(device, kernel, &high);
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_STRING_EQUAL(device->facts.name, "AMD Radeon 890M");
    CU_ASSERT_STRING_EQUAL(device->facts.vendor, "amd");
    CU_ASSERT_EQUAL(device->facts.kfd_index, 1);
    CU_ASSERT_EQUAL(device->facts.pool, POOL_UNIFIED);
    memset(high.name, 'x', sizeof high.name); /* not terminated: not believed */
    devices_take_facts(device, kernel, &high);
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_STRING_EQUAL(device->facts.name, "AMD GPU 1002:150e");
}

static void a_scan_of_processes_says_nothing_of_the_device_itself(void)
{
    struct device *device = fresh("0000:03:00.0");
    int scan = provider_find("processes");
    struct layout_device facts = {.id = "0000:03:00.0", .kfd_index = -1, .nvml_index = -1};
    devices_take_facts(device, scan, &facts);
    give(device, kernel, second, METRIC_POWER_NOW, 10);
    give(device, scan, second + 5, METRIC_PROCESS_VRAM, 7);
    devices_merge(&devices, device, second + 9, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.mono_ns, second);
    devices_take_hung(device, scan);
    devices_merge(&devices, device, second + 9, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.state, DEVICE_OK);
}

/* What is in use and no known process holds; never below zero, and unknown where a part is. */
static void external_memory_is_what_nobody_known_holds(void)
{
    struct device *device = fresh("0000:03:00.0");
    int scan = provider_find("processes");
    struct layout_device facts = {.id = "0000:03:00.0", .kfd_index = -1, .nvml_index = -1};
    devices_take_facts(device, scan, &facts);
    give(device, kernel, second, METRIC_VRAM_USED, 1000);
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_FALSE(metrics_valid(merged.valid, METRIC_EXTERNAL_VRAM));
    give(device, scan, second, METRIC_PROCESS_VRAM, 300);
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.values[METRIC_EXTERNAL_VRAM].u64, 700);
    CU_ASSERT_EQUAL(device->facts.reasons[METRIC_EXTERNAL_VRAM], REASON_NONE);
    give(device, scan, second, METRIC_PROCESS_VRAM, 1300); /* shared memory counted twice */
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.values[METRIC_EXTERNAL_VRAM].u64, 0);
}

static void doubts_count_only_of_sources_that_were_believed(void)
{
    struct device *device = fresh("0000:03:00.0");
    int scan = provider_find("processes");
    struct layout_device facts = {.id = "0000:03:00.0", .kfd_index = -1, .nvml_index = -1};
    struct sample sample;
    devices_take_facts(device, scan, &facts);
    sample_begin(&sample, second);
    sample_f64(&sample, METRIC_GFX_BUSY, 12);
    sample_flag(&sample, QUALITY_ESTIMATED);
    devices_take_sample(device, scan, 0, &sample);
    sample_begin(&sample, second);
    sample_f64(&sample, METRIC_GFX_BUSY, 50);
    sample_flag(&sample, 0);
    devices_take_sample(device, kernel, 0, &sample);
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.values[METRIC_GFX_BUSY].f64, 50);
    CU_ASSERT_EQUAL(merged.values[METRIC_QUALITY].u64, 0);
    sample_begin(&sample, second);
    sample_flag(&sample, 0);
    devices_take_sample(device, kernel, 0, &sample); /* its sensor does not know any more */
    devices_merge(&devices, device, second, 2 * second, &merged);
    CU_ASSERT_EQUAL(merged.values[METRIC_GFX_BUSY].f64, 12);
    CU_ASSERT_EQUAL(merged.values[METRIC_QUALITY].u64, QUALITY_ESTIMATED);
}

static void tables_of_processes_are_checked(void)
{
    struct layout_process_table table = {.count = 2, .flags = 0xffffffff};
    table.rows[0] =
        (struct layout_process){.pid = 1, .gfx_busy = 101, .compute_busy = NAN, .copy_busy = 50, .vram = UINT64_C(1) << 60};
    memset(table.rows[0].comm, 'x', sizeof table.rows[0].comm); /* not terminated */
    table.rows[1] = (struct layout_process){.pid = 2, .vram = 5, .comm = "fine"};
    table.rows[2].pid = 99; /* beyond the count */
    CU_ASSERT_TRUE(process_table_check(&table));
    CU_ASSERT_TRUE(isnan(table.rows[0].gfx_busy) && table.rows[0].copy_busy == 50);
    CU_ASSERT_EQUAL(table.rows[0].vram, UINT64_MAX);
    CU_ASSERT_EQUAL(table.rows[0].comm[0], '\0');
    CU_ASSERT_STRING_EQUAL(table.rows[1].comm, "fine");
    CU_ASSERT_EQUAL(table.rows[2].pid, 0);
    CU_ASSERT_EQUAL(table.flags, PROCESS_TABLE_PARTIAL);
    table.count = LAYOUT_PROCESS_ROWS + 1;
    CU_ASSERT_FALSE(process_table_check(&table));
    table.count = 1;
    table.rows[0].pid = 0;
    CU_ASSERT_FALSE(process_table_check(&table));
}

TESTS({"highest_rung_that_knows_wins", highest_rung_that_knows_wins},
      {"unknown_keeps_the_most_telling_reason", unknown_keeps_the_most_telling_reason},
      {"old_samples_become_stale", old_samples_become_stale}, {"no_nan_leaves", no_nan_leaves},
      {"counter_that_falls_is_dropped_then_taken_for_a_reset", counter_that_falls_is_dropped_then_taken_for_a_reset},
      {"device_that_went_and_came_back_has_a_new_generation", device_that_went_and_came_back_has_a_new_generation},
      {"hung_device_stays_in_the_table_until_it_answers", hung_device_stays_in_the_table_until_it_answers},
      {"ids_are_ordered_with_trailing_numbers_by_value", ids_are_ordered_with_trailing_numbers_by_value},
      {"facts_come_from_the_best_provider_that_has_them", facts_come_from_the_best_provider_that_has_them},
      {"a_scan_of_processes_says_nothing_of_the_device_itself", a_scan_of_processes_says_nothing_of_the_device_itself},
      {"external_memory_is_what_nobody_known_holds", external_memory_is_what_nobody_known_holds},
      {"doubts_count_only_of_sources_that_were_believed", doubts_count_only_of_sources_that_were_believed},
      {"tables_of_processes_are_checked", tables_of_processes_are_checked})
