/* Dumps of real machines with Intel and NVIDIA cards, against values read off their files by hand. Skipped where the dumps are
 * not. */
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
    (void)probe_discover(&probe); /* what only an awake card tells */
    return true;
}

static void done(void)
{
    probe_stop(&probe);
    tree_remove(&tree);
}

static void a380(void)
{
    if (!sampled("intel/a380-i915", "intel"))
        SKIP("no dump here");
    const struct layout_device *facts = &probe.devices[0];
    CU_ASSERT_STRING_EQUAL(facts->id, "0000:0b:00.0");
    CU_ASSERT_STRING_EQUAL(facts->driver, "i915");
    CU_ASSERT_STRING_EQUAL(facts->arch, "xe-hpg");
    CU_ASSERT_EQUAL(facts->device_id, 0x56a5);
    CU_ASSERT_EQUAL(facts->subvendor_id, 0x1849);
    CU_ASSERT_EQUAL(facts->pool, POOL_DISCRETE);
    CU_ASSERT_EQUAL(facts->limits[LIMIT_GFX_CLOCK_MAX], 2450);
    /* rps_act_freq_mhz 600; the fan stands; power1_max 55 W; the counter is beyond 32 bits. The dump has no bridges: the endpoint's
     * 2.5 GT/s x1 is no link of the card's. Memory is told by the node alone. */
    EXPECT_EXACTLY(&probe, {METRIC_GFX_CLOCK, 600}, {METRIC_TEMPERATURE_EDGE, 55}, {METRIC_POWER_CAP, 55},
                   {METRIC_ENERGY, 25637.161804}, {METRIC_FAN_RPM, 0}, {METRIC_VOLTAGE_GFX, 603}, {METRIC_THROTTLE, 0},
                   {METRIC_THROTTLE_RAW, 0}, {METRIC_QUALITY, 0});
    done();
}

static void b580(void)
{
    if (!sampled("intel/b580-6.16", "intel"))
        SKIP("no dump here");
    const struct layout_device *facts = &probe.devices[0];
    CU_ASSERT_STRING_EQUAL(facts->id, "0000:0b:00.0");
    CU_ASSERT_STRING_EQUAL(facts->driver, "xe");
    CU_ASSERT_STRING_EQUAL(facts->arch, "xe2-hpg");
    CU_ASSERT_EQUAL(facts->device_id, 0xe20b);
    CU_ASSERT_EQUAL(facts->pool, POOL_DISCRETE);
    CU_ASSERT_EQUAL(facts->limits[LIMIT_GFX_CLOCK_MAX], 2850);
    /* energy1 (card) is 0 and energy2 (pkg) counts; power1_crit 380 W is no limit; the second fan is the one that turns; act_freq
     * of the media GT is 0: parked. */
    EXPECT_EXACTLY(&probe, {METRIC_GFX_CLOCK, 400}, {METRIC_MEDIA_CLOCK, 0}, {METRIC_TEMPERATURE_EDGE, 46},
                   {METRIC_TEMPERATURE_MEMORY, 48}, {METRIC_ENERGY, 29523.753173}, {METRIC_FAN_RPM, 418}, {METRIC_THROTTLE, 0},
                   {METRIC_THROTTLE_RAW, 0}, {METRIC_QUALITY, 0});
    done();
}

/* Only who it is and its link. */
static void rtx4080(void)
{
    if (!sampled("nvidia/rtx4080", "drm"))
        SKIP("no dump here");
    const struct layout_device *facts = &probe.devices[0];
    CU_ASSERT_STRING_EQUAL(facts->id, "0000:09:00.0");
    CU_ASSERT_STRING_EQUAL(facts->vendor, "nvidia");
    CU_ASSERT_STRING_EQUAL(facts->driver, "nvidia");
    CU_ASSERT_EQUAL(facts->device_id, 0x2704);
    CU_ASSERT_EQUAL(facts->subvendor_id, 0x1462);
    CU_ASSERT_EQUAL(facts->pool, POOL_UNKNOWN);
    EXPECT_EXACTLY(&probe, {METRIC_PCIE_SPEED, 5}, {METRIC_PCIE_WIDTH, 16});
    done();
}

TESTS({"a380", a380}, {"b580", b580}, {"rtx4080", rtx4080})
