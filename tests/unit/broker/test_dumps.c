/* Dumps of real machines, against values read off their files by hand. Skipped where the dumps are not. */
#include <errno.h>

#include "expect.h"
#include "tests/unit/check.h"

static struct tree tree;
static struct probe probe;

/* Samples once with that provider; false without the dump. */
static bool sampled(const char *dump, const char *provider)
{
    if (!expect_dump(&tree, &probe, dump, provider))
        return false;
    CU_ASSERT_EQUAL_FATAL(probe.count, 1);
    CU_ASSERT_EQUAL(probe.result, 0);
    return true;
}

static void done(void)
{
    (void)probe_discover(&probe);
    probe_stop(&probe);
    tree_remove(&tree);
}

#define EXPECT(...) EXPECT_EXACTLY(&probe, __VA_ARGS__)

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
    /* The voltages read 0, which is none; pp_dpm_mclk and socclk have no star, so that the clocks are the firmware's averages, and
     * flagged; pp_dpm_pcie is empty. gpu_metrics is 3.0; throttling needs two looks. */
    EXPECT({METRIC_VRAM_TOTAL, 536870912}, {METRIC_VRAM_USED, 514580480}, {METRIC_VRAM_VISIBLE_TOTAL, 536870912},
           {METRIC_VRAM_VISIBLE_USED, 514580480}, {METRIC_GTT_TOTAL, 16441004032.0}, {METRIC_GTT_USED, 3946811392.0},
           {METRIC_UNIFIED_TOTAL, 16977874944.0}, {METRIC_UNIFIED_USED, 4461391872.0}, {METRIC_GFX_BUSY, 3}, {METRIC_MEDIA_BUSY, 0},
           {METRIC_NPU_BUSY, 0}, {METRIC_GFX_CLOCK, 848}, {METRIC_MEMORY_CLOCK, 836}, {METRIC_SOC_CLOCK, 628},
           {METRIC_MEDIA_CLOCK, 800}, {METRIC_DRAM_READ, 2504e6}, {METRIC_DRAM_WRITE, 637e6}, {METRIC_TEMPERATURE_EDGE, 38},
           {METRIC_POWER_NOW, 9.087}, {METRIC_POWER_AVERAGE, 9.087}, {METRIC_PCIE_SPEED, 16}, {METRIC_PCIE_WIDTH, 16},
           {METRIC_QUALITY, QUALITY_ESTIMATED});
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_THROTTLE), REASON_NOT_SAMPLED);
    probe_forward_ms(&probe, 100);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), 0); /* no counter has moved */
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
    /* Every file is padded with NULs to 4096 bytes, gpu_metrics (1.3) as well. */
    EXPECT({METRIC_VRAM_TOTAL, 17163091968.0}, {METRIC_VRAM_USED, 668274688}, {METRIC_VRAM_VISIBLE_TOTAL, 17163091968.0},
           {METRIC_VRAM_VISIBLE_USED, 668274688}, {METRIC_GTT_TOTAL, 16786171904.0}, {METRIC_GTT_USED, 62369792},
           {METRIC_GFX_BUSY, 3}, {METRIC_MEMORY_BUSY, 0}, {METRIC_MEDIA_BUSY, 0}, {METRIC_THROTTLE, 0}, {METRIC_THROTTLE_RAW, 0},
           {METRIC_GFX_CLOCK, 500}, {METRIC_MEMORY_CLOCK, 1000}, {METRIC_SOC_CLOCK, 800}, {METRIC_MEDIA_CLOCK, 0},
           {METRIC_TEMPERATURE_EDGE, 56}, {METRIC_TEMPERATURE_JUNCTION, 59}, {METRIC_TEMPERATURE_MEMORY, 54},
           {METRIC_POWER_AVERAGE, 36}, {METRIC_POWER_CAP, 289}, {METRIC_FAN_RPM, 0}, {METRIC_FAN_PERCENT, 0},
           {METRIC_VOLTAGE_GFX, 775}, {METRIC_PCIE_SPEED, 16}, {METRIC_PCIE_WIDTH, 16}, {METRIC_PCIE_REPLAYS, 0},
           {METRIC_QUALITY, 0});
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
    /* The dump has neither power/ nor mem_info; the card is parked: 0 MHz and no voltage at 0 % busy. Its firmware says that the
     * hotspot throttles, at 54 of 100 degrees: the driver's bit is kept, and is no throttling. */
    EXPECT({METRIC_GFX_BUSY, 0}, {METRIC_MEMORY_BUSY, 0}, {METRIC_MEDIA_BUSY, 0}, {METRIC_GFX_CLOCK, 0}, {METRIC_MEMORY_CLOCK, 96},
           {METRIC_SOC_CLOCK, 711}, {METRIC_MEDIA_CLOCK, 25}, {METRIC_THROTTLE, 0}, {METRIC_THROTTLE_RAW, 68719476736.0},
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
    /* gpu_metrics 2.1: 0.79 % where gpu_busy_percent says 0; the video engine, and no throttling. The pp_dpm tables tell the clocks
     * that the firmware leaves out. */
    EXPECT({METRIC_VRAM_TOTAL, 4294967296.0}, {METRIC_VRAM_USED, 1272893440}, {METRIC_VRAM_VISIBLE_TOTAL, 4294967296.0},
           {METRIC_VRAM_VISIBLE_USED, 1272893440}, {METRIC_GTT_TOTAL, 31433977856.0}, {METRIC_GTT_USED, 211398656},
           {METRIC_UNIFIED_TOTAL, 35728945152.0}, {METRIC_UNIFIED_USED, 1484292096}, {METRIC_GFX_BUSY, 0.79},
           {METRIC_MEDIA_BUSY, 0}, {METRIC_GFX_CLOCK, 800}, {METRIC_MEMORY_CLOCK, 400}, {METRIC_SOC_CLOCK, 400},
           {METRIC_MEDIA_CLOCK, 800}, {METRIC_TEMPERATURE_EDGE, 25}, {METRIC_POWER_NOW, 3.142}, {METRIC_POWER_AVERAGE, 3.103},
           {METRIC_VOLTAGE_GFX, 814}, {METRIC_THROTTLE, 0}, {METRIC_THROTTLE_RAW, 0}, {METRIC_PCIE_SPEED, 16},
           {METRIC_PCIE_WIDTH, 16}, {METRIC_QUALITY, 0});
    done();
}

/* The dump has pcie_bw, which blocks for a second: never opened (T14). */
static void rx580(void)
{
    if (!sampled("amd/rx580", "amdgpu"))
        SKIP("no dump here");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "0000:09:00.0");
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_DISCRETE);
    EXPECT({METRIC_VRAM_TOTAL, 4294967296.0}, {METRIC_VRAM_USED, 536870912}, {METRIC_VRAM_VISIBLE_TOTAL, 268435456},
           {METRIC_VRAM_VISIBLE_USED, 150302720}, {METRIC_GTT_TOTAL, 8342712320.0}, {METRIC_GTT_USED, 92377088},
           {METRIC_GFX_BUSY, 11}, {METRIC_MEMORY_BUSY, 2}, {METRIC_GFX_CLOCK, 798.08}, {METRIC_MEMORY_CLOCK, 1750},
           {METRIC_TEMPERATURE_EDGE, 44}, {METRIC_POWER_AVERAGE, 41.045}, {METRIC_POWER_CAP, 155}, {METRIC_FAN_RPM, 595},
           {METRIC_FAN_PERCENT, 100.0 * 35 / 255}, {METRIC_VOLTAGE_GFX, 975}, {METRIC_PCIE_SPEED, 8}, {METRIC_PCIE_WIDTH, 16},
           {METRIC_PCIE_REPLAYS, 3}, {METRIC_QUALITY, 0});
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "pcie_bw"), 0);
    done();
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_EDGE_CRITICAL], 94);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_GFX_CLOCK_MAX], 1366);
    CU_ASSERT_EQUAL(probe.devices[0].tgp, 155);
}

TESTS({"strixpoint", strixpoint}, {"rx6900xt", rx6900xt}, {"rx7600s", rx7600s}, {"hd7870", hd7870},
      {"amdgpu_leaves_radeon_alone", amdgpu_leaves_radeon_alone}, {"phoenix", phoenix}, {"rx580", rx580})
