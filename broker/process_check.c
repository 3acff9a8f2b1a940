#include "broker/process_check.h"

#include <math.h>
#include <string.h>

#include "broker/provider.h"
#include "shm/text.h"

static void check_busy(double *busy)
{
    if (!(*busy >= 0 && *busy <= 100))
        *busy = (double)NAN;
}

static void check_bytes(uint64_t *bytes)
{
    if (*bytes >> SAMPLE_MEMORY_BITS)
        *bytes = UINT64_MAX;
}

static void check_text(char *text, size_t size)
{
    if (!text_valid(text, size))
        memset(text, 0, size);
}

static void check_row(struct layout_process *row)
{
    double *const busy[] = {&row->gfx_busy,    &row->compute_busy, &row->copy_busy,
                            &row->encode_busy, &row->decode_busy,  &row->media_busy};
    for (size_t i = 0; i < sizeof busy / sizeof busy[0]; i++)
        check_busy(busy[i]);
    check_bytes(&row->vram);
    check_bytes(&row->gtt);
    check_text(row->comm, sizeof row->comm);
    check_text(row->container, sizeof row->container);
    row->flags &= PROCESS_KFD | PROCESS_PARTIAL;
    memset(row->reserved, 0, sizeof row->reserved);
}

bool process_table_check(struct layout_process_table *table)
{
    if (table->count > LAYOUT_PROCESS_ROWS)
        return false;
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->rows[i].pid == 0)
            return false;
        check_row(&table->rows[i]);
    }
    memset(&table->rows[table->count], 0, (LAYOUT_PROCESS_ROWS - table->count) * sizeof table->rows[0]);
    table->flags &= PROCESS_TABLE_PARTIAL;
    memset(table->reserved, 0, sizeof table->reserved);
    return true;
}
