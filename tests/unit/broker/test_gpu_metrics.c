/* gpu_metrics: bytes of real machines against numbers worked out by hand, every row of every version, and bytes that lie. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/gpu_metrics.h"
#include "table_bytes.h"
#include "tests/unit/check.h"

static struct gpu_metrics metrics;

static int parse(const char *hex, size_t padded, uint32_t firmware)
{
    unsigned char bytes[GM_MOST_BYTES] = {0};
    size_t size = table_bytes(hex, bytes, sizeof bytes);
    return gpu_metrics_parse(bytes, padded > size ? padded : size, firmware, &metrics);
}

static void expect(enum gpu_metrics_field field, double value)
{
    CU_ASSERT_TRUE(metrics.known[field]);
    if (!(fabs(metrics.values[field] - value) < 1e-9 * fmax(1, fabs(value))))
        printf("field %d is %.12g, expected %.12g\n", (int)field, metrics.values[field], value);
    CU_ASSERT_DOUBLE_EQUAL(metrics.values[field], value, 1e-9 * fmax(1, fabs(value)));
}

static void expect_unknown(enum gpu_metrics_field field) { CU_ASSERT_FALSE(metrics.known[field]); }

/* MangoHud issues 747 and 731: 87.75 %, not 8775, and a socket power in watts beside parts in milliwatts. */
static void version_2_2_is_in_hundredths_and_one_firmware_in_watts(void)
{
    CU_ASSERT_EQUAL(parse(table_renoir, 128, 0), 0);
    CU_ASSERT_EQUAL(metrics.format, 2);
    CU_ASSERT_EQUAL(metrics.content, 2);
    expect(GM_GFX_BUSY, 87.75);
    expect(GM_MEDIA_BUSY, 0);
    expect(GM_TEMPERATURE_EDGE, 63.25);
    expect(GM_TEMPERATURE_SOC, 59.75);
    expect(GM_POWER_AVERAGE, 18);
    expect(GM_POWER_CPU, 13.412);
    expect(GM_POWER_SOC, 0.835);
    expect_unknown(GM_POWER_GFX);
    expect(GM_GFX_CLOCK_AVERAGE, 1489);
    expect(GM_GFX_CLOCK, 1487);
    expect_unknown(GM_MEMORY_CLOCK_AVERAGE);
    expect(GM_FABRIC_CLOCK, 800);
    expect(GM_DRIVER_CLOCK, 4196688777840.0);
}

static void version_2_1_of_an_idle_phoenix(void)
{
    CU_ASSERT_EQUAL(parse(table_phoenix, 0, 0), 0);
    expect(GM_GFX_BUSY, 0.79);
    expect(GM_TEMPERATURE_EDGE, 25.0);
    expect(GM_TEMPERATURE_SOC, 27.37);
    expect(GM_POWER_AVERAGE, 3.401);
    expect_unknown(GM_POWER_CPU);
    expect(GM_POWER_SOC, 0.743);
    expect(GM_POWER_GFX, 0.585);
    expect(GM_GFX_CLOCK_AVERAGE, 800);
    expect_unknown(GM_GFX_CLOCK);
    expect_unknown(GM_MEMORY_CLOCK);
    expect_unknown(GM_MEDIA_CLOCK);
    expect_unknown(GM_THROTTLE);
}

static void version_3_0_of_a_strix_point(void)
{
    CU_ASSERT_EQUAL(parse(table_strix, 0, 0), 0);
    expect(GM_GFX_BUSY, 3);
    expect(GM_MEDIA_BUSY, 0);
    expect(GM_TEMPERATURE_EDGE, 38.12);
    expect(GM_TEMPERATURE_SOC, 40.62);
    expect(GM_TEMPERATURE_SKIN, 35.98);
    expect(GM_DRAM_READ, 2504e6);
    expect(GM_DRAM_WRITE, 637e6);
    expect(GM_POWER_AVERAGE, 9.839);
    expect(GM_POWER_APU, 9.839);
    expect(GM_POWER_GFX, 1.536);
    expect(GM_POWER_ALL_CORES, 2.499);
    expect(GM_GFX_CLOCK_AVERAGE, 849);
    expect(GM_MEMORY_CLOCK_AVERAGE, 836);
    expect(GM_FABRIC_CLOCK, 1162);
    expect(GM_MEDIA_CLOCK_AVERAGE, 800);
    static const uint64_t times[] = {28, 1868, 92382, 257, 1795, 0, 0};
    static const int by[] = {GM_BY_PROCHOT,  GM_BY_POWER, GM_BY_FAST_POWER, GM_BY_SLOW_POWER,
                             GM_BY_CPU_HEAT, GM_BY_HEAT,  GM_BY_OTHER_HEAT};
    for (int i = 0; i < 7; i++)
        CU_ASSERT_EQUAL(metrics.bits[GM_THROTTLE_TIMES + by[i]], times[i]);
}

static void an_older_strix_firmware_is_in_hundredths(void)
{
    CU_ASSERT_EQUAL(parse(table_strix, 0, 0x5d4600), 0);
    expect(GM_GFX_BUSY, 0.03);
    CU_ASSERT_EQUAL(parse(table_strix, 0, 0x5d4601), 0);
    expect(GM_GFX_BUSY, 3);
}

static void version_1_3_padded_to_a_page(void)
{
    CU_ASSERT_EQUAL(parse(table_navi21, 4096, 0), 0);
    expect(GM_TEMPERATURE_EDGE, 56);
    expect(GM_TEMPERATURE_HOTSPOT, 59);
    expect(GM_TEMPERATURE_MEMORY, 54);
    expect(GM_GFX_BUSY, 3);
    expect(GM_POWER_AVERAGE, 36);
    expect(GM_ENERGY, 17691682.0 / 65536);
    expect(GM_GFX_CLOCK, 500);
    expect(GM_MEMORY_CLOCK, 1000);
    expect(GM_LINK_WIDTH, 16);
    expect(GM_LINK_SPEED, 16);
    expect(GM_VOLTAGE_GFX, 775);
    expect(GM_THROTTLE, 0);
}

static void version_1_3_of_a_card_whose_graphics_are_off(void)
{
    CU_ASSERT_EQUAL(parse(table_navi33, 0, 0), 0);
    expect_unknown(GM_VOLTAGE_GFX);
    expect_unknown(GM_ENERGY);
    expect_unknown(GM_TEMPERATURE_SOC);
    CU_ASSERT_EQUAL(metrics.bits[GM_THROTTLE], UINT64_C(1) << 36);
    expect(GM_LINK_WIDTH, 8);
    expect(GM_TEMPERATURE_HOTSPOT, 54);
}

/* --- every row of every version ---------------------------------------------------------------------------------------- */

static unsigned char table[GM_MOST_BYTES];

static size_t blank(const struct gpu_metrics_version *version)
{
    memset(table, 0xff, sizeof table);
    return table_blank(version->format, version->content, table);
}

static int known_fields(void)
{
    int count = 0;
    for (int i = 0; i < GM_FIELD_COUNT; i++)
        count += metrics.known[i];
    return count;
}

static void nothing_is_known_of_a_table_of_ones(void)
{
    for (int v = 0; v < gpu_metrics_version_count; v++) {
        CU_ASSERT_EQUAL(gpu_metrics_parse(table, blank(&gpu_metrics_versions[v]), 0, &metrics), 0);
        CU_ASSERT_EQUAL(known_fields(), 0);
        CU_ASSERT_EQUAL(metrics.partitions, 0);
    }
}

/* Each field alone set, at its last instance: that field and no other becomes known, and it lies inside the table. */
static void every_row_of_every_version_stands_alone(void)
{
    for (int v = 0; v < gpu_metrics_version_count; v++)
        for (int group = 0; group < 3 && gpu_metrics_versions[v].groups[group]; group++)
            for (const struct gpu_metrics_row *row = gpu_metrics_versions[v].groups[group]; row->count > 0; row++) {
                size_t size = blank(&gpu_metrics_versions[v]), width = gpu_metrics_width((enum gpu_metrics_type)row->type);
                size_t at = row->offset + (row->count - 1u) * width;
                CU_ASSERT_FATAL(row->offset >= 4 && at + width <= size && row->offset % width == 0);
                memset(table + at, 0, width);
                table[at] = 42;
                CU_ASSERT_EQUAL(gpu_metrics_parse(table, size, 0, &metrics), 0);
                CU_ASSERT_EQUAL(known_fields(), 1);
                expect((enum gpu_metrics_field)row->field, 42 * row->worth);
                table[at] = 0;
                CU_ASSERT_EQUAL(gpu_metrics_parse(table, size, 0, &metrics), 0);
                CU_ASSERT_EQUAL(metrics.known[row->field], row->rule != GM_ZERO_UNKNOWN);
            }
}

static void a_table_that_is_cut_short_or_unknown_is_refused(void)
{
    for (int v = 0; v < gpu_metrics_version_count; v++) {
        size_t size = blank(&gpu_metrics_versions[v]);
        CU_ASSERT_EQUAL(gpu_metrics_parse(table, size - 1, 0, &metrics), -EPROTO);
        table[0] = (unsigned char)((size - 1) & 0xff);
        table[1] = (unsigned char)((size - 1) >> 8);
        CU_ASSERT_EQUAL(gpu_metrics_parse(table, size, 0, &metrics), -EOPNOTSUPP);
        table[0] = (unsigned char)((size + 8) & 0xff);
        table[1] = (unsigned char)((size + 8) >> 8);
        CU_ASSERT_EQUAL(gpu_metrics_parse(table, size + 8, 0, &metrics), 0); /* longer than known: the known part holds */
        CU_ASSERT_EQUAL(known_fields(), 0);
    }
    size_t size = blank(&gpu_metrics_versions[0]);
    table[3] = 99;
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, size, 0, &metrics), -EOPNOTSUPP);
    table[2] = 4;
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, size, 0, &metrics), -EOPNOTSUPP);
    for (size_t i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(gpu_metrics_parse(table, i, 0, &metrics), -EPROTO);
    memset(table, 0, 4096);
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, 4096, 0, &metrics), -EPROTO);
    /* A 1.6 of an early driver had 384 bytes and another layout. */
    memset(table, 1, 384);
    table_put(table, 0, 0x06010180, 4);
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, 384, 0, &metrics), -EOPNOTSUPP);
}

static void sentinels_are_those_of_the_fields_own_width(void)
{
    static const struct {
        enum gpu_metrics_type type;
        const char *hex;
        bool known;
        double value;
    } cases[] = {{GM_U8, "ff", false, 0},
                 {GM_U16, "ff00", true, 255},
                 {GM_U16, "ffff", false, 0},
                 {GM_U32, "ff000000", true, 255},
                 {GM_U32, "ffff0000", true, 65535},
                 {GM_U32, "ffffffff", false, 0},
                 {GM_U64, "ffffffff00000000", true, 4294967295.0},
                 {GM_U64, "ffffffffffffffff", false, 0},
                 {GM_S16, "feff", true, -2},
                 {GM_S16, "ffff", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char bytes[8];
        struct gpu_metrics_row row = {GM_POWER_NOW, (uint8_t)cases[i].type, GM_PLAIN, 1, 0, 1};
        memset(&metrics, 0, sizeof metrics);
        table_bytes(cases[i].hex, bytes, sizeof bytes);
        gpu_metrics_take(&row, bytes, &metrics);
        CU_ASSERT_EQUAL(metrics.known[GM_POWER_NOW], cases[i].known);
        CU_ASSERT_EQUAL(metrics.values[GM_POWER_NOW], cases[i].value);
    }
}

static void put(size_t at, uint64_t value, size_t width) { table_put(table, at, value, width); }

/* AMD's exporter, issue 139: the head said 13 % of an idle card, and 0 % of a full one. */
static void load_of_a_partitioned_card_is_the_mean_of_what_is_active(void)
{
    for (int v = 0; v < gpu_metrics_version_count; v++) {
        const struct gpu_metrics_version *version = &gpu_metrics_versions[v];
        const struct gpu_metrics_partitions *partitions = &version->partitions;
        if (!partitions->first)
            continue;
        size_t size = blank(version);
        put(12, 13, 2); /* the retired field */
        put(partitions->count_at, 2, 2);
        for (size_t i = 0; i < 4; i++) {
            put(partitions->first + 4 * i, 100, 4);
            put((size_t)partitions->first + partitions->stride + 4 * i, 50, 4);
        }
        put((size_t)partitions->first + 2u * partitions->stride, 1, 4); /* a third partition that is not active */
        put((size_t)partitions->first + partitions->media_at, 30, 2);
        CU_ASSERT_EQUAL(gpu_metrics_parse(table, size, 0, &metrics), 0);
        CU_ASSERT_EQUAL(metrics.partitions, 2);
        expect(GM_GFX_BUSY, 75);
        expect(GM_MEDIA_BUSY, 30);
        CU_ASSERT_EQUAL(metrics.partition_busy[0], 100);
        CU_ASSERT_EQUAL(metrics.partition_busy[1], 50);
        CU_ASSERT_TRUE(isnan(metrics.partition_busy[2]));
        put(partitions->count_at, 60000, 2);
        CU_ASSERT_EQUAL(gpu_metrics_parse(table, size, 0, &metrics), 0);
        CU_ASSERT_EQUAL(metrics.partitions, 0);
        expect(GM_GFX_BUSY, 13);
    }
}

static void impossible_loads_are_unknown(void)
{
    size_t size = blank(&gpu_metrics_versions[3]);
    put(16, 101, 2);
    put(18, 100, 2);
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, size, 0, &metrics), 0);
    expect_unknown(GM_GFX_BUSY);
    expect(GM_MEMORY_BUSY, 100);
}

/* --- the list of 1.9 ---------------------------------------------------------------------------------------------------- */

static size_t list_end;

static void list_begin(void)
{
    memset(table, 0, sizeof table);
    list_end = 8;
    table[2] = 1;
    table[3] = 9;
}

static void list_add(size_t width, unsigned unit, enum gpu_metrics_type type, unsigned id, unsigned count, uint64_t value)
{
    put(list_end, (uint64_t)unit << 24 | (uint64_t)type << 20 | (uint64_t)id << 10 | count, width);
    list_end += width;
    for (unsigned i = 0; i < count; i++, list_end += gpu_metrics_width(type))
        put(list_end, value + i, gpu_metrics_width(type));
    put(4, (uint64_t)table[4] + 1, 4);
    put(0, list_end, 2);
}

static void a_list_names_its_fields(void)
{
    for (size_t width = 4; width <= 8; width += 4) {
        list_begin();
        list_add(width, 2, GM_U16, 0, 1, 61);
        list_add(width, 3, GM_U16, 3, 1, 750);
        list_add(width, 0, GM_U64, 7, 1, 65536 * 12);
        list_add(width, 6, GM_U16, 17, 1, 32); /* GT/s */
        list_add(width, 1, GM_U16, 33, 8, 2100);
        list_add(width, 0, GM_U8, 900, 3, 1); /* of a version to come */
        list_add(width, 2, GM_S16, 48, 4, 50);
        list_add(width, 10, GM_U32, 4, 1, UINT32_MAX);
        CU_ASSERT_EQUAL(gpu_metrics_parse(table, list_end, 0, &metrics), 0);
        CU_ASSERT_EQUAL(gpu_metrics_size(table, list_end), list_end);
        expect(GM_TEMPERATURE_HOTSPOT, 61);
        expect(GM_POWER_NOW, 750);
        expect(GM_ENERGY, 12);
        expect(GM_LINK_SPEED, 32);
        expect(GM_GFX_CLOCK, 2103.5);
        expect(GM_TEMPERATURE_MEMORY, 53);
        expect_unknown(GM_GFX_BUSY);
        CU_ASSERT_EQUAL(known_fields(), 6);
    }
}

/* The load at the head of the list is retired where cards can be partitioned, as in the versions before. */
static void the_load_of_engines_stands_for_that_of_the_head(void)
{
    list_begin();
    list_add(8, 10, GM_U16, 4, 1, 13);
    list_add(8, 10, GM_U32, 40, 3, 70); /* 70, 71, 72 % */
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, list_end, 0, &metrics), 0);
    expect(GM_GFX_BUSY, 71);
}

static void a_list_that_does_not_end_where_it_says_is_refused(void)
{
    list_begin();
    list_add(8, 2, GM_U16, 0, 1, 61);
    put(4, 3, 4);
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, list_end, 0, &metrics), -EPROTO);
    put(4, UINT32_MAX, 4);
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, list_end, 0, &metrics), -EPROTO);
    list_begin();
    list_add(8, 2, GM_U16, 0, 1023, 61);
    put(0, 20, 2);
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, list_end, 0, &metrics), -EPROTO);
    list_begin();
    put(0, 6, 2);
    CU_ASSERT_EQUAL(gpu_metrics_parse(table, 64, 0, &metrics), -EPROTO);
}

/* --- whatever the bytes -------------------------------------------------------------------------------------------------- */

static void whatever_the_bytes_loads_are_percent_and_numbers_are_finite(void)
{
    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 200000; round++) {
        for (size_t i = 0; i < 512; i += 8) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            put(i, state, 8);
        }
        const struct gpu_metrics_version *version = &gpu_metrics_versions[round % gpu_metrics_version_count];
        if (round % 3) {
            put(0, version->size, 2);
            table[2] = version->format;
            table[3] = version->content;
        }
        (void)gpu_metrics_parse(table, round % 5 ? sizeof table : (size_t)(round % 700), 0, &metrics);
        for (int field = 0; field < GM_FIELD_COUNT; field++)
            if (metrics.known[field] && !isfinite(metrics.values[field]))
                CU_FAIL("not finite");
        for (int field = GM_GFX_BUSY; field <= GM_NPU_BUSY; field++)
            if (metrics.known[field] && !(metrics.values[field] >= 0 && metrics.values[field] <= 100))
                CU_FAIL("no percent");
    }
    CU_PASS("all");
}

TESTS({"version_2_2_is_in_hundredths_and_one_firmware_in_watts", version_2_2_is_in_hundredths_and_one_firmware_in_watts},
      {"version_2_1_of_an_idle_phoenix", version_2_1_of_an_idle_phoenix},
      {"version_3_0_of_a_strix_point", version_3_0_of_a_strix_point},
      {"an_older_strix_firmware_is_in_hundredths", an_older_strix_firmware_is_in_hundredths},
      {"version_1_3_padded_to_a_page", version_1_3_padded_to_a_page},
      {"version_1_3_of_a_card_whose_graphics_are_off", version_1_3_of_a_card_whose_graphics_are_off},
      {"nothing_is_known_of_a_table_of_ones", nothing_is_known_of_a_table_of_ones},
      {"every_row_of_every_version_stands_alone", every_row_of_every_version_stands_alone},
      {"a_table_that_is_cut_short_or_unknown_is_refused", a_table_that_is_cut_short_or_unknown_is_refused},
      {"sentinels_are_those_of_the_fields_own_width", sentinels_are_those_of_the_fields_own_width},
      {"load_of_a_partitioned_card_is_the_mean_of_what_is_active", load_of_a_partitioned_card_is_the_mean_of_what_is_active},
      {"impossible_loads_are_unknown", impossible_loads_are_unknown}, {"a_list_names_its_fields", a_list_names_its_fields},
      {"the_load_of_engines_stands_for_that_of_the_head", the_load_of_engines_stands_for_that_of_the_head},
      {"a_list_that_does_not_end_where_it_says_is_refused", a_list_that_does_not_end_where_it_says_is_refused},
      {"whatever_the_bytes_loads_are_percent_and_numbers_are_finite", whatever_the_bytes_loads_are_percent_and_numbers_are_finite})
