#include "bridge/event_log.h"

static struct event_batch *batch_at(struct event_log *log, uint64_t number) { return &log->items[number % EVENT_LOG_BATCHES]; }

static void drop_oldest(struct event_log *log)
{
    struct event_batch *batch = batch_at(log, log->oldest++);
    log->bytes -= batch->text.capacity;
    buffer_free(&batch->text);
}

void event_log_free(struct event_log *log)
{
    while (log->oldest != log->next)
        drop_oldest(log);
}

void event_log_add(struct event_log *log, struct buffer *text, uint64_t count)
{
    if (text->failed) {
        buffer_free(text);
        event_log_lose(log, count);
        return;
    }
    if (log->next - log->oldest == EVENT_LOG_BATCHES)
        drop_oldest(log);
    *batch_at(log, log->next++) = (struct event_batch){.text = *text, .first = log->events, .end = log->events + count};
    *text = (struct buffer){0};
    log->events += count;
    log->bytes += batch_at(log, log->next - 1)->text.capacity;
    while (log->bytes > EVENT_LOG_BYTES && log->next - log->oldest > 1)
        drop_oldest(log);
}

void event_log_lose(struct event_log *log, uint64_t count) { log->events += count; }

void event_log_newest(const struct event_log *log, struct event_position *position)
{
    *position = (struct event_position){.batch = log->next, .event = log->events};
}

bool event_log_behind(const struct event_log *log, const struct event_position *position) { return position->event != log->events; }

uint64_t event_log_missed(const struct event_log *log, struct event_position *position)
{
    if (position->batch < log->oldest)
        position->batch = log->oldest;
    uint64_t first = position->batch == log->next ? log->events : log->items[position->batch % EVENT_LOG_BATCHES].first;
    uint64_t missed = first - position->event;
    position->event = first;
    return missed;
}

const struct buffer *event_log_take(const struct event_log *log, struct event_position *position)
{
    if (position->batch < log->oldest || position->batch == log->next)
        return NULL;
    const struct event_batch *batch = &log->items[position->batch++ % EVENT_LOG_BATCHES];
    position->event = batch->end;
    return &batch->text;
}
