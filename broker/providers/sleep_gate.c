#include "broker/providers/sleep_gate.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)
static const uint64_t IDLE_NS = 10 * SECOND;
static const uint64_t IDLE_MOST_NS = 320 * SECOND;
static const uint64_t QUIET_EXTRA_NS = 2 * SECOND;
/* Navi firmware shows activity and clocks too high for 9 to 15 s after a wake (rocm-systems#8024). */
static const uint64_t SETTLE_NS = 15 * SECOND;

void sleep_gate_init(struct sleep_gate *gate, const char *device)
{
    memset(gate, 0, sizeof *gate);
    io_file_init(&gate->status, "%s/power/runtime_status", device);
    io_file_init(&gate->control, "%s/power/control", device);
    io_file_init(&gate->delay, "%s/power/autosuspend_delay_ms", device);
    gate->patience_ns = IDLE_NS;
}

void sleep_gate_close(struct sleep_gate *gate, struct io *io)
{
    io_file_close(io, &gate->status);
    io_file_close(io, &gate->control);
    io_file_close(io, &gate->delay);
}

/* suspended, suspending and resuming are the states in which a read wakes, waits or fails. A missing file, "active",
 * "unsupported" and "error" are a device that is on (Documentation/power/runtime_pm.rst). */
static bool is_asleep(struct sleep_gate *gate, struct io *io)
{
    char text[32];
    if (io_file_read(io, &gate->status, text, sizeof text) < 0)
        return false;
    return strcmp(text, "suspended") == 0 || strcmp(text, "suspending") == 0 || strcmp(text, "resuming") == 0;
}

enum sleep_verdict sleep_gate_check(struct sleep_gate *gate, struct io *io, uint64_t mono_ns)
{
    if (is_asleep(gate, io)) {
        gate->was_asleep = true;
        gate->idle = false;
        gate->quiet_until_ns = 0;
        gate->patience_ns = IDLE_NS;
        return SLEEP_ASLEEP;
    }
    if (gate->was_asleep) {
        gate->was_asleep = false;
        gate->settle_until_ns = mono_ns + SETTLE_NS;
    }
    if (mono_ns < gate->quiet_until_ns)
        return SLEEP_LETTING;
    if (gate->quiet_until_ns) {
        /* It did not fall asleep: something else holds it, such as a screen. Look, and try again, but later each time. */
        gate->quiet_until_ns = 0;
        gate->idle = false;
        gate->patience_ns = gate->patience_ns < IDLE_MOST_NS ? gate->patience_ns * 2 : IDLE_MOST_NS;
    }
    return mono_ns < gate->settle_until_ns ? SLEEP_SETTLING : SLEEP_READ;
}

/* How long to look away, or 0 where the kernel would not put it to sleep anyway. */
static uint64_t quiet_time_ns(struct sleep_gate *gate, struct io *io)
{
    char control[16];
    int64_t delay_ms = 5000;
    if (io_file_read(io, &gate->control, control, sizeof control) < 0 || strcmp(control, "auto") != 0)
        return 0;
    (void)io_file_i64(io, &gate->delay, &delay_ms);
    if (delay_ms < 0 || delay_ms > 600000) /* negative: never */
        return 0;
    return (uint64_t)delay_ms * 1000000 + QUIET_EXTRA_NS;
}

void sleep_gate_report(struct sleep_gate *gate, struct io *io, uint64_t mono_ns, bool busy)
{
    if (busy) {
        gate->idle = false;
        gate->patience_ns = IDLE_NS;
        return;
    }
    if (!gate->idle) {
        gate->idle = true;
        gate->idle_since_ns = mono_ns;
    }
    if (mono_ns - gate->idle_since_ns < gate->patience_ns)
        return;
    uint64_t quiet = quiet_time_ns(gate, io);
    if (quiet)
        gate->quiet_until_ns = mono_ns + quiet;
    gate->idle = quiet != 0;
}

void sleep_gate_mark(enum sleep_verdict verdict, struct sample *sample)
{
    switch (verdict) {
    case SLEEP_ASLEEP:
        sample->state = DEVICE_ASLEEP;
        sample_all_unknown(sample, REASON_ASLEEP);
        break;
    case SLEEP_LETTING: sample_all_unknown(sample, REASON_LETTING_SLEEP); break;
    case SLEEP_SETTLING:
        sample->state = DEVICE_SETTLING;
        sample_flag(sample, QUALITY_SETTLING);
        break;
    case SLEEP_READ: break;
    }
}
