/* Sensors of a device below its hwmon folder, found by label and not by number: what temp2 is differs from card to card. */
#ifndef GPUTAP_BROKER_PROVIDERS_HWMON_H
#define GPUTAP_BROKER_PROVIDERS_HWMON_H

#include "broker/provider.h"
#include "broker/providers/energy_counter.h"

enum hwmon_channel {
    HWMON_EDGE,
    HWMON_JUNCTION,
    HWMON_MEMORY,
    HWMON_POWER_NOW,
    HWMON_POWER_AVERAGE,
    HWMON_POWER_CAP,
    HWMON_SECOND_NOW, /* the second rail: power2 of an APU or of a card with two */
    HWMON_SECOND_AVERAGE,
    HWMON_ENERGY,
    HWMON_SECOND_ENERGY,
    HWMON_FAN,
    HWMON_FAN_2,
    HWMON_FAN_3,
    HWMON_FAN_4,
    HWMON_DUTY,
    HWMON_GFX_CLOCK,
    HWMON_MEMORY_CLOCK,
    HWMON_VOLTAGE_GFX,
    HWMON_CHANNEL_COUNT
};

struct hwmon {
    char device[256];  /* folder of the device, such as /sys/bus/pci/devices/0000:03:00.0 */
    char folder[320];  /* .../hwmon/hwmonN; empty = not resolved */
    uint64_t retry_ns; /* not resolved again before */
    bool refused;      /* a label could not be read: what is known of the folder is not all */
    bool present[HWMON_CHANNEL_COUNT];
    struct io_file files[HWMON_CHANNEL_COUNT];
    double limits[LIMIT_COUNT]; /* criticals in degrees; 0 = unknown */
    double power_critical;      /* W, 0 = unknown: above it the board protects itself; no limit in force */
    double power_default;       /* W, the limit as shipped; 0 = unknown */
    double duty_maximum;
    struct energy_counter energy, second_energy;                               /* of the first rail and of the second */
    enum { HWMON_RAIL_OPEN, HWMON_RAIL_FIRST, HWMON_RAIL_SECOND } energy_rail; /* whose joules are published, for good */
};

void hwmon_init(struct hwmon *hwmon, const char *device);
void hwmon_close(struct hwmon *hwmon, struct io *io);
/* Reads every sensor into the sample: temperatures, power and its limit, energy, fans, clocks, voltage. Where a driver has no
 * power file, power is that of its energy counter (i915, xe). Finds the folder at the first call and again when it is gone: hwmonN
 * may be renumbered. */
void hwmon_sample(struct hwmon *hwmon, struct io *io, struct sample *sample);

/* The file KIND<n>_input in `folder` whose KIND<n>_label is `label` ("temp", "Tctl"); false if there is none. */
bool hwmon_labelled(struct io *io, const char *folder, const char *kind, const char *label, struct io_file *file);

/* Whole, plausible millidegrees to degrees; 511 degrees is what a card that lost its power reads. */
enum { TEMPERATURE_LOW = -40, TEMPERATURE_HIGH = 150 };
enum { POWER_MOST = 3000 /* W: no board draws more, whatever its limits say */, FAN_MOST = 30000, VOLTAGE_MOST = 3000 /* mV */ };
/* What a power may be at most; `cap` is the limit in force, 0 = unknown. */
double hwmon_power_maximum(const struct hwmon *hwmon, double cap);

#endif
