/* What portable tests ask of the system. One implementation a platform. */
#ifndef GPUTAP_TESTS_OS_H
#define GPUTAP_TESTS_OS_H

#include <stdbool.h>
#include <stddef.h>

void os_sleep_ms(int ms);
/* NULL removes it. */
bool os_set_env(const char *name, const char *value);
/* Makes a folder of this test's own; its path goes to out. */
bool os_make_private_folder(char *out, size_t size);
bool os_make_folder(const char *path);
/* A folder with nothing in it. */
bool os_remove_folder(const char *path);
/* A folder with files in it, and itself. */
bool os_remove_files(const char *path);
bool os_remove_file(const char *path);
bool os_exists(const char *path);
/* Over whatever is there. */
bool os_rename(const char *from, const char *to);
/* Are places made of named objects, and shall this run be on such? */
bool os_named_places(void);
/* How many of so many exchanges of a mapping may lose its range to another thread's allocation: the exchange is not one step
 * everywhere. */
int os_ranges_lost_at_most(int exchanges);

#endif
