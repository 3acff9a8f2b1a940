#include "bridge/protocol.h"

#include "tests/unit/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct protocol_message parse(const char *text)
{
    struct protocol_message message;
    protocol_parse(text, strlen(text), &message);
    return message;
}

static void sub_has_defaults(void)
{
    struct protocol_message message = parse("{\"type\":\"sub\"}");
    CU_ASSERT_EQUAL(message.kind, PROTOCOL_SUB);
    CU_ASSERT_EQUAL(message.period, 500);
    CU_ASSERT_EQUAL(message.set, DOCUMENT_CAPSULE);
    CU_ASSERT(protocol_wants(&message.devices, 0));
    CU_ASSERT(protocol_wants(&message.devices, 255));
    CU_ASSERT_FALSE(protocol_wants(&message.devices, 256));
    CU_ASSERT_FALSE(protocol_wants(&message.devices, -1));
    CU_ASSERT(message.events);
    CU_ASSERT_FALSE(message.processes);
}

static void sub_takes_what_it_says(void)
{
    struct protocol_message message =
        parse("{\"type\":\"sub\",\"period\":100,\"set\":\"full\",\"gpus\":[3,200,3],\"hosts\":[\"*\"]}");
    CU_ASSERT_EQUAL(message.kind, PROTOCOL_SUB);
    CU_ASSERT_EQUAL(message.period, 100);
    CU_ASSERT_EQUAL(message.set, DOCUMENT_FULL);
    for (int device = 0; device < 256; device++)
        CU_ASSERT_EQUAL(protocol_wants(&message.devices, device), device == 3 || device == 200);
    CU_ASSERT_FALSE(parse("{\"type\":\"sub\",\"events\":false}").events);
    CU_ASSERT(parse("{\"type\":\"sub\",\"events\":true}").events);
    CU_ASSERT(parse("{\"type\":\"sub\",\"processes\":true}").processes);
    CU_ASSERT_FALSE(parse("{\"type\":\"sub\",\"processes\":false}").processes);
    message = parse("{\"type\":\"sub\",\"gpus\":[]}");
    CU_ASSERT_FALSE(protocol_wants(&message.devices, 0));
}

static void wrong_fields_are_bad_messages(void)
{
    static const char *const bad[] = {"{\"type\":\"sub\",\"period\":101}",
                                      "{\"type\":\"sub\",\"period\":100.0}",
                                      "{\"type\":\"sub\",\"period\":\"100\"}",
                                      "{\"type\":\"sub\",\"period\":null}",
                                      "{\"type\":\"sub\",\"period\":-100}",
                                      "{\"type\":\"sub\",\"period\":9223372036854775807}",
                                      "{\"type\":\"sub\",\"set\":\"\"}",
                                      "{\"type\":\"sub\",\"set\":\"Capsule\"}",
                                      "{\"type\":\"sub\",\"set\":1}",
                                      "{\"type\":\"sub\",\"gpus\":null}",
                                      "{\"type\":\"sub\",\"events\":1}",
                                      "{\"type\":\"sub\",\"events\":null}",
                                      "{\"type\":\"sub\",\"processes\":1}",
                                      "{\"type\":\"sub\",\"processes\":null}",
                                      "{\"type\":\"sub\",\"processes\":\"true\"}",
                                      "{\"type\":\"sub\",\"processes\":[]}",
                                      "{\"type\":\"sub\",\"gpus\":{}}",
                                      "{\"type\":\"sub\",\"gpus\":[256]}",
                                      "{\"type\":\"sub\",\"gpus\":[-1]}",
                                      "{\"type\":\"sub\",\"gpus\":[1.5]}",
                                      "{\"type\":\"sub\",\"gpus\":[[0]]}",
                                      "{\"type\":\"history\",\"seconds\":0}",
                                      "{\"type\":\"history\",\"seconds\":1021}",
                                      "{\"type\":\"history\",\"points\":1001}",
                                      "{\"type\":\"history\",\"points\":\"\"}",
                                      "{\"type\":\"ping\"}",
                                      "{\"type\":\"ping\",\"id\":1.5}",
                                      "{\"type\":\"ping\",\"id\":\"7\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (parse(bad[i]).kind != PROTOCOL_BAD)
            CU_FAIL(bad[i]);
}

static void no_messages_are_garbage(void)
{
    static const char *const garbage[] = {"",
                                          " ",
                                          "{",
                                          "null",
                                          "7",
                                          "\"sub\"",
                                          "[]",
                                          "{}",
                                          "{\"type\":null}",
                                          "{\"type\":[\"sub\"]}",
                                          "{\"type\":\"sub\",\"type\":\"sub\"}",
                                          "{\"type\":\"sub\",\"x\":{\"a\":1,\"a\":2}}",
                                          "{\"type\":\"sub\"}x",
                                          "{\"type\":\"sub\"}{\"type\":\"sub\"}",
                                          "{'type':'sub'}",
                                          "{\"type\":\"sub\",}",
                                          "{\"type\":\"su\\u0000b\"}",
                                          "{\"type\":\"\xff\"}",
                                          "{\"type\":\"ping\",\"id\":99999999999999999999}",
                                          "{\"type\":\"ping\",\"id\":NaN}"};
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++)
        if (parse(garbage[i]).kind != PROTOCOL_GARBAGE)
            CU_FAIL(garbage[i]);
    struct protocol_message message;
    protocol_parse(NULL, 0, &message);
    CU_ASSERT_EQUAL(message.kind, PROTOCOL_GARBAGE);
    protocol_parse("{\"type\":\"sub\"}\0", 15, &message);
    CU_ASSERT_EQUAL(message.kind, PROTOCOL_GARBAGE);
    char deep[4096];
    memset(deep, '[', sizeof deep);
    protocol_parse(deep, sizeof deep, &message);
    CU_ASSERT_EQUAL(message.kind, PROTOCOL_GARBAGE);
}

static void later_types_are_ignored(void)
{
    CU_ASSERT_EQUAL(parse("{\"type\":\"ann\",\"x\":1}").kind, PROTOCOL_IGNORED);
    CU_ASSERT_EQUAL(parse("{\"type\":\"Sub\"}").kind, PROTOCOL_IGNORED);
    CU_ASSERT_EQUAL(parse("{\"type\":\"\"}").kind, PROTOCOL_IGNORED);
    CU_ASSERT_EQUAL(parse("{\"type\":\"pause\"}").kind, PROTOCOL_PAUSE);
    CU_ASSERT_EQUAL(parse("{\"type\":\"resume\",\"more\":[]}").kind, PROTOCOL_RESUME);
    CU_ASSERT_EQUAL(parse("{\"id\":-9223372036854775808,\"type\":\"ping\"}").id, INT64_MIN);
    struct protocol_message history = parse("{\"type\":\"history\",\"seconds\":1020,\"points\":1}");
    CU_ASSERT(history.kind == PROTOCOL_HISTORY && history.seconds == 1020 && history.points == 1);
}

static void rate_allows_twenty_a_second(void)
{
    struct protocol_rate rate;
    protocol_rate_begin(&rate, 1000);
    int allowed = 0;
    while (protocol_rate_take(&rate, 1000, true))
        allowed++;
    CU_ASSERT_EQUAL(allowed, 20);
    protocol_rate_begin(&rate, 1000);
    for (int i = 1; i <= 400; i++)
        CU_ASSERT(protocol_rate_take(&rate, 1000 + i * 50, true));
    protocol_rate_begin(&rate, 1000);
    allowed = 0;
    while (protocol_rate_take(&rate, 1000, false))
        allowed++;
    CU_ASSERT_EQUAL(allowed, 200);
    protocol_rate_begin(&rate, 1000);
    CU_ASSERT(protocol_rate_take(&rate, 0, true));
}

/* Bytes of messages with some of them changed get further into the parsers than pure noise. */
static void random_bytes_do_no_harm(void)
{
    static const char *const seeds[] = {"{\"type\":\"sub\",\"period\":100,\"set\":\"full\",\"gpus\":[0,1,255]}",
                                        "{\"type\":\"history\",\"seconds\":300,\"points\":300}",
                                        "{\"type\":\"ping\",\"id\":7}",
                                        "[::1]:8288",
                                        "http://127.0.0.1:8188",
                                        "Bearer a-token-of-some-lengtX",
                                        "gputap.v1, token.a-token-of-some-lengtX",
                                        "a/../b/.c"};
    static const char spice[] = "{}[]\":,.\\/0123456789-eEtrufalsn\0\xff\xc3\x28 ";
    uint32_t state = 20241201;
    for (int round = 0; round < 40000; round++) {
        uint8_t bytes[128];
        size_t size = 0;
        const char *seed = seeds[(unsigned)round % (sizeof seeds / sizeof seeds[0])];
        for (; seed[size]; size++)
            bytes[size] = (uint8_t)seed[size];
        for (int change = 0; change < 1 + round % 5; change++) {
            state = state * 1664525u + 1013904223u;
            size_t at = (state >> 8) % size;
            if (state >> 31)
                bytes[at] = (uint8_t)spice[(state >> 16) % (sizeof spice - 1)];
            else if (state >> 30 & 1)
                bytes[at] = (uint8_t)(state >> 12);
            else
                size = at > 0 ? at : size;
        }
        LLVMFuzzerTestOneInput(bytes, size);
    }
    CU_PASS("no crash, and what was accepted is within its limits");
}

TESTS({"sub_has_defaults", sub_has_defaults}, {"sub_takes_what_it_says", sub_takes_what_it_says},
      {"wrong_fields_are_bad_messages", wrong_fields_are_bad_messages}, {"no_messages_are_garbage", no_messages_are_garbage},
      {"later_types_are_ignored", later_types_are_ignored}, {"rate_allows_twenty_a_second", rate_allows_twenty_a_second},
      {"random_bytes_do_no_harm", random_bytes_do_no_harm})
