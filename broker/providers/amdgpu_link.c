/* The PCIe link, and packets sent again. What is not in the firmware's table is read once a second.
 *
 * pcie_bw is never opened: its driver counts for a second while the reader waits (msleep in {cik,si,vi,soc15}_get_pcie_usage), it
 * counts packets and no bytes, and cards from Navi10 on do not have it. pcie_bandwidth_inst of the MI300 tables is one number
 * for both directions, and so neither pcie_rx nor pcie_tx. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "broker/providers/amdgpu.h"

#define SECOND UINT64_C(1000000000)
enum { SOUND_BITS = 40 /* no link has sent that many packets again: sentinels and torn reads have */ };

int amdgpu_link_now(const char *text, double *speed, uint64_t *width)
{
    int result = -ENODATA;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        double rate;
        unsigned lanes;
        size_t length = strcspn(line, "\n");
        if (memchr(line, '*', length) && sscanf(line, "%*u: %lfGT/s, x%u", &rate, &lanes) == 2 && rate > 0 && rate <= 256 &&
            lanes >= 1 && lanes <= 32) {
            *speed = rate;
            *width = lanes;
            result = 0;
        }
    }
    return result;
}

/* The firmware's table tells a real link in tenths of GT/s: what is none of PCIe's rates is something else. */
static bool table_link(const struct gpu_metrics *table, double *speed, uint64_t *width)
{
    static const double rates[] = {2.5, 5, 8, 16, 32, 64};
    double lanes = table->values[GM_LINK_WIDTH];
    if (!table->known[GM_LINK_WIDTH] || !table->known[GM_LINK_SPEED] || !(lanes >= 1 && lanes <= 32))
        return false;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        if (fabs(table->values[GM_LINK_SPEED] - rates[i]) < 0.01) {
            *speed = rates[i];
            *width = (uint64_t)lanes;
            return true;
        }
    return false;
}

/* pp_dpm_pcie, or the bridges: on Vega10 and later the endpoint's own file tells of a wire on the card (RX 9070: 32 GT/s where the
 * slot runs at 16). */
static int read_link(struct amdgpu_device *device, struct io *io)
{
    char text[AMDGPU_TEXT];
    int error = amdgpu_file_text(device, io, AMDGPU_LINKS, text, sizeof text);
    if (!error)
        error = amdgpu_link_now(text, &device->link_speed, &device->link_width);
    return error ? pci_link(io, &device->display, &device->link_speed, &device->link_width) : 0;
}

static void read_replays(struct amdgpu_device *device, struct io *io)
{
    uint64_t replays = 0;
    device->replays_error = amdgpu_file_number(device, io, AMDGPU_REPLAYS, &replays);
    if (device->replays_error && device->table.known[GM_REPLAYS]) {
        device->replays_error = 0;
        replays = device->table.bits[GM_REPLAYS];
    }
    if (!device->replays_error && replays >> SOUND_BITS)
        device->replays_error = -EPROTO;
    if (device->replays_error)
        return;
    if (replays < device->replays)
        device->replays_before += device->replays;
    device->replays = replays;
}

void amdgpu_link_sample(struct amdgpu_device *device, struct io *io, struct sample *sample)
{
    bool told = table_link(&device->table, &device->link_speed, &device->link_width);
    if (told)
        device->link_error = 0;
    if (sample->mono_ns >= device->slow_due_ns) {
        device->slow_due_ns = sample->mono_ns + SECOND;
        if (!told)
            device->link_error = read_link(device, io);
        read_replays(device, io);
    }
    pci_link_sample(device->link_error, device->link_speed, device->link_width, sample);
    if (device->replays_error)
        sample_unknown(sample, METRIC_PCIE_REPLAYS, io_reason(device->replays_error));
    else
        sample_u64(sample, METRIC_PCIE_REPLAYS, device->replays_before + device->replays);
}
