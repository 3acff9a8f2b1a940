#include <math.h>

#include "shm/layout.h"
#include "shm/text.h"
#include "tests/unit/check.h"

static void coarse_places_are_dense_and_in_order(void)
{
    for (int host = 0; host < 2; host++) {
        int count, next = 0;
        const struct metric_info *table = metrics_table(host, &count);
        for (int i = 0; i < count; i++)
            CU_ASSERT_EQUAL(table[i].coarse, table[i].sets & METRIC_SET_HISTORY ? next++ : -1);
        CU_ASSERT(next > 0 && next <= LAYOUT_COARSE_SLOTS);
    }
}

static void names_are_unique_and_found(void)
{
    for (int host = 0; host < 2; host++) {
        int count;
        const struct metric_info *table = metrics_table(host, &count);
        for (int i = 0; i < count; i++)
            CU_ASSERT_EQUAL(metrics_find(host, table[i].name), i);
        CU_ASSERT_EQUAL(metrics_find(host, "nonsense"), -1);
    }
}

static void capsule_set_has_twenty_fields(void)
{
    int count, capsule = 0;
    const struct metric_info *table = metrics_table(false, &count);
    for (int i = 0; i < count; i++)
        capsule += (table[i].sets & METRIC_SET_CAPSULE) != 0;
    CU_ASSERT_EQUAL(capsule, 20);
}

static void doubles_convert_without_overflow(void)
{
    const struct metric_info u64 = {.type = METRIC_U64}, i64 = {.type = METRIC_I64}, f64 = {.type = METRIC_F64};
    CU_ASSERT_EQUAL(metrics_from_double(&u64, 1e300).u64, UINT64_MAX);
    CU_ASSERT_EQUAL(metrics_from_double(&u64, -1).u64, 0);
    CU_ASSERT_EQUAL(metrics_from_double(&u64, NAN).u64, 0);
    CU_ASSERT_EQUAL(metrics_from_double(&i64, 1e300).i64, INT64_MAX);
    CU_ASSERT_EQUAL(metrics_from_double(&i64, -1e300).i64, INT64_MIN);
    CU_ASSERT_EQUAL(metrics_from_double(&f64, 1.5).f64, 1.5);
}

static void texts_of_any_number_are_there(void)
{
    CU_ASSERT_STRING_EQUAL(metrics_reason_text(REASON_ASLEEP), "asleep");
    CU_ASSERT_STRING_EQUAL(metrics_reason_text(4000000000u), "unknown");
    CU_ASSERT_STRING_EQUAL(metrics_state_text(99), "unknown");
    CU_ASSERT_STRING_EQUAL(metrics_pool_text(POOL_UNIFIED), "unified");
}

static void text_carries_no_terminal_controls(void)
{
    char out[32];
    static const char evil[] =
        "a\302\233b\342\200\256c\342\201\246d\302\240e"; /* CSI, two that turn the direction; a no-break space stays */
    text_copy(out, sizeof out, evil, sizeof evil);
    CU_ASSERT_STRING_EQUAL(out, "abcd\302\240e");
    memset(out, 0, sizeof out);
    memcpy(out, "a\302\233", 3);
    CU_ASSERT_FALSE(text_valid(out, sizeof out));
}

static void text_is_cut_at_a_whole_character(void)
{
    char out[8];
    text_copy(out, sizeof out, "abcde\303\251\303\251", 9);
    CU_ASSERT_STRING_EQUAL(out, "abcde\303\251");
    text_copy(out, sizeof out, "abcdef\303\251", 8);
    CU_ASSERT_STRING_EQUAL(out, "abcdef");
    text_copy(out, sizeof out,
              "a\x01\xff"
              "b\n\xed\xa0\x80",
              8); /* control, broken, newline, surrogate */
    CU_ASSERT_STRING_EQUAL(out, "ab");
    CU_ASSERT(text_valid(out, sizeof out));
    memset(out, 'x', sizeof out);
    CU_ASSERT_FALSE(text_valid(out, sizeof out)); /* no end */
}

TESTS({"coarse_places_are_dense_and_in_order", coarse_places_are_dense_and_in_order},
      {"names_are_unique_and_found", names_are_unique_and_found}, {"capsule_set_has_twenty_fields", capsule_set_has_twenty_fields},
      {"doubles_convert_without_overflow", doubles_convert_without_overflow},
      {"texts_of_any_number_are_there", texts_of_any_number_are_there},
      {"text_carries_no_terminal_controls", text_carries_no_terminal_controls},
      {"text_is_cut_at_a_whole_character", text_is_cut_at_a_whole_character})
