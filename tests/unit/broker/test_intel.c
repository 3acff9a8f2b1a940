/* The provider "intel": cards under xe and i915 and the graphics of processors, sound and with everything wrong that is known of.
 */
#include <errno.h>
#include <math.h>

#include "expect.h"
#include "intel_node.h"
#include "tests/unit/check.h"
#include "tree_intel.h"

static struct tree tree;
static struct probe probe;

static void begin(void (*make)(const struct tree *))
{
    tree_make(&tree);
    make(&tree);
}

static void look(void)
{
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "intel", tree.root), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, 1);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.result, 0);
}

static void again(uint64_t ms)
{
    probe_forward_ms(&probe, ms);
    probe_sample(&probe, 0);
}

static void end(void)
{
    probe_stop(&probe);
    tree_remove(&tree);
}

static void integrated_xe(const struct tree *at) { tree_integrated(at, "xe"); }
static void integrated_i915(const struct tree *at) { tree_integrated(at, "i915"); }

/* --- whole samples ---------------------------------------------------------------------------------------------------- */

static void xe_card_is_read(void)
{
    begin(tree_xe_card);
    look();
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "0000:03:00.0");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].vendor, "intel");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].driver, "xe");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].arch, "xe2-hpg");
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_DISCRETE);
    EXPECT_EXACTLY(&probe, {METRIC_GFX_CLOCK, 2400}, {METRIC_MEDIA_CLOCK, 0}, {METRIC_TEMPERATURE_EDGE, 61},
                   {METRIC_TEMPERATURE_MEMORY, 72}, {METRIC_POWER_CAP, 190}, {METRIC_ENERGY, 11031.745544}, {METRIC_FAN_RPM, 1350},
                   {METRIC_THROTTLE, 0}, {METRIC_THROTTLE_RAW, 0}, {METRIC_PCIE_SPEED, 16}, {METRIC_PCIE_WIDTH, 8},
                   {METRIC_QUALITY, 0});
    CU_ASSERT(probe_discover(&probe) == 1);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_GFX_CLOCK_MAX], 2850);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_EDGE_CRITICAL], 105);
    CU_ASSERT_EQUAL(probe_discover(&probe), -EAGAIN);
    end();
}

static void i915_card_is_read(void)
{
    begin(tree_i915_card);
    look();
    CU_ASSERT_STRING_EQUAL(probe.devices[0].driver, "i915");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].arch, "xe-hpg");
    EXPECT_EXACTLY(&probe, {METRIC_GFX_CLOCK, 1950}, {METRIC_TEMPERATURE_EDGE, 55}, {METRIC_POWER_CAP, 55},
                   {METRIC_ENERGY, 25637.161804}, {METRIC_FAN_RPM, 0}, {METRIC_VOLTAGE_GFX, 603}, {METRIC_THROTTLE, 0},
                   {METRIC_THROTTLE_RAW, 0}, {METRIC_PCIE_SPEED, 16}, {METRIC_PCIE_WIDTH, 8}, {METRIC_QUALITY, 0});
    (void)probe_discover(&probe);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_GFX_CLOCK_MAX], 2450);
    end();
}

/* No sensors, no link, and before kernel 5.19 no folder of GTs either. */
static void integrated_graphics_are_read(void)
{
    begin(integrated_i915);
    look();
    CU_ASSERT_STRING_EQUAL(probe.devices[0].arch, "xe-lp");
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_UNIFIED);
    EXPECT_EXACTLY(&probe, {METRIC_GFX_CLOCK, 1300}, {METRIC_QUALITY, 0});
    (void)probe_discover(&probe);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_GFX_CLOCK_MAX], 1350);
    end();
    begin(integrated_xe);
    look();
    EXPECT_EXACTLY(&probe, {METRIC_QUALITY, 0});
    end();
}

static void other_cards_are_left_alone(void)
{
    tree_make(&tree);
    tree_amd_card(&tree);
    CU_ASSERT_EQUAL(probe_start(&probe, "intel", tree.root), -ENODEV);
    CU_ASSERT_STRING_EQUAL(probe.context.message, "no device with the driver i915 or xe");
    probe_stop(&probe);
    tree_xe_card(&tree); /* in its place */
    look();
    end();
}

/* "drm" tells who it is, and reads nothing that this provider reads. */
static void drm_only_describes_it(void)
{
    begin(tree_xe_card);
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "drm", tree.root), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, 1);
    probe_sample(&probe, 0);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_TEMPERATURE_EDGE));
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "hwmon"), 0);
    end();
}

/* --- power ------------------------------------------------------------------------------------------------------------ */

/* T9 */
static void power_is_that_of_the_energy_counter(void)
{
    begin(tree_xe_card);
    look();
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_POWER_NOW), REASON_NOT_SAMPLED);
    tree_write(&tree, XE_HWMON "/energy1_input", "11445745544\n");
    tree_write(&tree, XE_HWMON "/energy2_input", "8201000000\n");
    again(2010);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 414 / 2.010, 1e-9); /* 205.97 W of the card */
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_POWER_SECOND), 100, 1e-9);      /* and of the chip */
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_ENERGY), 11445.745544, 1e-9);
    again(5000); /* standing still is 0 W once, and a counter that does not count after that */
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 0);
    again(5000);
    again(5000);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_NOW));
    tree_write(&tree, XE_HWMON "/energy1_input", "4011445745544\n"); /* four megajoules more */
    again(100);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_POWER_NOW), REASON_IMPLAUSIBLE);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_ENERGY), 11445.745544, 1e-9);
    CU_ASSERT_TRUE(probe_u64(&probe, METRIC_QUALITY) & QUALITY_IMPLAUSIBLE);
    end();
}

/* Kernel 6.16 shows a counter for the B580's board that never counts. */
static void counter_that_stays_at_zero_gives_way_to_the_chips(void)
{
    begin(tree_xe_card);
    tree_write(&tree, XE_HWMON "/energy1_input", "0\n");
    look();
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_ENERGY), 8000);
    tree_write(&tree, XE_HWMON "/energy2_input", "8150000000\n");
    again(1000);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 150, 1e-9);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_SECOND)); /* it is the only one */
    end();
}

/* power1_crit is where the board protects itself. */
static void critical_power_is_no_limit(void)
{
    begin(tree_xe_card);
    tree_delete(&tree, XE_HWMON "/power1_max");
    look();
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_CAP));
    end();
}

static void rated_power_of_zero_is_none(void)
{
    begin(tree_i915_card);
    look();
    (void)probe_discover(&probe);
    double unsaid = probe.devices[0].tgp; /* what the table of cards has, if it has it */
    probe_stop(&probe);
    tree_write(&tree, I915_HWMON "/power1_rated_max", "66000000\n");
    look();
    (void)probe_discover(&probe);
    CU_ASSERT_EQUAL(probe.devices[0].tgp, 66);
    CU_ASSERT_NOT_EQUAL(unsaid, 66);
    end();
}

/* xe has the A380's voltage on the second channel, with a label. */
static void voltage_of_the_chip_is_found_by_label(void)
{
    begin(tree_xe_card);
    tree_write(&tree, XE_HWMON "/in1_label", "pkg\n");
    tree_write(&tree, XE_HWMON "/in1_input", "1010\n");
    look();
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_VOLTAGE_GFX), 1010);
    end();
}

/* --- clocks ----------------------------------------------------------------------------------------------------------- */

static void requested_clock_is_no_clock(void)
{
    begin(tree_xe_card);
    tree_delete(&tree, XE_GT0 "/freq0/act_freq");
    look();
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_GFX_CLOCK));
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_CLOCK), REASON_NOT_SUPPORTED);
    end();
    begin(tree_i915_card);
    look();
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "cur_freq") + fault_io_opened(&probe.fault, "req_freq"), 0);
    struct fault_rule *rule = fault_io_rule(&probe.fault, "act_freq", EIO);
    again(100);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_CLOCK), REASON_ERROR);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 55); /* fails alone */
    rule->error = 0;
    tree_write(&tree, I915_GT "/rps_act_freq_mhz", "4294967295\n");
    again(100);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_CLOCK), REASON_IMPLAUSIBLE);
    end();
}

static void parked_gt_has_a_clock_of_zero(void)
{
    begin(tree_xe_card);
    tree_write(&tree, XE_GT0 "/freq0/act_freq", "0\n");
    tree_write(&tree, XE_GT1 "/freq0/act_freq", "1200\n");
    look();
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEDIA_CLOCK), 1200);
    end();
}

static void fastest_tile_counts(void)
{
    begin(tree_xe_card);
    tree_write(&tree, XE_CARD "/tile1/gt2/freq0/act_freq", "2600\n");
    tree_write(&tree, XE_CARD "/tile1/gt2/freq0/rp0_freq", "2900\n");
    tree_write(&tree, XE_CARD "/tile1/gt2/engines/ccs/job_timeout_ms", "1\n"); /* without a name: told by its engines */
    tree_write(&tree, XE_CARD "/tile1/gt3/freq0/act_freq", "2700\n");
    tree_write(&tree, XE_CARD "/tile1/gt3/engines/vcs/job_timeout_ms", "1\n");
    look();
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2600);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEDIA_CLOCK), 2700);
    (void)probe_discover(&probe);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_GFX_CLOCK_MAX], 2900);
    end();
}

static void second_gt_of_i915_is_the_media_one(void)
{
    begin(tree_i915_card);
    tree_write(&tree, I915_CARD "/drm/card1/gt/gt1/rps_act_freq_mhz", "1100\n");
    look();
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 1950);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEDIA_CLOCK), 1100);
    end();
}

static void files_are_found_again_when_the_card_is_renumbered(void)
{
    begin(tree_i915_card);
    look();
    tree_rename(&tree, I915_CARD "/drm/card1", I915_CARD "/drm/card2");
    fault_io_rule(&probe.fault, "/drm/card1/", ENODEV); /* what an open file of a device that is gone answers */
    again(1000);
    again(1000);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 1950);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), 0);
    end();
}

/* --- throttling ------------------------------------------------------------------------------------------------------- */

static void throttle_reasons_are_told(void)
{
    begin(tree_xe_card);
    tree_write(&tree, XE_GT0 "/freq0/throttle/status", "1\n");
    tree_write(&tree, XE_GT0 "/freq0/throttle/reason_pl1", "1\n");
    tree_write(&tree, XE_GT0 "/freq0/throttle/reason_thermal", "1\n");
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), THROTTLE_POWER | THROTTLE_THERMAL);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE_RAW), 1 << 10 | 1 << 1);
    tree_write(&tree, XE_GT0 "/freq0/throttle/reason_pl1", "0\n");
    tree_write(&tree, XE_GT0 "/freq0/throttle/reason_thermal", "0\n");
    again(100); /* for a reason that has no file yet */
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), THROTTLE_OTHER);
    tree_write(&tree, XE_GT0 "/freq0/throttle/status", "0\n");
    tree_write(&tree, XE_GT0 "/freq0/throttle/reason_pl1", "1\n"); /* left over: not asked while there is no throttling */
    again(100);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), 0);
    tree_write(&tree, XE_GT0 "/freq0/throttle/status", "garbage\n");
    tree_write(&tree, XE_GT1 "/freq0/throttle/status", "garbage\n");
    again(100);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_THROTTLE), REASON_ERROR);
    end();
    begin(tree_i915_card);
    tree_write(&tree, I915_GT "/throttle_reason_status", "1\n");
    tree_write(&tree, I915_GT "/throttle_reason_ratl", "1\n");
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), THROTTLE_THERMAL);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE_RAW), 1 << 5);
    end();
}

static void list_of_reasons_is_preferred(void)
{
    begin(tree_xe_card);
    tree_write(&tree, XE_GT0 "/freq0/throttle/status", "1\n");
    tree_write(&tree, XE_GT0 "/freq0/throttle/reasons", "none\n");
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), 0);
    tree_write(&tree, XE_GT0 "/freq0/throttle/reasons", "reason_pl4 reason_prochot reason_pl11\n");
    again(100);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), THROTTLE_POWER | THROTTLE_CURRENT | THROTTLE_HARDWARE);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE_RAW), 1 << 8 | 1 << 0);
    tree_write(&tree, XE_GT0 "/freq0/throttle/reasons", "reason_of_tomorrow\n");
    again(100);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), THROTTLE_OTHER);
    end();
}

/* --- link ------------------------------------------------------------------------------------------------------------- */

/* Moves the card up to that place of the bus. */
static void move_card(const char *below)
{
    char path[256];
    (void)snprintf(path, sizeof path, "/sys/devices/%s0000:03:00.0", below);
    tree_rename(&tree, XE_CARD, path);
    (void)snprintf(path, sizeof path, "../../../devices/%s0000:03:00.0", below);
    tree_link(&tree, "/sys/bus/pci/devices/0000:03:00.0", path);
}

/* A virtual machine sees the card's endpoint alone, which always says 2.5 GT/s x1. */
static void link_inside_the_card_is_not_the_cards(void)
{
    static const char *const places[] = {"pci0000:00/", "pci0000:00/0000:00:05.0/",
                                         "pci0000:00/0000:00:05.0/0000:01:00.0/0000:02:00.0/"};
    for (size_t i = 0; i < 3; i++) {
        begin(tree_xe_card);
        tree_write(&tree, "/sys/devices/pci0000:00/0000:00:05.0/0000:01:00.0/0000:02:00.0/vendor", "0x1b36\n"); /* QEMU's */
        tree_write(&tree, "/sys/devices/pci0000:00/0000:00:05.0/vendor", "0x8086\n"); /* a port of the machine */
        move_card(places[i]);
        look();
        CU_ASSERT_FALSE(probe_known(&probe, METRIC_PCIE_SPEED));
        CU_ASSERT_FALSE(probe_known(&probe, METRIC_PCIE_WIDTH));
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2400);
        end();
    }
    begin(tree_xe_card); /* another answer is one */
    move_card(places[0]);
    tree_write(&tree, "/sys/devices/pci0000:00/0000:03:00.0/current_link_width", "4\n");
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_WIDTH), 4);
    end();
    begin(tree_xe_card); /* and so is that one, of the bridge */
    tree_write(&tree, XE_BRIDGE "/current_link_speed", "2.5 GT/s PCIe\n");
    tree_write(&tree, XE_BRIDGE "/current_link_width", "1\n");
    look();
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_PCIE_SPEED), 2.5);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_WIDTH), 1);
    end();
}

/* --- sleep ------------------------------------------------------------------------------------------------------------ */

/* T7: nothing of a sleeping card is opened, and no request is made. */
static void sleeping_card_is_not_woken(void)
{
    static const char *const waking[] = {"hwmon", "freq", "throttle", "gtidle", "rc6", "renderD", "/gt"};
    void (*makers[])(const struct tree *) = {tree_xe_card, tree_i915_card};
    for (size_t i = 0; i < 2; i++) {
        begin(makers[i]);
        tree_write(&tree, XE_CARD "/power/runtime_status", "suspended\n");
        look();
        again(1000);
        (void)probe_discover(&probe);
        CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_TOTAL), REASON_ASLEEP);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_POWER_NOW), REASON_ASLEEP);
        for (size_t j = 0; j < sizeof waking / sizeof waking[0]; j++)
            CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, waking[j]), 0);
        CU_ASSERT_EQUAL(probe.fault.ioctls, 0);
        CU_ASSERT_STRING_NOT_EQUAL(probe.devices[0].arch, ""); /* it is known all the same */
        tree_write(&tree, XE_CARD "/power/runtime_status", "active\n");
        again(1000);
        CU_ASSERT_EQUAL(probe.sample.state, DEVICE_SETTLING);
        CU_ASSERT_TRUE(probe_known(&probe, METRIC_GFX_CLOCK));
        end();
    }
}

/* Kept files are not read either once it has fallen asleep. */
static void card_that_falls_asleep_is_let_be(void)
{
    begin(tree_xe_card);
    look();
    tree_write(&tree, XE_CARD "/power/runtime_status", "suspended\n");
    fault_io_clear_trace(&probe.fault);
    struct fault_rule *rules[] = {fault_io_rule(&probe.fault, "hwmon", EBUSY), fault_io_rule(&probe.fault, "tile0", EBUSY)};
    again(100);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    CU_ASSERT_EQUAL(rules[0]->count + rules[1]->count, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_TEMPERATURE_EDGE), REASON_ASLEEP);
    end();
}

/* Samples every 100 ms for 14 s, while the GT for graphics rests for so many of each second's milliseconds; true if it was ever
 * let go. */
static bool is_let_go(unsigned rest_ms)
{
    char text[32];
    bool let = false;
    for (unsigned second = 1; second <= 14; second++) {
        (void)snprintf(text, sizeof text, "%u\n", 848095 + second * rest_ms);
        tree_write(&tree, XE_GT0 "/gtidle/idle_residency_ms", text);
        (void)snprintf(text, sizeof text, "%u\n", 1277960 + second * 1000);
        tree_write(&tree, XE_GT1 "/gtidle/idle_residency_ms", text);
        for (int i = 0; i < 10; i++) {
            again(100);
            let = let || probe_reason(&probe, METRIC_GFX_CLOCK) == REASON_LETTING_SLEEP;
        }
    }
    return let;
}

static void idle_card_is_let_go_and_a_working_one_is_not(void)
{
    begin(tree_xe_card);
    look();
    CU_ASSERT_FALSE(is_let_go(400)); /* at work more than half of the time */
    end();
    begin(tree_xe_card);
    look();
    CU_ASSERT_TRUE(is_let_go(990)); /* a few looks at it keep it from resting all the time */
    end();
}

/* --- coming and going ------------------------------------------------------------------------------------------------- */

static void change_of_driver_is_a_new_device(void)
{
    begin(tree_i915_card);
    look();
    CU_ASSERT_EQUAL(probe.devices[0].generation, 1);
    tree_delete(&tree, "/sys/class/drm/card1");
    tree_delete(&tree, "/sys/bus/pci/devices/0000:03:00.0");
    tree_delete(&tree, XE_CARD);
    again(100);
    CU_ASSERT_EQUAL(probe.result, -ENODEV);
    CU_ASSERT_EQUAL(probe_discover(&probe), 0);
    tree_xe_card(&tree);
    CU_ASSERT_EQUAL(probe_discover(&probe), 1);
    CU_ASSERT_STRING_EQUAL(probe.devices[0].driver, "xe");
    CU_ASSERT_EQUAL(probe.devices[0].generation, 2);
    again(100);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2400);
    end();
}

static void families_are_known(void)
{
    static const struct {
        const char *id, *arch;
        uint32_t pool;
    } cases[] = {
        {"0x56a0\n", "xe-hpg", POOL_DISCRETE}, {"0xe20b\n", "xe2-hpg", POOL_DISCRETE},    {"0x64a0\n", "xe2-lpg", POOL_UNIFIED},
        {"0x7d55\n", "xe-lpg", POOL_UNIFIED},  {"0x7d51\n", "xe-lpg-plus", POOL_UNIFIED}, {"0xb080\n", "xe3-lpg", POOL_UNIFIED},
        {"0x46a6\n", "xe-lp", POOL_UNIFIED},   {"0x4905\n", "xe-lp", POOL_DISCRETE},      {"0x0bd5\n", "xe-hpc", POOL_DISCRETE},
        {"0x9b41\n", "gen9", POOL_UNIFIED},    {"0x8a52\n", "gen11", POOL_UNIFIED},       {"0x0042\n", "", POOL_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(tree_xe_card);
        tree_write(&tree, XE_CARD "/device", cases[i].id);
        tree_write(&tree, XE_CARD "/uevent", "DRIVER=xe\n");
        look();
        CU_ASSERT_STRING_EQUAL(probe.devices[0].arch, cases[i].arch);
        CU_ASSERT_EQUAL(probe.devices[0].pool, cases[i].pool);
        end();
    }
    begin(integrated_i915); /* an unknown number in the place of a processor's graphics */
    tree_write(&tree, INTEGRATED "/device", "0x0042\n");
    look();
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_UNIFIED);
    end();
}

TESTS({"xe_card_is_read", xe_card_is_read}, {"i915_card_is_read", i915_card_is_read},
      {"integrated_graphics_are_read", integrated_graphics_are_read}, {"other_cards_are_left_alone", other_cards_are_left_alone},
      {"drm_only_describes_it", drm_only_describes_it},
      {"power_is_that_of_the_energy_counter", power_is_that_of_the_energy_counter},
      {"counter_that_stays_at_zero_gives_way_to_the_chips", counter_that_stays_at_zero_gives_way_to_the_chips},
      {"critical_power_is_no_limit", critical_power_is_no_limit}, {"rated_power_of_zero_is_none", rated_power_of_zero_is_none},
      {"voltage_of_the_chip_is_found_by_label", voltage_of_the_chip_is_found_by_label},
      {"requested_clock_is_no_clock", requested_clock_is_no_clock},
      {"parked_gt_has_a_clock_of_zero", parked_gt_has_a_clock_of_zero}, {"fastest_tile_counts", fastest_tile_counts},
      {"second_gt_of_i915_is_the_media_one", second_gt_of_i915_is_the_media_one},
      {"files_are_found_again_when_the_card_is_renumbered", files_are_found_again_when_the_card_is_renumbered},
      {"throttle_reasons_are_told", throttle_reasons_are_told}, {"list_of_reasons_is_preferred", list_of_reasons_is_preferred},
      {"link_inside_the_card_is_not_the_cards", link_inside_the_card_is_not_the_cards},
      {"sleeping_card_is_not_woken", sleeping_card_is_not_woken},
      {"card_that_falls_asleep_is_let_be", card_that_falls_asleep_is_let_be},
      {"idle_card_is_let_go_and_a_working_one_is_not", idle_card_is_let_go_and_a_working_one_is_not},
      {"change_of_driver_is_a_new_device", change_of_driver_is_a_new_device}, {"families_are_known", families_are_known})
