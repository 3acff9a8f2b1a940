#include "tests/helpers/os.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void os_sleep_ms(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }
bool os_set_env(const char *name, const char *value) { return (value ? setenv(name, value, 1) : unsetenv(name)) == 0; }
bool os_make_folder(const char *path) { return mkdir(path, 0755) == 0; }
bool os_remove_folder(const char *path) { return rmdir(path) == 0; }
bool os_remove_file(const char *path) { return unlink(path) == 0; }
bool os_exists(const char *path) { return access(path, F_OK) == 0; }
bool os_rename(const char *from, const char *to) { return rename(from, to) == 0; }
bool os_named_places(void) { return false; }

bool os_make_private_folder(char *out, size_t size)
{
    return snprintf(out, size, "/tmp/gputap-unit-XXXXXX") < (int)size && mkdtemp(out) != NULL;
}

bool os_remove_files(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return false;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    return rmdir(path) == 0;
}

int os_ranges_lost_at_most(int exchanges)
{
    (void)exchanges;
    return 0;
}
