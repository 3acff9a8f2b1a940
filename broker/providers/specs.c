#include "broker/providers/specs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Grouped by id. */
static const struct specs table[] = {
#include "gpu_specs.inc"
};
enum { TABLE_ROWS = sizeof table / sizeof table[0] };

static bool has_id(const struct specs *row, uint32_t vendor, uint32_t device)
{
    return row->vendor == vendor && row->device == device;
}

/* 0 may be one that could not be read: it tells nothing. */
static bool has_revision(const struct specs *row, uint32_t revision)
{
    char text[16];
    if (revision == 0)
        return false;
    (void)snprintf(text, sizeof text, " %02x ", revision);
    return strstr(row->revisions, text) != NULL;
}

/* As whole words: "RX 6600" is not in "RX 6600M". */
static bool has_words(const char *name, const char *words)
{
    size_t length = strlen(words);
    for (const char *at = name; *at; at++)
        if (strncasecmp(at, words, length) == 0 && (at == name || !isalnum((unsigned char)at[-1])) &&
            !isalnum((unsigned char)at[length]))
            return true;
    return false;
}

/* "Radeon RX 7900 XT/7900 XTX" is what a list of ids calls all of them. */
static bool is_of_several(const char *name) { return strchr(name, '/') != NULL; }

static const struct specs *by_name(const struct specs *rows, size_t count, const char *name)
{
    const struct specs *best = NULL;
    size_t best_length = 0;
    bool tie = false;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(rows[i].name_match);
        if (length < best_length || !has_words(name, rows[i].name_match))
            continue;
        tie = length == best_length;
        best = &rows[i];
        best_length = length;
    }
    return tie ? NULL : best;
}

const struct specs *specs_find(uint32_t vendor, uint32_t device, uint32_t revision, const char *name)
{
    size_t first = 0, count = 0;
    while (first < TABLE_ROWS && !has_id(&table[first], vendor, device))
        first++;
    const struct specs *rows = &table[first];
    while (first + count < TABLE_ROWS && has_id(&rows[count], vendor, device))
        count++;
    for (size_t i = 0; i < count; i++)
        if (has_revision(&rows[i], revision))
            return &rows[i];
    if (count == 1 && !rows[0].revisions[0])
        return rows;
    return is_of_several(name) ? NULL : by_name(rows, count, name);
}

static const struct specs *find(const struct layout_device *facts)
{
    return specs_find(facts->vendor_id, facts->device_id, facts->revision, facts->name);
}

void specs_name(struct layout_device *facts)
{
    const struct specs *specs = find(facts);
    if (specs)
        provider_text(facts->name, sizeof facts->name, specs->name);
}

void specs_complete(struct layout_device *facts)
{
    const struct specs *specs = find(facts);
    if (!specs)
        return;
    if (!(facts->tgp > 0))
        facts->tgp = specs->tgp;
    if (!facts->vram_type[0])
        provider_text(facts->vram_type, sizeof facts->vram_type, specs->memory_type);
    if (facts->vram_bus_bits == 0)
        facts->vram_bus_bits = specs->memory_bus_bits;
}
