#include <pthread.h>
#include <stdlib.h>

#include "shm/platform.h"

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct platform_mutex), "room for a mutex");

static pthread_mutex_t *real(struct platform_mutex *mutex) { return (pthread_mutex_t *)(void *)mutex->storage; }

void mutex_init(struct platform_mutex *mutex)
{
    if (pthread_mutex_init(real(mutex), NULL) != 0)
        abort();
}
void mutex_lock(struct platform_mutex *mutex)
{
    if (pthread_mutex_lock(real(mutex)) != 0)
        abort();
}
void mutex_unlock(struct platform_mutex *mutex)
{
    if (pthread_mutex_unlock(real(mutex)) != 0)
        abort();
}
void mutex_destroy(struct platform_mutex *mutex) { (void)pthread_mutex_destroy(real(mutex)); }
