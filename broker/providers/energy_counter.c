#include "broker/providers/energy_counter.h"

#include <string.h>

/* Firmware updates some counters ten times a second only: a shorter look would see nothing, then twice as much. */
static const uint64_t LOOK_NS = UINT64_C(200000000);
/* That long without a change is a look as well: a card may truly draw nothing between two slow ticks, but not for ever. */
static const uint64_t STILL_NS = UINT64_C(1000000000);
enum {
    STILL_MOST = 2, /* the third look at one value is a counter that hangs */
    SOUND_BITS = 62 /* no machine has lived long enough for more */
};

void energy_counter_init(struct energy_counter *counter, double unit, unsigned bits)
{
    memset(counter, 0, sizeof *counter);
    counter->unit = unit;
    counter->bits = bits;
}

double energy_counter_joules(const struct energy_counter *counter)
{
    return (double)(counter->total + counter->pending) * counter->unit;
}

static bool step_of(const struct energy_counter *counter, uint64_t from, uint64_t to, uint64_t *step)
{
    *step = to - from;
    if (counter->bits < 64)
        *step &= (UINT64_C(1) << counter->bits) - 1;
    return counter->bits < 64 || to >= from;
}

/* Can the counter have come from there to here? A millisecond is granted to clocks that are read in turn. */
static bool believable(const struct energy_counter *counter, uint64_t from, uint64_t from_ns, uint64_t to, uint64_t to_ns,
                       double most_watts, uint64_t *step)
{
    double seconds = (double)(to_ns - from_ns) / 1e9 + 1e-3;
    return step_of(counter, from, to, step) && (double)*step * counter->unit <= most_watts * seconds;
}

static void start_at(struct energy_counter *counter, uint64_t value, uint64_t mono_ns)
{
    counter->total += counter->pending;
    counter->pending = 0;
    counter->base_value = value;
    counter->base_ns = mono_ns;
    counter->still = 1;
}

/* Twice the same new story is the truth: the counter was reset, or the driver loaded anew. What went by unseen is not counted. */
static enum energy_verdict doubt(struct energy_counter *counter, uint64_t value, uint64_t mono_ns, double most_watts)
{
    uint64_t step;
    bool confirmed =
        counter->doubted && believable(counter, counter->doubt_value, counter->doubt_ns, value, mono_ns, most_watts, &step);
    if (confirmed) {
        counter->doubted = false;
        start_at(counter, value, mono_ns);
        counter->total += step;
        return ENERGY_COUNTING;
    }
    counter->doubted = true;
    counter->doubt_value = value;
    counter->doubt_ns = mono_ns;
    counter->power_known = false;
    return ENERGY_REJECTED;
}

static void look(struct energy_counter *counter, uint64_t value, uint64_t mono_ns, uint64_t step)
{
    uint64_t passed = mono_ns - counter->base_ns;
    counter->pending = step;
    if (step > 0 && passed >= LOOK_NS) {
        counter->watts = (double)step * counter->unit / ((double)passed / 1e9);
        counter->power_known = true;
        start_at(counter, value, mono_ns);
    } else if (step == 0 && passed >= STILL_NS * counter->still) {
        counter->still += counter->still <= STILL_MOST;
        counter->watts = 0;
        counter->power_known = counter->still <= STILL_MOST;
    }
}

enum energy_verdict energy_counter_feed(struct energy_counter *counter, uint64_t value, uint64_t mono_ns, double most_watts)
{
    uint64_t step;
    if (value >> SOUND_BITS)
        return ENERGY_REJECTED;
    counter->moved = counter->moved || value != 0;
    if (!counter->moved)
        return ENERGY_NOTHING; /* B580 on kernel 6.16 has a card counter that stays at zero */
    if (!counter->seen) {
        counter->seen = true;
        counter->total = value;
        start_at(counter, value, mono_ns);
        return ENERGY_COUNTING;
    }
    if (!believable(counter, counter->base_value, counter->base_ns, value, mono_ns, most_watts, &step) || step < counter->pending)
        return doubt(counter, value, mono_ns, most_watts);
    counter->doubted = false;
    look(counter, value, mono_ns, step);
    return ENERGY_COUNTING;
}
