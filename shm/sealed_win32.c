/* A client's memory is a section that the broker duplicates into the client's process over its named pipe. There is no broker on
 * Windows yet whose pipe could bring one, so there is none to make and none to map: a client annotates for itself alone. */
#include "shm/platform.h"

int sealed_create(size_t bytes, const void **memory, int *file)
{
    (void)bytes, (void)memory, (void)file;
    return REGION_ESYSTEM;
}

int sealed_map(int file, size_t bytes, void **memory)
{
    (void)file, (void)bytes, (void)memory;
    return REGION_ESYSTEM;
}

void sealed_unmap(const void *memory, size_t bytes) { (void)memory, (void)bytes; }
