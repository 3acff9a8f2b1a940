/* Two processes that hold each simulated device: one that does its work, one that draws a desktop. The rest of the memory in use
 * is nobody's, as on a real card. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "broker/providers/sim_table.h"
#include "shm/text.h"

/* Above PID_MAX_LIMIT of Linux (4 Mi): no such process can exist. */
enum { SIM_FIRST_PID = 1 << 23 };

static const struct {
    const char *comm;
    double memory_share, busy_share;
} processes[] = {{"sim-workflow", 0.85, 1}, {"sim-desktop", 0.05, 0}};
enum { SIM_PROCESSES = sizeof processes / sizeof processes[0] };

void sim_processes_fill(int device, double vram_used, double gtt_used, double gfx_busy, uint64_t mono_ns,
                        struct layout_process_table *table)
{
    memset(table, 0, sizeof *table);
    table->updated_ns = mono_ns;
    table->count = SIM_PROCESSES;
    for (int i = 0; i < SIM_PROCESSES; i++) {
        struct layout_process *row = &table->rows[i];
        row->pid = (uint32_t)(SIM_FIRST_PID + SIM_PROCESSES * device + i);
        row->uid = (uint32_t)getuid();
        row->vram = isnan(vram_used) ? UINT64_MAX : (uint64_t)(processes[i].memory_share * vram_used);
        row->gtt = isnan(gtt_used) ? UINT64_MAX : (uint64_t)(processes[i].memory_share * gtt_used);
        row->gfx_busy = processes[i].busy_share * gfx_busy;
        row->compute_busy = row->copy_busy = row->encode_busy = row->decode_busy = row->media_busy = (double)NAN;
        text_copy(row->comm, sizeof row->comm, processes[i].comm, strlen(processes[i].comm));
    }
}
