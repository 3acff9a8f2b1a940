#include <jansson.h>

#include "shm/metrics.h"
#include "tests/unit/check.h"

static void schema_is_json_and_lists_every_metric(void)
{
    size_t length = metrics_schema_json(NULL, 0);
    char *text = malloc(length + 1);
    CU_ASSERT_EQUAL(metrics_schema_json(text, length + 1), length);
    json_error_t error;
    json_t *schema = json_loads(text, 0, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(schema);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(schema, "gpu")), METRIC_COUNT);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(schema, "host")), HOST_METRIC_COUNT);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(schema, "reasons")), REASON_COUNT);
    json_decref(schema);
    free(text);
}

TESTS({"schema_is_json_and_lists_every_metric", schema_is_json_and_lists_every_metric})
