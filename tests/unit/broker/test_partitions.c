/* Instinct cards that are more than one device: partitions of an MI300X, the two dies of an MI250. */
#include <errno.h>
#include <math.h>

#include "probe.h"
#include "table_bytes.h"
#include "tests/unit/check.h"
#include "tree.h"

static struct tree tree;
static struct probe probe;

#define NODES "/sys/class/kfd/kfd/topology/nodes"
static const uint64_t slice = UINT64_C(25767706624); /* of a card of 192 GiB in CPX mode (ROCm issue 4750) */

static void write_node(int number, unsigned location, int minor, const char *more)
{
    char path[128], text[256];
    snprintf(path, sizeof path, NODES "/%d/properties", number);
    snprintf(text, sizeof text,
             "simd_count 152\nsimd_per_cu 4\nlocation_id %u\ndomain 0\ndevice_id 29857\ndrm_render_minor %d\n"
             "gfx_target_version 90402\n%s",
             location, minor, more);
    tree_write(&tree, path, text);
    snprintf(path, sizeof path, NODES "/%d/mem_banks/0/properties", number);
    snprintf(text, sizeof text, "heap_type 1\nsize_in_bytes %llu\nflags 0\nwidth 8192\n", (unsigned long long)slice);
    tree_write(&tree, path, text);
}

/* Eight partitions: the first is the card's own node, the others are platform devices. */
static void divide(bool old_kernel)
{
    for (unsigned i = 0; i < 8; i++)
        write_node((int)i + 1, old_kernel ? 768 | i : 768 | i << 28, 128 + (int)i, "");
    for (int i = 1; i < 8; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/devices/platform/amdgpu_xcp.%d/drm/renderD%d/dev", i, 128 + i);
        tree_write(&tree, path, "226:1\n");
    }
}

static void begin(void)
{
    tree_make(&tree);
    tree_amd_card(&tree);
    tree_write(&tree, CARD "/device", "0x74a1\n");
    tree_write(&tree, NODES "/0/properties", "simd_count 0\ncpu_cores_count 96\n");
}

static void run(int devices)
{
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "amdgpu", tree.root), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, devices);
}

static void end(void)
{
    probe_stop(&probe);
    CU_ASSERT_EQUAL(fault_io_open_now(&probe.fault), 0);
    tree_remove(&tree);
}

static void each_partition_has_its_own_share_of_memory(void)
{
    for (int old = 0; old < 2; old++) {
        begin();
        divide(old);
        run(9);
        CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "0000:03:00.0");
        CU_ASSERT_EQUAL(probe.devices[0].compute_units, 8 * 38);
        for (int i = 0; i < 8; i++) {
            char id[64];
            snprintf(id, sizeof id, "0000:03:00.0/xcp%d", i);
            CU_ASSERT_STRING_EQUAL(probe.devices[1 + i].id, id);
            CU_ASSERT_STRING_EQUAL(probe.devices[1 + i].arch, "gfx942");
            CU_ASSERT_EQUAL(probe.devices[1 + i].compute_units, 38);
            CU_ASSERT_EQUAL(probe.devices[1 + i].kfd_index, i);
            CU_ASSERT_EQUAL(probe.devices[1 + i].tgp, 0);
        }
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), UINT64_C(25753026560)); /* the card's own files */
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_AVERAGE), 182);
        probe_sample(&probe, 4);
        CU_ASSERT_EQUAL(probe.result, 0);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), slice);
        CU_ASSERT_FALSE(probe_known(&probe, METRIC_VRAM_USED)); /* told nowhere: not zero */
        CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_AVERAGE) || probe_known(&probe, METRIC_TEMPERATURE_JUNCTION));
        CU_ASSERT_FALSE(probe_known(&probe, METRIC_GFX_BUSY)); /* this card's driver has no table */
        end();
    }
}

static void a_partitions_load_is_its_own(void)
{
    unsigned char table[GM_MOST_BYTES];
    size_t size;
    begin();
    divide(false);
    size = table_blank(1, 6, table);
    table_put(table, 306, 8, 2);
    for (size_t i = 0; i < 8; i++)
        table_put(table, 312 + 168 * i, 10 * i, 4);
    tree_write_bytes(&tree, CARD "/gpu_metrics", table, size);
    run(9);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 35); /* the mean, and not the first partition's */
    for (int i = 0; i < 8; i++) {
        probe_sample(&probe, 1 + i);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 10 * i);
    }
    end();
}

static void a_card_that_is_divided_or_made_whole_is_noticed(void)
{
    begin();
    write_node(1, 768, 128, "");
    run(1);
    CU_ASSERT_EQUAL(probe.devices[0].compute_units, 38);
    divide(false);
    CU_ASSERT_EQUAL(probe_discover(&probe), 9);
    probe_sample(&probe, 8);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), slice);
    for (int i = 2; i <= 8; i++) {
        char path[64];
        snprintf(path, sizeof path, NODES "/%d", i);
        tree_delete(&tree, path);
    }
    CU_ASSERT_EQUAL(probe_discover(&probe), 1);
    probe_sample(&probe, 8);
    CU_ASSERT_EQUAL(probe.result, -ENODEV);
    end();
}

static void partitions_sleep_and_go_with_their_card(void)
{
    begin();
    divide(false);
    tree_write(&tree, CARD "/power/runtime_status", "suspended\n");
    run(9);
    probe_sample(&probe, 0);
    probe_sample(&probe, 3);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_ASLEEP);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), slice);
    tree_rename(&tree, CARD, "/away");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.result, -ENODEV);
    probe_sample(&probe, 3);
    CU_ASSERT_EQUAL(probe.result, -ENODEV);
    end();
}

static void a_neighbour_is_no_partition(void)
{
    begin();
    write_node(1, 768, 128, "");
    write_node(2, 1024, 129, ""); /* bus 4 */
    run(1);
    end();
}

/* rocm_smi_lib issue 160: the second die has no power of its own; it is neither zero nor half of the board's. */
static void the_second_die_of_an_mi250_has_no_power(void)
{
    begin();
    tree_write(&tree, CARD "/device", "0x740c\n");
    tree_write(&tree, NODES "/1/properties",
               "simd_count 416\nsimd_per_cu 4\nlocation_id 768\ndomain 0\ndevice_id 29708\ngfx_target_version 90010\n");
    run(1);
    CU_ASSERT_STRING_EQUAL(probe.devices[0].arch, "gfx90a");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_AVERAGE), 182);
    tree_write(&tree, CARD "/hwmon/hwmon7/power1_average", "0\n");
    tree_write(&tree, CARD "/hwmon/hwmon7/power1_input", "0\n");
    probe_sample(&probe, 0);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_AVERAGE));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_NOW));
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_POWER_NOW), REASON_NOT_SUPPORTED);
    CU_ASSERT_TRUE(probe_known(&probe, METRIC_TEMPERATURE_JUNCTION));
    end();
}

TESTS({"each_partition_has_its_own_share_of_memory", each_partition_has_its_own_share_of_memory},
      {"a_partitions_load_is_its_own", a_partitions_load_is_its_own},
      {"a_card_that_is_divided_or_made_whole_is_noticed", a_card_that_is_divided_or_made_whole_is_noticed},
      {"partitions_sleep_and_go_with_their_card", partitions_sleep_and_go_with_their_card},
      {"a_neighbour_is_no_partition", a_neighbour_is_no_partition},
      {"the_second_die_of_an_mi250_has_no_power", the_second_die_of_an_mi250_has_no_power})
