/* hwmon on folders made of files: which rail, which counter, which fan, and what is not believed. */
#include "broker/providers/hwmon.h"

#include <errno.h>
#include <math.h>

#include "fault_io.h"
#include "tests/unit/check.h"
#include "tree.h"

#define DEVICE "/sys/bus/pci/devices/0000:03:00.0"
static struct tree tree;
static struct fault_io fault;
static struct hwmon hwmon;
static struct sample sample;

static void begin(void)
{
    tree_make(&tree);
    fault_io_init(&fault, tree.root);
    hwmon_init(&hwmon, DEVICE);
}

static void end(void)
{
    hwmon_close(&hwmon, &fault.io);
    CU_ASSERT_EQUAL(fault_io_open_now(&fault), 0);
    fault_io_free(&fault);
    tree_remove(&tree);
}

static void file(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, DEVICE "/hwmon/hwmon4/%s", name);
    tree_write(&tree, path, text);
}

static void sample_after_ms(uint64_t ms)
{
    fault.now += ms * 1000000;
    sample_begin(&sample, fault.now);
    hwmon_sample(&hwmon, &fault.io, &sample);
}

static double value(int metric) { return metrics_valid(sample.valid, metric) ? sample.values[metric].f64 : NAN; }
static unsigned reason(int metric) { return sample.reasons[metric]; }

/* The Steam Deck: slowPPT is power1, fastPPT power2. */
static void two_rails_of_an_apu_are_kept_apart(void)
{
    begin();
    file("power1_label", "slowPPT\n");
    file("power1_average", "6012000\n");
    file("power1_input", "6100000\n");
    file("power1_cap", "0\n");
    file("power2_label", "fastPPT\n");
    file("power2_average", "7012000\n");
    sample_after_ms(0);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_POWER_AVERAGE), 6.012, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_POWER_NOW), 6.1, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_POWER_SECOND), 7.012, 1e-9);
    CU_ASSERT_EQUAL(reason(METRIC_POWER_CAP), REASON_NOT_SUPPORTED);
    file("power2_input", "7100000\n");
    hwmon_close(&hwmon, &fault.io);
    sample_after_ms(1000);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_POWER_SECOND), 7.1, 1e-9);
    end();
}

/* xe on a card with both counters; T9. */
static void power_comes_from_the_counter_where_there_is_no_power_file(void)
{
    begin();
    file("power1_label", "card\n");
    file("power1_crit", "380000000\n");
    file("energy1_label", "card\n");
    file("energy1_input", "11031745544\n");
    file("energy2_label", "pkg\n");
    file("energy2_input", "5000000000\n");
    sample_after_ms(0);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_ENERGY), 11031.745544, 1e-9);
    CU_ASSERT_EQUAL(reason(METRIC_POWER_NOW), REASON_NOT_SAMPLED);
    file("energy1_input", "11445745544\n");
    file("energy2_input", "5201000000\n");
    sample_after_ms(2010);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_POWER_NOW), 205.97, 0.005);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_POWER_SECOND), 100, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_ENERGY), 11445.745544, 1e-9);
    CU_ASSERT_EQUAL(reason(METRIC_POWER_CAP), REASON_NOT_SUPPORTED); /* crit is no cap */
    sample_after_ms(5000);
    CU_ASSERT_EQUAL(value(METRIC_POWER_NOW), 0);
    sample_after_ms(5000);
    CU_ASSERT_EQUAL(reason(METRIC_POWER_NOW), REASON_STALE);
    CU_ASSERT_FALSE(metrics_valid(sample.valid, METRIC_QUALITY)); /* no doubt so far */
    file("energy1_input", "4011445745544\n");
    sample_after_ms(1000);
    CU_ASSERT_EQUAL(reason(METRIC_POWER_NOW), REASON_IMPLAUSIBLE);
    CU_ASSERT_EQUAL(sample.values[METRIC_QUALITY].u64, QUALITY_IMPLAUSIBLE);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_ENERGY), 11445.745544, 1e-9);
    end();
}

/* b580 on kernel 6.16: the card's counter stays at zero. */
static void the_chip_counts_where_the_card_does_not(void)
{
    begin();
    file("energy1_label", "card\n");
    file("energy1_input", "0\n");
    file("energy2_label", "pkg\n");
    file("energy2_input", "29523753173\n");
    fault_io_rule(&fault, "energy1_input", EBUSY)->last = 1;
    sample_after_ms(0);
    CU_ASSERT_EQUAL(reason(METRIC_ENERGY), REASON_ERROR); /* not decided yet which it is */
    sample_after_ms(100);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_ENERGY), 29523.753173, 1e-9);
    file("energy2_input", "29573753173\n");
    sample_after_ms(900);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_POWER_NOW), 50, 1e-9);
    CU_ASSERT_EQUAL(reason(METRIC_POWER_SECOND), REASON_NOT_SUPPORTED); /* there is but one that counts */
    /* The card's begins to count: the joules told go on as they were. */
    file("energy1_input", "7000000\n");
    file("energy2_input", "29623753173\n");
    sample_after_ms(1000);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_ENERGY), 29623.753173, 1e-9);
    end();
}

/* a380 with i915: no labels, the limit is power1_max, and power1_rated_max of 0 says nothing. */
static void unlabelled_counters_and_limits_are_found(void)
{
    begin();
    file("energy1_input", "25637161804\n");
    file("power1_max", "55000000\n");
    file("power1_rated_max", "0\n");
    file("fan1_input", "0\n");
    file("fan2_input", "418\n");
    file("fan3_input", "0\n");
    sample_after_ms(0);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_ENERGY), 25637.161804, 1e-9);
    CU_ASSERT_EQUAL(value(METRIC_POWER_CAP), 55);
    CU_ASSERT_EQUAL(value(METRIC_FAN_RPM), 418);
    file("energy1_input", "25747161805\n"); /* more than twice the limit */
    sample_after_ms(900);
    CU_ASSERT_EQUAL(reason(METRIC_POWER_NOW), REASON_IMPLAUSIBLE);
    end();
}

/* Issue 34 of the research: B570 on kernel 6.16. */
static void power_beyond_twice_the_critical_is_dropped(void)
{
    begin();
    file("power1_label", "card\n");
    file("power1_crit", "328000000\n");
    file("power1_input", "3868000000\n");
    sample_after_ms(0);
    CU_ASSERT_EQUAL(reason(METRIC_POWER_NOW), REASON_IMPLAUSIBLE);
    CU_ASSERT_EQUAL(sample.values[METRIC_QUALITY].u64, QUALITY_IMPLAUSIBLE);
    file("power1_input", "656000000\n");
    sample_after_ms(100);
    CU_ASSERT_EQUAL(value(METRIC_POWER_NOW), 656);
    end();
}

static void a_lone_chip_rail_is_the_first(void)
{
    begin();
    file("power1_label", "card\n"); /* a limit's folder without a reading */
    file("power1_max", "190000000\n");
    file("power2_label", "pkg\n");
    file("power2_input", "88000000\n");
    sample_after_ms(0);
    CU_ASSERT_EQUAL(value(METRIC_POWER_NOW), 88);
    CU_ASSERT_EQUAL(value(METRIC_POWER_CAP), 190);
    CU_ASSERT_EQUAL(reason(METRIC_POWER_SECOND), REASON_NOT_SUPPORTED);
    end();
}

/* T17 */
static void counters_go_on_after_a_renumbering(void)
{
    begin();
    file("energy1_label", "card\n");
    file("energy1_input", "11031745544\n");
    sample_after_ms(0);
    tree_rename(&tree, DEVICE "/hwmon/hwmon4", DEVICE "/hwmon/hwmon9");
    (void)fault_io_rule(&fault, "hwmon4/", ENODEV);
    tree_write(&tree, DEVICE "/hwmon/hwmon9/energy1_input", "11081745544\n");
    sample_after_ms(1000);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_POWER_NOW), 50, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_ENERGY), 11081.745544, 1e-9);
    /* It vanishes, and comes back when the driver does. */
    tree_rename(&tree, DEVICE "/hwmon/hwmon9", DEVICE "/away");
    (void)fault_io_rule(&fault, "hwmon9/", ENODEV);
    sample_after_ms(1000);
    CU_ASSERT_EQUAL(reason(METRIC_ENERGY), REASON_NOT_SUPPORTED);
    tree_rename(&tree, DEVICE "/away", DEVICE "/hwmon/hwmon2");
    sample_after_ms(11000);
    CU_ASSERT_DOUBLE_EQUAL(value(METRIC_ENERGY), 11081.745544, 1e-9);
    end();
}

TESTS({"two_rails_of_an_apu_are_kept_apart", two_rails_of_an_apu_are_kept_apart},
      {"power_comes_from_the_counter_where_there_is_no_power_file", power_comes_from_the_counter_where_there_is_no_power_file},
      {"the_chip_counts_where_the_card_does_not", the_chip_counts_where_the_card_does_not},
      {"unlabelled_counters_and_limits_are_found", unlabelled_counters_and_limits_are_found},
      {"power_beyond_twice_the_critical_is_dropped", power_beyond_twice_the_critical_is_dropped},
      {"a_lone_chip_rail_is_the_first", a_lone_chip_rail_is_the_first},
      {"counters_go_on_after_a_renumbering", counters_go_on_after_a_renumbering})
