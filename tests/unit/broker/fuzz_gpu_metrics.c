/* Any bytes for the firmware's table, one after the other for one card: loads stay percent, every number is finite and within its
 * bounds, no counter goes back. One harness for two drivers: random mutations of sound tables as a test, and libFuzzer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/amdgpu.h"
#include "table_bytes.h"
#include "tests/unit/check.h"

enum { TABLES = 4 /* of a sound input */ };

static void must(bool good, const char *what)
{
    if (good)
        return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

static void check_table(const struct gpu_metrics *table)
{
    for (int i = 0; i < GM_FIELD_COUNT; i++)
        must(!table->known[i] || isfinite(table->values[i]), "a field is finite");
    for (int i = GM_GFX_BUSY; i <= GM_NPU_BUSY; i++)
        must(!table->known[i] || (table->values[i] >= 0 && table->values[i] <= 100), "a load is percent");
    must(table->partitions <= GM_MOST_PARTITIONS, "no more partitions than there is room for");
    for (int i = 0; i < GM_MOST_PARTITIONS; i++)
        must(isnan(table->partition_busy[i]) || (table->partition_busy[i] >= 0 && table->partition_busy[i] <= 100),
             "a partition's load is percent");
}

static void check_sample(const struct sample *sample, double *joules)
{
    int count;
    const struct metric_info *metrics = metrics_table(false, &count);
    for (int i = 0; i < count; i++) {
        if (!metrics_valid(sample->valid, i))
            continue;
        double value = metrics_as_double(&metrics[i], sample->values[i]);
        must(isfinite(value), "a metric is finite");
        must(strcmp(metrics[i].unit, "%") != 0 || (value >= 0 && value <= 100), "a metric in percent is percent");
        must(strcmp(metrics[i].unit, "W") != 0 || (value >= 0 && value <= POWER_MOST), "power is plausible");
        must(strcmp(metrics[i].unit, "\302\260C") != 0 || (value >= TEMPERATURE_LOW && value <= TEMPERATURE_HIGH),
             "temperature is plausible");
    }
    if (metrics_valid(sample->valid, METRIC_ENERGY)) {
        must(sample->values[METRIC_ENERGY].f64 >= *joules, "energy goes on");
        *joules = sample->values[METRIC_ENERGY].f64;
    }
}

static void one_table(struct amdgpu_device *device, const uint8_t *bytes, size_t size, uint64_t mono_ns, double *joules)
{
    struct sample sample;
    sample_begin(&sample, mono_ns);
    must(gpu_metrics_size(bytes, size) >= 4 || size >= 4, "a header is asked for");
    (void)gpu_metrics_parse(bytes, size, device->smc_firmware, &device->table);
    check_table(&device->table);
    amdgpu_metrics_fill(device, &sample);
    amdgpu_metrics_doubt_load(device, &sample);
    amdgpu_clock_drop_stopped(&sample, METRIC_GFX_CLOCK);
    amdgpu_metrics_fill_averages(device, &sample);
    check_sample(&sample, joules);
}

/* A byte for the firmware, then tables: how long until the next in 10 ms, two bytes of size, and so many bytes. */
static void one_input(const uint8_t *data, size_t size)
{
    static struct amdgpu_device device;
    double joules = 0;
    uint64_t now = 1000000000;
    if (size == 0)
        return;
    memset(&device, 0, sizeof device);
    device.display.device = 0x744c;
    device.smc_firmware = data[0] % 2 ? 0x5d4600 : 0x0b5d0400;
    energy_counter_init(&device.energy, GM_JOULE, 64);
    for (size_t at = 1; at + 3 <= size;) {
        size_t length = data[at + 1] | (size_t)data[at + 2] << 8;
        now += (uint64_t)data[at] * 10000000;
        at += 3;
        length = length < size - at ? length : size - at;
        uint8_t *exact = malloc(length ? length : 1); /* so that the sanitizer sees a byte too far */
        must(exact != NULL, "memory");
        memcpy(exact, data + at, length);
        one_table(&device, exact, length, now, &joules);
        free(exact);
        at += length;
    }
}

/* A sound table of some version, every known field with a small number. */
static size_t sound_table(unsigned which, uint8_t *out)
{
    static const char *const dumps[] = {table_renoir, table_phoenix, table_strix, table_navi21, table_navi33};
    if (which < sizeof dumps / sizeof dumps[0])
        return table_bytes(dumps[which], out, GM_MOST_BYTES);
    const struct gpu_metrics_version *version = &gpu_metrics_versions[which % (unsigned)gpu_metrics_version_count];
    size_t size = table_blank(version->format, version->content, out);
    for (int group = 0; group < 3 && version->groups[group]; group++)
        for (const struct gpu_metrics_row *row = version->groups[group]; row->count > 0; row++)
            table_put(out, row->offset, 40, gpu_metrics_width((enum gpu_metrics_type)row->type));
    return size;
}

/* An input of tables of that kind, which come slower and faster than energy is looked at. */
static size_t sound_input(unsigned which, uint8_t *out)
{
    static const uint8_t waits[TABLES] = {100, 5, 5, 30};
    size_t length = 0;
    out[length++] = (uint8_t)which;
    for (int i = 0; i < TABLES; i++) {
        size_t size = sound_table(which, out + length + 3);
        out[length] = waits[i];
        table_put(out, length + 1, size, 2);
        length += 3 + size;
    }
    return length;
}

#ifdef FUZZING
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    one_input(data, size);
    return 0;
}

/* The corpus begins with sound tables, made here. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static uint8_t fresh[TABLES * GM_MOST_BYTES];
    if (seed % 16)
        return LLVMFuzzerMutate(data, size, most);
    size_t length = sound_input(seed / 16 % 24, fresh);
    length = length < most ? length : most;
    memcpy(data, fresh, length);
    return length;
}
#else
static void any_table_gives_sound_samples(void)
{
    static uint8_t data[TABLES * GM_MOST_BYTES];
    const char *rounds = getenv("FUZZ_ROUNDS"), *chosen = getenv("FUZZ_SEED");
    uint64_t seed = chosen ? strtoull(chosen, NULL, 0) : 20261201;
    printf("seed %llu\n", (unsigned long long)seed);
    for (long round = 0; round < (rounds ? atol(rounds) : 50000); round++) {
        size_t size = sound_input((unsigned)(round % 24), data);
        for (long change = round % 9; change > 0; change--) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            data[(seed >> 32) % size] = seed >> 8 & 1 ? 0xff : (uint8_t)(seed >> 16);
        }
        one_input(data, size);
    }
    CU_PASS("all");
}

TESTS({"any_table_gives_sound_samples", any_table_gives_sound_samples})
#endif
