/* Run by the build only: writes the page's files as C arrays, each also compressed where that helps.
 *   embed OUT.c ROOT FILE... [-- ROOT FILE...]...      files relative to the ROOT before them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef EMBED_ZLIB
#include <zlib.h>
#endif

#include "bridge/assets.h"

static unsigned char *read_file(const char *root, const char *path, size_t *length)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/%s", root, path);
    FILE *in = fopen(name, "rb");
    if (!in)
        return NULL;
    unsigned char *bytes = NULL;
    if (fseek(in, 0, SEEK_END) == 0) {
        long size = ftell(in);
        rewind(in);
        bytes = size >= 0 ? malloc((size_t)size + 1) : NULL;
        if (bytes)
            *length = fread(bytes, 1, (size_t)size, in);
    }
    fclose(in);
    return bytes;
}

/* NULL where the result is no smaller. No time and no name go into it, so the build stays reproducible. */
static unsigned char *compress_bytes(const unsigned char *bytes, size_t length, size_t *out_length)
{
#ifdef EMBED_ZLIB
    z_stream stream = {0};
    if (length < 256 || deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    unsigned char *out = malloc(length);
    stream.next_in = (unsigned char *)(size_t)bytes;
    stream.avail_in = (unsigned)length;
    stream.next_out = out;
    stream.avail_out = (unsigned)length;
    int result = out ? deflate(&stream, Z_FINISH) : Z_BUF_ERROR;
    *out_length = stream.total_out;
    deflateEnd(&stream);
    if (result == Z_STREAM_END)
        return out;
    free(out);
#else
    (void)bytes;
    (void)length;
    (void)out_length;
#endif
    return NULL;
}

static void write_array(FILE *out, const char *kind, int index, const unsigned char *bytes, size_t length)
{
    fprintf(out, "static const unsigned char %s_%d[] = {", kind, index);
    for (size_t i = 0; i < length; i++)
        fprintf(out, "%s%u,", i % 32 == 0 ? "\n" : "", bytes[i]);
    fprintf(out, "0};\n");
}

static int write_file(FILE *out, FILE *table, const char *root, const char *path, int index)
{
    size_t length = 0, packed_length = 0;
    char etag[24];
    unsigned char *bytes = read_file(root, path, &length);
    if (!bytes) {
        fprintf(stderr, "embed: cannot read %s/%s\n", root, path);
        return 1;
    }
    unsigned char *packed = compress_bytes(bytes, length, &packed_length);
    assets_hash(bytes, length, etag);
    write_array(out, "file", index, bytes, length);
    fprintf(table, "    {\"%s\", file_%d, %zu, ", path, index, length);
    if (packed) {
        write_array(out, "gzip", index, packed, packed_length);
        fprintf(table, "gzip_%d, %zu, \"%s\"},\n", index, packed_length, etag);
    } else {
        fprintf(table, "NULL, 0, \"%s\"},\n", etag);
    }
    free(bytes);
    free(packed);
    return 0;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "w") : NULL, *table = tmpfile();
    if (!out || !table)
        return 1;
    fprintf(out, "/* Generated from the page's files: do not edit. */\n#include \"bridge/assets.h\"\n\n");
    const char *root = argv[2];
    int count = 0;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0 && i + 1 < argc)
            root = argv[++i];
        else if (write_file(out, table, root, argv[i], count++) != 0)
            return 1;
    }
    fprintf(out, "\nconst struct asset assets_embedded[] = {\n");
    rewind(table);
    for (int c; (c = fgetc(table)) != EOF;)
        fputc(c, out);
    fprintf(out, "    {NULL, NULL, 0, NULL, 0, \"\"}};\nconst size_t assets_embedded_count = %d;\n", count);
    fclose(table);
    return fclose(out) == 0 ? 0 : 1;
}
