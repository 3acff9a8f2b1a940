#include "shm/win32.h"

#include <sddl.h>
#include <stdio.h>
#include <string.h>

#include "shm/text.h"

bool win32_place_of_objects(const char *directory)
{
    return strncmp(directory, "Global\\", 7) == 0 || strncmp(directory, "Local\\", 6) == 0;
}

bool win32_path(wchar_t out[PLACE_PATH_MAX], const char *directory, const char *name)
{
    char path[PLACE_PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    return length > 0 && length < PLACE_PATH_MAX &&
           MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out, PLACE_PATH_MAX) > 0;
}

int win32_error_of(DWORD code)
{
    switch (code) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH: return REGION_ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_PRIVILEGE_NOT_HELD:
    case ERROR_WRITE_PROTECT:
    case ERROR_SHARING_VIOLATION: return REGION_EPERM;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
    case ERROR_COMMITMENT_LIMIT:
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_NO_SYSTEM_RESOURCES: return REGION_ENOSPC;
    default: return REGION_ESYSTEM;
    }
}

int win32_fail(const char *directory, const char *name, DWORD code, char *message, size_t size)
{
    wchar_t wide[256] = L"";
    char text[512] = "";
    DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, code, 0, wide,
                                  sizeof wide / sizeof wide[0], NULL);
    while (length > 0 && (wide[length - 1] == L'\n' || wide[length - 1] == L'\r' || wide[length - 1] == L'.'))
        wide[--length] = L'\0';
    if (length == 0 || WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, sizeof text, NULL, NULL) <= 0)
        text_format(text, sizeof text, "error %lu", code);
    text_format(message, size, "%s/%s: %s", directory, name, text);
    return win32_error_of(code);
}

bool win32_access_open(struct win32_access *access, DWORD others)
{
    wchar_t text[128] = L"D:P(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;OW)";
    size_t length = wcslen(text);
    access->attributes = (SECURITY_ATTRIBUTES){.nLength = sizeof access->attributes};
    if (others)
        _snwprintf(text + length, sizeof text / sizeof text[0] - length, L"(A;;0x%lx;;;WD)", others);
    return ConvertStringSecurityDescriptorToSecurityDescriptorW(text, SDDL_REVISION_1, &access->attributes.lpSecurityDescriptor,
                                                                NULL);
}

void win32_access_close(struct win32_access *access)
{
    if (access->attributes.lpSecurityDescriptor)
        LocalFree(access->attributes.lpSecurityDescriptor);
}
