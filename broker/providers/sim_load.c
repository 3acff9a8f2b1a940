#include <math.h>
#include <string.h>

#include "broker/providers/sim_models.h"
#include "broker/providers/sim_table.h"
#include "shm/text.h"

#define SECOND UINT64_C(1000000000)
static const double TURN = 6.283185307179586; /* 2 pi */

/* docs: the workflow that `--sim-load workflow` repeats every 10 s.
 *   0 s  load    2 s at 40 % of TGP, half of the memory, gfx 20 %, memory bus 40 %
 *   2 s  sample  6 s at 95 % of TGP, 80 % of the memory, gfx 98 %, memory bus 75 %
 *   8 s  decode  2 s at 60 % of TGP, 90 % of the memory, gfx 60 %, memory bus 50 %
 * A whole round costs 7.7 s times TGP in joules. */
const struct sim_phase sim_phases[SIM_PHASE_COUNT] = {
    {"load", 2 * SECOND, 0.40, 0.50, 20, 40, 0.75},
    {"sample", 6 * SECOND, 0.95, 0.80, 98, 75, 1.00},
    {"decode", 2 * SECOND, 0.60, 0.90, 60, 50, 0.90},
};

static const char *const load_names[SIM_LOAD_COUNT] = {"static", "wave", "workflow"};

int sim_parse_load(const char *load)
{
    for (int i = 0; load && i < SIM_LOAD_COUNT; i++)
        if (strcmp(load, load_names[i]) == 0)
            return i;
    return load ? -1 : SIM_LOAD_STATIC;
}

int sim_check_load(const char *load, char *message, size_t size)
{
    if (sim_parse_load(load) >= 0)
        return 0;
    text_format(message, size, "unknown load \"%s\"; there are static, wave, workflow", load);
    return -1;
}

static double seconds(uint64_t ns) { return (double)ns / 1e9; }

static double model_value(const struct sim_model *model, int metric)
{
    return model->metrics[metric].known ? model->metrics[metric].value : 0;
}

static void moment_static(const struct sim_model *model, uint64_t mono_ns, struct sim_moment *out)
{
    out->gfx_busy = model_value(model, METRIC_GFX_BUSY);
    out->memory_busy = model_value(model, METRIC_MEMORY_BUSY);
    out->memory_fraction = model->memory_fraction;
    out->power = model_value(model, METRIC_POWER_NOW);
    out->warmth = 1;
    out->energy = out->power * seconds(mono_ns);
}

/* One smooth turn in eight seconds, the devices an eighth of a turn apart. The temperature follows the power a little late. */
static void moment_wave(const struct sim_model *model, int device, uint64_t mono_ns, struct sim_moment *out)
{
    const uint64_t period_ns = 8 * SECOND;
    double offset = TURN * (double)(device % 8) / 8;
    double angle = TURN * (double)(mono_ns % period_ns) / (double)period_ns + offset;
    double mean = 0.60 * model->tgp, swing = 0.35 * model->tgp;
    out->gfx_busy = 50 + 45 * sin(angle);
    out->memory_busy = 35 + 25 * sin(angle);
    out->memory_fraction = model->memory_fraction * (0.85 + 0.15 * sin(angle));
    out->power = mean + swing * sin(angle);
    out->warmth = 0.85 + 0.15 * sin(angle - TURN / 12);
    out->energy = mean * seconds(mono_ns) + swing * seconds(period_ns) / TURN * (cos(offset) - cos(angle));
}

static void moment_workflow(const struct sim_model *model, uint64_t mono_ns, struct sim_moment *out)
{
    uint64_t round_ns = 0;
    double round_share = 0; /* of a TGP second */
    for (int i = 0; i < SIM_PHASE_COUNT; i++) {
        round_ns += sim_phases[i].length_ns;
        round_share += sim_phases[i].power_share * seconds(sim_phases[i].length_ns);
    }
    uint64_t left = mono_ns % round_ns, rounds = mono_ns / round_ns;
    double share = round_share * (double)rounds;
    const struct sim_phase *phase = sim_phases;
    while (left >= phase->length_ns) {
        share += phase->power_share * seconds(phase->length_ns);
        left -= phase->length_ns;
        phase++;
    }
    share += phase->power_share * seconds(left);
    out->gfx_busy = phase->gfx_busy;
    out->memory_busy = phase->memory_busy;
    out->memory_fraction = phase->memory_fraction;
    out->power = phase->power_share * model->tgp;
    out->warmth = phase->warmth;
    out->energy = share * model->tgp;
}

void sim_moment_at(const struct sim_model *model, enum sim_load load, int device, uint64_t mono_ns, struct sim_moment *out)
{
    if (load == SIM_LOAD_WAVE)
        moment_wave(model, device, mono_ns, out);
    else if (load == SIM_LOAD_WORKFLOW)
        moment_workflow(model, mono_ns, out);
    else
        moment_static(model, mono_ns, out);
}
