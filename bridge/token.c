/* The token file: long enough, printable, and nobody else's to read. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "bridge/guard.h"
#include "bridge/private_file.h"

bool guard_load_token(const char *path, char token[GUARD_TOKEN_LIMIT + 1], const char **why)
{
    char text[GUARD_TOKEN_LIMIT + 64];
    FILE *file = private_file_open(path, why);
    if (!file)
        return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    bool more = length == sizeof text - 1;
    fclose(file);
    size_t begin = 0;
    while (begin < length && isspace((unsigned char)text[begin]))
        begin++;
    while (length > begin && isspace((unsigned char)text[length - 1]))
        length--;
    length -= begin;
    *why = "its token has fewer than 16 characters";
    if (length < GUARD_TOKEN_SHORTEST)
        return false;
    *why = "its token has more than 256 characters";
    if (more || length > GUARD_TOKEN_LIMIT)
        return false;
    /* The characters that a sub-protocol name may have, since browsers send the token in one. */
    *why = "its token has characters other than letters, digits and !#$%&'*+-.^_`|~";
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[begin + i]) && !(text[begin + i] && strchr("!#$%&'*+-.^_`|~", text[begin + i])))
            return false;
    memset(token, 0, GUARD_TOKEN_LIMIT + 1);
    memcpy(token, text + begin, length);
    return true;
}
