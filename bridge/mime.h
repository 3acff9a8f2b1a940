#ifndef GPUTAP_BRIDGE_MIME_H
#define GPUTAP_BRIDGE_MIME_H

#include <stdbool.h>

/* Media type of a file by the end of its name. */
const char *mime_type(const char *path);

/* A path that names something inside a folder: every part is non-empty, has no leading dot, and is made of letters, digits and
 * -_.+@ only. `path` starts after the first slash. */
bool mime_path_clean(const char *path);

#endif
