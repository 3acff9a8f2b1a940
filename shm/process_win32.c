#include <fcntl.h>
#include <io.h>

#include "shm/win32.h"

/* The lowest free number is given. */
void process_open_standard_files(void)
{
    int file;
    do
        file = _open("NUL", _O_RDWR);
    while (file >= 0 && file <= 2);
    if (file > 2)
        _close(file);
}

/* Windows has no fork: nobody is a copy of this process. */
const shm_word32 *fork_canary(uint32_t *mark)
{
    static shm_word32 intact;
    *mark = 1;
    word32_set(&intact, 1);
    return &intact;
}
