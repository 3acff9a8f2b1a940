#include "shm/win32.h"

_Static_assert(sizeof(SRWLOCK) <= sizeof(struct platform_mutex), "room for a lock");

static SRWLOCK *real(struct platform_mutex *mutex) { return (SRWLOCK *)(void *)mutex->storage; }

void mutex_init(struct platform_mutex *mutex) { InitializeSRWLock(real(mutex)); }
void mutex_lock(struct platform_mutex *mutex) { AcquireSRWLockExclusive(real(mutex)); }
void mutex_unlock(struct platform_mutex *mutex) { ReleaseSRWLockExclusive(real(mutex)); }
void mutex_destroy(struct platform_mutex *mutex) { (void)mutex; }
