/* Who holds which GPU. */
#include "client/json/document.h"
#include "client/json/put.h"

json_t *document_process(const gputap_process *process)
{
    struct put entry = put_begin();
    put(&entry, "pid", json_integer(process->pid));
    put(&entry, "uid", json_integer(process->uid));
    put(&entry, "comm", document_text(process->comm));
    put(&entry, "container", document_text(process->container));
    put(&entry, "start", process->start_ms > 0 ? json_integer(process->start_ms) : json_null());
    put(&entry, "vram", document_bytes(process->vram));
    put(&entry, "gtt", document_bytes(process->gtt));
    put(&entry, "gfx_busy", document_number(process->gfx_busy, 0));
    put(&entry, "compute_busy", document_number(process->compute_busy, 0));
    put(&entry, "copy_busy", document_number(process->copy_busy, 0));
    put(&entry, "encode_busy", document_number(process->encode_busy, 0));
    put(&entry, "decode_busy", document_number(process->decode_busy, 0));
    put(&entry, "media_busy", document_number(process->media_busy, 0));
    put(&entry, "sharers", json_integer(process->sharers));
    put(&entry, "kfd", json_boolean(process->flags & GPUTAP_PROCESS_KFD));
    put(&entry, "partial", json_boolean(process->flags & GPUTAP_PROCESS_PARTIAL));
    return put_end(&entry);
}

static json_t *others_of(const gputap_process_table *table)
{
    struct put others = put_begin();
    put(&others, "count", json_integer(table->others));
    put(&others, "vram", document_bytes(table->others_vram));
    put(&others, "gtt", document_bytes(table->others_gtt));
    return put_end(&others);
}

static void put_unlooked(struct put *entry)
{
    static const char *const parts[] = {"rows", "others", "hidden", "hidden_vram", "partial", "external"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        put(entry, parts[i], json_null());
}

/* What is not to be shown is counted, with what it holds as far as that is known: not at all where none of it could be read. */
struct hidden {
    uint64_t count, vram;
};

static void hide(struct hidden *hidden, const gputap_process *row)
{
    uint64_t before = hidden->vram == UINT64_MAX ? 0 : hidden->vram;
    hidden->count++;
    if (row->vram != UINT64_MAX && before <= UINT64_MAX - 1 - row->vram)
        hidden->vram = before + row->vram;
}

json_t *document_process_gpu(gputap *tap, int device, int64_t uid)
{
    gputap_process_table table = GPUTAP_PROCESS_TABLE_INIT;
    gputap_process rows[GPUTAP_MAX_PROCESSES];
    int count = gputap_processes(tap, device, &table, rows, GPUTAP_MAX_PROCESSES);
    struct put entry = put_begin();
    put(&entry, "gpu", json_integer(device));
    if (count < 0) {
        put_unlooked(&entry);
        return put_end(&entry);
    }
    json_t *shown = json_array();
    struct hidden hidden = {.count = table.hidden, .vram = table.hidden > 0 ? UINT64_MAX : 0};
    for (int i = 0; i < count; i++)
        if (uid < 0 || (uint32_t)uid == rows[i].uid)
            put_item(&shown, document_process(&rows[i]));
        else
            hide(&hidden, &rows[i]);
    put(&entry, "rows", shown);
    put(&entry, "others", others_of(&table));
    put(&entry, "hidden", json_integer((json_int_t)hidden.count));
    put(&entry, "hidden_vram", document_bytes(hidden.vram));
    put(&entry, "partial", json_boolean(table.partial));
    put(&entry, "external", document_bytes(table.external_vram));
    return put_end(&entry);
}

json_t *document_process_gpus(gputap *tap, int device, int64_t uid)
{
    json_t *gpus = json_array();
    int count = gputap_device_count(tap);
    for (int i = 0; i < count; i++) {
        gputap_device facts = GPUTAP_DEVICE_INIT;
        if ((device < 0 || device == i) && gputap_device_info(tap, i, &facts) == GPUTAP_OK)
            put_item(&gpus, document_process_gpu(tap, i, uid));
    }
    return gpus;
}

json_t *document_processes(gputap *tap, const struct document_moment *moment, int device, int64_t uid)
{
    struct put page = put_begin();
    put(&page, "v", json_integer(1));
    put(&page, "t", json_integer(document_now_ms()));
    put(&page, "epoch", document_epoch(moment));
    put(&page, "state", json_string(document_state_text(moment)));
    put(&page, "age_ms", moment->age_ms < 0 ? json_null() : json_integer(moment->age_ms));
    put(&page, "gpus", document_process_gpus(tap, device, uid));
    return put_end(&page);
}
