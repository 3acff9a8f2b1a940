/* From the tables of a segment to the message about processes, with the test in the broker's place. */
#include "bridge/processes.h"

#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

enum { OWN = 1000, OTHER = 1001 };

static struct fixture f;
static gputap *tap;
static struct processes processes;
static int64_t now_ms;

static void begin(bool show_all)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 4, "ab");
    tap = fixture_open(0);
    now_ms = 1000000;
    processes_start(&processes, tap, show_all, OWN);
}

static void end(void)
{
    processes_stop(&processes);
    gputap_close(tap);
    fixture_end(&f);
}

static void hold(uint32_t slot, uint64_t own_vram)
{
    struct layout_process rows[2] = {fixture_process(1, OWN, own_vram, "mine"), fixture_process(2, OTHER, 7, "secret")};
    struct layout_process_table table = fixture_process_table(rows, 2);
    fixture_processes(&f, slot, &table);
}

static bool update(int64_t later_ms)
{
    now_ms += later_ms;
    return processes_update(&processes, now_ms);
}

static json_t *message(void)
{
    json_t *parsed = json_loadb((char *)buffer_data(&processes.message), processes.message.length, 0, NULL);
    CU_ASSERT_STRING_EQUAL_FATAL(json_string_value(json_object_get(parsed, "type")), "processes");
    return parsed;
}

static bool tells(const char *word)
{
    json_t *parsed = message();
    char *text = json_dumps(parsed, 0);
    bool found = strstr(text, word) != NULL;
    free(text);
    json_decref(parsed);
    return found;
}

static void nothing_is_read_for_nobody(void)
{
    begin(false);
    hold(0, 5);
    CU_ASSERT_FALSE(update(5000));
    CU_ASSERT_EQUAL(processes.message.length, 0);
    processes_listen(&processes, 1);
    CU_ASSERT(update(1));
    processes_listen(&processes, -1);
    hold(0, 6);
    CU_ASSERT_FALSE(update(5000));
    processes_listen(&processes, 1); /* who comes after a while hears it at once */
    CU_ASSERT(update(1));
    end();
}

static void a_change_is_told_once_a_second_at_most_and_no_change_never(void)
{
    begin(false);
    hold(0, 1);
    processes_listen(&processes, 1);
    CU_ASSERT(update(1));
    CU_ASSERT_EQUAL(processes.number, 1);
    for (uint64_t i = 0; i < 100; i++) { /* 5 s */
        hold(0, 100 + i);
        update(50);
    }
    CU_ASSERT_EQUAL(processes.number, 6);
    CU_ASSERT(tells("\"vram\": 199"));
    for (int i = 0; i < 10; i++) {
        hold(0, 199); /* a new scan that found the same */
        CU_ASSERT_FALSE(update(1000));
    }
    end();
}

static void other_users_processes_are_counted_and_not_shown(void)
{
    for (int all = 0; all <= 1; all++) {
        begin(all == 1);
        hold(1, 5);
        processes_listen(&processes, 1);
        CU_ASSERT(update(1));
        json_t *told = message(), *snap = json_object();
        CU_ASSERT_EQUAL(processes_put(&processes, snap), 0);
        CU_ASSERT(json_equal(json_object_get(told, "gpus"), json_object_get(snap, "processes")));
        json_t *second = json_array_get(json_object_get(told, "gpus"), 1);
        CU_ASSERT_EQUAL(json_array_size(json_object_get(second, "rows")), all ? 2 : 1);
        CU_ASSERT_EQUAL(json_integer_value(json_object_get(second, "hidden")), all ? 0 : 1);
        CU_ASSERT_EQUAL(tells("secret"), all == 1);
        CU_ASSERT(tells("mine"));
        CU_ASSERT(json_is_null(json_object_get(json_array_get(json_object_get(told, "gpus"), 0), "rows")));
        json_decref(told);
        json_decref(snap);
        end();
    }
}

static void another_users_busy_process_makes_no_messages(void)
{
    begin(false);
    processes_listen(&processes, 1);
    struct layout_process row = fixture_process(2, OTHER, 7, "secret");
    for (int i = 0; i < 5; i++) {
        row.gfx_busy = i;
        struct layout_process_table table = fixture_process_table(&row, 1);
        fixture_processes(&f, 0, &table);
        CU_ASSERT_EQUAL(update(1000), i == 0);
    }
    end();
}

TESTS({"nothing_is_read_for_nobody", nothing_is_read_for_nobody},
      {"a_change_is_told_once_a_second_at_most_and_no_change_never", a_change_is_told_once_a_second_at_most_and_no_change_never},
      {"other_users_processes_are_counted_and_not_shown", other_users_processes_are_counted_and_not_shown},
      {"another_users_busy_process_makes_no_messages", another_users_busy_process_makes_no_messages})
