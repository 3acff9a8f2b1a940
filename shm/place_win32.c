/* Where an instance is: in the folder that GPUTAP_DIR names, else among the names of objects. A service, in session 0, makes global
 * names, for which it has the right (SeCreateGlobalPrivilege); a user without it makes names of the session. So a global name is
 * one of an administrator or a service, and a local one of somebody at the same desktop: both may be believed. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "shm/text.h"
#include "shm/win32.h"

static const char *const scopes[] = {"Global", "Local"};

/* Asked of the system: the C library's own copy of the environment is not the one that another library has changed. */
static const char *environment(const wchar_t *name, char *out, size_t size)
{
    wchar_t wide[PLACE_PATH_MAX];
    DWORD length = GetEnvironmentVariableW(name, wide, PLACE_PATH_MAX);
    if (length == 0)
        return NULL;
    if (length >= PLACE_PATH_MAX || WideCharToMultiByte(CP_UTF8, 0, wide, -1, out, (int)size, NULL, NULL) <= 0)
        out[0] = '\0'; /* there, and nothing that can be used */
    return out;
}

const char *place_default_instance(void)
{
    static _Thread_local char instance[PLACE_PATH_MAX];
    return environment(L"GPUTAP_INSTANCE", instance, sizeof instance) ? instance : "default";
}

static bool absolute(const char *path)
{
    bool drive = isalpha((unsigned char)path[0]) && path[1] == ':' && (path[2] == '\\' || path[2] == '/');
    return drive || (path[0] == '\\' && path[1] == '\\');
}

static int folder_create(const char *path, char *message, size_t message_size)
{
    wchar_t wide[PLACE_PATH_MAX];
    if (!win32_path(wide, path, "."))
        return REGION_ESYSTEM;
    if (CreateDirectoryW(wide, NULL) || GetLastError() == ERROR_ALREADY_EXISTS)
        return REGION_OK;
    return win32_fail(path, ".", GetLastError(), message, message_size);
}

static bool may_make_names_in(const char *directory)
{
    wchar_t path[PLACE_PATH_MAX];
    char name[32];
    (void)snprintf(name, sizeof name, "probe.%lu", GetCurrentProcessId());
    if (!win32_path(path, directory, name))
        return false;
    HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, 1, path);
    if (section)
        CloseHandle(section);
    return section != NULL;
}

int place_create(const char *instance, int64_t group, char *out, size_t size, char *message, size_t message_size)
{
    char base[PLACE_PATH_MAX];
    (void)group;
    if (environment(L"GPUTAP_DIR", base, sizeof base)) {
        if (!absolute(base) || snprintf(out, size, "%s/%s", base, instance) >= (int)size) {
            text_format(message, message_size, "%s: GPUTAP_DIR must be an absolute path, and not too long", base);
            return REGION_ESYSTEM;
        }
        int result = folder_create(base, message, message_size);
        return result == REGION_OK ? folder_create(out, message, message_size) : result;
    }
    for (int i = 0; i < 2; i++)
        if (snprintf(out, size, "%s\\gputap/%s", scopes[i], instance) < (int)size && may_make_names_in(out))
            return REGION_OK;
    text_format(message, message_size, "%s: no object can be made under this name", out);
    return REGION_EPERM;
}

bool place_candidate(const char *instance, int i, char *out, size_t size, bool *trust)
{
    char base[PLACE_PATH_MAX];
    *trust = false;
    if (environment(L"GPUTAP_DIR", base, sizeof base)) {
        *trust = true;
        return i == 0 && absolute(base) && snprintf(out, size, "%s/%s", base, instance) < (int)size;
    }
    return i < 2 && snprintf(out, size, "%s\\gputap/%s", scopes[i], instance) < (int)size;
}

int place_check(const char *directory, bool trust)
{
    wchar_t path[PLACE_PATH_MAX];
    (void)trust;
    if (win32_place_of_objects(directory))
        return REGION_OK;
    if (!win32_path(path, directory, "."))
        return REGION_ESYSTEM;
    DWORD attributes = GetFileAttributesW(path);
    if (attributes == INVALID_FILE_ATTRIBUTES)
        return win32_error_of(GetLastError());
    return attributes & FILE_ATTRIBUTE_DIRECTORY ? REGION_OK : REGION_ENOENT;
}
