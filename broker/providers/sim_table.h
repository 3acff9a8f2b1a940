/* Simulated models and what they do over time. */
#ifndef GPUTAP_BROKER_PROVIDERS_SIM_TABLE_H
#define GPUTAP_BROKER_PROVIDERS_SIM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/layout.h"

/* A metric that a model does not list is unknown, not zero. */
struct sim_value {
    bool known;
    double value;
};

struct sim_model {
    const char *name;  /* as on the command line */
    const char *title; /* as people know it */
    const char *vendor;
    const char *arch;
    const char *vram_type;
    uint32_t vendor_id, device_id;
    uint32_t pool;
    uint32_t default_count;
    uint32_t compute_units;
    uint32_t vram_bus_bits;
    bool broken; /* every metric unknown, the reasons in turn */
    double tgp;
    double limits[LIMIT_COUNT];
    double memory_fraction; /* of VRAM and of GTT that is in use */
    struct sim_value metrics[METRIC_COUNT];
};

extern const struct sim_model sim_models[];
extern const int sim_model_count;
/* "MODEL[:COUNT]"; NULL if it is none. *count is the model's default where the text has none. */
const struct sim_model *sim_parse_spec(const char *spec, uint32_t *count);

enum sim_load { SIM_LOAD_STATIC, SIM_LOAD_WAVE, SIM_LOAD_WORKFLOW, SIM_LOAD_COUNT };
/* -1 if there is no such load; NULL is static. */
int sim_parse_load(const char *load);

/* The workflow: three phases of a ten-second script that repeats, aligned to multiples of ten seconds of the monotonic clock so
 * that a restarted worker goes on in the same phase. Every model runs it, power being a share of its TGP. */
struct sim_phase {
    const char *name;
    uint64_t length_ns;
    double power_share;     /* of the TGP */
    double memory_fraction; /* of VRAM and of GTT */
    double gfx_busy, memory_busy;
    double warmth; /* of the model's temperatures */
};
enum { SIM_PHASE_COUNT = 3 };
extern const struct sim_phase sim_phases[SIM_PHASE_COUNT];

/* What a load makes of a model at a moment. */
struct sim_moment {
    double gfx_busy, memory_busy, memory_fraction, power, warmth;
    double energy; /* J since the clock's zero: the exact integral of power, so that no restart sets it back */
};
void sim_moment_at(const struct sim_model *model, enum sim_load load, int device, uint64_t mono_ns, struct sim_moment *out);

/* The processes of a device with these levels; NaN = unknown. */
void sim_processes_fill(int device, double vram_used, double gtt_used, double gfx_busy, uint64_t mono_ns,
                        struct layout_process_table *table);

#endif
