/* Who holds a device, as a reader of the segment gets it. */
#include <math.h>

#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

#define GIB (UINT64_C(1) << 30)
#define UNKNOWN UINT64_MAX

static struct fixture f;
static gputap *tap;

static void begin(void)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 4, "ab");
    tap = fixture_open(0);
}

static void end(void)
{
    gputap_close(tap);
    fixture_end(&f);
}

static int ask(int device, gputap_process_table *table, gputap_process *rows, int capacity)
{
    *table = (gputap_process_table)GPUTAP_PROCESS_TABLE_INIT;
    return gputap_processes(tap, device, table, rows, capacity);
}

static void a_device_that_nobody_looks_at_is_empty_and_not_free(void)
{
    begin();
    gputap_process_table table;
    CU_ASSERT_EQUAL(ask(0, &table, NULL, 0), GPUTAP_EEMPTY);
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(tap), "nobody looks"));
    struct layout_process_table never = fixture_process_table(NULL, 0);
    never.updated_ns = 0;
    fixture_processes(&f, 0, &never);
    CU_ASSERT_EQUAL(ask(0, &table, NULL, 0), GPUTAP_EEMPTY);
    struct layout_process_table looked = fixture_process_table(NULL, 0);
    fixture_processes(&f, 0, &looked);
    CU_ASSERT_EQUAL(ask(0, &table, NULL, 0), 0);
    CU_ASSERT(table.count == 0 && table.others == 0 && table.hidden == 0 && table.partial == 0 && table.external_vram == UNKNOWN);
    CU_ASSERT_EQUAL(ask(1, &table, NULL, 0), GPUTAP_EEMPTY);
    end();
}

static void bad_arguments_are_refused(void)
{
    begin();
    gputap_process_table table = GPUTAP_PROCESS_TABLE_INIT;
    gputap_process row;
    struct layout_process_table looked = fixture_process_table(NULL, 0);
    fixture_processes(&f, 0, &looked);
    CU_ASSERT_EQUAL(gputap_processes(NULL, 0, &table, &row, 1), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_processes(tap, 0, NULL, &row, 1), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_processes(tap, 0, &table, &row, -1), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_processes(tap, GPUTAP_HOST, &table, &row, 1), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_processes(tap, 5, &table, &row, 1), GPUTAP_ENODEV);
    table.size = 4;
    CU_ASSERT_EQUAL(gputap_processes(tap, 0, &table, &row, 1), GPUTAP_ESIZE);
    end();
}

static void rows_and_totals_come_as_they_were_written(void)
{
    begin();
    struct layout_process rows[2] = {fixture_process(42, 1000, 3 * GIB, "python3"), fixture_process(7, 0, UNKNOWN, "Xorg")};
    rows[0].flags = PROCESS_KFD | PROCESS_PARTIAL | 0x80; /* a later broker's flag */
    rows[0].sharers = 2;
    rows[0].compute_busy = 100;
    snprintf(rows[0].container, sizeof rows[0].container, "0123456789ab");
    rows[1].gfx_busy = (double)NAN;
    struct layout_process_table table = fixture_process_table(rows, 2);
    table.others = 3, table.others_vram = GIB, table.others_gtt = UNKNOWN;
    table.hidden = 4;
    table.flags = PROCESS_TABLE_PARTIAL;
    fixture_processes(&f, 1, &table);
    struct layout_snapshot sample = fixture_sample(1, 5 * GIB);
    sample.metrics[METRIC_EXTERNAL_VRAM].u64 = GIB / 2;
    metrics_set_valid(sample.valid, METRIC_EXTERNAL_VRAM);
    fixture_publish(&f, 1, &sample);
    gputap_process_table info;
    gputap_process got[GPUTAP_MAX_PROCESSES];
    CU_ASSERT_EQUAL(ask(1, &info, got, GPUTAP_MAX_PROCESSES), 2);
    CU_ASSERT(info.count == 2 && info.others == 3 && info.others_vram == GIB && info.others_gtt == UNKNOWN && info.hidden == 4);
    CU_ASSERT(info.partial == 1 && info.external_vram == GIB / 2 && info.age_ns < UINT64_C(60000000000));
    CU_ASSERT(got[0].pid == 42 && got[0].uid == 1000 && got[0].flags == (GPUTAP_PROCESS_KFD | GPUTAP_PROCESS_PARTIAL));
    CU_ASSERT(got[0].sharers == 2 && got[0].start_ms == 1764540000000 && got[0].vram == 3 * GIB && got[0].gtt == 4096);
    CU_ASSERT(got[0].gfx_busy == 12.5 && got[0].compute_busy == 100 && got[0].encode_busy == 0);
    CU_ASSERT_STRING_EQUAL(got[0].comm, "python3");
    CU_ASSERT_STRING_EQUAL(got[0].container, "0123456789ab");
    CU_ASSERT(got[1].vram == UNKNOWN && isnan(got[1].gfx_busy) && got[1].container[0] == '\0');
    CU_ASSERT_EQUAL(ask(1, &info, got, 1), 1);
    CU_ASSERT_EQUAL(ask(1, &info, NULL, 8), 0);
    CU_ASSERT_EQUAL(info.count, 2);
    end();
}

static void numbers_out_of_range_are_unknown_and_texts_are_cleaned(void)
{
    begin();
    struct layout_process row = fixture_process(42, 1000, GIB, "");
    row.gfx_busy = -0.5;
    row.compute_busy = 100.5;
    row.copy_busy = INFINITY;
    row.start_ms = UINT64_MAX;
    memset(row.comm, 'x', sizeof row.comm);
    memcpy(row.container, "a\x1b[31m\xff", 8);
    struct layout_process_table table = fixture_process_table(&row, 1);
    table.count = 4000000000u;
    fixture_processes(&f, 0, &table);
    gputap_process_table info;
    gputap_process got[GPUTAP_MAX_PROCESSES + 1];
    memset(got, 0x55, sizeof got);
    CU_ASSERT_EQUAL(ask(0, &info, got, GPUTAP_MAX_PROCESSES + 1), GPUTAP_MAX_PROCESSES);
    CU_ASSERT(isnan(got[0].gfx_busy) && isnan(got[0].compute_busy) && isnan(got[0].copy_busy) && got[0].decode_busy == 0);
    CU_ASSERT_EQUAL(got[0].start_ms, 0);
    CU_ASSERT_STRING_EQUAL(got[0].comm, "xxxxxxxxxxxxxxx");
    CU_ASSERT_STRING_EQUAL(got[0].container, "a[31m");
    CU_ASSERT_EQUAL(got[GPUTAP_MAX_PROCESSES].pid, 0x55555555);
    end();
}

/* Numbers are the handle's, whatever slot a later broker gives to the device. */
static void tables_follow_their_device_over_a_restart(void)
{
    begin();
    struct layout_process row = fixture_process(1, 1000, GIB, "one");
    struct layout_process_table table = fixture_process_table(&row, 1);
    fixture_processes(&f, 0, &table);
    fixture_segment(&f, 4, "xba");
    fixture_announce(&f);
    row.pid = 2;
    table = fixture_process_table(&row, 1);
    fixture_processes(&f, 2, &table);
    (void)gputap_status(tap);
    gputap_process_table info;
    gputap_process got;
    CU_ASSERT_EQUAL(ask(0, &info, &got, 1), 1);
    CU_ASSERT_EQUAL(got.pid, 2);
    CU_ASSERT_EQUAL(ask(1, &info, &got, 1), GPUTAP_EEMPTY);
    end();
}

TESTS({"a_device_that_nobody_looks_at_is_empty_and_not_free", a_device_that_nobody_looks_at_is_empty_and_not_free},
      {"bad_arguments_are_refused", bad_arguments_are_refused},
      {"rows_and_totals_come_as_they_were_written", rows_and_totals_come_as_they_were_written},
      {"numbers_out_of_range_are_unknown_and_texts_are_cleaned", numbers_out_of_range_are_unknown_and_texts_are_cleaned},
      {"tables_follow_their_device_over_a_restart", tables_follow_their_device_over_a_restart})
