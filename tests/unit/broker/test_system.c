/* The machine, on a /proc and /sys of the test's own. */
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
    tree_write(&tree, "/proc/stat", "cpu  1000 0 500 8000 500 0 0 0 0 0\ncpu0 1 2 3\n");
    tree_write(
        &tree, "/proc/meminfo",
        "MemTotal:       32768000 kB\nMemFree:         1000000 kB\nMemAvailable:   20000000 kB\nBuffers:  5 kB\nCached: 7 kB\n"
        "SwapCached:            9 kB\nSwapTotal:       8000000 kB\nSwapFree:        6000000 kB\nCommitLimit:    24384000 kB\n"
        "Committed_AS:   15000000 kB\n");
    tree_write(&tree, "/proc/loadavg", "1.25 0.80 0.50 2/345 6789\n");
    tree_write(&tree, "/proc/diskstats",
               "   8       0 sda 10 0 2000 5 10 0 4000 5 0 5 10 0 0 0 0 0 0\n   8       1 sda1 10 0 2000 5 10 0 4000 5 0 5 10\n"
               " 259       0 nvme0n1 1 0 100 1 1 0 200 1 0 1 1\n 253       0 dm-0 9 0 2000 9 9 0 4000 9 0 9 9\n"
               "   7       0 loop0 9 0 999 9 9 0 999 9 0 9 9\n");
    tree_write(
        &tree, "/proc/net/dev",
        "Inter-|   Receive                   |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes\n"
        "    lo: 999999 1 0 0 0 0 0 0 999999 1 0 0 0 0 0 0\n  eth0:1000000 1 0 0 0 0 0 0 500000 1 0 0 0 0 0 0\n");
    tree_write(&tree, "/proc/cpuinfo",
               "processor\t: 0\nmodel name\t: Test CPU @ 3.0GHz\ncpu MHz\t\t: 3000.500\n\nprocessor\t: 1\nmodel name\t: Test CPU @ "
               "3.0GHz\n"
               "cpu MHz\t\t: 2000.500\n");
    tree_write(&tree, "/proc/sys/kernel/hostname", "box\n");
    tree_write(&tree, "/proc/sys/kernel/osrelease", "6.12.1-test\n");
    tree_write(&tree, "/etc/os-release", "NAME=\"X\"\nPRETTY_NAME=\"Test Linux 1 (one)\"\nID=x\n");
    tree_write(&tree, "/sys/devices/system/cpu/online", "0-3,8,10-11\n");
    tree_write(&tree, "/sys/block/sda/size", "1\n");
    tree_write(&tree, "/sys/block/nvme0n1/size", "1\n");
    tree_write(&tree, "/sys/block/dm-0/size", "1\n");
    tree_write(&tree, "/sys/block/loop0/size", "1\n");
}

static void run(void) { CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "system", tree.root), 0); }
static void sample(void) { probe_sample(&probe, PROVIDER_HOST_DEVICE); }
static void end(void)
{
    probe_stop(&probe);
    CU_ASSERT_EQUAL(fault_io_open_now(&probe.fault), 0);
    tree_remove(&tree);
}

static void the_host_is_described(void)
{
    struct layout_host host;
    begin();
    run();
    CU_ASSERT_EQUAL(probe.provider->describe_host(&probe.context, &host), 0);
    CU_ASSERT_STRING_EQUAL(host.hostname, "box");
    CU_ASSERT_STRING_EQUAL(host.cpu_name, "Test CPU @ 3.0GHz");
    CU_ASSERT_STRING_EQUAL(host.kernel, "6.12.1-test");
    CU_ASSERT_STRING_EQUAL(host.os, "Test Linux 1 (one)");
    CU_ASSERT_EQUAL(host.cpu_threads, 7);
    end();
}

static void memory_is_that_of_proc(void)
{
    begin();
    run();
    sample();
    CU_ASSERT_EQUAL(probe_u64(&probe, HOST_METRIC_MEMORY_TOTAL), UINT64_C(32768000) * 1024);
    CU_ASSERT_EQUAL(probe_u64(&probe, HOST_METRIC_MEMORY_AVAILABLE), UINT64_C(20000000) * 1024);
    CU_ASSERT_EQUAL(probe_u64(&probe, HOST_METRIC_MEMORY_USED), UINT64_C(12768000) * 1024);
    CU_ASSERT_EQUAL(probe_u64(&probe, HOST_METRIC_SWAP_TOTAL), UINT64_C(8000000) * 1024);
    CU_ASSERT_EQUAL(probe_u64(&probe, HOST_METRIC_SWAP_USED), UINT64_C(2000000) * 1024);
    CU_ASSERT_EQUAL(probe_u64(&probe, HOST_METRIC_COMMIT_USED), UINT64_C(15000000) * 1024);
    CU_ASSERT_EQUAL(probe_u64(&probe, HOST_METRIC_COMMIT_LIMIT), UINT64_C(24384000) * 1024);
    CU_ASSERT_EQUAL(probe_f64(&probe, HOST_METRIC_LOAD1), 1.25);
    CU_ASSERT(probe_u64(&probe, HOST_METRIC_DISK_USED) <= probe_u64(&probe, HOST_METRIC_DISK_TOTAL));
    tree_write(&tree, "/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 10 kB\nCached: 200 kB\n"); /* before 3.14 */
    sample();
    CU_ASSERT_EQUAL(probe_u64(&probe, HOST_METRIC_MEMORY_USED), 690 * 1024);
    CU_ASSERT_FALSE(probe_known(&probe, HOST_METRIC_SWAP_USED));
    tree_write(&tree, "/proc/meminfo", "garbage\n");
    sample();
    CU_ASSERT_FALSE(probe_known(&probe, HOST_METRIC_MEMORY_TOTAL));
    end();
}

static void cpu_share_is_the_difference_of_two_ticks(void)
{
    begin();
    run();
    sample();
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_CPU_BUSY), REASON_NOT_SAMPLED);
    /* 100 more: 25 user of which 20 for guests, 5 system, 60 idle, 10 waiting. */
    tree_write(&tree, "/proc/stat", "cpu  1025 0 505 8060 510 0 0 0 20 0\n");
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_BUSY), 30, 1e-9);
    tree_write(&tree, "/proc/stat", "cpu  1029 0 505 8064 510 0 0 0 20 0\n"); /* too little to tell: the last share stands */
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_BUSY), 30, 1e-9);
    tree_write(&tree, "/proc/stat", "cpu  1033 0 505 8072 510 0 0 0 20 0\n"); /* with what was left: 8 of 20 */
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_BUSY), 40, 1e-9);
    tree_write(&tree, "/proc/stat", "cpu  1083 0 505 8122 400 0 0 0 20 0\n"); /* iowait went back: 50 of 100 */
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_BUSY), 50, 1e-9);
    tree_write(&tree, "/proc/stat", "cpu  10 0 5 100 4 0 0 0 2 0\n"); /* everything went back, as after a restore */
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_BUSY), 50, 1e-9);
    tree_write(&tree, "/proc/stat", "cpu  30 0 5 180 4 0 0 0 2 0\n");
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_BUSY), 20, 1e-9);
    tree_write(&tree, "/proc/stat", "intr 5\n");
    sample();
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_CPU_BUSY), REASON_ERROR);
    end();
}

static void the_clock_is_a_mean(void)
{
    begin();
    run();
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_CLOCK), 2500.5, 1e-9);
    probe_stop(&probe);
    tree_write(&tree, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1000000\n");
    tree_write(&tree, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "4000000\n");
    tree_write(&tree, "/sys/devices/system/cpu/cpufreq/boost", "1\n");
    tree_write(&tree, "/sys/devices/system/cpu/cpuidle/x", "1\n");
    run();
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_CLOCK), 2500, 1e-9);
    fault_io_rule(&probe.fault, "cpu1/cpufreq", EBUSY); /* off-line */
    probe_forward_ms(&probe, 1000);
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_CLOCK), 1000, 1e-9);
    end();
}

static void many_cpus_are_asked_in_part(void)
{
    begin();
    for (int i = 0; i < 100; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", i);
        tree_write(&tree, path, "2000000\n");
    }
    run();
    sample();
    CU_ASSERT_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_CLOCK), 2000);
    CU_ASSERT(fault_io_opened(&probe.fault, "scaling_cur_freq") <= 32);
    CU_ASSERT(fault_io_opened(&probe.fault, "scaling_cur_freq") >= 20);
    end();
}

static void the_temperature_is_the_best_sensor_there_is(void)
{
    begin();
    tree_write(&tree, "/sys/class/thermal/thermal_zone0/type", "acpitz\n");
    tree_write(&tree, "/sys/class/thermal/thermal_zone0/temp", "1000\n");
    run();
    sample();
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_CPU_TEMPERATURE), REASON_NOT_SUPPORTED);
    tree_write(&tree, "/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
    tree_write(&tree, "/sys/class/thermal/thermal_zone1/temp", "45000\n");
    probe_forward_ms(&probe, 10000); /* drivers may be loaded later */
    sample();
    CU_ASSERT_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_TEMPERATURE), 45);
    probe_stop(&probe);
    tree_write(&tree, "/sys/class/hwmon/hwmon0/name", "nvme\n");
    tree_write(&tree, "/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
    tree_write(&tree, "/sys/class/hwmon/hwmon1/name", "coretemp\n");
    tree_write(&tree, "/sys/class/hwmon/hwmon1/temp1_label", "Package id 0\n");
    tree_write(&tree, "/sys/class/hwmon/hwmon1/temp1_input", "52000\n");
    run();
    sample();
    CU_ASSERT_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_TEMPERATURE), 52);
    probe_stop(&probe);
    tree_write(&tree, "/sys/class/hwmon/hwmon2/name", "k10temp\n");
    tree_write(&tree, "/sys/class/hwmon/hwmon2/temp1_label", "Tctl\n");
    tree_write(&tree, "/sys/class/hwmon/hwmon2/temp1_input", "77000\n");
    tree_write(&tree, "/sys/class/hwmon/hwmon2/temp2_label", "Tdie\n");
    tree_write(&tree, "/sys/class/hwmon/hwmon2/temp2_input", "57000\n");
    run();
    sample();
    CU_ASSERT_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_TEMPERATURE), 57);
    tree_write(&tree, "/sys/class/hwmon/hwmon2/temp2_input", "511000\n");
    sample();
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_CPU_TEMPERATURE), REASON_IMPLAUSIBLE);
    end();
}

static void package_power_is_energy_over_time(void)
{
    begin();
    tree_write(&tree, "/sys/class/powercap/intel-rapl:0/name", "package-0\n");
    tree_write(&tree, "/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
    tree_write(&tree, "/sys/class/powercap/intel-rapl:0/energy_uj", "262140000000\n");
    tree_write(&tree, "/sys/class/powercap/intel-rapl:0:0/name", "core\n");
    tree_write(&tree, "/sys/class/powercap/intel-rapl:0:0/energy_uj", "1\n");
    tree_write(&tree, "/sys/class/powercap/intel-rapl:1/name", "psys\n");
    tree_write(&tree, "/sys/class/powercap/intel-rapl:1/energy_uj", "1\n");
    run();
    sample();
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_CPU_POWER), REASON_NOT_SAMPLED);
    tree_write(&tree, "/sys/class/powercap/intel-rapl:0/energy_uj", "262143000000\n");
    probe_forward_ms(&probe, 100);
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_POWER), 30, 1e-6);
    tree_write(&tree, "/sys/class/powercap/intel-rapl:0/energy_uj", "1671150\n"); /* past its range: 328850 + 1671150 */
    probe_forward_ms(&probe, 100);
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_CPU_POWER), 20, 1e-6);
    fault_io_rule(&probe.fault, "energy_uj", EACCES);
    probe_forward_ms(&probe, 100);
    sample();
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_CPU_POWER), REASON_NO_PERMISSION);
    end();
}

static void disks_count_once_and_partitions_and_layers_not_at_all(void)
{
    begin();
    run();
    sample();
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_DISK_READ), REASON_NOT_SAMPLED);
    tree_write(&tree, "/proc/diskstats",
               "   8       0 sda 10 0 3000 5 10 0 4500 5 0 5 10 0 0 0 0 0 0\n   8       1 sda1 10 0 3000 5 10 0 4500 5 0 5 10\n"
               " 259       0 nvme0n1 1 0 100 1 1 0 700 1 0 1 1\n 253       0 dm-0 9 0 3000 9 9 0 4500 9 0 9 9\n"
               "   7       0 loop0 9 0 99999 9 9 0 99999 9 0 9 9\n");
    probe_forward_ms(&probe, 500);
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_DISK_READ), 1000 * 512 / 0.5, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_DISK_WRITE), 1000 * 512 / 0.5, 1e-6);
    /* A disk that comes with a past makes no jump, one that goes no dip. */
    tree_write(&tree, "/sys/block/sdb/size", "1\n");
    tree_write(&tree, "/proc/diskstats",
               "   8       0 sda 10 0 3100 5 10 0 4500 5 0 5 10\n   8      16 sdb 1 0 9999999 1 1 0 9999999 1 0 1 1\n");
    probe_forward_ms(&probe, 500);
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_DISK_READ), 100 * 512 / 0.5, 1e-6);
    CU_ASSERT_EQUAL(probe_f64(&probe, HOST_METRIC_DISK_WRITE), 0);
    end();
}

static void loopback_is_no_network(void)
{
    begin();
    run();
    sample();
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_NET_RX), REASON_NOT_SAMPLED);
    tree_write(&tree, "/proc/net/dev",
               "Inter-|\n face |\n    lo: 5999999 1 0 0 0 0 0 0 5999999 1 0 0 0 0 0 0\n  eth0:1250000 1 0 0 0 0 0 0 600000 1 0 0 0 "
               "0 0 0\n");
    probe_forward_ms(&probe, 1000);
    sample();
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_NET_RX), 250000, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, HOST_METRIC_NET_TX), 100000, 1e-6);
    tree_write(&tree, "/proc/net/dev", "Inter-|\n face |\n  eth0: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n"); /* restarted */
    probe_forward_ms(&probe, 1000);
    sample();
    CU_ASSERT_EQUAL(probe_f64(&probe, HOST_METRIC_NET_RX), 0);
    end();
}

static void an_unreadable_file_costs_its_own_metrics_only(void)
{
    static const struct {
        const char *file;
        int metric;
    } files[] = {{"/proc/stat", HOST_METRIC_CPU_BUSY},  {"/proc/meminfo", HOST_METRIC_MEMORY_USED},
                 {"/proc/loadavg", HOST_METRIC_LOAD1},  {"/proc/diskstats", HOST_METRIC_DISK_READ},
                 {"/proc/net/dev", HOST_METRIC_NET_RX}, {"/proc/cpuinfo", HOST_METRIC_CPU_CLOCK}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        begin();
        run();
        sample();
        fault_io_rule(&probe.fault, files[i].file, EACCES);
        tree_write(&tree, "/proc/stat", "cpu  1025 0 505 8060 510 0 0 0 20 0\n");
        probe_forward_ms(&probe, 1000);
        sample();
        for (size_t k = 0; k < sizeof files / sizeof files[0]; k++)
            CU_ASSERT_EQUAL(probe_reason(&probe, files[k].metric), i == k ? REASON_NO_PERMISSION : REASON_NONE);
        end();
    }
}

static void a_machine_without_proc_has_no_host(void)
{
    tree_make(&tree);
    CU_ASSERT_EQUAL(probe_start(&probe, "system", tree.root), -ENOENT);
    CU_ASSERT(probe.context.message[0] != '\0');
    end();
}

static void impossible_sizes_are_unknown_and_not_zero(void)
{
    begin();
    tree_write(
        &tree, "/proc/meminfo",
        "MemTotal: 1000 kB\nMemAvailable: 2000 kB\nSwapTotal: 10 kB\nSwapFree: 20 kB\nCommitLimit: 1 kB\nCommitted_AS: 1 kB\n");
    run();
    sample();
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_MEMORY_USED), REASON_IMPLAUSIBLE);
    CU_ASSERT_EQUAL(probe_reason(&probe, HOST_METRIC_SWAP_USED), REASON_IMPLAUSIBLE);
    CU_ASSERT_EQUAL(probe_u64(&probe, HOST_METRIC_MEMORY_TOTAL), 1000 * 1024);
    end();
}

static void cpu_share_never_leaves_its_range(void)
{
    begin();
    tree_write(&tree, "/proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\n");
    run();
    sample();
    tree_write(&tree, "/proc/stat", "cpu  9223372036854775808 0 0 9223372036854775900 0 0 0 0 0 0\n");
    probe_forward_ms(&probe, 1000);
    sample();
    CU_ASSERT(!probe_known(&probe, HOST_METRIC_CPU_BUSY) ||
              (probe_f64(&probe, HOST_METRIC_CPU_BUSY) >= 0 && probe_f64(&probe, HOST_METRIC_CPU_BUSY) <= 100));
    end();
}

static void this_machine_can_be_read(void)
{
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "system", ""), 0);
    sample();
    CU_ASSERT_TRUE(probe_known(&probe, HOST_METRIC_MEMORY_TOTAL));
    CU_ASSERT(probe_u64(&probe, HOST_METRIC_MEMORY_USED) < probe_u64(&probe, HOST_METRIC_MEMORY_TOTAL));
    CU_ASSERT_TRUE(probe_known(&probe, HOST_METRIC_DISK_TOTAL));
    probe_stop(&probe);
}

TESTS({"the_host_is_described", the_host_is_described}, {"memory_is_that_of_proc", memory_is_that_of_proc},
      {"cpu_share_is_the_difference_of_two_ticks", cpu_share_is_the_difference_of_two_ticks},
      {"the_clock_is_a_mean", the_clock_is_a_mean}, {"many_cpus_are_asked_in_part", many_cpus_are_asked_in_part},
      {"the_temperature_is_the_best_sensor_there_is", the_temperature_is_the_best_sensor_there_is},
      {"package_power_is_energy_over_time", package_power_is_energy_over_time},
      {"disks_count_once_and_partitions_and_layers_not_at_all", disks_count_once_and_partitions_and_layers_not_at_all},
      {"loopback_is_no_network", loopback_is_no_network},
      {"an_unreadable_file_costs_its_own_metrics_only", an_unreadable_file_costs_its_own_metrics_only},
      {"a_machine_without_proc_has_no_host", a_machine_without_proc_has_no_host},
      {"impossible_sizes_are_unknown_and_not_zero", impossible_sizes_are_unknown_and_not_zero},
      {"cpu_share_never_leaves_its_range", cpu_share_never_leaves_its_range},
      {"this_machine_can_be_read", this_machine_can_be_read})
