/* One input for everything of the bridge that reads strangers' bytes: messages, Host, Origin, tokens, paths. Run by libFuzzer and,
 * with random bytes, by the unit test. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/guard.h"
#include "bridge/mime.h"
#include "bridge/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void try_message(const uint8_t *data, size_t size)
{
    struct protocol_message message;
    protocol_parse((const char *)data, size, &message);
    if (message.kind == PROTOCOL_SUB)
        check(message.period >= 100 && message.period <= 5000 && (unsigned)message.set < DOCUMENT_SETS);
    if (message.kind == PROTOCOL_HISTORY)
        check(message.seconds >= 1 && message.seconds <= DOCUMENT_HISTORY_SECONDS && message.points >= 1 &&
              message.points <= DOCUMENT_HISTORY_POINTS);
    if (message.kind == PROTOCOL_BAD || message.kind == PROTOCOL_GARBAGE)
        check(message.text != NULL);
}

static void try_text(const char *text)
{
    static const char *const hosts[] = {"gpu.example", "[fe80::1]:8288"}, *const origins[] = {"http://127.0.0.1:8188"};
    struct guard_rules rules = {
        .hosts = hosts, .host_count = 2, .origins = origins, .origin_count = 1, .token = "a-token-of-some-length"};
    struct guard_local local = {.address = "127.0.0.1", .port = 8288};
    struct guard_authority authority;
    if (guard_split(text, &authority))
        check(authority.name[0] != '\0' && strlen(authority.name) < sizeof authority.name);
    else
        check(!guard_host_ok(&rules, &local, text));
    (void)guard_origin_ok(&rules, &local, text);
    if (!strstr(text, rules.token))
        check(!guard_token_ok(&rules, text, text));
    if (mime_path_clean(text))
        check(strncmp(text, "..", 2) != 0 && !strstr(text, "/.") && !strstr(text, "//") && text[0] != '/');
    (void)mime_type(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_message(data, size);
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    try_text(text);
    free(text);
    return 0;
}
