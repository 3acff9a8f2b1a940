/* The parts of the provider "amdgpu". */
#ifndef GPUTAP_BROKER_PROVIDERS_AMDGPU_H
#define GPUTAP_BROKER_PROVIDERS_AMDGPU_H

#include "broker/providers/gpu_metrics.h"
#include "broker/providers/hwmon.h"
#include "broker/providers/kfd.h"
#include "broker/providers/pci.h"
#include "broker/providers/sleep_gate.h"

enum amdgpu_field {
    AMDGPU_VRAM_TOTAL,
    AMDGPU_VRAM_USED,
    AMDGPU_VISIBLE_TOTAL,
    AMDGPU_VISIBLE_USED,
    AMDGPU_GTT_TOTAL,
    AMDGPU_GTT_USED,
    AMDGPU_GFX_BUSY,
    AMDGPU_MEMORY_BUSY,
    AMDGPU_MEDIA_BUSY,
    AMDGPU_GFX_CLOCKS,
    AMDGPU_MEMORY_CLOCKS,
    AMDGPU_SOC_CLOCKS,
    AMDGPU_MEDIA_CLOCKS,
    AMDGPU_LINKS,
    AMDGPU_REPLAYS,
    AMDGPU_TABLE, /* gpu_metrics */
    AMDGPU_FIELD_COUNT
};

enum { AMDGPU_CLOCK_MOST = 10000 /* MHz */, AMDGPU_TEXT = 2048 /* bytes of a pp_dpm table */ };

/* What throttles, from one look to the next. */
struct amdgpu_throttle {
    bool seen[GM_BY_CPU_HEAT + 1];
    uint64_t times[GM_BY_CPU_HEAT + 1];
};

enum { AMDGPU_DRM_QUESTIONS = 8 };

/* The render node while it is asked for what sysfs lacks. */
struct amdgpu_drm {
    int node;                              /* -1 = not open */
    bool refused;                          /* it may not be opened */
    uint64_t retry_ns;                     /* not opened again before */
    uint64_t ask_ns[AMDGPU_DRM_QUESTIONS]; /* this is not asked again before */
};

struct amdgpu_device {
    struct pci_display display;
    struct layout_device facts;
    bool facts_complete;  /* described while awake; before that only by what does not wake it */
    bool facts_changed;   /* since discovery told them */
    uint64_t host_memory; /* MemTotal; 0 = unknown */

    struct sleep_gate gate;
    struct hwmon hwmon;
    struct amdgpu_drm drm;
    struct io_file files[AMDGPU_FIELD_COUNT];
    bool absent[AMDGPU_FIELD_COUNT]; /* this driver has no such file */

    bool firmware_asked;
    uint32_t smc_firmware;    /* 0 = unknown */
    struct gpu_metrics table; /* of this sample: nothing is known where it could not be read */
    struct energy_counter energy;
    struct amdgpu_throttle throttle;

    uint32_t state; /* of the last sample, enum device_state */
    struct kfd_partition partitions[KFD_MOST_PARTITIONS];
    int partition_count; /* 0 = not divided */

    uint64_t slow_due_ns; /* of what is read once a second */
    int link_error;
    double link_speed;
    uint64_t link_width;
    int replays_error;
    uint64_t replays, replays_before; /* as read; what a reset of the card took off it */
};

/* --- amdgpu_facts.c --------------------------------------------------------------------------------------------------- */
/* What needs no awake device. */
void amdgpu_describe_asleep(struct amdgpu_device *device, struct io *io);
/* The rest, right after a first sample of an awake device: hwmon is resolved then. */
void amdgpu_describe_awake(struct amdgpu_device *device, struct io *io);

/* --- amdgpu_drm.c ----------------------------------------------------------------------------------------------------- */
struct amdgpu_drm_facts {
    char name[96];
    char driver_version[40];
    bool unified; /* the FUSION flag: an APU */
    uint32_t compute_units;
    uint32_t memory_bus_bits;
    const char *memory_type;
    const char *arch; /* where the family has only one; else empty */
};
/* Asks the driver through the render node, which is closed again: an open node may keep the card from sleeping. False below a
 * root, where no node is, or where the driver does not answer. */
bool amdgpu_drm_describe(struct io *io, int render_minor, struct amdgpu_drm_facts *out);

/* --- amdgpu_drm_fill.c ------------------------------------------------------------------------------------------------ */
void amdgpu_drm_init(struct amdgpu_device *device);
/* Fills what is still unknown, though not for an error, from the render node: memory and some sensors. Last of all, and of an
 * awake device only. */
void amdgpu_drm_fill(struct amdgpu_device *device, struct io *io, struct sample *sample);
/* For a device that sleeps or is let go to sleep. */
void amdgpu_drm_close(struct amdgpu_device *device, struct io *io);

/* --- amdgpu_read.c ---------------------------------------------------------------------------------------------------- */
void amdgpu_read_init(struct amdgpu_device *device);
void amdgpu_read_close(struct amdgpu_device *device, struct io *io);
/* The mem_info_ files: they answer from the driver's own books and wake nothing. */
void amdgpu_read_memory(struct amdgpu_device *device, struct io *io, struct sample *sample);
/* Everything of an awake device. */
void amdgpu_read_all(struct amdgpu_device *device, struct io *io, struct sample *sample);
/* The unified pair out of the pairs {total, used} of an APU. */
void amdgpu_sample_unified(const struct amdgpu_device *device, struct sample *sample, const uint64_t vram[2],
                           const uint64_t gtt[2]);
bool amdgpu_is_busy(const struct sample *sample);

/* A number or the text of one of the device's files: 0 or -errno. One that this driver lacks is not asked for again. */
int amdgpu_file_number(struct amdgpu_device *device, struct io *io, enum amdgpu_field field, uint64_t *out);
int amdgpu_file_text(struct amdgpu_device *device, struct io *io, enum amdgpu_field field, char *text, size_t size);

/* --- amdgpu_partition.c ----------------------------------------------------------------------------------------------- */
/* Looks for partitions; true if they have changed. */
bool amdgpu_partitions_find(struct amdgpu_device *card, struct io *io);
void amdgpu_partition_describe(const struct amdgpu_device *card, int index, struct layout_device *out);
/* After the card's own sample of the same tick. Reads nothing. */
void amdgpu_partition_sample(const struct amdgpu_device *card, int index, struct sample *sample);

/* --- amdgpu_metrics.c ------------------------------------------------------------------------------------------------- */
/* Reads gpu_metrics into device->table, once a sample. */
void amdgpu_metrics_read(struct amdgpu_device *device, struct io *io);
/* Fills what hwmon left unknown, and what the table knows best; then, after the other files, with what the firmware has averaged.
 */
void amdgpu_metrics_fill(struct amdgpu_device *device, struct sample *sample);
void amdgpu_metrics_fill_averages(const struct amdgpu_device *device, struct sample *sample);
/* Full load is what a broken sensor says, too: drops it or flags it. */
void amdgpu_metrics_doubt_load(const struct amdgpu_device *device, struct sample *sample);

/* --- amdgpu_throttle.c ------------------------------------------------------------------------------------------------ */
/* `hotspot` and its limit in degrees; NaN and 0 where they are unknown. */
void amdgpu_throttle_sample(struct amdgpu_throttle *throttle, const struct gpu_metrics *table, double hotspot, double limit,
                            struct sample *sample);

/* --- amdgpu_clocks.c -------------------------------------------------------------------------------------------------- */
void amdgpu_clock_sample(struct amdgpu_device *device, struct io *io, struct sample *sample, enum amdgpu_field field, int metric);
void amdgpu_clock_drop_stopped(struct sample *sample, int metric);
/* pp_dpm tables, "1: 848Mhz *" a line: the last line with a star is the state in force. Megahertz or -errno. */
int amdgpu_clock_now(const char *text, double *mhz);
double amdgpu_clock_maximum(const char *text);

/* --- amdgpu_link.c ---------------------------------------------------------------------------------------------------- */
void amdgpu_link_sample(struct amdgpu_device *device, struct io *io, struct sample *sample);
/* pp_dpm_pcie, "1: 16.0GT/s, x16 619Mhz *". */
int amdgpu_link_now(const char *text, double *speed, uint64_t *width);

#endif
