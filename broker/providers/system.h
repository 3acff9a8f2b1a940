/* The parts of the provider "system". Each fills its own metrics and keeps what it needs between two ticks. */
#ifndef GPUTAP_BROKER_PROVIDERS_SYSTEM_H
#define GPUTAP_BROKER_PROVIDERS_SYSTEM_H

#include "broker/provider.h"

/* --- system_cpu.c ----------------------------------------------------------------------------------------------------- */
enum { CPU_CLOCK_FILES = 32, CPU_PACKAGES = 8, CPU_TIMES = 8 };

struct cpu_package {
    struct io_file energy;
    uint64_t range;
    uint64_t last;
    bool have_last;
};

struct system_cpu {
    struct io_file stat;
    uint64_t times[CPU_TIMES];
    bool have_times;
    double busy; /* the last known share, NaN before */

    struct io_file clocks[CPU_CLOCK_FILES];
    int clock_count;
    struct io_file cpuinfo;
    uint64_t clock_due_ns;
    double clock;
    int clock_error;

    struct io_file temperature;
    bool have_temperature;
    uint64_t temperature_due_ns;

    struct cpu_package packages[CPU_PACKAGES];
    int package_count;
    uint64_t power_ns; /* of the last energy read */
};

void system_cpu_init(struct system_cpu *cpu, struct io *io);
void system_cpu_sample(struct system_cpu *cpu, struct io *io, uint64_t mono_ns, struct sample *sample);
void system_cpu_close(struct system_cpu *cpu, struct io *io);

/* --- system_flow.c: memory, disks, network, load ------------------------------------------------------------------------ */
enum { FLOW_ROWS = 64 };

/* A pair of counters of one disk or network device, so that one which comes or goes makes no jump in the sum. */
struct flow_row {
    char name[32];
    bool skipped;
    uint64_t turn; /* of the last sight */
    uint64_t in, out;
};

struct flow {
    struct io_file file;
    struct flow_row rows[FLOW_ROWS];
    int count;
    uint64_t turn;
    uint64_t mono_ns;
};

struct system_flow {
    struct io_file meminfo, loadavg;
    struct flow disks, network;
};

void system_flow_init(struct system_flow *flow);
void system_flow_sample(struct system_flow *flow, struct io *io, uint64_t mono_ns, struct sample *sample);
void system_flow_close(struct system_flow *flow, struct io *io);

/* The number after "\nKEY:" of /proc/meminfo in bytes; false if it is not there. */
bool system_meminfo_bytes(const char *text, const char *key, uint64_t *out);

/* A sensible range for a host metric, which has no quality bits: outside it is unknown. */
void system_within(struct sample *sample, int metric, double value, double low, double high);

#endif
