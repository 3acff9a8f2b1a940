#include "bridge/mime.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

const char *mime_type(const char *path)
{
    static const struct {
        const char *end, *type;
    } types[] = {
        {"html", "text/html; charset=utf-8"},
        {"js", "text/javascript; charset=utf-8"},
        {"mjs", "text/javascript; charset=utf-8"},
        {"css", "text/css; charset=utf-8"},
        {"json", "application/json; charset=utf-8"},
        {"map", "application/json; charset=utf-8"},
        {"webmanifest", "application/manifest+json; charset=utf-8"},
        {"txt", "text/plain; charset=utf-8"},
        {"svg", "image/svg+xml; charset=utf-8"},
        {"png", "image/png"},
        {"jpg", "image/jpeg"},
        {"ico", "image/x-icon"},
        {"gif", "image/gif"},
        {"webp", "image/webp"},
        {"woff", "font/woff"},
        {"woff2", "font/woff2"},
        {"wasm", "application/wasm"},
    };
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof types[0]; i++)
        if (strcasecmp(dot + 1, types[i].end) == 0)
            return types[i].type;
    return "application/octet-stream";
}

bool mime_path_clean(const char *path)
{
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || part[0] == '.')
            return false;
        for (size_t i = 0; i < length; i++)
            if (!isalnum((unsigned char)part[i]) && !strchr("-_.+@", part[i]))
                return false;
        part += length;
        if (!*part)
            return true;
    }
}
