/* Numbers and texts as JSON. */
#include "client/json/document.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest double below which every whole number is exact. */
#define EXACT 9007199254740992.0

json_t *document_number(double value, int decimals)
{
    static const double scales[] = {10, 100, 1e3, 1e4, 1e5, 1e6};
    const int last = (int)(sizeof scales / sizeof scales[0]) - 1;
    if (!isfinite(value))
        return json_null();
    double scale = scales[decimals < 0 ? 0 : decimals > last ? last : decimals];
    double rounded = fabs(value) < EXACT / scale ? round(value * scale) / scale : value;
    if (rounded == floor(rounded) && fabs(rounded) < EXACT)
        return json_integer((json_int_t)rounded);
    return json_real(rounded);
}

json_t *document_count(uint64_t value) { return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value); }

json_t *document_bytes(uint64_t bytes) { return bytes == UINT64_MAX ? json_null() : document_count(bytes); }

json_t *document_value(const gputap_snapshot *snapshot, int device, int metric)
{
    const gputap_metric *info = gputap_metric_info(device, metric);
    if (!info || metric < 0 || metric >= GPUTAP_METRIC_SLOTS || !(snapshot->valid[metric / 64] >> (metric % 64) & 1))
        return json_null();
    gputap_value value = snapshot->values[metric];
    if (info->type == GPUTAP_I64)
        return json_integer(value.i64);
    if (info->type == GPUTAP_U64)
        return document_count(value.u64);
    return document_number(value.f64, info->decimals);
}

json_t *document_text(const char *text)
{
    if (!text || !*text)
        return json_null();
    json_t *value = json_string(text);
    if (value)
        return value;
    size_t length = strlen(text);
    char *copy = malloc(length + 1);
    if (!copy)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        copy[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    value = json_string(copy);
    free(copy);
    return value;
}

char *document_print(const json_t *document)
{
    return document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
}
