/* Whatever the bytes of the files, what is published is sound: 0 <= used <= total, loads are percent, temperatures are such that
 * silicon has, counters do not go back, and no number is infinite or none. Run by libFuzzer on files of its making, and, with
 * random bytes, as a test. The first byte of an input chooses a provider and its driver. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/devices.h"
#include "broker/process_check.h"
#include "broker/providers/amdgpu.h"
#include "broker/providers/fdinfo.h"
#include "broker/providers/gpu_metrics.h"
#include "broker/providers/process_scan.h"
#include "fake_machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *provider, *driver;
} subjects[] = {{"amdgpu", "amdgpu"}, {"drm", "radeon"}, {"processes", "amdgpu"}, {"processes", "xe"},
                {"amdgpu", "amdgpu"}, {"intel", "i915"}, {"intel", "xe"}};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0], TICKS = 6 };

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

/* --- what is published --------------------------------------------------------------------------------------------------- */

static bool known(const struct merged *merged, int metric) { return metrics_valid(merged->valid, metric); }

static void check_pairs(const struct merged *merged)
{
    static const int pairs[][2] = {{METRIC_VRAM_USED, METRIC_VRAM_TOTAL},
                                   {METRIC_VRAM_VISIBLE_USED, METRIC_VRAM_VISIBLE_TOTAL},
                                   {METRIC_GTT_USED, METRIC_GTT_TOTAL},
                                   {METRIC_UNIFIED_USED, METRIC_UNIFIED_TOTAL}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (known(merged, pairs[i][0]) && known(merged, pairs[i][1]))
            check(merged->values[pairs[i][0]].u64 <= merged->values[pairs[i][1]].u64, "used <= total");
}

static void check_number(const struct metric_info *info, double value)
{
    check(isfinite(value), info->name);
    if (strcmp(info->unit, "%") == 0)
        check(value >= 0 && value <= 100, info->name);
    if (strcmp(info->unit, "\302\260C") == 0)
        check(value >= -40 && value <= 150, info->name);
    if (strcmp(info->unit, "W") == 0 || strcmp(info->unit, "MHz") == 0 || strcmp(info->unit, "J") == 0)
        check(value >= 0, info->name);
}

static void check_merged(const struct device *device, const struct merged *merged, const struct merged *before, uint32_t generation)
{
    int count;
    const struct metric_info *table = metrics_table(false, &count);
    for (int metric = 0; metric < count; metric++) {
        if (!known(merged, metric))
            continue;
        double value = metrics_as_double(&table[metric], merged->values[metric]);
        check_number(&table[metric], value);
        bool counted = table[metric].semantics == METRIC_COUNTER && known(before, metric) && device->generation == generation;
        if (counted)
            check(value >= metrics_as_double(&table[metric], before->values[metric]), table[metric].name);
    }
    check_pairs(merged);
}

static void run_provider(const struct provider *provider, const char *driver, const uint8_t *data, size_t size)
{
    static struct fake_machine machine;
    static struct devices devices;
    static struct layout_device found[PROVIDER_MAX_DEVICES];
    static struct layout_process_table table;
    struct provider_context context = {.io = &machine.io, .period_ns = 100000000};
    struct merged merged, before = {0};
    fake_machine_init(&machine, driver, data, size);
    if (provider->start(&context) != 0)
        return;
    devices_init(&devices, 2);
    struct device *device = devices_add(&devices, "0000:03:00.0");
    int index = provider_find(provider->name), count = provider->discover(&context, found, PROVIDER_MAX_DEVICES);
    for (int tick = 0; tick < TICKS && count > 0; tick++) {
        struct sample sample;
        machine.now_ns += tick % 2 ? 100000000u : 1500000000u;
        machine.salt = tick % 3 ? machine.salt : machine.salt * 31 + 7;
        context.tick++;
        devices_take_facts(device, index, &found[0]);
        sample_begin(&sample, machine.now_ns);
        int gone = provider->sample(&context, 0, &sample);
        if (gone < 0)
            sample_all_unknown(&sample, REASON_ERROR);
        devices_take_sample(device, index, gone < 0 ? -gone : 0, &sample);
        uint32_t generation = device->generation;
        devices_merge(&devices, device, machine.now_ns, 5000000000u, &merged);
        check_merged(device, &merged, &before, generation);
        before = merged;
        if (provider->processes && provider->processes(&context, 0, &table))
            check(process_table_check(&table), "table of processes");
        int again = provider->discover(&context, found, PROVIDER_MAX_DEVICES);
        count = again >= 0 ? again : count;
    }
    provider->stop(&context);
    devices_free(&devices);
    for (int i = 0; i < FAKE_FILES; i++)
        check(!machine.paths[i][0], machine.paths[i]); /* everything is closed */
}

/* --- parsers of text ------------------------------------------------------------------------------------------------------- */

static void run_parsers(const uint8_t *data, size_t size)
{
    static struct gpu_metrics metrics;
    struct fdinfo info;
    char *text = malloc(size + 1), container[16];
    double number;
    uint64_t width;
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    (void)fdinfo_parse(text, &info);
    for (int i = 0; i < FDINFO_ENGINES; i++)
        check(!info.engines[i].has_share || (info.engines[i].share >= 0 && info.engines[i].share <= 100), "old share");
    process_container(text, container, sizeof container);
    check(memchr(container, '\0', sizeof container) != NULL, "container");
    if (amdgpu_clock_now(text, &number) == 0)
        check(!isnan(number), "clock");
    if (amdgpu_link_now(text, &number, &width) == 0)
        check(number > 0 && number <= 256 && width >= 1 && width <= 32, "link");
    check(amdgpu_clock_maximum(text) >= 0, "highest clock");
    (void)gpu_metrics_parse(data, size, 0, &metrics);
    for (int field = GM_GFX_BUSY; field <= GM_NPU_BUSY; field++)
        check(!metrics.known[field] || (metrics.values[field] >= 0 && metrics.values[field] <= 100), "load");
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    int subject = data[0] % (SUBJECTS + 1);
    if (subject == SUBJECTS) {
        run_parsers(data + 1, size - 1);
        return 0;
    }
    int index = provider_find(subjects[subject].provider);
    if (index >= 0)
        run_provider(providers[index], subjects[subject].driver, data + 1, size - 1);
    return 0;
}

#ifndef FUZZING
#include "tests/unit/check.h"

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void whatever_the_bytes_what_is_published_is_sound(void)
{
    static const char letters[] = "0123456789:.,* \tGMkKiBnsdrm-vram\n";
    static uint8_t bytes[4096];
    for (int round = 0; round < 6000; round++) {
        size_t size = 1 + next_random() % (round % 4 ? 600 : sizeof bytes);
        for (size_t i = 0; i < size; i++)
            bytes[i] = round % 3 ? (uint8_t)next_random() : (uint8_t)letters[next_random() % (sizeof letters - 1)];
        bytes[0] = (uint8_t)round;
        if (size > 8 && round % 2) { /* a table of a version that is known */
            const struct gpu_metrics_version *version = &gpu_metrics_versions[next_random() % (uint64_t)gpu_metrics_version_count];
            bytes[1] = (uint8_t)version->size, bytes[2] = (uint8_t)(version->size >> 8);
            bytes[3] = version->format, bytes[4] = version->content;
        }
        (void)LLVMFuzzerTestOneInput(bytes, size);
    }
    CU_PASS("sound");
}

TESTS({"whatever_the_bytes_what_is_published_is_sound", whatever_the_bytes_what_is_published_is_sound})
#endif
