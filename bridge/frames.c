#include "bridge/frames.h"

static void write_value(struct buffer *buffer, const struct frames_row *row, int metric)
{
    const gputap_metric *info = gputap_metric_info(row->device, metric);
    if (!info || !row->known || !(row->snapshot.valid[metric / 64] >> (metric % 64) & 1)) {
        buffer_put(buffer, "null", 4);
        return;
    }
    gputap_value value = row->snapshot.values[metric];
    if (info->type == GPUTAP_U64)
        buffer_u64(buffer, value.u64);
    else if (info->type == GPUTAP_I64)
        buffer_i64(buffer, value.i64);
    else
        buffer_f64(buffer, value.f64, info->decimals);
}

static void write_row(struct buffer *buffer, const struct frames_row *row, const int *metrics, int count)
{
    buffer_put(buffer, "[", 1);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            buffer_put(buffer, ",", 1);
        write_value(buffer, row, metrics[i]);
    }
    buffer_put(buffer, "]", 1);
}

void frames_write(struct buffer *buffer, const struct frames_sample *sample, enum document_set set,
                  const struct protocol_devices *devices)
{
    int metrics[GPUTAP_METRIC_SLOTS];
    int count = document_set_metrics(set, 0, metrics, GPUTAP_METRIC_SLOTS);
    buffer_clear(buffer);
    buffer_text(buffer, "{\"type\":\"s\",\"seq\":");
    buffer_u64(buffer, sample->seq);
    buffer_text(buffer, ",\"t\":");
    buffer_i64(buffer, sample->t_ms);
    buffer_text(buffer, ",\"g\":[");
    for (int i = 0; i < sample->count; i++) {
        if (i > 0)
            buffer_put(buffer, ",", 1);
        if (protocol_wants(devices, sample->rows[i].device))
            write_row(buffer, &sample->rows[i], metrics, count);
        else
            buffer_put(buffer, "null", 4);
    }
    buffer_text(buffer, "],\"c\":");
    count = document_set_metrics(set, GPUTAP_HOST, metrics, GPUTAP_METRIC_SLOTS);
    write_row(buffer, &sample->host, metrics, count);
    buffer_put(buffer, "}", 1);
}
