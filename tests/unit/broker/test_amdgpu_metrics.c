/* The firmware's table in amdgpu's samples: what it fills, what it must not touch, and what is not believed. The card and its files
 * are those of tree_amd_card. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe.h"
#include "table_bytes.h"
#include "tests/unit/check.h"
#include "tree.h"

static struct tree tree;
static struct probe probe;
static unsigned char table[GM_MOST_BYTES];

static void begin(void)
{
    tree_make(&tree);
    tree_amd_card(&tree);
}

static void start(void)
{
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "amdgpu", tree.root), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, 1);
}

static void end(void)
{
    probe_stop(&probe);
    CU_ASSERT_EQUAL(fault_io_open_now(&probe.fault), 0);
    tree_remove(&tree);
}

static void write_table(size_t size) { tree_write_bytes(&tree, CARD "/gpu_metrics", table, size); }

static void write_hex(const char *hex)
{
    memset(table, 0, sizeof table);
    write_table(table_bytes(hex, table, sizeof table));
}

static void without(const char *const *files, size_t count)
{
    char path[512];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, CARD "/%s", files[i]);
        tree_delete(&tree, path);
    }
}
#define WITHOUT(...)                                                                                                               \
    do {                                                                                                                           \
        static const char *const files[] = {__VA_ARGS__};                                                                          \
        without(files, sizeof files / sizeof files[0]);                                                                            \
    } while (0)

/* MangoHud issue 2131: zeros of a table that was too short took the place of good numbers. */
static void a_table_that_tells_nothing_takes_nothing_away(void)
{
    enum { WHOLE, ALL_ONES, SHORT, STRANGE, EMPTY, UNSUPPORTED, BUSY, CASES };
    struct sample whole = {0};
    for (int i = 0; i < CASES; i++) {
        begin();
        size_t size = table_blank(1, 3, table);
        if (i == STRANGE)
            table[2] = 9;
        if (i > WHOLE)
            write_table(i == SHORT ? size - 1 : i == EMPTY ? 0 : size);
        start();
        if (i == UNSUPPORTED || i == BUSY)
            fault_io_rule(&probe.fault, "/gpu_metrics", i == BUSY ? EBUSY : EOPNOTSUPP); /* BC-250: there, and refused */
        probe_sample(&probe, 0);
        if (i == WHOLE)
            whole = probe.sample;
        CU_ASSERT_EQUAL(memcmp(whole.values, probe.sample.values, sizeof whole.values), 0);
        CU_ASSERT_EQUAL(memcmp(whole.valid, probe.sample.valid, sizeof whole.valid), 0);
        CU_ASSERT_EQUAL(memcmp(whole.reasons, probe.sample.reasons, sizeof whole.reasons), 0);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 42);
        end();
    }
}

/* T4: the files know temperatures, power and clocks; the table loads, energy and throttling. */
static void files_and_table_each_tell_what_they_know_best(void)
{
    begin();
    write_hex(table_navi21);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 51);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_AVERAGE), 182);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2310);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_VOLTAGE_GFX), 912);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 3);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEMORY_BUSY), 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_SOC_CLOCK), 800);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_ENERGY)); /* its unit is not that of Instinct's */
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE_RAW), 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), 0);
    end();
}

static void a_table_that_could_not_be_read_is_not_that_of_before(void)
{
    begin();
    write_hex(table_navi21);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 3);
    fault_io_rule(&probe.fault, "/gpu_metrics", EIO);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 42);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_ENERGY));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_THROTTLE));
    end();
}

static void the_table_alone_will_do(void)
{
    begin();
    tree_delete(&tree, CARD "/hwmon");
    WITHOUT("gpu_busy_percent", "mem_busy_percent", "vcn_busy_percent", "pp_dpm_sclk", "pp_dpm_mclk", "pp_dpm_socclk",
            "pp_dpm_vclk", "pp_dpm_pcie");
    write_hex(table_navi21);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 56);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_JUNCTION), 59);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_MEMORY), 54);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_AVERAGE), 36);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_NOW));
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 500);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEMORY_CLOCK), 1000);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_VOLTAGE_GFX), 775);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_FAN_RPM), 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_PCIE_SPEED), 16);
    end();
}

/* T2, on a kernel without the other files. */
static void averages_stand_for_clocks_that_nobody_tells_and_are_flagged(void)
{
    begin();
    WITHOUT("hwmon/hwmon7/freq1_input", "hwmon/hwmon7/freq2_input", "pp_dpm_sclk", "pp_dpm_mclk", "pp_dpm_socclk", "pp_dpm_vclk");
    write_hex(table_phoenix);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 0.79, 1e-9);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 800);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEMORY_CLOCK), 400);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_SOC_CLOCK), 400);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEDIA_CLOCK), 800);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), QUALITY_ESTIMATED);
    end();
}

/* CPU-X issue 301: a sensor that reads 0 MHz most of the time. */
static void a_stopped_clock_of_a_busy_card_gives_way_to_the_average(void)
{
    begin();
    tree_write(&tree, CARD "/hwmon/hwmon7/freq1_input", "0\n");
    (void)table_blank(1, 3, table);
    table_set(table, GM_GFX_BUSY, 80);
    table_set(table, GM_GFX_CLOCK_AVERAGE, 2255);
    write_table(120);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2255);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), QUALITY_IMPLAUSIBLE | QUALITY_ESTIMATED);
    end();
}

/* T6: the endpoint says 32 GT/s, the table and pp_dpm_pcie 16; the table tells the width of now. */
static void the_link_of_the_table_beats_the_files(void)
{
    begin();
    (void)table_blank(1, 3, table);
    table_set(table, GM_LINK_WIDTH, 8);
    table_set(table, GM_LINK_SPEED, 160);
    write_table(120);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_PCIE_SPEED), 16);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_WIDTH), 8);
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "current_link"), 0);
    table_set(table, GM_LINK_SPEED, 4); /* a generation, no rate: the files are asked */
    write_table(120);
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_PCIE_SPEED), 16);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_WIDTH), 16);
    end();
}

/* T19: an APU whose power1_input is in other units. */
static void implausibly_small_power_gives_way_to_that_of_the_socket(void)
{
    begin();
    tree_write(&tree, CARD "/device", "0x13c0\n");
    tree_write(&tree, CARD "/hwmon/hwmon7/power1_input", "7000\n");
    (void)table_blank(2, 1, table);
    table_set(table, GM_POWER_AVERAGE, 28500);
    write_table(120);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 28.5, 1e-9);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_AVERAGE), 182); /* the file's own */
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), QUALITY_IMPLAUSIBLE | QUALITY_ESTIMATED);
    end();
}

static void energy_never_goes_back(void)
{
    static const struct {
        uint64_t count;
        double joules;
    } steps[] = {{65536 * 1000, 1000},
                 {65536 * 1100, 1100},
                 {65536 * 10, 1100},
                 {65536 * 60, 1150},
                 {0, NAN},
                 {65536 * 160, 1250},
                 {65536 * UINT64_C(1) << 40, 1250}};
    begin();
    size_t size = table_blank(1, 2, table);
    start();
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        table_set(table, GM_ENERGY, steps[i].count);
        write_table(size);
        probe_forward_ms(&probe, 1000);
        probe_sample(&probe, 0);
        if (isnan(steps[i].joules))
            CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_ENERGY), REASON_NOT_SUPPORTED)
        else
            CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_ENERGY), steps[i].joules, 1e-9);
    }
    end();
}

/* --- throttling ------------------------------------------------------------------------------------------------------------ */

static void throttle_bits_are_told_in_groups(void)
{
    static const struct {
        uint64_t bits;
        const char *hotspot;
        uint64_t means;
    } cases[] = {{UINT64_C(1) << 36, "54000\n", 0}, /* T5 */
                 {UINT64_C(1) << 36 | 1, "54000\n", THROTTLE_POWER},
                 {UINT64_C(1) << 36, "105000\n", THROTTLE_THERMAL},
                 {UINT64_C(1) << 36 | UINT64_C(1) << 34, "54000\n", THROTTLE_THERMAL},
                 {1 << 5, "54000\n", THROTTLE_POWER},
                 {1 << 16, "54000\n", THROTTLE_CURRENT},
                 {UINT64_C(1) << 45, "54000\n", THROTTLE_THERMAL},
                 {UINT64_C(1) << 46, "54000\n", THROTTLE_HARDWARE},
                 {UINT64_C(3) << 56, "54000\n", THROTTLE_OTHER}};
    begin();
    (void)table_blank(1, 3, table);
    start();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tree_write(&tree, CARD "/hwmon/hwmon7/temp2_input", cases[i].hotspot);
        table_set(table, GM_THROTTLE, cases[i].bits);
        write_table(120);
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), cases[i].means);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE_RAW), cases[i].bits);
    }
    end();
}

static void bits_of_one_asic_say_that_but_not_why(void)
{
    begin();
    (void)table_blank(1, 1, table);
    table_set(table, GM_THROTTLE_ASIC, 0);
    write_table(96);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), 0);
    table_set(table, GM_THROTTLE_ASIC, 0x42);
    write_table(96);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), THROTTLE_OTHER);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE_RAW), 0x42);
    end();
}

/* 1.6 and later, and 3.0: only what a counter has moved by since the last look counts. */
static void counters_tell_throttling_between_two_looks(void)
{
    static const struct {
        int by;
        uint64_t means;
    } cases[] = {{GM_BY_PROCHOT, THROTTLE_HARDWARE},  {GM_BY_POWER, THROTTLE_POWER},      {GM_BY_FAST_POWER, THROTTLE_POWER},
                 {GM_BY_SLOW_POWER, THROTTLE_POWER},  {GM_BY_CPU_HEAT, THROTTLE_THERMAL}, {GM_BY_HEAT, THROTTLE_THERMAL},
                 {GM_BY_OTHER_HEAT, THROTTLE_THERMAL}};
    begin();
    write_hex(table_strix);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_THROTTLE), REASON_NOT_SAMPLED);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        table_set(table, (enum gpu_metrics_field)(GM_THROTTLE_TIMES + cases[i].by), 100000);
        write_table(264);
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), cases[i].means);
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), 0);
    }
    table_set(table, GM_THROTTLE_TIMES + GM_BY_POWER, 7); /* reset: no throttling */
    write_table(264);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_THROTTLE), 0);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_THROTTLE_RAW));
    end();
}

/* --- load ------------------------------------------------------------------------------------------------------------------ */

static void cards_whose_load_is_stuck_have_none(void)
{
    begin();
    tree_write(&tree, CARD "/device", "0x15d8\n");
    tree_write(&tree, CARD "/gpu_busy_percent", "100\n");
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2310);
    end();
}

static void full_load_at_a_tenth_of_the_power_is_doubted(void)
{
    begin();
    tree_write(&tree, CARD "/gpu_busy_percent", "100\n");
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 100);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), 0);
    tree_write(&tree, CARD "/hwmon/hwmon7/power1_input", "12000000\n"); /* of 303 W */
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 100);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), QUALITY_INCONSISTENT);
    tree_write(&tree, CARD "/hwmon/hwmon7/freq1_input", "0\n"); /* and its clock stands: it is idle */
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_IMPLAUSIBLE);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), QUALITY_INCONSISTENT | QUALITY_IMPLAUSIBLE);
    end();
}

static void an_old_firmware_of_strix_is_asked_for(void)
{
    begin();
    write_hex(table_strix);
    tree_write(&tree, CARD "/fw_version/smc_fw_version", "0x005d4600\n");
    start();
    fault_io_rule(&probe.fault, "smc_fw_version", EBUSY)->last = 1;
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 3); /* not known yet */
    probe_sample(&probe, 0);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 0.03, 1e-9);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "smc_fw_version"), 2); /* and then never again */
    end();
}

/* MI300X in two partitions. */
static void a_partitioned_card_is_as_busy_as_its_parts(void)
{
    begin();
    tree_delete(&tree, CARD "/hwmon");
    tree_delete(&tree, CARD "/pcie_replay_count");
    size_t size = table_blank(1, 6, table);
    table_set(table, GM_GFX_BUSY, 13);
    table_set(table, GM_POWER_NOW, 412);
    table_set(table, GM_REPLAYS, 5);
    table_put(table, 306, 2, 2);
    for (size_t i = 0; i < 4; i++) {
        table_put(table, 312 + 4 * i, 100, 4);
        table_put(table, 312 + 168 + 4 * i, 50, 4);
    }
    write_table(size);
    start();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 75);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 412);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_REPLAYS), 5);
    end();
}

/* The firmware makes the table anew for every read of the file. */
static void the_table_is_read_once_a_sample(void)
{
    begin();
    write_hex(table_navi21);
    start();
    struct fault_rule *rule = fault_io_rule(&probe.fault, "/gpu_metrics", 0);
    for (int i = 1; i <= 3; i++) {
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(rule->count, i);
    }
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "/gpu_metrics"), 1);
    rule->short_read = 7; /* piece by piece it is the same */
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(rule->count, 3 + 18);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 3);
    rule->short_read = 0;
    rule->pad = true;
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 3);
    end();
}

TESTS({"a_table_that_tells_nothing_takes_nothing_away", a_table_that_tells_nothing_takes_nothing_away},
      {"files_and_table_each_tell_what_they_know_best", files_and_table_each_tell_what_they_know_best},
      {"a_table_that_could_not_be_read_is_not_that_of_before", a_table_that_could_not_be_read_is_not_that_of_before},
      {"the_table_alone_will_do", the_table_alone_will_do},
      {"averages_stand_for_clocks_that_nobody_tells_and_are_flagged", averages_stand_for_clocks_that_nobody_tells_and_are_flagged},
      {"a_stopped_clock_of_a_busy_card_gives_way_to_the_average", a_stopped_clock_of_a_busy_card_gives_way_to_the_average},
      {"the_link_of_the_table_beats_the_files", the_link_of_the_table_beats_the_files},
      {"implausibly_small_power_gives_way_to_that_of_the_socket", implausibly_small_power_gives_way_to_that_of_the_socket},
      {"energy_never_goes_back", energy_never_goes_back}, {"throttle_bits_are_told_in_groups", throttle_bits_are_told_in_groups},
      {"bits_of_one_asic_say_that_but_not_why", bits_of_one_asic_say_that_but_not_why},
      {"counters_tell_throttling_between_two_looks", counters_tell_throttling_between_two_looks},
      {"cards_whose_load_is_stuck_have_none", cards_whose_load_is_stuck_have_none},
      {"full_load_at_a_tenth_of_the_power_is_doubted", full_load_at_a_tenth_of_the_power_is_doubted},
      {"an_old_firmware_of_strix_is_asked_for", an_old_firmware_of_strix_is_asked_for},
      {"a_partitioned_card_is_as_busy_as_its_parts", a_partitioned_card_is_as_busy_as_its_parts},
      {"the_table_is_read_once_a_sample", the_table_is_read_once_a_sample})
