/* Energy counters: what is believed, what is not, and what power follows. */
#include "broker/providers/energy_counter.h"
#include "tests/unit/check.h"

#define SECOND UINT64_C(1000000000)
static struct energy_counter counter;
static uint64_t now;

static void begin(double unit, unsigned bits)
{
    energy_counter_init(&counter, unit, bits);
    now = 1000 * SECOND;
}

static enum energy_verdict feed_after_ms(uint64_t ms, uint64_t value)
{
    now += ms * 1000000;
    return energy_counter_feed(&counter, value, now, 656);
}

/* T9, and issue 35 of the research: 414 J in 2.010 s. */
static void power_is_energy_over_time(void)
{
    begin(1e-6, 64);
    CU_ASSERT_EQUAL(feed_after_ms(0, 11031745544), ENERGY_COUNTING);
    CU_ASSERT_FALSE(counter.power_known);
    CU_ASSERT_DOUBLE_EQUAL(energy_counter_joules(&counter), 11031.745544, 1e-9);
    CU_ASSERT_EQUAL(feed_after_ms(2010, 11445745544), ENERGY_COUNTING);
    CU_ASSERT_TRUE(counter.power_known);
    CU_ASSERT_DOUBLE_EQUAL(counter.watts, 205.97, 0.005);
    CU_ASSERT_DOUBLE_EQUAL(energy_counter_joules(&counter), 11445.745544, 1e-9);
}

static void standing_still_is_zero_once_and_then_unknown(void)
{
    begin(1e-6, 64);
    (void)feed_after_ms(0, 11031745544);
    (void)feed_after_ms(2010, 11445745544);
    (void)feed_after_ms(5000, 11445745544);
    CU_ASSERT_TRUE(counter.power_known);
    CU_ASSERT_EQUAL(counter.watts, 0);
    (void)feed_after_ms(5000, 11445745544);
    CU_ASSERT_FALSE(counter.power_known);
    (void)feed_after_ms(5000, 11445745544);
    CU_ASSERT_FALSE(counter.power_known);
    CU_ASSERT_EQUAL(feed_after_ms(5000, 11445745544 + 40000000), ENERGY_COUNTING);
    CU_ASSERT_TRUE(counter.power_known); /* 40 J in the 20 s since it last moved */
    CU_ASSERT_DOUBLE_EQUAL(counter.watts, 2, 1e-9);
}

/* Ticks of 10 ms on a counter that firmware updates each 100 ms. */
static void fast_looks_at_a_slow_counter_give_a_steady_power(void)
{
    begin(1e-6, 64);
    uint64_t value = 5000000;
    (void)feed_after_ms(0, value);
    for (int tick = 1; tick <= 300; tick++) {
        value += tick % 10 == 0 ? 10000000 : 0; /* 100 W */
        CU_ASSERT_EQUAL(feed_after_ms(10, value), ENERGY_COUNTING);
        if (counter.power_known)
            CU_ASSERT_DOUBLE_EQUAL(counter.watts, 100, 1e-6);
        CU_ASSERT_EQUAL(counter.power_known, tick >= 20);
        CU_ASSERT_DOUBLE_EQUAL(energy_counter_joules(&counter), (double)value / 1e6, 1e-6);
    }
}

static void jumps_are_rejected_and_forgotten(void)
{
    begin(1e-6, 64);
    (void)feed_after_ms(0, 11031745544);
    (void)feed_after_ms(1000, 11131745544);
    CU_ASSERT_EQUAL(feed_after_ms(1000, 4000000000000 + 11131745544), ENERGY_REJECTED);
    CU_ASSERT_FALSE(counter.power_known);
    CU_ASSERT_DOUBLE_EQUAL(energy_counter_joules(&counter), 11131.745544, 1e-9);
    CU_ASSERT_EQUAL(feed_after_ms(1000, 11331745544), ENERGY_COUNTING);
    CU_ASSERT_DOUBLE_EQUAL(counter.watts, 100, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(energy_counter_joules(&counter), 11331.745544, 1e-9);
}

static void a_reset_counter_goes_on_from_where_it_was(void)
{
    begin(1e-6, 64);
    (void)feed_after_ms(0, 11031745544);
    (void)feed_after_ms(1000, 11131745544);
    CU_ASSERT_EQUAL(feed_after_ms(1000, 500000), ENERGY_REJECTED);
    CU_ASSERT_EQUAL(feed_after_ms(1000, 100500000), ENERGY_COUNTING); /* the same story twice */
    CU_ASSERT_FALSE(counter.power_known);
    CU_ASSERT_DOUBLE_EQUAL(energy_counter_joules(&counter), 11231.745544, 1e-9);
    CU_ASSERT_EQUAL(feed_after_ms(1000, 200500000), ENERGY_COUNTING);
    CU_ASSERT_DOUBLE_EQUAL(counter.watts, 100, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(energy_counter_joules(&counter), 11331.745544, 1e-9);
}

static void a_counter_at_zero_is_none(void)
{
    begin(1e-6, 64);
    for (int i = 0; i < 10; i++)
        CU_ASSERT_EQUAL(feed_after_ms(1000, 0), ENERGY_NOTHING);
    CU_ASSERT_FALSE(counter.power_known);
    CU_ASSERT_EQUAL(feed_after_ms(1000, 77000000), ENERGY_COUNTING);
}

/* gpu_metrics 1.0 counts in 32 bits of 2^-16 J. */
static void a_narrow_counter_wraps(void)
{
    begin(0x1p-16, 32);
    (void)feed_after_ms(0, 0xffff0000);
    CU_ASSERT_EQUAL(feed_after_ms(1000, 99 * 65536), ENERGY_COUNTING);
    CU_ASSERT_DOUBLE_EQUAL(counter.watts, 100, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(energy_counter_joules(&counter), 65635, 1e-9);
}

static void joules_never_go_back_whatever_is_read(void)
{
    begin(1e-6, 64);
    double before = 0;
    uint64_t noise = 88172645463325252;
    for (int i = 0; i < 100000; i++) {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        uint64_t step = noise % 2000;
        (void)feed_after_ms(step, noise >> (noise % 64));
        double joules = energy_counter_joules(&counter);
        CU_ASSERT_FATAL(joules >= before);
        CU_ASSERT_FATAL(!counter.power_known || (counter.watts >= 0 && counter.watts <= 661));
        before = joules;
    }
}

TESTS({"power_is_energy_over_time", power_is_energy_over_time},
      {"standing_still_is_zero_once_and_then_unknown", standing_still_is_zero_once_and_then_unknown},
      {"fast_looks_at_a_slow_counter_give_a_steady_power", fast_looks_at_a_slow_counter_give_a_steady_power},
      {"jumps_are_rejected_and_forgotten", jumps_are_rejected_and_forgotten},
      {"a_reset_counter_goes_on_from_where_it_was", a_reset_counter_goes_on_from_where_it_was},
      {"a_counter_at_zero_is_none", a_counter_at_zero_is_none}, {"a_narrow_counter_wraps", a_narrow_counter_wraps},
      {"joules_never_go_back_whatever_is_read", joules_never_go_back_whatever_is_read})
