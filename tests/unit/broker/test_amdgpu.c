/* amdgpu on a card made of files: every field, every way in which a file can fail, and letting the card sleep. */
#include <errno.h>
#include <math.h>

#include "probe.h"
#include "tests/unit/check.h"
#include "tree.h"

static struct tree tree;
static struct probe probe;

static void begin(void)
{
    tree_make(&tree);
    tree_amd_card(&tree);
}

static void run(void)
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

static void expect_whole_card(void)
{
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), UINT64_C(25753026560));
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 1073741824);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_TOTAL), UINT64_C(25753026560));
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_TOTAL), UINT64_C(33554432000));
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), 67108864);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 42);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEMORY_BUSY), 17);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEDIA_BUSY), 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2310);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEMORY_CLOCK), 1249);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_SOC_CLOCK), 1200);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEDIA_CLOCK), 1500);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 51);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_JUNCTION), 66);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_MEMORY), 70);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 190);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_AVERAGE), 182);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_CAP), 303);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_FAN_RPM), 1210);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_FAN_PERCENT), 40);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_VOLTAGE_GFX), 912);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_PCIE_SPEED), 16); /* T6: not the 32 of current_link_speed */
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_WIDTH), 16);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_REPLAYS), 3);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_OK);
}

static void a_whole_card_is_read(void)
{
    begin();
    run();
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "0000:03:00.0");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].pci, "0000:03:00.0");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].vendor, "amd");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].driver, "amdgpu");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].uuid, "a1b2c3d4e5f60718");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].name, "AMD Radeon RX 7900 XTX"); /* by its revision */
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_DISCRETE);
    CU_ASSERT_EQUAL(probe.devices[0].generation, 1);
    CU_ASSERT_EQUAL(probe.devices[0].subvendor_id, 0x1eae);
    CU_ASSERT_EQUAL(probe.devices[0].revision, 0xc8);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.result, 0);
    expect_whole_card();
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_UNIFIED_TOTAL));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_ENERGY));
    CU_ASSERT_EQUAL(probe_discover(&probe), 1); /* what only an awake card tells */
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_GFX_CLOCK_MAX], 2482);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_MEMORY_CLOCK_MAX], 1249);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_EDGE_CRITICAL], 100);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_JUNCTION_CRITICAL], 110);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_MEMORY_CRITICAL], 108);
    CU_ASSERT_EQUAL(probe.devices[0].tgp, 327);
    CU_ASSERT_EQUAL(probe_discover(&probe), -EAGAIN);
    end();
}

static void names_come_from_the_tables_of_this_machine(void)
{
    begin();
    tree_write(&tree, CARD "/revision", "0x01\n"); /* none that our own table tells apart */
    tree_write(&tree, "/usr/share/misc/pci.ids",
               "# comment\n1001  Other\n\t744c  Wrong\n1002  Advanced Micro Devices\n\t73bf  Navi 21 [Radeon RX 6900 XT]\n"
               "\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]\n\t\t1eae 7901  Sub\n10de  NVIDIA\n\t744c  Wrong too\n");
    run();
    CU_ASSERT_STRING_EQUAL(probe.devices[0].name, "AMD Radeon RX 7900 XT/7900 XTX");
    probe_stop(&probe);
    tree_write(&tree, CARD "/product_name", "Radeon Pro of the board\n");
    run();
    CU_ASSERT_STRING_EQUAL(probe.devices[0].name, "Radeon Pro of the board");
    probe_stop(&probe);
    tree_write(&tree, "/usr/share/libdrm/amdgpu.ids",
               "# List\n1.0.0\n744C,\tC0,\tWrong revision\n744C,\t01,\tAMD Radeon RX 7900 XTX\n744C,\tCC,\tWrong\n");
    run();
    CU_ASSERT_STRING_EQUAL(probe.devices[0].name, "AMD Radeon RX 7900 XTX");
    end();
}

/* Each field alone fails, in each way; all the others stay. */
static void every_bad_file_costs_its_own_field_only(void)
{
    static const struct {
        const char *file;
        int metric;
    } fields[] = {{"mem_info_vram_total", METRIC_VRAM_TOTAL},
                  {"mem_info_vram_used", METRIC_VRAM_USED},
                  {"mem_info_gtt_used", METRIC_GTT_USED},
                  {"gpu_busy_percent", METRIC_GFX_BUSY},
                  {"mem_busy_percent", METRIC_MEMORY_BUSY},
                  {"vcn_busy_percent", METRIC_MEDIA_BUSY},
                  {"hwmon7/temp1_input", METRIC_TEMPERATURE_EDGE},
                  {"hwmon7/temp3_input", METRIC_TEMPERATURE_MEMORY},
                  {"hwmon7/power1_input", METRIC_POWER_NOW},
                  {"hwmon7/power1_average", METRIC_POWER_AVERAGE},
                  {"hwmon7/power1_cap", METRIC_POWER_CAP},
                  {"hwmon7/fan1_input", METRIC_FAN_RPM},
                  {"hwmon7/pwm1", METRIC_FAN_PERCENT},
                  {"hwmon7/in0_input", METRIC_VOLTAGE_GFX},
                  {"pp_dpm_socclk", METRIC_SOC_CLOCK},
                  {"pcie_replay_count", METRIC_PCIE_REPLAYS}};
    static const struct {
        int error;
        unsigned reason;
    } errors[] = {{EBUSY, REASON_ERROR},
                  {EPERM, REASON_ERROR},
                  {EINVAL, REASON_NOT_SUPPORTED},
                  {ENODATA, REASON_NOT_SUPPORTED},
                  {EACCES, REASON_NO_PERMISSION},
                  {EOPNOTSUPP, REASON_NOT_SUPPORTED},
                  {EIO, REASON_ERROR}};
    begin();
    run();
    probe_sample(&probe, 0);
    int all = __builtin_popcountll(probe.sample.valid[0]);
    CU_ASSERT_EQUAL(all, 26);
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
        for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
            fault_io_clear_rules(&probe.fault);
            fault_io_rule(&probe.fault, fields[f].file, errors[e].error);
            probe_forward_ms(&probe, 1000);
            probe_sample(&probe, 0);
            CU_ASSERT_EQUAL(probe.result, 0);
            CU_ASSERT_EQUAL(probe_reason(&probe, fields[f].metric), errors[e].reason);
            CU_ASSERT_EQUAL(__builtin_popcountll(probe.sample.valid[0]), all - 1);
        }
    fault_io_clear_rules(&probe.fault);
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    expect_whole_card();
    end();
}

static void empty_missing_and_garbled_files_are_unknown(void)
{
    begin();
    tree_write(&tree, CARD "/gpu_busy_percent", "");
    tree_write(&tree, CARD "/mem_busy_percent", "n/a\n");
    tree_delete(&tree, CARD "/vcn_busy_percent");
    tree_delete(&tree, CARD "/hwmon/hwmon7/temp2_input");
    tree_write(&tree, CARD "/pp_dpm_socclk", "\n");
    run();
    for (int i = 0; i < 3; i++) {
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_NOT_SUPPORTED);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_MEMORY_BUSY), REASON_ERROR);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_MEDIA_BUSY), REASON_NOT_SUPPORTED);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_TEMPERATURE_JUNCTION), REASON_NOT_SUPPORTED);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_SOC_CLOCK), REASON_NOT_SUPPORTED);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 51);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 190);
        probe_forward_ms(&probe, 100);
    }
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "vcn_busy_percent"), 1); /* not asked for again */
    end();
}

static void padded_and_short_reads_change_nothing(void)
{
    begin();
    run();
    fault_io_rule(&probe.fault, CARD, 0)->pad = true;
    probe_sample(&probe, 0);
    expect_whole_card();
    fault_io_clear_rules(&probe.fault);
    fault_io_rule(&probe.fault, CARD, 0)->short_read = 2;
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    expect_whole_card();
    end();
}

static void implausible_values_are_dropped_and_flagged(void)
{
    static const struct {
        const char *file, *text;
        int metric;
    } cases[] = {
        {"gpu_busy_percent", "101\n", METRIC_GFX_BUSY},
        {"mem_info_vram_used", "25753026561\n", METRIC_VRAM_USED},
        {"mem_info_gtt_used", "18446744073709551615\n", METRIC_GTT_USED},
        {"hwmon/hwmon7/temp1_input", "511000\n", METRIC_TEMPERATURE_EDGE},
        {"hwmon/hwmon7/temp2_input", "-41000\n", METRIC_TEMPERATURE_JUNCTION},
        {"hwmon/hwmon7/power1_input", "606000001\n", METRIC_POWER_NOW},
        {"hwmon/hwmon7/power1_average", "7000\n", METRIC_POWER_AVERAGE}, /* T19 */
        {"hwmon/hwmon7/freq1_input", "65535000000\n", METRIC_GFX_CLOCK},
        {"hwmon/hwmon7/freq2_input", "0\n", METRIC_MEMORY_CLOCK}, /* while the card is busy */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[512];
        begin();
        (void)snprintf(path, sizeof path, CARD "/%s", cases[i].file);
        tree_write(&tree, path, cases[i].text);
        run();
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_reason(&probe, cases[i].metric), REASON_IMPLAUSIBLE);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), QUALITY_IMPLAUSIBLE);
        end();
    }
}

static void zero_says_none_where_the_driver_means_none(void)
{
    begin();
    tree_write(&tree, CARD "/hwmon/hwmon7/in0_input", "0\n");
    tree_write(&tree, CARD "/hwmon/hwmon7/power1_cap", "0\n");
    tree_write(&tree, CARD "/gpu_busy_percent", "0\n");
    tree_write(&tree, CARD "/hwmon/hwmon7/freq1_input", "0\n");
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VOLTAGE_GFX), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_POWER_CAP), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 0); /* parked, and idle */
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), 0);
    end();
}

static void clocks_fall_back_on_the_dpm_tables(void)
{
    begin();
    tree_delete(&tree, CARD "/hwmon/hwmon7/freq1_input");
    tree_delete(&tree, CARD "/hwmon/hwmon7/freq2_input");
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2304);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEMORY_CLOCK), 1249);
    tree_write(&tree, CARD "/pp_dpm_sclk", "0: 500Mhz \n1: 0Mhz *\n");
    probe_sample(&probe, 0);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_GFX_CLOCK)); /* 0 MHz at 42 % busy */
    tree_write(&tree, CARD "/pp_dpm_sclk", "0: 500Mhz \n1: 2304Mhz \n");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_CLOCK), REASON_NOT_SUPPORTED);
    end();
}

/* T9, in as far as power is concerned: older kernels have the average only, newer ones the present value only. */
static void either_power_file_alone_will_do(void)
{
    begin();
    tree_delete(&tree, CARD "/hwmon/hwmon7/power1_average");
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 190);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_POWER_AVERAGE), REASON_NOT_SUPPORTED);
    end();
    begin();
    tree_delete(&tree, CARD "/hwmon/hwmon7/power1_input");
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_AVERAGE), 182);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_POWER_NOW), REASON_NOT_SUPPORTED);
    end();
}

static void the_link_is_that_of_the_outermost_bridge_of_the_card(void)
{
    begin();
    tree_delete(&tree, CARD "/pp_dpm_pcie");
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_PCIE_SPEED), 8);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_WIDTH), 4);
    end();
    /* A switch of another maker above the card's own bridge is the machine's. */
    begin();
    tree_delete(&tree, CARD "/pp_dpm_pcie");
    tree_write(&tree, BRIDGE "/vendor", "0x10b5\n");
    tree_write(&tree, BRIDGE "/0000:02:00.0/current_link_speed", "5.0 GT/s PCIe\n");
    tree_write(&tree, BRIDGE "/0000:02:00.0/current_link_width", "2\n");
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_PCIE_SPEED), 5);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_WIDTH), 2);
    end();
}

static void replays_never_go_back(void)
{
    begin();
    run();
    probe_sample(&probe, 0);
    tree_write(&tree, CARD "/pcie_replay_count", "1\n"); /* reset */
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_REPLAYS), 4);
    tree_write(&tree, CARD "/pcie_replay_count", "18446744073709551615\n"); /* no count, and nothing to add up */
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_PCIE_REPLAYS));
    tree_write(&tree, CARD "/pcie_replay_count", "2\n");
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_PCIE_REPLAYS), 5);
    end();
}

static void labels_that_could_not_be_read_are_read_later(void)
{
    begin();
    run();
    fault_io_rule(&probe.fault, "temp1_label", EBUSY)->last = 1;
    probe_sample(&probe, 0);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_TEMPERATURE_EDGE));
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_JUNCTION), 66);
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    expect_whole_card();
    end();
}

/* T17 */
static void a_renumbered_hwmon_is_found_again(void)
{
    begin();
    run();
    probe_sample(&probe, 0);
    tree_rename(&tree, CARD "/hwmon/hwmon7", CARD "/hwmon/hwmon9");
    struct fault_rule *rule = fault_io_rule(&probe.fault, "hwmon7/", ENODEV); /* what the kernel says of the old files */
    probe_forward_ms(&probe, 100);
    probe_sample(&probe, 0);
    CU_ASSERT(rule->count > 0);
    expect_whole_card();
    CU_ASSERT(fault_io_opened(&probe.fault, "hwmon9/temp1_input") == 1);
    end();
}

/* T18 */
static void a_device_that_was_away_has_a_new_generation(void)
{
    begin();
    run();
    probe_sample(&probe, 0);
    (void)probe_discover(&probe);
    tree_rename(&tree, "/sys/devices", "/sys/away");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.result, -ENODEV);
    end();
    /* The link of the bus is gone as well, as on a real machine. */
    begin();
    run();
    tree_rename(&tree, "/sys/bus/pci/devices/0000:03:00.0", "/sys/bus/pci/kept");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.result, -ENODEV);
    CU_ASSERT_EQUAL(probe_discover(&probe), 0);
    tree_rename(&tree, "/sys/bus/pci/kept", "/sys/bus/pci/devices/0000:03:00.0");
    tree_rename(&tree, CARD "/drm/card1", CARD "/drm/card4");
    CU_ASSERT_EQUAL(probe_discover(&probe), 1);
    CU_ASSERT_EQUAL(probe.devices[0].generation, 2);
    probe_sample(&probe, 0);
    expect_whole_card();
    end();
}

static void a_device_back_before_the_next_discovery_is_noticed(void)
{
    begin();
    run();
    tree_rename(&tree, "/sys/bus/pci/devices/0000:03:00.0", "/sys/bus/pci/kept");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.result, -ENODEV);
    tree_rename(&tree, "/sys/bus/pci/kept", "/sys/bus/pci/devices/0000:03:00.0");
    CU_ASSERT_EQUAL(probe_discover(&probe), 1);
    CU_ASSERT_EQUAL(probe.devices[0].generation, 2);
    end();
}

/* T12 and the small carve-out. */
static void unified_memory_is_the_carve_out_and_what_may_be_mapped(void)
{
    static const struct {
        const char *vram, *gtt, *memory;
        uint64_t total;
    } cases[] = {{"8589934592\n", "133143986176\n", "MemTotal: 125829120 kB\n", UINT64_C(137438953472)},
                 {"536870912\n", "67076648960\n", "MemTotal: 131072000 kB\n", UINT64_C(67613519872)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        tree_write(&tree, CARD "/mem_info_vram_total", cases[i].vram);
        tree_write(&tree, CARD "/mem_info_vram_used", "148000000\n");
        tree_write(&tree, CARD "/mem_info_gtt_total", cases[i].gtt);
        tree_write(&tree, CARD "/mem_info_gtt_used", "1000000000\n");
        tree_write(&tree, "/proc/meminfo", cases[i].memory);
        tree_write(&tree, "/sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 32\nsimd_count 0\n");
        tree_write(&tree, "/sys/class/kfd/kfd/topology/nodes/1/properties",
                   "cpu_cores_count 0\nsimd_count 80\nsimd_per_cu 2\ngfx_target_version 110501\nlocation_id 768\ndomain 0\n"
                   "drm_render_minor 128\nlocal_mem_size 0\n");
        run();
        CU_ASSERT_STRING_EQUAL(probe.devices[0].arch, "gfx1151");
        CU_ASSERT_EQUAL(probe.devices[0].compute_units, 40);
        CU_ASSERT_EQUAL(probe.devices[0].kfd_index, 0);
        CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_UNIFIED);
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_UNIFIED_TOTAL), cases[i].total);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_UNIFIED_USED), 1148000000);
        end();
    }
}

static void nothing_that_wakes_or_counts_as_compute_is_opened(void)
{
    begin();
    tree_write(&tree, "/dev/kfd", "");
    tree_write(&tree, CARD "/pcie_bw", "1 2 3\n");
    tree_write(&tree, CARD "/gpu_metrics", "x");
    run();
    probe_sample(&probe, 0);
    (void)probe_discover(&probe);
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "/dev/"), 0);
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "pcie_bw"), 0);
    CU_ASSERT_EQUAL(probe.fault.ioctls, 0);
    end();
}

static void only_and_exclude_are_honoured(void)
{
    static const char *const exclude[] = {"0000:03:00.0"};
    begin();
    probe_prepare(&probe, "amdgpu", tree.root);
    probe.context.exclude = exclude;
    probe.context.exclude_count = 1;
    CU_ASSERT_EQUAL(probe_run(&probe), -ENODEV);
    CU_ASSERT(probe.context.message[0] != '\0');
    probe_stop(&probe);
    probe_prepare(&probe, "amdgpu", tree.root);
    probe.context.only = "0000:03:00.0";
    CU_ASSERT_EQUAL(probe_run(&probe), 0);
    CU_ASSERT_EQUAL(probe.count, 1);
    end();
}

static void a_failed_listing_loses_no_card(void)
{
    begin();
    run();
    fault_io_rule(&probe.fault, "/sys/bus/pci/devices|list", EMFILE);
    CU_ASSERT_EQUAL(probe_discover(&probe), -EAGAIN);
    probe_sample(&probe, 0);
    CU_ASSERT_TRUE(probe_known(&probe, METRIC_GFX_BUSY));
    fault_io_clear_rules(&probe.fault);
    (void)probe_discover(&probe); /* may tell facts that the sample taught */
    CU_ASSERT_EQUAL(probe.count, 1);
    probe_sample(&probe, 0);
    CU_ASSERT_TRUE(probe_known(&probe, METRIC_GFX_BUSY));
    end();
}

static void a_wild_limit_lets_no_wild_power_through(void)
{
    begin();
    tree_write(&tree, CARD "/hwmon/hwmon7/power1_crit", "18446744073709551615\n");
    tree_delete(&tree, CARD "/hwmon/hwmon7/power1_cap");
    tree_write(&tree, CARD "/hwmon/hwmon7/power1_input", "9000000000000000000\n");
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_POWER_NOW), REASON_IMPLAUSIBLE);
    end();
}

TESTS({"a_failed_listing_loses_no_card", a_failed_listing_loses_no_card},
      {"a_wild_limit_lets_no_wild_power_through", a_wild_limit_lets_no_wild_power_through},
      {"a_whole_card_is_read", a_whole_card_is_read},
      {"labels_that_could_not_be_read_are_read_later", labels_that_could_not_be_read_are_read_later},
      {"names_come_from_the_tables_of_this_machine", names_come_from_the_tables_of_this_machine},
      {"every_bad_file_costs_its_own_field_only", every_bad_file_costs_its_own_field_only},
      {"empty_missing_and_garbled_files_are_unknown", empty_missing_and_garbled_files_are_unknown},
      {"padded_and_short_reads_change_nothing", padded_and_short_reads_change_nothing},
      {"implausible_values_are_dropped_and_flagged", implausible_values_are_dropped_and_flagged},
      {"zero_says_none_where_the_driver_means_none", zero_says_none_where_the_driver_means_none},
      {"clocks_fall_back_on_the_dpm_tables", clocks_fall_back_on_the_dpm_tables},
      {"either_power_file_alone_will_do", either_power_file_alone_will_do},
      {"the_link_is_that_of_the_outermost_bridge_of_the_card", the_link_is_that_of_the_outermost_bridge_of_the_card},
      {"replays_never_go_back", replays_never_go_back}, {"a_renumbered_hwmon_is_found_again", a_renumbered_hwmon_is_found_again},
      {"a_device_that_was_away_has_a_new_generation", a_device_that_was_away_has_a_new_generation},
      {"a_device_back_before_the_next_discovery_is_noticed", a_device_back_before_the_next_discovery_is_noticed},
      {"unified_memory_is_the_carve_out_and_what_may_be_mapped", unified_memory_is_the_carve_out_and_what_may_be_mapped},
      {"nothing_that_wakes_or_counts_as_compute_is_opened", nothing_that_wakes_or_counts_as_compute_is_opened},
      {"only_and_exclude_are_honoured", only_and_exclude_are_honoured})
