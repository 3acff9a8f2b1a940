/* Building objects without an if a line: the first failure sticks, and put_end gives the object or NULL. */
#ifndef GPUTAP_CLIENT_JSON_PUT_H
#define GPUTAP_CLIENT_JSON_PUT_H

#include <jansson.h>
#include <stdbool.h>

#include "gputap.h"

struct put {
    json_t *object;
    bool failed;
};

static inline struct put put_begin(void)
{
    json_t *object = json_object();
    return (struct put){.object = object, .failed = object == NULL};
}

static inline void put(struct put *into, const char *key, json_t *value)
{
    if (json_object_set_new(into->object, key, value) != 0)
        into->failed = true;
}

static inline json_t *put_end(struct put *into)
{
    if (!into->failed)
        return into->object;
    json_decref(into->object);
    return NULL;
}

/* Appends; on failure drops the array and leaves NULL, which every later call accepts. */
static inline void put_item(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value) != 0) {
        json_decref(*array);
        *array = NULL;
    }
}

/* The members that every description of a device begins with; *facts is what they were taken from. A device that is no more has
 * the state "gone". */
void document_identity(struct put *entry, gputap *tap, int device, gputap_device *facts);

#endif
