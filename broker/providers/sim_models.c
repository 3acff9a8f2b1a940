/* The simulated models. Numbers of the Instinct cards at work are those of public mock collectors; the rest is what such a card
 * plausibly shows while it renders. */
#include "broker/providers/sim_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/sim_table.h"
#include "shm/text.h"

#define MIB 1048576.0
#define GIB 1073741824.0
#define IS(number)                                                                                                                 \
    {                                                                                                                              \
        true, number                                                                                                               \
    }

enum { SIM_MAX_COUNT = 64 };

/* An OAM module has no fan and no edge sensor, and counts no common media share. */
#define INSTINCT(vram_gib, watts, cap, junction, gfx, memory, gfx_mhz, memory_mhz)                                                 \
    [METRIC_VRAM_TOTAL] = IS((vram_gib)*GIB), [METRIC_GFX_BUSY] = IS(gfx), [METRIC_MEMORY_BUSY] = IS(memory),                      \
    [METRIC_GFX_CLOCK] = IS(gfx_mhz), [METRIC_MEMORY_CLOCK] = IS(memory_mhz), [METRIC_TEMPERATURE_JUNCTION] = IS(junction),        \
    [METRIC_TEMPERATURE_MEMORY] = IS((junction)-12.0), [METRIC_POWER_NOW] = IS(watts), [METRIC_POWER_AVERAGE] = IS(watts),         \
    [METRIC_POWER_CAP] = IS(cap), [METRIC_ENERGY] = IS(0), [METRIC_THROTTLE] = IS(0), [METRIC_PCIE_SPEED] = IS(32),                \
    [METRIC_PCIE_WIDTH] = IS(16), [METRIC_PCIE_REPLAYS] = IS(0), [METRIC_ECC_CORRECTABLE] = IS(0),                                 \
    [METRIC_ECC_UNCORRECTABLE] = IS(0), [METRIC_QUALITY] = IS(0)

#define INSTINCT_FACTS                                                                                                             \
    .vendor = "amd", .vendor_id = 0x1002, .pool = POOL_DISCRETE, .default_count = 8, .memory_fraction = 0.9, .vram_bus_bits = 8192

const struct sim_model sim_models[] = {
    {.name = "mi300x",
     .title = "AMD Instinct MI300X",
     INSTINCT_FACTS,
     .arch = "gfx942",
     .vram_type = "HBM3",
     .device_id = 0x74a1,
     .compute_units = 304,
     .tgp = 750,
     .limits = {2100, 1300, 0, 100, 105, 0},
     .metrics = {INSTINCT(192, 600, 750, 80, 85, 40, 2100, 1300)}},
    {.name = "mi325x",
     .title = "AMD Instinct MI325X",
     INSTINCT_FACTS,
     .arch = "gfx942",
     .vram_type = "HBM3E",
     .device_id = 0x74a5,
     .compute_units = 304,
     .tgp = 1000,
     .limits = {2100, 1500, 0, 100, 105, 0},
     .metrics = {INSTINCT(256, 800, 1000, 82, 85, 45, 2100, 1500)}},
    {.name = "mi355x",
     .title = "AMD Instinct MI355X",
     INSTINCT_FACTS,
     .arch = "gfx950",
     .vram_type = "HBM3E",
     .device_id = 0x75a3,
     .compute_units = 256,
     .tgp = 1400,
     .limits = {2400, 2000, 0, 100, 105, 0},
     .metrics = {INSTINCT(288, 1100, 1400, 85, 88, 50, 2400, 2000)}},
    {.name = "mi250x",
     .title = "AMD Instinct MI250X",
     INSTINCT_FACTS,
     .arch = "gfx90a",
     .vram_type = "HBM2E",
     .device_id = 0x7408,
     .compute_units = 220,
     .tgp = 560,
     .limits = {1700, 1600, 0, 100, 105, 0},
     .metrics = {INSTINCT(128, 450, 560, 75, 80, 35, 1700, 1600)}},
    /* 128 GB of host memory: a carve-out of 512 MiB and half of the rest mapped by the GPU. No memory sensor, no fan, no link and
     * no memory_busy on this part. */
    {.name = "strix-halo",
     .title = "AMD Radeon 8060S",
     .vendor = "amd",
     .arch = "gfx1151",
     .vram_type = "LPDDR5X",
     .vendor_id = 0x1002,
     .device_id = 0x1586,
     .pool = POOL_UNIFIED,
     .default_count = 1,
     .compute_units = 40,
     .vram_bus_bits = 256,
     .tgp = 120,
     .limits = {2900, 1000, 100, 0, 0, 0},
     .memory_fraction = 0.4,
     .metrics = {[METRIC_VRAM_TOTAL] = IS(512 * MIB),
                 [METRIC_VRAM_VISIBLE_TOTAL] = IS(512 * MIB),
                 [METRIC_GTT_TOTAL] = IS(67076648960.0) /* 62.47 GiB */,
                 [METRIC_GFX_BUSY] = IS(92),
                 [METRIC_MEDIA_BUSY] = IS(4),
                 [METRIC_NPU_BUSY] = IS(0),
                 [METRIC_GFX_CLOCK] = IS(2900),
                 [METRIC_MEMORY_CLOCK] = IS(1000),
                 [METRIC_SOC_CLOCK] = IS(1177),
                 [METRIC_MEDIA_CLOCK] = IS(800),
                 [METRIC_TEMPERATURE_EDGE] = IS(71),
                 [METRIC_POWER_NOW] = IS(104),
                 [METRIC_POWER_AVERAGE] = IS(102),
                 [METRIC_POWER_CAP] = IS(120),
                 [METRIC_ENERGY] = IS(0),
                 [METRIC_VOLTAGE_GFX] = IS(1010),
                 [METRIC_THROTTLE] = IS(0),
                 [METRIC_DRAM_READ] = IS(142e9),
                 [METRIC_DRAM_WRITE] = IS(51e9),
                 [METRIC_QUALITY] = IS(0)}},
    {.name = "rx7900xtx",
     .title = "AMD Radeon RX 7900 XTX",
     .vendor = "amd",
     .arch = "gfx1100",
     .vram_type = "GDDR6",
     .vendor_id = 0x1002,
     .device_id = 0x744c,
     .pool = POOL_DISCRETE,
     .default_count = 1,
     .compute_units = 96,
     .vram_bus_bits = 384,
     .tgp = 355,
     .limits = {2500, 1250, 100, 110, 108, 0},
     .memory_fraction = 0.7,
     .metrics = {[METRIC_VRAM_TOTAL] = IS(24 * GIB),
                 [METRIC_VRAM_VISIBLE_TOTAL] = IS(24 * GIB),
                 [METRIC_GTT_TOTAL] = IS(31 * GIB),
                 [METRIC_GFX_BUSY] = IS(97),
                 [METRIC_MEMORY_BUSY] = IS(52),
                 [METRIC_MEDIA_BUSY] = IS(0),
                 [METRIC_GFX_CLOCK] = IS(2482),
                 [METRIC_MEMORY_CLOCK] = IS(1249),
                 [METRIC_SOC_CLOCK] = IS(1200),
                 [METRIC_TEMPERATURE_EDGE] = IS(64),
                 [METRIC_TEMPERATURE_JUNCTION] = IS(83),
                 [METRIC_TEMPERATURE_MEMORY] = IS(78),
                 [METRIC_POWER_NOW] = IS(327),
                 [METRIC_POWER_AVERAGE] = IS(327),
                 [METRIC_POWER_CAP] = IS(355),
                 [METRIC_ENERGY] = IS(0),
                 [METRIC_FAN_RPM] = IS(1640),
                 [METRIC_FAN_PERCENT] = IS(46),
                 [METRIC_VOLTAGE_GFX] = IS(935),
                 [METRIC_THROTTLE] = IS(0),
                 [METRIC_PCIE_SPEED] = IS(16),
                 [METRIC_PCIE_WIDTH] = IS(16),
                 [METRIC_PCIE_REPLAYS] = IS(0),
                 [METRIC_QUALITY] = IS(0)}},
    {.name = "rx9070xt",
     .title = "AMD Radeon RX 9070 XT",
     .vendor = "amd",
     .arch = "gfx1201",
     .vram_type = "GDDR6",
     .vendor_id = 0x1002,
     .device_id = 0x7550,
     .pool = POOL_DISCRETE,
     .default_count = 1,
     .compute_units = 64,
     .vram_bus_bits = 256,
     .tgp = 304,
     .limits = {2970, 1258, 100, 110, 108, 0},
     .memory_fraction = 0.75,
     .metrics = {[METRIC_VRAM_TOTAL] = IS(16 * GIB),
                 [METRIC_VRAM_VISIBLE_TOTAL] = IS(16 * GIB),
                 [METRIC_GTT_TOTAL] = IS(31 * GIB),
                 [METRIC_GFX_BUSY] = IS(96),
                 [METRIC_MEMORY_BUSY] = IS(48),
                 [METRIC_MEDIA_BUSY] = IS(0),
                 [METRIC_GFX_CLOCK] = IS(2920),
                 [METRIC_MEMORY_CLOCK] = IS(1258),
                 [METRIC_SOC_CLOCK] = IS(1200),
                 [METRIC_TEMPERATURE_EDGE] = IS(58),
                 [METRIC_TEMPERATURE_JUNCTION] = IS(84),
                 [METRIC_TEMPERATURE_MEMORY] = IS(86),
                 [METRIC_POWER_NOW] = IS(288),
                 [METRIC_POWER_AVERAGE] = IS(286),
                 [METRIC_POWER_CAP] = IS(304),
                 [METRIC_ENERGY] = IS(0),
                 [METRIC_FAN_RPM] = IS(1480),
                 [METRIC_FAN_PERCENT] = IS(41),
                 [METRIC_VOLTAGE_GFX] = IS(980),
                 [METRIC_THROTTLE] = IS(0),
                 [METRIC_PCIE_SPEED] = IS(32),
                 [METRIC_PCIE_WIDTH] = IS(16),
                 [METRIC_PCIE_REPLAYS] = IS(0),
                 [METRIC_QUALITY] = IS(0)}},
    /* Encoder and decoder apart, one temperature, memory held by the driver counted apart. */
    {.name = "rtx4090",
     .title = "NVIDIA GeForce RTX 4090",
     .vendor = "nvidia",
     .arch = "sm_89",
     .vram_type = "GDDR6X",
     .vendor_id = 0x10de,
     .device_id = 0x2684,
     .pool = POOL_DISCRETE,
     .default_count = 1,
     .compute_units = 128,
     .vram_bus_bits = 384,
     .tgp = 450,
     .limits = {3105, 10501, 90, 0, 0, 83},
     .memory_fraction = 0.8,
     .metrics = {[METRIC_VRAM_TOTAL] = IS(24564 * MIB),
                 [METRIC_VRAM_RESERVED] = IS(420 * MIB),
                 [METRIC_GFX_BUSY] = IS(98),
                 [METRIC_MEMORY_BUSY] = IS(61),
                 [METRIC_ENCODE_BUSY] = IS(0),
                 [METRIC_DECODE_BUSY] = IS(0),
                 [METRIC_GFX_CLOCK] = IS(2685),
                 [METRIC_MEMORY_CLOCK] = IS(10501),
                 [METRIC_MEDIA_CLOCK] = IS(1965),
                 [METRIC_TEMPERATURE_EDGE] = IS(66),
                 [METRIC_POWER_NOW] = IS(402),
                 [METRIC_POWER_AVERAGE] = IS(398),
                 [METRIC_POWER_CAP] = IS(450),
                 [METRIC_ENERGY] = IS(0),
                 [METRIC_FAN_PERCENT] = IS(45),
                 [METRIC_THROTTLE] = IS(0),
                 [METRIC_PCIE_SPEED] = IS(16),
                 [METRIC_PCIE_WIDTH] = IS(16),
                 [METRIC_PCIE_RX] = IS(1.2e8),
                 [METRIC_PCIE_TX] = IS(4e7),
                 [METRIC_PCIE_REPLAYS] = IS(0),
                 [METRIC_QUALITY] = IS(0)}},
    {.name = "arc-b580",
     .title = "Intel Arc B580",
     .vendor = "intel",
     .arch = "xe2-hpg",
     .vram_type = "GDDR6",
     .vendor_id = 0x8086,
     .device_id = 0xe20b,
     .pool = POOL_DISCRETE,
     .default_count = 1,
     .compute_units = 20,
     .vram_bus_bits = 192,
     .tgp = 190,
     .limits = {2850, 2375, 100, 0, 100, 0},
     .memory_fraction = 0.65,
     .metrics = {[METRIC_VRAM_TOTAL] = IS(12 * GIB),
                 [METRIC_VRAM_VISIBLE_TOTAL] = IS(12 * GIB),
                 [METRIC_GFX_BUSY] = IS(94),
                 [METRIC_MEDIA_BUSY] = IS(0),
                 [METRIC_GFX_CLOCK] = IS(2850),
                 [METRIC_MEDIA_CLOCK] = IS(1500),
                 [METRIC_TEMPERATURE_EDGE] = IS(63),
                 [METRIC_TEMPERATURE_MEMORY] = IS(70),
                 [METRIC_POWER_NOW] = IS(172),
                 [METRIC_POWER_CAP] = IS(190),
                 [METRIC_ENERGY] = IS(0),
                 [METRIC_FAN_RPM] = IS(1350),
                 [METRIC_VOLTAGE_GFX] = IS(1025),
                 [METRIC_THROTTLE] = IS(0),
                 [METRIC_PCIE_SPEED] = IS(16),
                 [METRIC_PCIE_WIDTH] = IS(8),
                 [METRIC_QUALITY] = IS(0)}},
    {.name = "broken",
     .title = "Broken GPU",
     .vendor = "none",
     .pool = POOL_UNKNOWN,
     .default_count = 1,
     .broken = true,
     .arch = "",
     .vram_type = ""},
};
const int sim_model_count = (int)(sizeof sim_models / sizeof sim_models[0]);

static const struct sim_model *find_model(const char *name, size_t length)
{
    for (int i = 0; i < sim_model_count; i++)
        if (strlen(sim_models[i].name) == length && memcmp(sim_models[i].name, name, length) == 0)
            return &sim_models[i];
    return NULL;
}

/* A count is one or two digits: 1 to 64. */
static bool parse_count(const char *text, uint32_t *count)
{
    size_t length = strspn(text, "0123456789");
    if (length == 0 || length > 2 || text[length])
        return false;
    *count = (uint32_t)strtoul(text, NULL, 10);
    return *count >= 1 && *count <= SIM_MAX_COUNT;
}

const struct sim_model *sim_parse_spec(const char *spec, uint32_t *count)
{
    const char *colon = strchr(spec, ':');
    const struct sim_model *model = find_model(spec, colon ? (size_t)(colon - spec) : strlen(spec));
    if (!model || (colon && !parse_count(colon + 1, count)))
        return NULL;
    if (!colon)
        *count = model->default_count;
    return model;
}

const char *sim_model_list(void)
{
    static char list[512];
    list[0] = '\0';
    for (int i = 0; i < sim_model_count; i++) {
        size_t used = strlen(list);
        text_format(list + used, sizeof list - used, "%s%s", i ? ", " : "", sim_models[i].name);
    }
    return list;
}

int sim_check_spec(const char *spec, char *message, size_t size)
{
    uint32_t count;
    if (sim_parse_spec(spec, &count))
        return 0;
    const char *colon = strchr(spec, ':');
    if (find_model(spec, colon ? (size_t)(colon - spec) : strlen(spec)))
        text_format(message, size, "bad count in \"%s\": 1 to %d", spec, SIM_MAX_COUNT);
    else
        text_format(message, size, "unknown model \"%s\"; there are %s", spec, sim_model_list());
    return -1;
}

static bool is_true(const char *text)
{
    return text && (strcmp(text, "1") == 0 || strcmp(text, "true") == 0 || strcmp(text, "yes") == 0);
}

int sim_from_environment(char *out, size_t size)
{
    if (!is_true(getenv("GPUTAP_SIM")))
        return 0;
    const char *name = getenv("GPUTAP_SIM_MODEL"), *number = getenv("GPUTAP_SIM_NUM_GPUS");
    const struct sim_model *model = name && *name ? find_model(name, strlen(name)) : &sim_models[0];
    if (!model) {
        model = &sim_models[0];
        (void)fprintf(stderr, "gputapd: GPUTAP_SIM_MODEL=%s is unknown, using %s; there are %s\n", name, model->name,
                      sim_model_list());
    }
    uint32_t count = model->default_count;
    if (number && *number && !parse_count(number, &count)) {
        count = model->default_count;
        (void)fprintf(stderr, "gputapd: GPUTAP_SIM_NUM_GPUS=%s is not a number of 1 to %d, using %u\n", number, SIM_MAX_COUNT,
                      count);
    }
    text_format(out, size, "%s:%u", model->name, count);
    return 1;
}
