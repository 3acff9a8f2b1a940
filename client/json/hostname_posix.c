#include "client/json/document.h"

#include <unistd.h>

int document_system_hostname(char *out, size_t size)
{
    if (size == 0 || gethostname(out, size) != 0)
        return -1;
    out[size - 1] = '\0';
    return 0;
}
