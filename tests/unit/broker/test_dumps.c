/* Dumps of real machines, against values read off their files by hand. Skipped where the dumps are not. */
#include <errno.h>
#include <math.h>

#include "probe.h"
#include "tests/unit/check.h"
#include "tree.h"

static struct tree tree;
static struct probe probe;

/* Samples once with that provider; false without the dump. */
static bool sampled(const char *dump, const char *provider)
{
    tree_make(&tree);
    if (!tree_from_dump(&tree, dump)) {
        tree_remove(&tree);
        return false;
    }
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, provider, tree.root), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, 1);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.result, 0);
    return true;
}

static void done(void)
{
    (void)probe_discover(&probe);
    probe_stop(&probe);
    tree_remove(&tree);
}

struct expected {
    int metric;
    double value;
};

/* These are known with these values, and nothing else is known. */
static void expect_exactly(const struct expected *expected, size_t count)
{
    int table_count;
    const struct metric_info *table = metrics_table(false, &table_count);
    for (int metric = 0; metric < table_count; metric++) {
        const struct expected *found = NULL;
        for (size_t i = 0; i < count && !found; i++)
            found = expected[i].metric == metric ? &expected[i] : NULL;
        double value = metrics_as_double(&table[metric], probe.sample.values[metric]);
        bool good = found ? probe_known(&probe, metric) && fabs(value - found->value) < 1e-6 : !probe_known(&probe, metric);
        if (!good)
            printf("%s: %s %.17g, expected %s %.17g\n", table[metric].name, probe_known(&probe, metric) ? "known" : "unknown",
                   value, found ? "known" : "unknown", found ? found->value : 0);
        CU_ASSERT_TRUE(good);
        CU_ASSERT(found || probe_reason(&probe, metric) == REASON_NOT_SUPPORTED);
    }
}
#define EXPECT(...)                                                                                                                \
    do {                                                                                                                           \
        const struct expected list[] = {__VA_ARGS__};                                                                              \
        expect_exactly(list, sizeof list / sizeof list[0]);                                                                        \
    } while (0)

static void strixpoint(void)
{
    if (!sampled("amd/strixpoint", "amdgpu"))
        SKIP("no dump here");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "0000:c1:00.0");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].arch, "gfx1150");
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_UNIFIED);
    CU_ASSERT_EQUAL(probe.devices[0].compute_units, 12);
    CU_ASSERT_EQUAL(probe.devices[0].vram_bus_bits, 128);
    CU_ASSERT_EQUAL(probe.devices[0].device_id, 0x150e);
    CU_ASSERT_EQUAL(probe.devices[0].revision, 0xc4);
    /* The voltages read 0, which is none; pp_dpm_mclk and socclk have no star; pp_dpm_pcie is empty. */
    EXPECT({METRIC_VRAM_TOTAL, 536870912}, {METRIC_VRAM_USED, 514580480}, {METRIC_VRAM_VISIBLE_TOTAL, 536870912},
           {METRIC_VRAM_VISIBLE_USED, 514580480}, {METRIC_GTT_TOTAL, 16441004032.0}, {METRIC_GTT_USED, 3946811392.0},
           {METRIC_UNIFIED_TOTAL, 16977874944.0}, {METRIC_UNIFIED_USED, 4461391872.0}, {METRIC_GFX_BUSY, 3}, {METRIC_MEDIA_BUSY, 0},
           {METRIC_GFX_CLOCK, 848}, {METRIC_MEDIA_CLOCK, 800}, {METRIC_TEMPERATURE_EDGE, 38}, {METRIC_POWER_NOW, 9.087},
           {METRIC_POWER_AVERAGE, 9.087}, {METRIC_PCIE_SPEED, 16}, {METRIC_PCIE_WIDTH, 16}, {METRIC_QUALITY, 0});
    done();
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_GFX_CLOCK_MAX], 2900);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_MEMORY_CLOCK_MAX], 1000);
}

static void rx6900xt(void)
{
    if (!sampled("amd/rx6900xt", "amdgpu"))
        SKIP("no dump here");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "0000:0c:00.0");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].uuid, "0123456789abcdef");
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_DISCRETE);
    /* Every file is padded with NULs to 4096 bytes. */
    EXPECT({METRIC_VRAM_TOTAL, 17163091968.0}, {METRIC_VRAM_USED, 668274688}, {METRIC_VRAM_VISIBLE_TOTAL, 17163091968.0},
           {METRIC_VRAM_VISIBLE_USED, 668274688}, {METRIC_GTT_TOTAL, 16786171904.0}, {METRIC_GTT_USED, 62369792},
           {METRIC_GFX_BUSY, 3}, {METRIC_MEMORY_BUSY, 0}, {METRIC_GFX_CLOCK, 500}, {METRIC_MEMORY_CLOCK, 1000},
           {METRIC_SOC_CLOCK, 800}, {METRIC_MEDIA_CLOCK, 0}, {METRIC_TEMPERATURE_EDGE, 56}, {METRIC_TEMPERATURE_JUNCTION, 59},
           {METRIC_TEMPERATURE_MEMORY, 54}, {METRIC_POWER_AVERAGE, 36}, {METRIC_POWER_CAP, 289}, {METRIC_FAN_RPM, 0},
           {METRIC_FAN_PERCENT, 0}, {METRIC_VOLTAGE_GFX, 775}, {METRIC_PCIE_SPEED, 16}, {METRIC_PCIE_WIDTH, 16},
           {METRIC_PCIE_REPLAYS, 0}, {METRIC_QUALITY, 0});
    done();
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_EDGE_CRITICAL], 100);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_JUNCTION_CRITICAL], 110);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_MEMORY_CRITICAL], 100);
    CU_ASSERT_EQUAL(probe.devices[0].tgp, 289);
}

static void rx7600s(void)
{
    if (!sampled("amd/rx7600s", "amdgpu"))
        SKIP("no dump here");
    /* The dump has neither power/ nor mem_info; the card is parked: 0 MHz and no voltage at 0 % busy. */
    EXPECT({METRIC_GFX_BUSY, 0}, {METRIC_GFX_CLOCK, 0}, {METRIC_MEMORY_CLOCK, 96}, {METRIC_SOC_CLOCK, 711},
           {METRIC_TEMPERATURE_EDGE, 53}, {METRIC_TEMPERATURE_JUNCTION, 54}, {METRIC_TEMPERATURE_MEMORY, 60},
           {METRIC_POWER_AVERAGE, 1}, {METRIC_POWER_CAP, 95}, {METRIC_FAN_RPM, 0}, {METRIC_FAN_PERCENT, 100.0 * 76 / 255},
           {METRIC_PCIE_SPEED, 16}, {METRIC_PCIE_WIDTH, 8}, {METRIC_QUALITY, 0});
    done();
}

static void hd7870(void)
{
    if (!sampled("amd/hd7870", "drm"))
        SKIP("no dump here");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "0000:01:00.0");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].driver, "radeon");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].vendor, "amd");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].name, "AMD GPU 1002:6818");
    CU_ASSERT_EQUAL(probe.devices[0].subvendor_id, 0x174b);
    /* No label anywhere: the first channel of each kind is the chip's. */
    EXPECT({METRIC_GFX_CLOCK, 300}, {METRIC_TEMPERATURE_EDGE, 27}, {METRIC_FAN_PERCENT, 20}, {METRIC_PCIE_SPEED, 8},
           {METRIC_PCIE_WIDTH, 1});
    done();
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_EDGE_CRITICAL], 120);
}

static void amdgpu_leaves_radeon_alone(void)
{
    tree_make(&tree);
    if (!tree_from_dump(&tree, "amd/hd7870")) {
        tree_remove(&tree);
        SKIP("no dump here");
    }
    CU_ASSERT_EQUAL(probe_start(&probe, "amdgpu", tree.root), -ENODEV);
    probe_stop(&probe);
    tree_remove(&tree);
}

static void phoenix(void)
{
    if (!sampled("amd/phoenix", "amdgpu"))
        SKIP("no dump here");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].arch, "gfx1103");
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_UNIFIED);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), UINT64_C(4294967296));
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 1272893440);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_TOTAL), UINT64_C(31433977856));
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), 211398656);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 3.142, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_POWER_AVERAGE), 3.103, 1e-9);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 25);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_MEMORY_BUSY));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_FAN_RPM));
    done();
}

TESTS({"strixpoint", strixpoint}, {"rx6900xt", rx6900xt}, {"rx7600s", rx7600s}, {"hd7870", hd7870},
      {"amdgpu_leaves_radeon_alone", amdgpu_leaves_radeon_alone}, {"phoenix", phoenix})
