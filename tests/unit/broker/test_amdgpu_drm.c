/* What sysfs does not say is asked of the render node: each question alone, and none of a card that sleeps. */
#include <amdgpu_drm.h>
#include <drm.h>
#include <errno.h>
#include <math.h>

#include "probe.h"
#include "tests/unit/check.h"
#include "tree.h"

#define GIB (UINT64_C(1) << 30)
enum { INPUT_POWER = 0xc, ANSWERS = 16 };

static struct tree tree;
static struct probe probe;

/* A driver that answers from a table, errors negative. */
static struct {
    struct drm_amdgpu_memory_info memory;
    int memory_error;
    int64_t sensors[ANSWERS];
    int asked[ANSWERS], asked_memory;
} card;

static int answer(void *context, unsigned long request, void *argument)
{
    const struct drm_amdgpu_info *info = argument;
    (void)context;
    CU_ASSERT_EQUAL(request, DRM_IOW(DRM_COMMAND_BASE + DRM_AMDGPU_INFO, struct drm_amdgpu_info));
    if (info->query == AMDGPU_INFO_MEMORY) {
        card.asked_memory++;
        CU_ASSERT_EQUAL(info->return_size, sizeof card.memory);
        memcpy((void *)(uintptr_t)info->return_pointer, &card.memory, sizeof card.memory);
        return card.memory_error;
    }
    CU_ASSERT_EQUAL(info->query, AMDGPU_INFO_SENSOR);
    CU_ASSERT_EQUAL(info->return_size, 4);
    uint32_t type = info->sensor_info.type;
    if (type >= ANSWERS)
        return -EINVAL;
    card.asked[type]++;
    uint32_t value = (uint32_t)card.sensors[type];
    memcpy((void *)(uintptr_t)info->return_pointer, &value, sizeof value);
    return card.sensors[type] < -1000000 ? (int)(card.sensors[type] + 1000000) : 0;
}
static int64_t refuses(int error) { return -1000000 - error; }

static void begin(void)
{
    tree_make(&tree);
    tree_amd_card(&tree);
    memset(&card, 0, sizeof card);
    card.memory.vram = (struct drm_amdgpu_heap_info){24 * GIB, 23 * GIB, 3 * GIB, GIB};
    card.memory.cpu_accessible_vram = (struct drm_amdgpu_heap_info){16 * GIB, 15 * GIB, 2 * GIB, GIB};
    card.memory.gtt = (struct drm_amdgpu_heap_info){32 * GIB, 31 * GIB, GIB, GIB};
    for (int i = 0; i < ANSWERS; i++)
        card.sensors[i] = refuses(EINVAL);
    card.sensors[AMDGPU_INFO_SENSOR_GFX_SCLK] = 2300;
    card.sensors[AMDGPU_INFO_SENSOR_GFX_MCLK] = 1249;
    card.sensors[AMDGPU_INFO_SENSOR_GPU_TEMP] = 63000;
    card.sensors[AMDGPU_INFO_SENSOR_GPU_LOAD] = 87;
    card.sensors[AMDGPU_INFO_SENSOR_GPU_AVG_POWER] = 190;
    card.sensors[AMDGPU_INFO_SENSOR_VDDGFX] = 912;
}

static void run(void)
{
    probe_prepare(&probe, "amdgpu", tree.root);
    fault_io_hide_root(&probe.fault);
    probe.fault.ioctl = (struct fault_ioctl){.match = "/dev/dri/renderD128", .answer = answer};
    /* The first to open the node is libdrm, which would ask the file itself and not the table. */
    struct fault_rule *libdrm = fault_io_rule(&probe.fault, "/dev/dri/renderD128", EACCES);
    libdrm->at_open = true;
    libdrm->last = 1;
    CU_ASSERT_EQUAL_FATAL(probe_run(&probe), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, 1);
}

static void end(void)
{
    probe_stop(&probe);
    CU_ASSERT_EQUAL(fault_io_open_now(&probe.fault), 0);
    tree_remove(&tree);
}

/* A kernel that shows neither sensors nor memory. */
static void hide_sensors(void)
{
    static const char *const files[] = {"hwmon", "gpu_busy_percent", "pp_dpm_sclk", "pp_dpm_mclk"};
    char path[256];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, CARD "/%s", files[i]);
        tree_delete(&tree, path);
    }
}

static void hide_memory(void)
{
    static const char *const names[] = {"vram_total", "vram_used", "vis_vram_total", "vis_vram_used", "gtt_total", "gtt_used"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, CARD "/mem_info_%s", names[i]);
        tree_delete(&tree, path);
    }
}

static int node_opens(void) { return fault_io_opened(&probe.fault, "/dev/dri/renderD128"); }

static void a_card_whose_files_say_all_is_not_asked(void)
{
    begin();
    run();
    probe_sample(&probe, 0);
    fault_io_clear_trace(&probe.fault);
    for (int i = 0; i < 5; i++) {
        probe_forward_ms(&probe, 1000);
        probe_sample(&probe, 0);
    }
    CU_ASSERT_EQUAL(node_opens(), 0);
    CU_ASSERT_EQUAL(card.asked_memory, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 51);
    end();
}

static void sensors_without_files_are_asked_of_the_driver(void)
{
    begin();
    hide_sensors();
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2300);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEMORY_CLOCK), 1249);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 63);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 87);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_AVERAGE), 190);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_NOW));
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_VOLTAGE_GFX), 912);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 1073741824); /* the file's */
    CU_ASSERT_EQUAL(card.asked_memory, 0);
    /* The node stays open while it answers, and what it refused is let alone for a minute. */
    int opens = node_opens();
    for (int i = 0; i < 5; i++) {
        probe_forward_ms(&probe, 1000);
        probe_sample(&probe, 0);
    }
    CU_ASSERT_EQUAL(node_opens(), opens);
    CU_ASSERT_EQUAL(card.asked[AMDGPU_INFO_SENSOR_GFX_SCLK], 6);
    CU_ASSERT_EQUAL(card.asked[INPUT_POWER], 1);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2300);
    end();
}

/* Kernels since 6.6 answer a question for the average with power now. */
static void an_average_that_may_be_power_now_is_not_shown(void)
{
    begin();
    hide_sensors();
    card.sensors[INPUT_POWER] = 190;
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 190);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_AVERAGE));
    CU_ASSERT_EQUAL(card.asked[AMDGPU_INFO_SENSOR_GPU_AVG_POWER], 0);
    end();
}

static void each_answer_fails_alone(void)
{
    static const struct {
        uint32_t sensor;
        int metric;
        int64_t bad;
    } bad[] = {{AMDGPU_INFO_SENSOR_GPU_TEMP, METRIC_TEMPERATURE_EDGE, 511000},
               {AMDGPU_INFO_SENSOR_GPU_LOAD, METRIC_GFX_BUSY, 6457},
               {AMDGPU_INFO_SENSOR_GFX_SCLK, METRIC_GFX_CLOCK, 0},
               {AMDGPU_INFO_SENSOR_GFX_MCLK, METRIC_MEMORY_CLOCK, 65535},
               {AMDGPU_INFO_SENSOR_GPU_AVG_POWER, METRIC_POWER_AVERAGE, 65535},
               {AMDGPU_INFO_SENSOR_VDDGFX, METRIC_VOLTAGE_GFX, 0}};
    static const int errors[] = {EINVAL, ENODATA, EPERM, EBUSY, 0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
            begin();
            hide_sensors();
            card.sensors[bad[i].sensor] = errors[e] ? refuses(errors[e]) : bad[i].bad;
            run();
            probe_sample(&probe, 0);
            for (size_t other = 0; other < sizeof bad / sizeof bad[0]; other++)
                CU_ASSERT_EQUAL(probe_known(&probe, bad[other].metric), other != i);
            end();
        }
}

/* As the voltage is in GFXOFF, and a clock that stands still. */
static void what_is_switched_off_is_unknown_without_a_doubt(void)
{
    begin();
    hide_sensors();
    card.sensors[AMDGPU_INFO_SENSOR_VDDGFX] = card.sensors[AMDGPU_INFO_SENSOR_GFX_SCLK] = 0;
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VOLTAGE_GFX), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_CLOCK), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), 0);
    end();
}

static void degrees_below_zero_are_degrees(void)
{
    begin();
    hide_sensors();
    card.sensors[AMDGPU_INFO_SENSOR_GPU_TEMP] = (uint32_t)-5000;
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), -5);
    end();
}

static void memory_without_files_is_asked_of_the_driver(void)
{
    begin();
    hide_memory();
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 24 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 3 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_TOTAL), 16 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_USED), 2 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_TOTAL), 32 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), GIB);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_UNIFIED_TOTAL));
    end();
}

static void a_pool_is_unified_from_what_the_driver_answers(void)
{
    begin();
    hide_memory();
    tree_write(&tree, CARD "/hwmon/hwmon7/in1_label", "vddnb\n"); /* an APU */
    tree_write(&tree, CARD "/hwmon/hwmon7/in1_input", "700\n");
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_UNIFIED_TOTAL), 56 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_UNIFIED_USED), 4 * GIB);
    end();
}

static void memory_that_may_not_be_read_is_asked_of_the_driver_too(void)
{
    begin();
    run();
    fault_io_rule(&probe.fault, "mem_info_gtt_used", EACCES)->at_open = true;
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_TOTAL), UINT64_C(33554432000)); /* the file's */
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 1073741824);
    end();
}

static void more_in_use_than_there_is_is_no_answer(void)
{
    begin();
    hide_memory();
    card.memory.vram.heap_usage = UINT64_MAX - 4095; /* an underflow */
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_IMPLAUSIBLE);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 24 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), GIB);
    end();
}

static void an_error_is_not_papered_over(void)
{
    begin();
    run();
    fault_io_rule(&probe.fault, "mem_info_vram_used", EIO);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_ERROR);
    CU_ASSERT_EQUAL(card.asked_memory, 0);
    end();
}

/* On Raven the file answers EINVAL, and the sensor behind it is the one that the request would read. */
static void a_load_that_its_file_refuses_is_not_asked_again_elsewhere(void)
{
    begin();
    run();
    fault_io_rule(&probe.fault, "gpu_busy_percent", EINVAL);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(card.asked[AMDGPU_INFO_SENSOR_GPU_LOAD], 0);
    end();
}

static void a_node_that_may_not_be_opened_is_tried_once_a_minute(void)
{
    begin();
    hide_memory();
    hide_sensors();
    run();
    struct fault_rule *rule = fault_io_rule(&probe.fault, "/dev/dri/renderD128", EACCES);
    rule->at_open = true;
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_NO_PERMISSION);
    int opens = node_opens();
    CU_ASSERT_EQUAL(opens, 2); /* libdrm's and one for all questions */
    for (int i = 0; i < 50; i++) {
        probe_forward_ms(&probe, 1000);
        probe_sample(&probe, 0);
    }
    CU_ASSERT_EQUAL(node_opens(), opens);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_NO_PERMISSION);
    fault_io_clear_rules(&probe.fault);
    tree_write(&tree, CARD "/power/control", "on\n");
    probe_forward_ms(&probe, 60000);
    probe_sample(&probe, 0);
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 3 * GIB);
    end();
}

static void a_node_that_answers_nothing_is_closed(void)
{
    begin();
    hide_memory();
    card.memory_error = -EINVAL;
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(card.asked_memory, 1);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_VRAM_USED));
    for (int fd = 0; fd < FAULT_FDS; fd++)
        CU_ASSERT_PTR_NULL(strstr(probe.fault.paths[fd], "renderD"));
    end();
}

static bool node_is_open(void)
{
    for (int fd = 0; fd < FAULT_FDS; fd++)
        if (strstr(probe.fault.paths[fd], "renderD"))
            return true;
    return false;
}

static void the_node_is_closed_when_the_card_is_let_go_and_while_it_sleeps(void)
{
    begin();
    hide_memory();
    tree_write(&tree, CARD "/gpu_busy_percent", "0\n");
    tree_write(&tree, CARD "/mem_busy_percent", "0\n");
    run();
    probe_sample(&probe, 0);
    CU_ASSERT_TRUE(node_is_open());
    for (int i = 0; i < 200 && probe_reason(&probe, METRIC_GFX_BUSY) != REASON_LETTING_SLEEP; i++) {
        probe_forward_ms(&probe, 100);
        probe_sample(&probe, 0);
    }
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_LETTING_SLEEP);
    CU_ASSERT_FALSE(node_is_open());
    tree_write(&tree, CARD "/power/runtime_status", "suspended\n");
    fault_io_clear_trace(&probe.fault);
    int asked = card.asked_memory;
    for (int i = 0; i < 100; i++) {
        probe_forward_ms(&probe, 1000);
        probe_sample(&probe, 0);
    }
    CU_ASSERT_EQUAL(probe.sample.state, DEVICE_ASLEEP);
    CU_ASSERT_EQUAL(node_opens(), 0);
    CU_ASSERT_EQUAL(card.asked_memory, asked);
    tree_write(&tree, CARD "/power/runtime_status", "active\n");
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 3 * GIB);
    end();
}

static void below_a_root_no_node_is_opened(void)
{
    begin();
    hide_memory();
    hide_sensors();
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "amdgpu", tree.root), 0);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(node_opens(), 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_NOT_SUPPORTED);
    end();
}

TESTS({"what_is_switched_off_is_unknown_without_a_doubt", what_is_switched_off_is_unknown_without_a_doubt},
      {"a_card_whose_files_say_all_is_not_asked", a_card_whose_files_say_all_is_not_asked},
      {"sensors_without_files_are_asked_of_the_driver", sensors_without_files_are_asked_of_the_driver},
      {"an_average_that_may_be_power_now_is_not_shown", an_average_that_may_be_power_now_is_not_shown},
      {"each_answer_fails_alone", each_answer_fails_alone}, {"degrees_below_zero_are_degrees", degrees_below_zero_are_degrees},
      {"memory_without_files_is_asked_of_the_driver", memory_without_files_is_asked_of_the_driver},
      {"a_pool_is_unified_from_what_the_driver_answers", a_pool_is_unified_from_what_the_driver_answers},
      {"memory_that_may_not_be_read_is_asked_of_the_driver_too", memory_that_may_not_be_read_is_asked_of_the_driver_too},
      {"more_in_use_than_there_is_is_no_answer", more_in_use_than_there_is_is_no_answer},
      {"an_error_is_not_papered_over", an_error_is_not_papered_over},
      {"a_load_that_its_file_refuses_is_not_asked_again_elsewhere", a_load_that_its_file_refuses_is_not_asked_again_elsewhere},
      {"a_node_that_may_not_be_opened_is_tried_once_a_minute", a_node_that_may_not_be_opened_is_tried_once_a_minute},
      {"a_node_that_answers_nothing_is_closed", a_node_that_answers_nothing_is_closed},
      {"the_node_is_closed_when_the_card_is_let_go_and_while_it_sleeps",
       the_node_is_closed_when_the_card_is_let_go_and_while_it_sleeps},
      {"below_a_root_no_node_is_opened", below_a_root_no_node_is_opened})
