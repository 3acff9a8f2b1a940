/* gpu_metrics of real machines, as hexadecimal text, and tables made by a test. */
#ifndef GPUTAP_TESTS_TABLE_BYTES_H
#define GPUTAP_TESTS_TABLE_BYTES_H

#include "broker/providers/gpu_metrics.h"

extern const char table_renoir[];  /* 2.2 (MangoHud issue 747), its last 32 bytes are zero */
extern const char table_phoenix[]; /* 2.1 */
extern const char table_strix[];   /* 3.0 */
extern const char table_navi21[];  /* 1.3 */
extern const char table_navi33[];  /* 1.3, graphics off */

/* Hexadecimal text, spaces ignored; returns the number of bytes. */
size_t table_bytes(const char *hex, unsigned char *out, size_t size);
/* A table of that version in which nothing is known; returns its size. */
size_t table_blank(unsigned format, unsigned content, unsigned char *out);
/* Sets the first instance of a field. */
void table_set(unsigned char *table, enum gpu_metrics_field field, uint64_t value);
void table_put(unsigned char *table, size_t at, uint64_t value, size_t width);

#endif
