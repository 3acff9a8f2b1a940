#include "broker/providers/levelzero_layout.h"

#include <math.h>
#include <string.h>

/* Offsets as compiled from zes_api.h 1.17: stype 0, pNext 8, currentVoltage 16, request 24, tdp 32, efficient 40, actual 48,
 * throttleReasons 56. */
enum { VOLTAGE_AT = 16, ACTUAL_AT = 48 };

/* Negative is the library's "unknown". */
static double known(const uint8_t *bytes)
{
    double value;
    memcpy(&value, bytes, sizeof value);
    return isfinite(value) && value >= 0 ? value : NAN;
}

struct levelzero_frequency levelzero_frequency(const uint8_t state[LEVELZERO_FREQUENCY_BYTES])
{
    return (struct levelzero_frequency){.mhz = known(state + ACTUAL_AT), .volts = known(state + VOLTAGE_AT)};
}
