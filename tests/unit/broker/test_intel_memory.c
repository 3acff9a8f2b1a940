/* Memory of Intel GPUs, as their drivers answer with and without the right to know. */
#include <errno.h>

#include "intel_node.h"
#include "probe.h"
#include "tests/unit/check.h"
#include "tree_intel.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static struct tree tree;
static struct probe probe;
static struct intel_node node;

static void begin(void (*make)(const struct tree *))
{
    tree_make(&tree);
    make(&tree);
    node = (struct intel_node){0};
    probe_prepare(&probe, "intel", tree.root);
    intel_node_attach(&node, &probe.fault);
}

static void look(void)
{
    CU_ASSERT_EQUAL_FATAL(probe_run(&probe), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, 1);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.result, 0);
}

static void end(void)
{
    CU_ASSERT(fault_io_opened(&probe.fault, "renderD128") > 0);
    for (int i = 0; i < FAULT_FDS; i++)
        if (strstr(probe.fault.paths[i], "renderD"))
            CU_FAIL("the node is still open");
    probe_stop(&probe);
    tree_remove(&tree);
}

static void xe_regions(uint64_t used, uint64_t visible_used, uint64_t system_used)
{
    node.count = 2;
    node.regions[0] = (struct intel_node_region){0, 16 * GIB, system_used, 0, 0};
    node.regions[1] = (struct intel_node_region){1, 12 * GIB, used, 256 * MIB, visible_used};
}

static void xe_tells_the_privileged_what_is_in_use(void)
{
    begin(tree_xe_card);
    xe_regions(3 * GIB, 100 * MIB, 64 * MIB);
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 12 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 3 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_TOTAL), 256 * MIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_USED), 100 * MIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_TOTAL), 16 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), 64 * MIB);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_UNIFIED_TOTAL));
    (void)probe_discover(&probe);
    CU_ASSERT_STRING_EQUAL(probe.devices[0].driver_version, "drm 1.6");
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_DISCRETE);
    xe_regions(5 * GIB, 0, 0); /* once it tells, zero is a number */
    int asked = probe.fault.ioctls;
    probe_forward_ms(&probe, 100);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.fault.ioctls, asked + 2); /* how large, and what; no more */
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 5 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_USED), 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), 0);
    end();
}

/* Without CAP_PERFMON xe says 0, which is no number. */
static void xe_zero_of_the_unprivileged_is_unknown(void)
{
    begin(tree_xe_card);
    xe_regions(0, 0, 0);
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 12 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_TOTAL), 256 * MIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_TOTAL), 16 * GIB);
    const int used[] = {METRIC_VRAM_USED, METRIC_VRAM_VISIBLE_USED, METRIC_GTT_USED};
    for (size_t i = 0; i < 3; i++) {
        CU_ASSERT_FALSE(probe_known(&probe, used[i]));
        CU_ASSERT_EQUAL(probe_reason(&probe, used[i]), REASON_NO_PERMISSION);
    }
    /* What never changes is not asked for at every tick, but rights may come. */
    int asked = probe.fault.ioctls;
    probe_forward_ms(&probe, 9000);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.fault.ioctls, asked);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 12 * GIB);
    xe_regions(2 * GIB, MIB, MIB);
    probe_forward_ms(&probe, 1100);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 2 * GIB);
    end();
}

static void xe_tiles_are_summed(void)
{
    begin(tree_xe_card);
    xe_regions(3 * GIB, MIB, MIB);
    node.regions[2] = (struct intel_node_region){1, 12 * GIB, 1 * GIB, 256 * MIB, MIB};
    node.count = 3;
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 24 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 4 * GIB);
    end();
}

static void senseless_answers_are_no_numbers(void)
{
    begin(tree_xe_card);
    xe_regions(3 * GIB, MIB, MIB);
    node.told_count = 1000; /* beyond what was handed over */
    look();
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_VRAM_TOTAL));
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_TOTAL), REASON_ERROR);
    const uint32_t sizes[] = {4, 1 << 20, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        node.told_count = 0;
        node.xe_size = sizes[i];
        probe_forward_ms(&probe, 11000);
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_TOTAL), REASON_ERROR);
    }
    node.xe_size = 0;
    xe_regions(UINT64_MAX, MIB, MIB); /* more than there is */
    probe_forward_ms(&probe, 11000);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 12 * GIB);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_IMPLAUSIBLE);
    CU_ASSERT_TRUE(probe_u64(&probe, METRIC_QUALITY) & QUALITY_IMPLAUSIBLE);
    end();
}

static void interrupted_requests_are_made_again_but_not_for_ever(void)
{
    begin(tree_xe_card);
    xe_regions(3 * GIB, MIB, MIB);
    node.interrupted = 2;
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 3 * GIB);
    node.interrupted = 1000000;
    probe_forward_ms(&probe, 100);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_ERROR);
    CU_ASSERT(node.interrupted > 999900);
    end();
}

/* --- i915 ------------------------------------------------------------------------------------------------------------- */

static void i915_regions(uint64_t left, uint64_t visible, uint64_t visible_left)
{
    node.count = 2;
    node.regions[0] = (struct intel_node_region){0, 32 * GIB, 32 * GIB, 32 * GIB, 32 * GIB};
    node.regions[1] = (struct intel_node_region){1, 6 * GIB, left, visible, visible_left};
}

static void i915_tells_what_is_left(void)
{
    begin(tree_i915_card);
    i915_regions(4 * GIB, 256 * MIB, 200 * MIB);
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 6 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), 2 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_TOTAL), 256 * MIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_USED), 56 * MIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_TOTAL), 32 * GIB);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GTT_USED), REASON_NOT_SUPPORTED); /* never counted */
    i915_regions(4 * GIB, 0, 0); /* a kernel without small BARs: all of it can be seen */
    probe_forward_ms(&probe, 100);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_TOTAL), 6 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_VISIBLE_USED), 2 * GIB);
    end();
}

static void i915_all_left_is_unknown(void)
{
    begin(tree_i915_card);
    i915_regions(6 * GIB, 6 * GIB, 6 * GIB);
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 6 * GIB);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_VRAM_USED));
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_NO_PERMISSION);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_VRAM_VISIBLE_USED));
    end();
}

static void i915_more_left_than_there_is_is_no_number(void)
{
    begin(tree_i915_card);
    i915_regions(7 * GIB, 6 * GIB, 5 * GIB);
    look();
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_IMPLAUSIBLE);
    node.told_count = 17;
    probe_forward_ms(&probe, 100);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_ERROR);
    end();
}

/* --- processors' graphics --------------------------------------------------------------------------------------------- */

static void integrated_xe(const struct tree *at) { tree_integrated(at, "xe"); }
static void integrated_i915(const struct tree *at) { tree_integrated(at, "i915"); }

static void integrated_graphics_share_host_memory(void)
{
    begin(integrated_xe);
    node.count = 1;
    node.regions[0] = (struct intel_node_region){0, 8 * GIB, 700 * MIB, 0, 0};
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_UNIFIED_TOTAL), 8 * GIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_UNIFIED_USED), 700 * MIB);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_GTT_USED), 700 * MIB);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_VRAM_TOTAL));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_VRAM_USED));
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_UNIFIED);
    end();
    begin(integrated_i915);
    node.count = 1;
    node.regions[0] = (struct intel_node_region){0, 32 * GIB, 32 * GIB, 32 * GIB, 32 * GIB};
    look();
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_UNIFIED_TOTAL), 32 * GIB);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_UNIFIED_USED));
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_UNIFIED_USED), REASON_NOT_SUPPORTED);
    end();
}

/* --- errors ----------------------------------------------------------------------------------------------------------- */

static void memory_alone_is_unknown_where_the_node_is_refused(void)
{
    begin(tree_xe_card);
    struct fault_rule *rule = fault_io_rule(&probe.fault, "renderD128", EACCES);
    rule->at_open = true;
    look();
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_TOTAL), REASON_NO_PERMISSION);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_USED), REASON_NO_PERMISSION);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_CLOCK), 2400);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 61);
    end();
    begin(tree_i915_card);
    node.error = EINVAL; /* an old kernel knows no such query */
    look();
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_VRAM_TOTAL), REASON_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 55);
    end();
}

TESTS({"xe_tells_the_privileged_what_is_in_use", xe_tells_the_privileged_what_is_in_use},
      {"xe_zero_of_the_unprivileged_is_unknown", xe_zero_of_the_unprivileged_is_unknown},
      {"xe_tiles_are_summed", xe_tiles_are_summed}, {"senseless_answers_are_no_numbers", senseless_answers_are_no_numbers},
      {"interrupted_requests_are_made_again_but_not_for_ever", interrupted_requests_are_made_again_but_not_for_ever},
      {"i915_tells_what_is_left", i915_tells_what_is_left}, {"i915_all_left_is_unknown", i915_all_left_is_unknown},
      {"i915_more_left_than_there_is_is_no_number", i915_more_left_than_there_is_is_no_number},
      {"integrated_graphics_share_host_memory", integrated_graphics_share_host_memory},
      {"memory_alone_is_unknown_where_the_node_is_refused", memory_alone_is_unknown_where_the_node_is_refused})
