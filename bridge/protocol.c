#include "bridge/protocol.h"

#include <string.h>

#define PIECES_PER_SECOND 200

const struct protocol_devices protocol_all_devices = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};

bool protocol_wants(const struct protocol_devices *devices, int device)
{
    return device >= 0 && device < PROTOCOL_DEVICES && (devices->bits[device / 64] >> (device % 64) & 1);
}

static void bad(struct protocol_message *message, const char *text)
{
    message->kind = PROTOCOL_BAD;
    message->text = text;
}

/* An absent field leaves *value as it is. */
static bool take_integer(const json_t *object, const char *key, int low, int high, int *value)
{
    const json_t *field = json_object_get(object, key);
    if (!field)
        return true;
    if (!json_is_integer(field) || json_integer_value(field) < low || json_integer_value(field) > high)
        return false;
    *value = (int)json_integer_value(field);
    return true;
}

static bool period_known(int period)
{
    for (int i = 0; i < DOCUMENT_PERIODS; i++)
        if (document_periods[i] == period)
            return true;
    return false;
}

static bool take_devices(const json_t *list, struct protocol_devices *devices)
{
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > PROTOCOL_DEVICES)
        return false;
    *devices = (struct protocol_devices){{0}};
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0 || json_integer_value(item) >= PROTOCOL_DEVICES)
            return false;
        unsigned device = (unsigned)json_integer_value(item);
        devices->bits[device / 64] |= UINT64_C(1) << (device % 64);
    }
    return true;
}

static void parse_sub(const json_t *object, struct protocol_message *message)
{
    const json_t *set = json_object_get(object, "set"), *gpus = json_object_get(object, "gpus");
    const json_t *events = json_object_get(object, "events"), *processes = json_object_get(object, "processes");
    int found = (int)message->set;
    message->kind = PROTOCOL_SUB;
    if (!take_integer(object, "period", 1, 5000, &message->period) || !period_known(message->period))
        bad(message, "period is 100, 200, 500, 1000, 2000 or 5000");
    else if (set && (!json_is_string(set) || (found = document_set_find(json_string_value(set))) < 0))
        bad(message, "set is capsule, full or host");
    else if (gpus && !take_devices(gpus, &message->devices))
        bad(message, "gpus is a list of device indexes");
    else if (events && !json_is_boolean(events))
        bad(message, "events is true or false");
    else if (processes && !json_is_boolean(processes))
        bad(message, "processes is true or false");
    else {
        message->set = (enum document_set)found;
        message->events = !events || json_is_true(events);
        message->processes = json_is_true(processes);
    }
}

static void parse_object(const json_t *object, struct protocol_message *message)
{
    const json_t *type = json_object_get(object, "type");
    if (!json_is_string(type))
        return;
    const char *name = json_string_value(type);
    message->kind = PROTOCOL_IGNORED;
    if (strcmp(name, "sub") == 0) {
        parse_sub(object, message);
    } else if (strcmp(name, "pause") == 0) {
        message->kind = PROTOCOL_PAUSE;
    } else if (strcmp(name, "resume") == 0) {
        message->kind = PROTOCOL_RESUME;
    } else if (strcmp(name, "history") == 0) {
        message->kind = PROTOCOL_HISTORY;
        if (!take_integer(object, "seconds", 1, DOCUMENT_HISTORY_SECONDS, &message->seconds) ||
            !take_integer(object, "points", 1, DOCUMENT_HISTORY_POINTS, &message->points))
            bad(message, "seconds is 1 to 1020, points 1 to 1000");
    } else if (strcmp(name, "ping") == 0) {
        const json_t *id = json_object_get(object, "id");
        message->kind = PROTOCOL_PING;
        message->id = json_integer_value(id);
        if (!json_is_integer(id))
            bad(message, "id is an integer");
    }
}

void protocol_parse(const char *bytes, size_t length, struct protocol_message *message)
{
    *message = (struct protocol_message){.kind = PROTOCOL_GARBAGE,
                                         .set = DOCUMENT_CAPSULE,
                                         .period = PROTOCOL_PERIOD_DEFAULT,
                                         .devices = protocol_all_devices,
                                         .events = true,
                                         .seconds = PROTOCOL_HISTORY_DEFAULT,
                                         .points = PROTOCOL_HISTORY_DEFAULT,
                                         .text = "not a JSON object with a type"};
    if (length > DOCUMENT_MAX_MESSAGE)
        return;
    json_t *object = json_loadb(bytes ? bytes : "", length, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(object))
        parse_object(object, message);
    json_decref(object);
}

void protocol_rate_begin(struct protocol_rate *rate, int64_t now_ms)
{
    *rate = (struct protocol_rate){.at_ms = now_ms, .messages = DOCUMENT_MESSAGES_PER_SECOND, .pieces = PIECES_PER_SECOND};
}

static double refill(double level, double per_second, int64_t elapsed_ms)
{
    double next = level + per_second * (double)elapsed_ms / 1000;
    return next < per_second ? next : per_second;
}

bool protocol_rate_take(struct protocol_rate *rate, int64_t now_ms, bool message_begins)
{
    int64_t elapsed = now_ms > rate->at_ms ? now_ms - rate->at_ms : 0;
    rate->at_ms = now_ms;
    rate->messages = refill(rate->messages, DOCUMENT_MESSAGES_PER_SECOND, elapsed) - (message_begins ? 1 : 0);
    rate->pieces = refill(rate->pieces, PIECES_PER_SECOND, elapsed) - 1;
    return rate->messages >= 0 && rate->pieces >= 0;
}
