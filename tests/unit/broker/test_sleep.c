/* A card that sleeps is not woken, and one that is idle is let go: with a clock of the test's own. */
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

static void run(const char *provider)
{
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, provider, tree.root), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, 1);
}

static void end(void)
{
    probe_stop(&probe);
    tree_remove(&tree);
}

static void status(const char *text) { tree_write(&tree, CARD "/power/runtime_status", text); }
static void busy(const char *percent)
{
    tree_write(&tree, CARD "/gpu_busy_percent", percent);
    tree_write(&tree, CARD "/mem_busy_percent", "0\n");
}

/* Samples every 100 ms for so long; true if all of them were let go. */
static bool all_letting(uint64_t ms)
{
    bool all = true;
    for (uint64_t t = 0; t < ms; t += 100) {
        probe_sample(&probe, 0);
        all = all && probe_reason(&probe, METRIC_GFX_BUSY) == REASON_LETTING_SLEEP;
        probe_forward_ms(&probe, 100);
    }
    return all;
}

static bool all_read(uint64_t ms)
{
    bool all = true;
    for (uint64_t t = 0; t < ms; t += 100) {
        probe_sample(&probe, 0);
        all = all && probe_known(&probe, METRIC_GFX_BUSY);
        probe_forward_ms(&probe, 100);
    }
    return all;
}

/* T7 */
static void a_sleeping_card_is_left_alone_but_for_its_memory(void)
{
    begin();
    status("suspended\n");
    run("amdgpu");
    fault_io_rule(&probe.fault, "hwmon", EBUSY);
    fault_io_rule(&probe.fault, "gpu_busy_percent", EBUSY);
    for (int i = 0; i < 3; i++) {
        probe_sample(&probe, 0);
        (void)probe_discover(&probe);
        probe_forward_ms(&probe, 1000);
    }
    CU_ASSERT_EQUAL(probe.result, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 1073741824);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), 67108864);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_ASLEEP);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_POWER_NOW), REASON_ASLEEP);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_PCIE_SPEED), REASON_ASLEEP);
    static const char *const waking[] = {"hwmon",  "gpu_metrics",  "renderD", "gpu_busy",
                                         "pp_dpm", "current_link", "/dev/",   "replay"};
    for (size_t i = 0; i < sizeof waking / sizeof waking[0]; i++)
        CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, waking[i]), 0);
    end();
}

static void memory_that_a_sleeping_card_refuses_is_asleep_too(void)
{
    begin();
    status("suspended\n");
    run("amdgpu");
    fault_io_rule(&probe.fault, "mem_info_vram_used", EPERM);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_ASLEEP);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), 67108864);
    end();
}

static void after_a_wake_values_are_marked_for_fifteen_seconds(void)
{
    begin();
    status("suspended\n");
    run("amdgpu");
    probe_sample(&probe, 0);
    status("active\n");
    probe_forward_ms(&probe, 100);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_SETTLING);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), QUALITY_SETTLING);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 42);
    CU_ASSERT_EQUAL(probe_discover(&probe), 1); /* facts that only an awake card tells */
    CU_ASSERT_EQUAL(probe.devices[0].tgp, 327);
    probe_forward_ms(&probe, 14900);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_SETTLING);
    probe_forward_ms(&probe, 100);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_OK);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), 0);
    end();
}

static void a_card_awake_from_the_start_needs_no_settling(void)
{
    begin();
    run("amdgpu");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_OK);
    end();
}

static void an_idle_card_is_let_go_after_ten_seconds(void)
{
    begin();
    busy("2\n");
    run("amdgpu");
    CU_ASSERT_TRUE(all_read(10000));
    probe_sample(&probe, 0); /* the tenth second is over */
    probe_forward_ms(&probe, 100);
    fault_io_clear_trace(&probe.fault);
    struct fault_rule *any = fault_io_rule(&probe.fault, CARD, 0), *own = fault_io_rule(&probe.fault, "power/runtime_status", 0);
    struct fault_rule *bus = fault_io_rule(&probe.fault, "0000:03:00.0", 0);
    CU_ASSERT_TRUE(all_letting(6900)); /* autosuspend_delay + 2 s */
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_LETTING_SLEEP);
    CU_ASSERT_EQUAL(probe.fault.traced, 0);
    CU_ASSERT_EQUAL(any->count, 0); /* files are known by their place on the bus */
    CU_ASSERT_EQUAL(bus->count, own->count);
    CU_ASSERT_EQUAL(own->count, 69);
    probe_sample(&probe, 0); /* seven seconds are over and it is awake all the same */
    CU_ASSERT_TRUE(probe_known(&probe, METRIC_GFX_BUSY));
    end();
}

static void a_card_that_stays_awake_is_tried_less_and_less_often(void)
{
    begin();
    busy("0\n");
    run("amdgpu");
    CU_ASSERT_TRUE(all_read(10000));
    probe_sample(&probe, 0);
    probe_forward_ms(&probe, 100);
    CU_ASSERT_TRUE(all_letting(6900));
    CU_ASSERT_TRUE(all_read(20000));
    probe_sample(&probe, 0);
    probe_forward_ms(&probe, 100);
    CU_ASSERT_TRUE(all_letting(6900));
    CU_ASSERT_TRUE(all_read(40000));
    end();
}

static void a_card_that_fell_asleep_is_seen_asleep(void)
{
    begin();
    busy("0\n");
    run("amdgpu");
    CU_ASSERT_TRUE(all_read(10000));
    probe_sample(&probe, 0);
    probe_forward_ms(&probe, 100);
    CU_ASSERT_TRUE(all_letting(5000));
    status("suspended\n");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    end();
}

static void work_keeps_it_from_being_let_go(void)
{
    begin();
    busy("0\n");
    run("amdgpu");
    CU_ASSERT_TRUE(all_read(9000));
    busy("80\n");
    CU_ASSERT_TRUE(all_read(30000));
    busy("0\n");
    CU_ASSERT_TRUE(all_read(10000));
    probe_sample(&probe, 0);
    probe_forward_ms(&probe, 100);
    CU_ASSERT_TRUE(all_letting(1000));
    end();
}

static void a_card_that_may_not_sleep_is_read_on(void)
{
    static const struct {
        const char *file, *text;
    } cases[] = {{CARD "/power/control", "on\n"}, {CARD "/power/autosuspend_delay_ms", "-1\n"}};
    for (int i = 0; i < 2; i++) {
        begin();
        busy("0\n");
        tree_write(&tree, cases[i].file, cases[i].text);
        run("amdgpu");
        CU_ASSERT_TRUE(all_read(60000));
        end();
    }
}

/* EPERM and EBUSY come from a card that is being reset, or that fell asleep after it was asked. */
static void refusals_are_told_apart_by_the_status(void)
{
    begin();
    run("amdgpu");
    probe_sample(&probe, 0);
    fault_io_rule(&probe.fault, "gpu_busy_percent", EPERM);
    fault_io_rule(&probe.fault, "hwmon", EBUSY);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_OK);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_ERROR);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_TEMPERATURE_EDGE), REASON_ERROR);
    status("suspended\n");
    struct fault_rule *late = fault_io_rule(&probe.fault, "runtime_status", EIO); /* the first look finds it awake */
    late->last = 1;
    probe_forward_ms(&probe, 100);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_ASLEEP);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 1073741824);
    end();
}

static void states_on_the_way_count_as_asleep_and_no_state_as_awake(void)
{
    static const char *const asleep[] = {"suspended", "suspending\n", "resuming\n"};
    static const char *const awake[] = {"active\n", "unsupported\n", "error\n", ""};
    begin();
    run("amdgpu");
    for (size_t i = 0; i < 3; i++) {
        status(asleep[i]);
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    }
    for (size_t i = 0; i < 4; i++) {
        status(awake[i]);
        probe_sample(&probe, 0);
        CU_ASSERT_NOT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    }
    end();
}

/* The other provider of the same card must not undo all this. */
static void drm_reads_nothing_of_a_card_that_has_its_own_provider(void)
{
    begin();
    busy("0\n");
    run("drm");
    fault_io_clear_trace(&probe.fault);
    for (int i = 0; i < 300; i++) {
        probe_sample(&probe, 0);
        probe_forward_ms(&probe, 100);
    }
    CU_ASSERT_EQUAL(fault_io_opened(&probe.fault, "runtime_status"), 1);
    CU_ASSERT_EQUAL(probe.fault.traced, 1);
    status("suspended\n");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    end();
}

static void drm_lets_other_cards_go(void)
{
    begin();
    tree_link(&tree, CARD "/driver", "../../../../../../bus/pci/drivers/radeon");
    run("drm");
    for (int i = 0; i <= 100; i++) {
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 51);
        probe_forward_ms(&probe, 100);
    }
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_TEMPERATURE_EDGE), REASON_LETTING_SLEEP);
    status("suspended\n");
    fault_io_clear_trace(&probe.fault);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    CU_ASSERT_EQUAL(probe.fault.traced, 0);
    end();
}

TESTS({"a_sleeping_card_is_left_alone_but_for_its_memory", a_sleeping_card_is_left_alone_but_for_its_memory},
      {"memory_that_a_sleeping_card_refuses_is_asleep_too", memory_that_a_sleeping_card_refuses_is_asleep_too},
      {"after_a_wake_values_are_marked_for_fifteen_seconds", after_a_wake_values_are_marked_for_fifteen_seconds},
      {"a_card_awake_from_the_start_needs_no_settling", a_card_awake_from_the_start_needs_no_settling},
      {"an_idle_card_is_let_go_after_ten_seconds", an_idle_card_is_let_go_after_ten_seconds},
      {"a_card_that_stays_awake_is_tried_less_and_less_often", a_card_that_stays_awake_is_tried_less_and_less_often},
      {"a_card_that_fell_asleep_is_seen_asleep", a_card_that_fell_asleep_is_seen_asleep},
      {"work_keeps_it_from_being_let_go", work_keeps_it_from_being_let_go},
      {"a_card_that_may_not_sleep_is_read_on", a_card_that_may_not_sleep_is_read_on},
      {"refusals_are_told_apart_by_the_status", refusals_are_told_apart_by_the_status},
      {"states_on_the_way_count_as_asleep_and_no_state_as_awake", states_on_the_way_count_as_asleep_and_no_state_as_awake},
      {"drm_reads_nothing_of_a_card_that_has_its_own_provider", drm_reads_nothing_of_a_card_that_has_its_own_provider},
      {"drm_lets_other_cards_go", drm_lets_other_cards_go})
