/* Simulated devices: the numbers that the page and the tests of others count on. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "broker/providers/sim_models.h"
#include "broker/providers/sim_table.h"
#include "probe.h"
#include "tests/unit/check.h"

#define GIB 1073741824.0
static struct probe probe;

static void run_specs(const char *const *specs, int count, const char *load)
{
    probe_prepare(&probe, "sim", "/nowhere");
    probe.context.simulate = specs;
    probe.context.simulate_count = count;
    probe.context.sim_load = load;
    CU_ASSERT_EQUAL_FATAL(probe_run(&probe), 0);
}

static void run(const char *spec, const char *load)
{
    static const char *specs[1];
    specs[0] = spec;
    run_specs(specs, 1, load);
}

static void instinct_cards_show_the_numbers_asked_for(void)
{
    static const struct {
        const char *spec;
        double gib, watts, junction, gfx, memory;
    } cards[] = {{"mi300x", 192, 600, 80, 85, 40},
                 {"mi325x", 256, 800, 82, 85, 45},
                 {"mi355x", 288, 1100, 85, 88, 50},
                 {"mi250x", 128, 450, 75, 80, 35}};
    for (int i = 0; i < 4; i++) {
        run(cards[i].spec, NULL);
        CU_ASSERT_EQUAL(probe.count, 8);
        probe_sample(&probe, 7);
        CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), (uint64_t)(cards[i].gib * GIB));
        CU_ASSERT_DOUBLE_EQUAL((double)probe_u64(&probe, METRIC_VRAM_USED), 0.9 * cards[i].gib * GIB, 1);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), cards[i].watts);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_JUNCTION), cards[i].junction);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), cards[i].gfx);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_MEMORY_BUSY), cards[i].memory);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_TEMPERATURE_EDGE), REASON_NOT_SUPPORTED);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_MEDIA_BUSY), REASON_NOT_SUPPORTED);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_FAN_RPM), REASON_NOT_SUPPORTED);
        CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_FAN_PERCENT), REASON_NOT_SUPPORTED);
        probe_stop(&probe);
    }
}

static void strix_halo_has_one_pool(void)
{
    run("strix-halo", "static");
    CU_ASSERT_EQUAL(probe.count, 1);
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "sim:strix-halo:0");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].arch, "gfx1151");
    CU_ASSERT_EQUAL(probe.devices[0].pool, POOL_UNIFIED);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_TOTAL), 536870912);
    CU_ASSERT_DOUBLE_EQUAL((double)probe_u64(&probe, METRIC_GTT_TOTAL) / GIB, 62.47, 0.005);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_UNIFIED_TOTAL),
                    probe_u64(&probe, METRIC_VRAM_TOTAL) + probe_u64(&probe, METRIC_GTT_TOTAL));
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_UNIFIED_USED),
                    probe_u64(&probe, METRIC_VRAM_USED) + probe_u64(&probe, METRIC_GTT_USED));
    probe_stop(&probe);
}

static void every_model_is_plausible_and_called_simulated(void)
{
    for (int i = 0; i < sim_model_count; i++) {
        const struct sim_model *model = &sim_models[i];
        CU_ASSERT_EQUAL(sim_check_spec(model->name, NULL, 0), 0);
        CU_ASSERT(strstr(sim_model_list(), model->name) != NULL);
        run(model->name, "wave");
        CU_ASSERT_EQUAL(probe.devices[0].simulated, 1);
        CU_ASSERT(strstr(probe.devices[0].name, "(simulated)") != NULL);
        CU_ASSERT_STRING_EQUAL(probe.devices[0].pci, "");
        for (int t = 0; t < 80 && !model->broken; t++) {
            probe_sample(&probe, 0);
            for (int m = 0; m < METRIC_COUNT; m++)
                CU_ASSERT(!probe_known(&probe, m) ||
                          metrics_as_double(&metrics_table(false, &(int){0})[m], probe.sample.values[m]) >= 0);
            CU_ASSERT(probe_u64(&probe, METRIC_VRAM_USED) <= probe_u64(&probe, METRIC_VRAM_TOTAL));
            CU_ASSERT(probe_f64(&probe, METRIC_GFX_BUSY) <= 100);
            CU_ASSERT(probe_f64(&probe, METRIC_POWER_NOW) <= probe_f64(&probe, METRIC_POWER_CAP));
            CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_QUALITY), 0);
            probe_forward_ms(&probe, 100);
        }
        probe_stop(&probe);
    }
}

static void broken_knows_nothing_for_every_reason(void)
{
    unsigned seen = 0;
    run("broken", NULL);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.sample.valid[0] | probe.sample.valid[1], 0);
    for (int m = 0; m < METRIC_COUNT; m++)
        seen |= 1u << probe_reason(&probe, m);
    CU_ASSERT_EQUAL(seen, (1u << REASON_COUNT) - 2); /* all but "it is known" */
    probe_stop(&probe);
}

static void the_workflow_keeps_its_script(void)
{
    static const struct {
        uint64_t at_ms;
        double power, memory, busy;
    } steps[] = {{0, .40, .50, 20},    {1999, .40, .50, 20}, {2000, .95, .80, 98}, {7999, .95, .80, 98},
                 {8000, .60, .90, 60}, {9999, .60, .90, 60}, {10000, .40, .50, 20}};
    run("rx7900xtx", "workflow");
    uint64_t start = probe.fault.now; /* a multiple of ten seconds */
    CU_ASSERT_EQUAL(start % UINT64_C(10000000000), 0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        probe.fault.now = start + steps[i].at_ms * 1000000;
        probe_sample(&probe, 0);
        CU_ASSERT_DOUBLE_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), steps[i].power * 355, 1e-9);
        CU_ASSERT_DOUBLE_EQUAL((double)probe_u64(&probe, METRIC_VRAM_USED), steps[i].memory * 24 * GIB, 1);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), steps[i].busy);
    }
    probe_stop(&probe);
}

static double energy_at(uint64_t now)
{
    probe.fault.now = now;
    probe_sample(&probe, 0);
    return probe_f64(&probe, METRIC_ENERGY);
}

/* Also from another worker: the energy hangs on the clock alone. */
static void energy_is_the_integral_of_power_and_survives_a_restart(void)
{
    static const char *const loads[] = {"static", "wave", "workflow"};
    for (int i = 0; i < 3; i++) {
        const uint64_t step = 1000000, start = UINT64_C(777000000000);
        run("mi300x:1", loads[i]);
        double before = energy_at(start), last = before, sum = 0;
        for (uint64_t t = 0; t < 20000; t++) {
            double energy = energy_at(start + t * step);
            CU_ASSERT(energy >= last);
            last = energy;
            sum += probe_f64(&probe, METRIC_POWER_NOW) * 0.001;
        }
        double after = energy_at(start + 20000 * step);
        CU_ASSERT_DOUBLE_EQUAL(after - before, sum, 0.001 * sum);
        probe_stop(&probe);
        run("mi300x:1", loads[i]);
        CU_ASSERT_DOUBLE_EQUAL(energy_at(start + 20000 * step), after, 1e-6);
        probe_stop(&probe);
    }
    run("rtx4090", "workflow");
    CU_ASSERT_DOUBLE_EQUAL(energy_at(UINT64_C(20000000000)) - energy_at(UINT64_C(10000000000)), 7.7 * 450, 1e-6);
    probe_stop(&probe);
}

static void specs_are_checked(void)
{
    static const char *const good[] = {"mi300x", "mi300x:1", "broken:64", "strix-halo:08"};
    static const char *const bad[] = {"",          "mi",        "mi300x:",    "mi300x:0", "mi300x:65",
                                      "mi300x:-1", "mi300x:1x", "mi300x:100", "MI300X",   ":3"};
    char message[256];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CU_ASSERT_EQUAL(sim_check_spec(good[i], message, sizeof message), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        message[0] = '\0';
        CU_ASSERT_EQUAL(sim_check_spec(bad[i], message, sizeof message), -1);
        CU_ASSERT(message[0] != '\0');
    }
    CU_ASSERT_EQUAL(sim_check_spec("gtx", message, sizeof message), -1);
    CU_ASSERT(strstr(message, "strix-halo") != NULL);
    CU_ASSERT_EQUAL(sim_check_load("wave", message, sizeof message), 0);
    CU_ASSERT_EQUAL(sim_check_load("waves", message, sizeof message), -1);
}

static void the_environment_asks_too(void)
{
    char spec[64] = "";
    (void)unsetenv("GPUTAP_SIM");
    CU_ASSERT_EQUAL(sim_from_environment(spec, sizeof spec), 0);
    (void)setenv("GPUTAP_SIM", "1", 1);
    (void)setenv("GPUTAP_SIM_MODEL", "rtx4090", 1);
    (void)setenv("GPUTAP_SIM_NUM_GPUS", "3", 1);
    CU_ASSERT_EQUAL(sim_from_environment(spec, sizeof spec), 1);
    CU_ASSERT_STRING_EQUAL(spec, "rtx4090:3");
    (void)setenv("GPUTAP_SIM_MODEL", "voodoo", 1);
    (void)setenv("GPUTAP_SIM_NUM_GPUS", "many", 1);
    CU_ASSERT_EQUAL(sim_from_environment(spec, sizeof spec), 1);
    CU_ASSERT_STRING_EQUAL(spec, "mi300x:8");
    (void)setenv("GPUTAP_SIM", "0", 1);
    CU_ASSERT_EQUAL(sim_from_environment(spec, sizeof spec), 0);
    (void)unsetenv("GPUTAP_SIM");
    (void)unsetenv("GPUTAP_SIM_MODEL");
    (void)unsetenv("GPUTAP_SIM_NUM_GPUS");
}

static void overrides_hold_and_bad_ones_fall_back(void)
{
    static const char *const bad[] = {"nan", "inf", "abc", "12x", "-50", "20000"};
    (void)setenv("GPUTAP_SIM_GFX_ACTIVITY", "12.5", 1);
    (void)setenv("GPUTAP_SIM_POWER_W", "333", 1);
    (void)setenv("GPUTAP_SIM_TEMP_C", "50", 1);
    (void)setenv("GPUTAP_SIM_VRAM_USED_FRACTION", "0.25", 1);
    run("rx7900xtx", "workflow");
    double before = energy_at(UINT64_C(5000000000));
    CU_ASSERT_DOUBLE_EQUAL(energy_at(UINT64_C(9000000000)) - before, 4 * 333, 1e-6);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 12.5);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 333);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 50);
    CU_ASSERT_EQUAL(probe_u64(&probe, METRIC_VRAM_USED), (uint64_t)(6 * GIB));
    probe_stop(&probe);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)setenv("GPUTAP_SIM_GFX_ACTIVITY", bad[i], 1);
        (void)setenv("GPUTAP_SIM_POWER_W", bad[i], 1);
        (void)setenv("GPUTAP_SIM_TEMP_C", bad[i], 1);
        (void)setenv("GPUTAP_SIM_VRAM_USED_FRACTION", bad[i], 1);
        run("mi300x:1", NULL);
        probe_sample(&probe, 0);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_GFX_BUSY), 85);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_NOW), 600);
        CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_JUNCTION), 80);
        CU_ASSERT_DOUBLE_EQUAL((double)probe_u64(&probe, METRIC_VRAM_USED), 0.9 * 192 * GIB, 1);
        probe_stop(&probe);
    }
    (void)unsetenv("GPUTAP_SIM_GFX_ACTIVITY");
    (void)unsetenv("GPUTAP_SIM_POWER_W");
    (void)unsetenv("GPUTAP_SIM_TEMP_C");
    (void)unsetenv("GPUTAP_SIM_VRAM_USED_FRACTION");
}

static void models_add_up_and_indexes_hold_in_a_worker_of_one(void)
{
    static const char *const specs[] = {"rtx4090:2", "mi300x:3", "rtx4090:1"};
    run_specs(specs, 3, NULL);
    CU_ASSERT_EQUAL(probe.count, 6);
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "sim:mi300x:0");
    CU_ASSERT_STRING_EQUAL(probe.devices[2].id, "sim:mi300x:2");
    CU_ASSERT_STRING_EQUAL(probe.devices[5].id, "sim:rtx4090:2");
    CU_ASSERT_EQUAL(probe_discover(&probe), -EAGAIN);
    probe_sample(&probe, 6);
    CU_ASSERT_EQUAL(probe.result, -ENODEV);
    probe_stop(&probe);
    (void)setenv("GPUTAP_SIM_FAULT", "4:error", 1);
    probe_prepare(&probe, "sim", "/nowhere");
    probe.context.simulate = specs;
    probe.context.simulate_count = 3;
    probe.context.only = "sim:rtx4090:1";
    CU_ASSERT_EQUAL(probe_run(&probe), 0);
    CU_ASSERT_EQUAL(probe.count, 1);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_reason(&probe, METRIC_GFX_BUSY), REASON_ERROR);
    probe_stop(&probe);
    (void)unsetenv("GPUTAP_SIM_FAULT");
}

static void nothing_is_simulated_unasked(void)
{
    CU_ASSERT_EQUAL(probe_start(&probe, "sim", "/nowhere"), -ENOENT);
    probe_stop(&probe);
}

TESTS({"instinct_cards_show_the_numbers_asked_for", instinct_cards_show_the_numbers_asked_for},
      {"strix_halo_has_one_pool", strix_halo_has_one_pool},
      {"every_model_is_plausible_and_called_simulated", every_model_is_plausible_and_called_simulated},
      {"broken_knows_nothing_for_every_reason", broken_knows_nothing_for_every_reason},
      {"the_workflow_keeps_its_script", the_workflow_keeps_its_script},
      {"energy_is_the_integral_of_power_and_survives_a_restart", energy_is_the_integral_of_power_and_survives_a_restart},
      {"specs_are_checked", specs_are_checked}, {"the_environment_asks_too", the_environment_asks_too},
      {"overrides_hold_and_bad_ones_fall_back", overrides_hold_and_bad_ones_fall_back},
      {"models_add_up_and_indexes_hold_in_a_worker_of_one", models_add_up_and_indexes_hold_in_a_worker_of_one},
      {"nothing_is_simulated_unasked", nothing_is_simulated_unasked})
