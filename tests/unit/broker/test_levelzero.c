/* Layouts of Level Zero, on bytes of a public report (XPUSYS 1.0.5). */
#include <math.h>

#include "broker/providers/levelzero_layout.h"
#include "tests/unit/check.h"

/* T10: stype 0x1b; voltage 1.025, request 4250, tdp 2850, efficient 400, actual 2850. */
static const uint8_t state[LEVELZERO_FREQUENCY_BYTES] = {
    0x1b, 0,    0,    0,    0, 0, 0, 0,    0,    0,    0,    0,    0, 0, 0, 0,    0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
    0xf0, 0x3f, 0,    0,    0, 0, 0, 0x9a, 0xb0, 0x40, 0,    0,    0, 0, 0, 0x44, 0xa6, 0x40, 0,    0,    0,    0,
    0,    0,    0x79, 0x40, 0, 0, 0, 0,    0,    0x44, 0xa6, 0x40, 0, 0, 0, 0,    0,    0,    0,    0};

static void clock_is_the_actual_one(void)
{
    struct levelzero_frequency got = levelzero_frequency(state);
    CU_ASSERT_EQUAL(got.mhz, 2850);
    CU_ASSERT_DOUBLE_EQUAL(got.volts, 1.025, 1e-12);
}

static void unknown_clock_is_never_the_requested_one(void)
{
    uint8_t bytes[sizeof state];
    const double values[] = {-1.0, NAN, INFINITY};
    for (size_t i = 0; i < 3; i++) {
        memcpy(bytes, state, sizeof bytes);
        memcpy(bytes + 48, &values[i], sizeof values[i]);
        CU_ASSERT_TRUE(isnan(levelzero_frequency(bytes).mhz));
        CU_ASSERT_DOUBLE_EQUAL(levelzero_frequency(bytes).volts, 1.025, 1e-12);
    }
}

TESTS({"clock_is_the_actual_one", clock_is_the_actual_one},
      {"unknown_clock_is_never_the_requested_one", unknown_clock_is_never_the_requested_one})
