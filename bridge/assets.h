/* The page's files: built in, or from a folder while working on them. */
#ifndef GPUTAP_BRIDGE_ASSETS_H
#define GPUTAP_BRIDGE_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

struct asset {
    const char *path; /* index.html, locale/en.json */
    const unsigned char *bytes;
    size_t length;
    const unsigned char *gzip; /* NULL where it would not be smaller */
    size_t gzip_length;
    char etag[24]; /* hash of the content, without quotes */
};

/* Made by the build: the page, and the table of cards. */
#define ASSETS_SPECS "gpu_specs.json" /* served whatever folder the page comes from */
extern const struct asset assets_embedded[];
extern const size_t assets_embedded_count;

/* NULL if there is none. `path` is clean in the sense of mime_path_clean. */
const struct asset *assets_find(const char *path);

/* Reads a file of a folder into *asset, whose bytes are to be freed. False where it is missing, is no regular file, or lies
 * outside the folder by a link. */
bool assets_folder_read(const char *folder, const char *path, struct asset *asset);
bool assets_folder_ok(const char *folder, const char **why);

void assets_hash(const unsigned char *bytes, size_t length, char etag[24]);

#endif
