#include "bridge/address.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool address_key_parse(const char *numeric, struct address_key *key)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, numeric, &v4) == 1) {
        memcpy(key->bytes, mapped, sizeof mapped);
        memcpy(key->bytes + sizeof mapped, &v4, 4);
        return true;
    }
    return inet_pton(AF_INET6, numeric, key->bytes) == 1;
}

bool address_key_loopback(const struct address_key *key)
{
    static const uint8_t one[16] = {[15] = 1};
    return memcmp(key->bytes, one, sizeof one) == 0 || (memcmp(key->bytes, mapped, sizeof mapped) == 0 && key->bytes[12] == 127);
}

void address_key_print(const struct address_key *key, char *out, size_t size)
{
    bool is_v4 = memcmp(key->bytes, mapped, sizeof mapped) == 0;
    const void *bytes = is_v4 ? key->bytes + sizeof mapped : key->bytes;
    if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, bytes, out, (socklen_t)size))
        out[0] = '\0';
}
