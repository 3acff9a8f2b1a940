#include "broker/track.h"
#include "tests/unit/check.h"

static const uint64_t second = UINT64_C(1000000000);

static struct merged sample_at(double seconds, double watts, double busy)
{
    struct merged merged = {.mono_ns = (uint64_t)(seconds * 1e9), .state = DEVICE_OK};
    merged.values[METRIC_POWER_NOW].f64 = watts;
    metrics_set_valid(merged.valid, METRIC_POWER_NOW);
    merged.values[METRIC_GFX_BUSY].f64 = busy;
    metrics_set_valid(merged.valid, METRIC_GFX_BUSY);
    merged.values[METRIC_VRAM_USED].u64 = 1000;
    metrics_set_valid(merged.valid, METRIC_VRAM_USED);
    return merged;
}

static void with_energy(struct merged *merged, double joules)
{
    merged->values[METRIC_ENERGY].f64 = joules;
    metrics_set_valid(merged->valid, METRIC_ENERGY);
}

static void sums_are_power_times_time_and_right_across_changes_of_period(void)
{
    struct track track = {0};
    static const double times[] = {10, 10.1, 10.2, 11.2, 11.25};
    for (int i = 0; i < 5; i++) {
        struct merged merged = sample_at(times[i], 100, 50);
        track_sums(&track, &merged, POOL_DISCRETE, 3 * second);
        track_sums(&track, &merged, POOL_DISCRETE, 3 * second); /* published again without news: not counted twice */
    }
    CU_ASSERT_DOUBLE_EQUAL(track.sums[ACCUMULATE_SAMPLED], 1.25, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(track.sums[ACCUMULATE_ENERGY], 125, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(track.sums[ACCUMULATE_BUSY], 0.625, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(track.sums[ACCUMULATE_VRAM], 1250, 1e-6);
    CU_ASSERT_EQUAL(track.sums[ACCUMULATE_THROTTLED], 0);
}

static void gap_is_not_bridged_but_the_counter_counts_it(void)
{
    struct track track = {0};
    struct merged merged = sample_at(10, 100, 100);
    with_energy(&merged, 5000);
    track_sums(&track, &merged, POOL_DISCRETE, second);
    merged = sample_at(20, 100, 100);
    with_energy(&merged, 6000);
    track_sums(&track, &merged, POOL_DISCRETE, second);
    CU_ASSERT_EQUAL(track.sums[ACCUMULATE_SAMPLED], 0);
    CU_ASSERT_DOUBLE_EQUAL(track.sums[ACCUMULATE_ENERGY], 1000, 1e-9);
}

static void absurd_step_of_the_counter_falls_back_to_power(void)
{
    struct track track = {0};
    struct merged merged = sample_at(10, 100, 0);
    with_energy(&merged, 0);
    track_sums(&track, &merged, POOL_DISCRETE, second);
    merged = sample_at(10.5, 100, 0);
    with_energy(&merged, 4e12);
    track_sums(&track, &merged, POOL_DISCRETE, second);
    CU_ASSERT_DOUBLE_EQUAL(track.sums[ACCUMULATE_ENERGY], 50, 1e-6);
}

static void sleep_does_not_count_as_sampled(void)
{
    struct track track = {0};
    struct merged merged = sample_at(10, 100, 0);
    track_sums(&track, &merged, POOL_DISCRETE, second);
    merged = sample_at(10.5, 100, 0);
    merged.state = DEVICE_ASLEEP;
    track_sums(&track, &merged, POOL_DISCRETE, second);
    merged = sample_at(11, 100, 0);
    track_sums(&track, &merged, POOL_DISCRETE, second);
    CU_ASSERT_EQUAL(track.sums[ACCUMULATE_SAMPLED], 0);
}

static void seconds_keep_minimum_mean_and_maximum(void)
{
    struct track track = {0};
    struct layout_coarse closed;
    int count;
    int busy = metrics_table(false, &count)[METRIC_GFX_BUSY].coarse;
    unsigned closes = 0;
    for (int i = 0; i <= 10; i++) {
        struct merged merged = sample_at(20 + i / 10.0, 100, i);
        merged.values[METRIC_THROTTLE].u64 = i == 4 ? THROTTLE_THERMAL : 0;
        metrics_set_valid(merged.valid, METRIC_THROTTLE);
        track_sums(&track, &merged, POOL_DISCRETE, second);
        closes += track_coarse(&track, false, &merged, 7, 0, &closed);
    }
    CU_ASSERT_EQUAL_FATAL(closes, 1);
    CU_ASSERT_EQUAL(closed.samples, 10);
    CU_ASSERT_EQUAL(closed.minimum[busy], 0);
    CU_ASSERT_EQUAL(closed.maximum[busy], 9);
    CU_ASSERT_DOUBLE_EQUAL(closed.mean[busy], 4.5, 1e-9);
    CU_ASSERT_EQUAL(closed.throttle, THROTTLE_THERMAL);
    CU_ASSERT_DOUBLE_EQUAL(closed.sums[ACCUMULATE_ENERGY], 90, 1e-6);
    CU_ASSERT((closed.valid >> busy) & 1);
}

TESTS({"sums_are_power_times_time_and_right_across_changes_of_period",
       sums_are_power_times_time_and_right_across_changes_of_period},
      {"gap_is_not_bridged_but_the_counter_counts_it", gap_is_not_bridged_but_the_counter_counts_it},
      {"absurd_step_of_the_counter_falls_back_to_power", absurd_step_of_the_counter_falls_back_to_power},
      {"sleep_does_not_count_as_sampled", sleep_does_not_count_as_sampled},
      {"seconds_keep_minimum_mean_and_maximum", seconds_keep_minimum_mean_and_maximum})
