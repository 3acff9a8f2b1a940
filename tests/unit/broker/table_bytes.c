#include "table_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char table_renoir[] =
    "80000202 b5185717 12168917 5d162517 1216bb17 1216d417 ed178f16 47220000 70d2241e d1030000 12006434 4303ffff "
    "87002100 01040700 2000fc00 ef006300 d105bd01 ffff2003 9001ffff cf05bd01 06002003 90019001 78057805 78057805";

const char table_phoenix[] =
    "78000201c409b10ae9092e09c4092109d00947091b0a4709dd09ffff4f000000e09fe5f671710100490dffffe7024902010000000000"
    "00000000010000000900200390019001900120032003ffffffffffffffffffffffff780578057805780578057805780578057805ffff00"
    "000000ffffffffffffffff";

const char table_strix[] = "08010300e40ede0fac0f160f8813160fd20f160f5c10160fac0f620fbf0e300f230fa610f10efe0e0e0e030000000000000000"
                           "000000000000000000000005000000"
                           "080000000f0000000500000002000d00000000000300040003000400c8097d0200000000ffff718a215c628a00006f26000000"
                           "00ffff6f2600000006000000000000"
                           "c30900002b0300009e070000b304000001030000ea021b0000000000e40283036b005a0030f8ffffffff5103740220030c008a"
                           "04200344030600ba130000ba130000"
                           "ba130000ba130000df0ca40700000000df0cdf0ca407a407ba13540bffff1c0000004c070000de680100010100000307000000"
                           "0000000000000040420f00ffffffff";

const char table_navi21[] =
    "7800010338003b00360031003100330003000000000024"
    "0022f40d01000000002cae8b357c0000002900ffffe1032100210021002100f4012003e803000000000000000000000000000010"
    "00a000ffffffffffffffffffffffffffffffffffffffffffffffffffff320307034c05ffff0000000000000000";

const char table_navi33[] =
    "78000103350036003c0000000000000000000000000001000000000000000000bd55fb31800000000000ffff35001900190000000000b0"
    "04c702600019001900000000000200000000000800a000ffffffffffffffffffffffffffffffffffffffffffffffffffffd7020000"
    "af02ffff0000000010000000";

size_t table_bytes(const char *hex, unsigned char *out, size_t size)
{
    size_t count = 0;
    char digits[3] = "";
    for (const char *at = hex; *at && count < size; at++) {
        if (*at == ' ')
            continue;
        digits[0] = at[0];
        digits[1] = at[1];
        out[count++] = (unsigned char)strtoul(digits, NULL, 16);
        at++;
    }
    return count;
}

static const struct gpu_metrics_version *version_of(unsigned format, unsigned content)
{
    for (int i = 0; i < gpu_metrics_version_count; i++)
        if (gpu_metrics_versions[i].format == format && gpu_metrics_versions[i].content == content)
            return &gpu_metrics_versions[i];
    (void)fprintf(stderr, "no version %u.%u\n", format, content);
    abort(); /* a mistake in the test */
}

void table_put(unsigned char *table, size_t at, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        table[at + i] = (unsigned char)(value >> (8 * i));
}

size_t table_blank(unsigned format, unsigned content, unsigned char *out)
{
    const struct gpu_metrics_version *version = version_of(format, content);
    memset(out, 0xff, version->size);
    table_put(out, 0, version->size, 2);
    out[2] = version->format;
    out[3] = version->content;
    return version->size;
}

void table_set(unsigned char *table, enum gpu_metrics_field field, uint64_t value)
{
    const struct gpu_metrics_version *version = version_of(table[2], table[3]);
    for (int group = 0; group < 3 && version->groups[group]; group++)
        for (const struct gpu_metrics_row *row = version->groups[group]; row->count > 0; row++)
            if (row->field == field) {
                table_put(table, row->offset, value, gpu_metrics_width((enum gpu_metrics_type)row->type));
                return;
            }
    (void)fprintf(stderr, "version %u.%u has no field %d\n", table[2], table[3], (int)field);
    abort();
}
