#ifndef GPUTAP_BRIDGE_PRIVATE_FILE_H
#define GPUTAP_BRIDGE_PRIVATE_FILE_H

#include <stdio.h>

/* Opens a secret for reading; NULL, with the reason, where others may read it too. */
FILE *private_file_open(const char *path, const char **why);

#endif
