/* What one would pick without gputap, for benchmarks to stand beside: each call does the like of one read or one annotation. */
#ifndef GPUTAP_TESTS_ALTERNATIVES_H
#define GPUTAP_TESTS_ALTERNATIVES_H

#include <stdbool.h>
#include <stddef.h>

/* The JSON line of a begun span; returns its length. */
int json_line(char *out, size_t size, int number);

/* A UNIX datagram socket whose other end is emptied by a thread. */
bool datagram_open(void);
void datagram_send(const char *text, size_t length);

/* A server on a port of 127.0.0.1 that answers GET with a sample as JSON; the connection is kept. */
bool http_open(void);
bool http_get(void);

/* A database in that folder: write-ahead log, no waiting for the disk. */
bool sqlite_open(const char *folder);
bool sqlite_insert(int number);
bool sqlite_select(void);
void sqlite_end(void);

#endif
