/* Folders made by a test, looking to a provider like the files of a machine. */
#ifndef GPUTAP_TESTS_TREE_H
#define GPUTAP_TESTS_TREE_H

#include <stdbool.h>
#include <stddef.h>

struct tree {
    char root[128];
};

/* A new empty folder. Ends the program if there is none to be had. */
void tree_make(struct tree *tree);
void tree_remove(struct tree *tree);
/* Writes a file and the folders above it. */
void tree_write(const struct tree *tree, const char *path, const char *text);
void tree_write_bytes(const struct tree *tree, const char *path, const void *bytes, size_t size);
/* A link whose target is taken as it is. */
void tree_link(const struct tree *tree, const char *path, const char *target);
/* Takes a file or folder away; `to` renames it. */
void tree_delete(const struct tree *tree, const char *path);
void tree_rename(const struct tree *tree, const char *from, const char *to);
/* Lays a dump of a real machine out in it; false if there is none here. */
bool tree_from_dump(const struct tree *tree, const char *dump);

/* An awake card of the driver amdgpu at 0000:03:00.0 behind the bridges of a Navi card, every file with a sound value. */
void tree_amd_card(const struct tree *tree);
#define BRIDGE "/sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0"
#define CARD BRIDGE "/0000:02:00.0/0000:03:00.0"

#endif
