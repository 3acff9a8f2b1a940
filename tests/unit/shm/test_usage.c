/* What an interval took, on rings written as the broker writes them. Times are milliseconds of a made-up clock. */
#include <math.h>

#include "shm/platform.h"
#include "shm/usage.h"
#include "tests/unit/check.h"

enum { DEPTH = 64, COARSE_DEPTH = 32, START = 1000000, MS = 1000000 };
#define GB 1e9

static struct {
    _Alignas(64) uint8_t fine_memory[RING_HEADER_BYTES + DEPTH * LAYOUT_SNAPSHOT_BYTES];
    _Alignas(64) uint8_t coarse_memory[RING_HEADER_BYTES + COARSE_DEPTH * LAYOUT_SLOT_BYTES(sizeof(struct layout_coarse))];
    struct ring fine, coarse;
    double sums[ACCUMULATE_COUNT];
    int last_ms;
} w;

/* What a device shows; NaN = unknown. */
struct levels {
    double watts, busy, vram, unified, edge, throttle;
    unsigned state;
};

static void start_rings(void)
{
    memset(&w, 0, sizeof w);
    ring_format(&w.fine, w.fine_memory, NULL, DEPTH, LAYOUT_SNAPSHOT_BYTES, LAYOUT_SNAPSHOT_WORDS, UINT64_MAX / 2 - 20);
    ring_format(&w.coarse, w.coarse_memory, NULL, COARSE_DEPTH, LAYOUT_SLOT_BYTES(sizeof(struct layout_coarse)),
                LAYOUT_COARSE_WORDS, UINT64_MAX / 2 - 5);
    w.last_ms = -1;
}

static struct levels at(double watts, double busy, double vram)
{
    return (struct levels){.watts = watts, .busy = busy, .vram = vram, .unified = NAN, .edge = NAN, .throttle = 0};
}

static void level(struct layout_snapshot *sample, int metric, double value)
{
    int count;
    if (isnan(value))
        return;
    sample->metrics[metric] = metrics_from_double(&metrics_table(false, &count)[metric], value);
    metrics_set_valid(sample->valid, metric);
}

static double or_zero(double value) { return isnan(value) ? 0 : value; }

static uint64_t ns(int ms) { return (uint64_t)(START + ms) * MS; }

/* A sample covers the time since the one before it, as broker/track.c counts. */
static void tell(int ms, struct levels now)
{
    bool sampling = now.state == DEVICE_OK;
    double seconds = sampling && w.last_ms >= 0 ? (ms - w.last_ms) / 1000.0 : 0;
    w.last_ms = sampling ? ms : -1;
    w.sums[ACCUMULATE_ENERGY] += or_zero(now.watts) * seconds;
    w.sums[ACCUMULATE_BUSY] += or_zero(now.busy) / 100 * seconds;
    w.sums[ACCUMULATE_SAMPLED] += seconds;
    w.sums[ACCUMULATE_THROTTLED] += now.throttle > 0 ? seconds : 0;
    w.sums[ACCUMULATE_VRAM] += or_zero(isnan(now.unified) ? now.vram : now.unified) * seconds;
    union {
        struct layout_snapshot sample;
        uint64_t words[LAYOUT_SNAPSHOT_WORDS - 1];
    } raw = {.sample = {.mono_ns = ns(ms), .state = now.state}};
    level(&raw.sample, METRIC_POWER_NOW, now.watts);
    level(&raw.sample, METRIC_GFX_BUSY, now.busy);
    level(&raw.sample, METRIC_VRAM_USED, now.vram);
    level(&raw.sample, METRIC_UNIFIED_USED, now.unified);
    level(&raw.sample, METRIC_TEMPERATURE_EDGE, now.edge);
    level(&raw.sample, METRIC_THROTTLE, now.throttle);
    memcpy(raw.sample.sums, w.sums, sizeof w.sums);
    ring_publish(&w.fine, raw.words);
}

static void tell_every(int from, int to, int step, struct levels now)
{
    for (int ms = from; ms <= to; ms += step)
        tell(ms, now);
}

static void coarse_level(struct layout_coarse *second, int metric, double value)
{
    int count, place = metrics_table(false, &count)[metric].coarse;
    second->minimum[place] = second->mean[place] = second->maximum[place] = value;
    second->valid |= UINT64_C(1) << place;
}

/* A whole second [from, from + 1000 - step], with the sums as they are now. */
static void close_second(int from, int last, uint64_t samples, struct levels now)
{
    union {
        struct layout_coarse second;
        uint64_t words[LAYOUT_COARSE_WORDS - 1];
    } raw = {.second = {.start_mono_ns = ns(from), .end_mono_ns = ns(last), .samples = samples}};
    coarse_level(&raw.second, METRIC_POWER_NOW, now.watts);
    coarse_level(&raw.second, METRIC_GFX_BUSY, now.busy);
    coarse_level(&raw.second, METRIC_VRAM_USED, now.vram);
    memcpy(raw.second.sums, w.sums, sizeof w.sums);
    ring_publish(&w.coarse, raw.words);
}

/* Seconds of ten samples each, told to both rings. */
static void tell_seconds(int from, int count, struct levels now)
{
    for (int second = 0; second < count; second++) {
        int begin = from + second * 1000;
        tell_every(begin, begin + 900, 100, now);
        close_second(begin, begin + 900, 10, now);
    }
}

static struct usage_request request(int from, int to)
{
    return (struct usage_request){.start_ns = ns(from), .end_ns = ns(to), .gap_ns = UINT64_C(2000000000)};
}

static struct layout_usage took_by(struct usage_request request)
{
    struct layout_usage out = {.device = 3, .flags = 0xFF, .seconds = -1};
    usage_between(&w.fine, &w.coarse, &request, &out);
    return out;
}

static struct layout_usage took(int from, int to) { return took_by(request(from, to)); }

#define NEAR(value, expected) CU_ASSERT(fabs((value) - (expected)) <= 1e-6 * fabs((double)(expected)) + 1e-9)

static void all_unknown(const struct layout_usage *u)
{
    CU_ASSERT(isnan(u->energy) && isnan(u->net_energy) && isnan(u->busy_mean) && isnan(u->busy_peak));
    CU_ASSERT(isnan(u->vram_mean) && isnan(u->vram_peak) && isnan(u->unified_peak) && isnan(u->temperature_peak));
    CU_ASSERT(isnan(u->throttled_seconds) && isnan(u->own_vram_peak));
}

static void constant_load_gives_its_levels(void)
{
    start_rings();
    struct levels now = at(50, 80, 4 * GB);
    now.edge = 61;
    tell_every(0, 3000, 100, now);
    struct layout_usage u = took(500, 2500);
    CU_ASSERT(u.device == 3 && u.flags == 0 && u.samples == 21);
    NEAR(u.seconds, 2);
    NEAR(u.sampled_seconds, 2);
    NEAR(u.energy, 100);
    NEAR(u.busy_mean, 80);
    NEAR(u.busy_peak, 80);
    NEAR(u.vram_mean, 4 * GB);
    NEAR(u.vram_peak, 4 * GB);
    NEAR(u.temperature_peak, 61);
    CU_ASSERT(u.throttled_seconds == 0);
    CU_ASSERT(isnan(u.net_energy) && isnan(u.unified_peak) && isnan(u.own_vram_peak));
}

static void edges_between_samples_are_interpolated(void)
{
    start_rings();
    tell_every(0, 1000, 100, at(10, 0, GB));
    tell_every(1100, 2000, 100, at(110, 100, 2 * GB));
    struct layout_usage u = took(950, 1025); /* 50 ms of 10 W and 25 ms of 110 W */
    NEAR(u.energy, 0.5 + 2.75);
    NEAR(u.busy_mean, 100 * 25.0 / 75);
    CU_ASSERT(u.flags == 0 && u.samples == 1);
    u = took(530, 1430); /* the step inside */
    NEAR(u.energy, 0.47 * 10 + 0.43 * 110);
    NEAR(u.vram_mean, (0.47 * GB + 0.43 * 2 * GB) / 0.9);
    NEAR(u.busy_peak, 100);
}

static void no_mean_contradicts_its_peak(void)
{
    start_rings();
    tell_every(0, 1000, 100, at(10, 20, GB));
    tell_every(1100, 2000, 100, at(110, 90, 2 * GB));
    struct layout_usage u = took(500, 1050); /* the record after its end is of what came next */
    NEAR(u.vram_peak, GB);
    NEAR(u.vram_mean, GB);
    CU_ASSERT(u.busy_mean > 20 && u.busy_peak >= u.busy_mean);
    CU_ASSERT_EQUAL(u.flags, 0);
    u = took(1000, 1090); /* one sample at its very start: the rest is told by the one after it */
    CU_ASSERT_EQUAL(u.samples, 1);
    CU_ASSERT_EQUAL(u.flags, USAGE_ESTIMATED);
    NEAR(u.vram_peak, 2 * GB);
    NEAR(u.busy_mean, 90);
    NEAR(u.busy_peak, 90);
}

static void times_equal_to_samples_take_the_steps_between(void)
{
    start_rings();
    tell(0, at(1, 10, GB));
    tell(1000, at(20, 30, GB));
    tell(2000, at(40, 50, GB));
    tell(3000, at(1000, 100, 9 * GB));
    struct layout_usage u = took(1000, 2000);
    NEAR(u.energy, 40);
    NEAR(u.busy_mean, 50);
    NEAR(u.busy_peak, 50);
    NEAR(u.vram_peak, GB);
    CU_ASSERT(u.flags == 0 && u.samples == 2);
    u = took(0, 3000);
    NEAR(u.energy, 1060);
    CU_ASSERT(u.flags == 0 && u.samples == 4);
}

static void peaks_are_of_the_inside_only(void)
{
    start_rings();
    tell_every(0, 900, 100, at(10, 99, 9 * GB));
    tell_every(1000, 2000, 100, at(10, 20, 2 * GB));
    tell(1500 + 600, at(10, 60, 5 * GB));
    tell_every(2200, 2500, 100, at(10, 98, 8 * GB));
    struct layout_usage u = took(950, 2150);
    NEAR(u.busy_peak, 60);
    NEAR(u.vram_peak, 5 * GB);
}

static void without_a_sample_inside_the_neighbours_speak(void)
{
    start_rings();
    tell(0, at(10, 0, GB));
    tell(1000, at(50, 100, 3 * GB));
    struct layout_usage u = took(200, 400);
    CU_ASSERT(u.samples == 0 && u.flags == USAGE_ESTIMATED);
    NEAR(u.energy, 10);
    NEAR(u.busy_mean, 100);
    NEAR(u.busy_peak, 100); /* no mean above its peak */
    NEAR(u.vram_peak, 3 * GB);
}

static void after_the_newest_sample_its_load_goes_on(void)
{
    start_rings();
    tell_every(0, 1000, 100, at(30, 50, GB));
    struct layout_usage u = took(500, 1300);
    CU_ASSERT(u.flags == USAGE_ESTIMATED && u.samples == 6);
    NEAR(u.energy, 0.8 * 30);
    NEAR(u.busy_mean, 50);
    u = took(1100, 1200); /* begun after it, too */
    CU_ASSERT(u.flags == USAGE_ESTIMATED && u.samples == 0);
    NEAR(u.energy, 3);
    NEAR(u.sampled_seconds, 0.1);
    NEAR(u.busy_peak, 50);
    u = took(500, 9000); /* but not beyond the gap */
    NEAR(u.seconds, 8.5);
    NEAR(u.sampled_seconds, 2.5);
    NEAR(u.energy, 2.5 * 30);
}

static void far_from_any_sample_nothing_is_known(void)
{
    start_rings();
    tell_every(0, 1000, 100, at(30, 50, GB));
    struct layout_usage u = took(20000, 21000);
    all_unknown(&u);
    CU_ASSERT(u.flags == USAGE_ESTIMATED);
    NEAR(u.seconds, 1);
}

static void before_the_first_sample_nothing_is_known(void)
{
    start_rings();
    tell_every(5000, 6000, 100, at(30, 50, GB));
    struct layout_usage u = took(1000, 2000);
    all_unknown(&u);
    CU_ASSERT(isnan(u.sampled_seconds) && u.flags == (USAGE_PARTIAL | USAGE_ESTIMATED));
    NEAR(u.seconds, 1);
    u = took(4000, 5500); /* begun before it */
    CU_ASSERT(u.flags == USAGE_PARTIAL && u.samples == 6);
    NEAR(u.seconds, 1.5);
    NEAR(u.sampled_seconds, 0.5);
    NEAR(u.energy, 15);
    NEAR(u.busy_mean, 50);
}

static void a_start_beyond_the_ring_is_found_in_the_seconds(void)
{
    start_rings();
    tell_seconds(0, 5, at(100, 90, 7 * GB));
    tell_seconds(5000, 10, at(20, 10, GB)); /* the ring holds 6.4 s of these */
    struct layout_usage u = took(2950, 14500);
    CU_ASSERT(u.flags == 0);
    NEAR(u.energy, (4900 - 2950) / 1000.0 * 100 + (14500 - 4900) / 1000.0 * 20);
    NEAR(u.busy_peak, 90);
    NEAR(u.vram_peak, 7 * GB);
    CU_ASSERT(u.samples > 100 && u.samples <= 116);
    u = took(5000, 14500);
    NEAR(u.busy_peak, 10); /* the seconds before do not count */
    /* The second in which the ring begins is told partly by each. */
    tell(15000, at(20, 10, GB));
    u = took(8000, 14900);
    CU_ASSERT(u.flags == 0);
    NEAR(u.energy, 6.9 * 20);
}

static void the_second_that_the_ring_half_forgot_keeps_its_peak(void)
{
    start_rings();
    tell_seconds(0, 3, at(20, 10, GB));
    tell(3000, at(20, 95, 6 * GB)); /* soon gone from the ring */
    tell_every(3100, 3900, 100, at(20, 10, GB));
    close_second(3000, 3900, 10, at(20, 95, 6 * GB));
    tell_every(4000, 9500, 100, at(20, 10, GB)); /* the ring now begins at 3.2 s */
    struct layout_usage u = took(2000, 9000);
    NEAR(u.busy_peak, 95);
    NEAR(u.vram_peak, 6 * GB);
    NEAR(u.energy, 7 * 20);
}

static void a_start_beyond_both_rings_is_partial(void)
{
    start_rings();
    tell_seconds(0, 60, at(25, 10, GB));
    struct layout_usage u = took(100, 59000);
    CU_ASSERT(u.flags == USAGE_PARTIAL);
    NEAR(u.seconds, 58.9);
    NEAR(u.energy, 25 * u.sampled_seconds);
    NEAR(u.busy_mean, 10);
    CU_ASSERT(u.sampled_seconds > 30 && u.sampled_seconds < 32);
}

static void unknown_metrics_stay_unknown(void)
{
    start_rings();
    struct levels now = at(NAN, NAN, NAN);
    now.throttle = NAN;
    tell_every(0, 2000, 100, now);
    struct usage_request wanted = request(500, 1500);
    wanted.idle_watts = 5;
    struct layout_usage u = took_by(wanted);
    all_unknown(&u);
    NEAR(u.sampled_seconds, 1);
    CU_ASSERT(u.samples == 11 && u.flags == 0);
    /* Known before the start only: no 0 for the time in which it was not. */
    start_rings();
    tell_every(0, 500, 100, at(30, 40, GB));
    tell_every(600, 2000, 100, now);
    u = took(550, 1500);
    all_unknown(&u);
}

static void a_change_of_period_changes_nothing(void)
{
    start_rings();
    tell_every(0, 2000, 500, at(10, 20, GB));
    tell_every(2010, 2300, 10, at(100, 60, GB));
    tell_every(3300, 5300, 1000, at(10, 20, GB));
    struct layout_usage u = took(750, 4800);
    NEAR(u.energy, 1.25 * 10 + 0.3 * 100 + 2.5 * 10);
    NEAR(u.busy_mean, (1.25 * 20 + 0.3 * 60 + 2.5 * 20) / 4.05);
    CU_ASSERT(u.flags == 0);
}

static void sleep_is_not_sampled_and_not_counted(void)
{
    start_rings();
    struct levels asleep = {
        .watts = NAN, .busy = NAN, .vram = NAN, .unified = NAN, .edge = NAN, .throttle = NAN, .state = DEVICE_ASLEEP};
    tell_every(0, 1000, 100, at(40, 50, GB));
    tell_every(1100, 3000, 100, asleep);
    tell_every(3100, 4000, 100, at(40, 50, GB));
    struct layout_usage u = took(500, 3600);
    NEAR(u.seconds, 3.1);
    NEAR(u.sampled_seconds, 1.0);
    NEAR(u.energy, 40);
    NEAR(u.busy_mean, 50);
    CU_ASSERT(u.flags == 0 && u.samples == 12);
    u = took(1500, 2500);
    all_unknown(&u);
    CU_ASSERT(u.sampled_seconds == 0 && u.samples == 0);
    start_rings(); /* the load before a sleep is not carried into it */
    tell_every(0, 1000, 100, at(40, 50, GB));
    tell_every(1100, 1200, 100, asleep);
    u = took(500, 1900);
    NEAR(u.energy, 20);
    NEAR(u.sampled_seconds, 0.5);
}

static void net_energy_is_above_idle_and_never_below_nothing(void)
{
    start_rings();
    tell_every(0, 2000, 100, at(30, 50, GB));
    struct usage_request wanted = request(500, 1500);
    wanted.idle_watts = 12;
    NEAR(took_by(wanted).net_energy, 18);
    wanted.idle_watts = 31;
    CU_ASSERT(took_by(wanted).net_energy == 0);
    wanted.idle_watts = 0;
    CU_ASSERT(isnan(took_by(wanted).net_energy));
    wanted.idle_watts = (double)NAN;
    CU_ASSERT(isnan(took_by(wanted).net_energy));
}

static void a_unified_pool_is_told_apart(void)
{
    start_rings();
    struct levels now = at(30, 50, GB);
    now.unified = 20 * GB;
    tell_every(0, 2000, 100, now);
    struct usage_request wanted = request(500, 2500);
    wanted.unified = true;
    struct layout_usage u = took_by(wanted);
    CU_ASSERT(u.flags == (USAGE_UNIFIED | USAGE_ESTIMATED));
    NEAR(u.vram_mean, 20 * GB);
    NEAR(u.vram_peak, GB);
    NEAR(u.unified_peak, 20 * GB);
}

static void throttled_time_is_counted(void)
{
    start_rings();
    struct levels hot = at(30, 50, GB);
    hot.throttle = 2;
    tell_every(0, 1000, 100, at(30, 50, GB));
    tell_every(1100, 1500, 100, hot);
    tell_every(1600, 2000, 100, at(30, 50, GB));
    NEAR(took(500, 1900).throttled_seconds, 0.5);
    CU_ASSERT(took(100, 900).throttled_seconds == 0);
}

static void a_counter_s_energy_is_known_without_power(void)
{
    start_rings();
    struct levels now = at(NAN, 50, GB);
    for (int ms = 0; ms <= 1000; ms += 100) {
        w.sums[ACCUMULATE_ENERGY] += 5;
        tell(ms, now);
    }
    NEAR(took(200, 600).energy, 20);
}

static void an_empty_ring_says_nothing(void)
{
    start_rings();
    struct layout_usage u = took(0, 1000);
    all_unknown(&u);
    CU_ASSERT(isnan(u.sampled_seconds) && u.samples == 0 && u.flags == (USAGE_PARTIAL | USAGE_ESTIMATED));
    NEAR(u.seconds, 1);
}

static void an_interval_of_no_length_is_harmless(void)
{
    start_rings();
    tell_every(0, 2000, 100, at(30, 50, GB));
    struct layout_usage u = took(1050, 1050);
    CU_ASSERT(u.seconds == 0 && isnan(u.energy) && isnan(u.busy_mean));
    struct usage_request backwards = {.start_ns = ns(900), .end_ns = ns(300), .gap_ns = UINT64_C(2000000000)};
    u = took_by(backwards);
    CU_ASSERT(u.seconds == 0 && isnan(u.energy));
}

static void sums_that_go_back_are_unknown(void)
{
    start_rings();
    tell_every(0, 1000, 100, at(30, 50, GB));
    w.sums[ACCUMULATE_ENERGY] = -100;
    w.sums[ACCUMULATE_BUSY] = (double)INFINITY;
    tell_every(1100, 2000, 100, at(30, 50, GB));
    struct layout_usage u = took(500, 1500);
    CU_ASSERT(isnan(u.energy) && isnan(u.busy_mean));
    NEAR(u.vram_mean, GB);
}

static bool plausible(double value) { return isnan(value) || (isfinite(value) && value >= 0); }

static void garbage_gives_numbers_or_nothing_and_quickly(void)
{
    uint64_t began = clock_mono_ns(), seed = 88172645463325252u;
    for (int round = 0; round < 2000; round++) {
        start_rings();
        tell_seconds(0, 3, at(30, 50, GB));
        uint64_t *words[2] = {(uint64_t *)(void *)w.fine_memory, (uint64_t *)(void *)w.coarse_memory};
        size_t counts[2] = {sizeof w.fine_memory / 8, sizeof w.coarse_memory / 8};
        for (int hit = 0; hit < 200; hit++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            size_t place = (seed >> 20) % counts[hit % 2];
            if (place % 64 != 16) /* stamps stay, so that records are read */
                words[hit % 2][place] = seed * 0x9E3779B97F4A7C15u;
        }
        struct layout_usage u = took(round % 3000, round % 3000 + round % 997);
        CU_ASSERT(plausible(u.energy) && plausible(u.net_energy) && plausible(u.busy_mean) && plausible(u.vram_mean));
        CU_ASSERT(plausible(u.sampled_seconds) && plausible(u.throttled_seconds) && plausible(u.seconds));
    }
    start_rings();
    tell_seconds(0, 3, at(30, 50, GB));
    word_set(&w.fine.header->head, UINT64_MAX - 5);
    word_set(&w.coarse.header->head, 17);
    (void)took(0, 2000);
    memset(w.fine_memory, 0xFF, sizeof w.fine_memory);
    memset(w.coarse_memory, 0xFF, sizeof w.coarse_memory);
    (void)took(0, 2000);
    CU_ASSERT(clock_mono_ns() - began < UINT64_C(20000000000));
}

TESTS({"constant_load_gives_its_levels", constant_load_gives_its_levels},
      {"edges_between_samples_are_interpolated", edges_between_samples_are_interpolated},
      {"no_mean_contradicts_its_peak", no_mean_contradicts_its_peak},
      {"times_equal_to_samples_take_the_steps_between", times_equal_to_samples_take_the_steps_between},
      {"peaks_are_of_the_inside_only", peaks_are_of_the_inside_only},
      {"without_a_sample_inside_the_neighbours_speak", without_a_sample_inside_the_neighbours_speak},
      {"after_the_newest_sample_its_load_goes_on", after_the_newest_sample_its_load_goes_on},
      {"far_from_any_sample_nothing_is_known", far_from_any_sample_nothing_is_known},
      {"before_the_first_sample_nothing_is_known", before_the_first_sample_nothing_is_known},
      {"a_start_beyond_the_ring_is_found_in_the_seconds", a_start_beyond_the_ring_is_found_in_the_seconds},
      {"the_second_that_the_ring_half_forgot_keeps_its_peak", the_second_that_the_ring_half_forgot_keeps_its_peak},
      {"a_start_beyond_both_rings_is_partial", a_start_beyond_both_rings_is_partial},
      {"unknown_metrics_stay_unknown", unknown_metrics_stay_unknown},
      {"a_change_of_period_changes_nothing", a_change_of_period_changes_nothing},
      {"sleep_is_not_sampled_and_not_counted", sleep_is_not_sampled_and_not_counted},
      {"net_energy_is_above_idle_and_never_below_nothing", net_energy_is_above_idle_and_never_below_nothing},
      {"a_unified_pool_is_told_apart", a_unified_pool_is_told_apart}, {"throttled_time_is_counted", throttled_time_is_counted},
      {"a_counter_s_energy_is_known_without_power", a_counter_s_energy_is_known_without_power},
      {"an_empty_ring_says_nothing", an_empty_ring_says_nothing},
      {"an_interval_of_no_length_is_harmless", an_interval_of_no_length_is_harmless},
      {"sums_that_go_back_are_unknown", sums_that_go_back_are_unknown},
      {"garbage_gives_numbers_or_nothing_and_quickly", garbage_gives_numbers_or_nothing_and_quickly})
