#include "bridge/guard.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "bridge/address.h"

static bool parse_port(const char *text, uint16_t *port)
{
    unsigned value = 0;
    size_t length = strlen(text);
    if (length < 1 || length > 5)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *port = (uint16_t)value;
    return value >= 1 && value <= 65535;
}

bool guard_split(const char *text, struct guard_authority *out)
{
    *out = (struct guard_authority){0};
    out->bracketed = text[0] == '[';
    const char *begin = text + out->bracketed;
    const char *end = out->bracketed ? strchr(begin, ']') : begin + strcspn(begin, ":");
    if (!end || end == begin || (size_t)(end - begin) >= sizeof out->name)
        return false;
    for (const char *c = begin; c < end; c++)
        if (!isalnum((unsigned char)*c) && !strchr(out->bracketed ? ":." : "-._", *c))
            return false;
    memcpy(out->name, begin, (size_t)(end - begin));
    const char *rest = end + out->bracketed;
    if (!*rest)
        return true;
    return *rest == ':' && parse_port(rest + 1, &out->port);
}

static bool same_address(const struct guard_authority *authority, const char *numeric)
{
    struct address_key a, b;
    bool v6 = strchr(numeric, ':') != NULL;
    return authority->bracketed == v6 && address_key_parse(authority->name, &a) && address_key_parse(numeric, &b) &&
           memcmp(&a, &b, sizeof a) == 0;
}

/* Names that always mean this machine to a browser, and the address that the connection really came to: none of them can be
 * pointed here by a foreign name server. */
static bool is_own_name(const struct guard_authority *authority, const struct guard_local *local)
{
    return (!authority->bracketed && strcasecmp(authority->name, "localhost") == 0) || same_address(authority, "127.0.0.1") ||
           same_address(authority, "::1") || (local->address[0] && same_address(authority, local->address));
}

static bool is_allowed_name(const struct guard_rules *rules, const struct guard_authority *authority)
{
    for (size_t i = 0; i < rules->host_count; i++) {
        struct guard_authority allowed;
        if (!guard_split(rules->hosts[i], &allowed) || allowed.bracketed != authority->bracketed)
            continue;
        bool same = allowed.bracketed ? same_address(authority, allowed.name) : strcasecmp(allowed.name, authority->name) == 0;
        if (same && (allowed.port == 0 || allowed.port == authority->port))
            return true;
    }
    return false;
}

bool guard_host_ok(const struct guard_rules *rules, const struct guard_local *local, const char *host)
{
    struct guard_authority authority;
    if (!host || !guard_split(host, &authority))
        return false;
    if (local->local_socket || is_allowed_name(rules, &authority))
        return true;
    return (authority.port ? authority.port : 80) == local->port && is_own_name(&authority, local);
}

bool guard_origin_listed(const struct guard_rules *rules, const char *origin)
{
    for (size_t i = 0; origin && i < rules->origin_count; i++)
        if (strcmp(rules->origins[i], origin) == 0)
            return true;
    return false;
}

bool guard_origin_ok(const struct guard_rules *rules, const struct guard_local *local, const char *origin)
{
    struct guard_authority authority;
    if (!origin || !*origin || guard_origin_listed(rules, origin))
        return true;
    bool plain = strncmp(origin, "http://", 7) == 0, secure = strncmp(origin, "https://", 8) == 0;
    if ((!plain && !secure) || !guard_split(origin + (plain ? 7 : 8), &authority))
        return false;
    if (is_allowed_name(rules, &authority))
        return true;
    return plain && !local->local_socket && (authority.port ? authority.port : 80) == local->port && is_own_name(&authority, local);
}

bool guard_equal(const char *a, const char *b, size_t length)
{
    volatile unsigned char difference = 0;
    for (size_t i = 0; i < length; i++)
        difference = (unsigned char)(difference | ((unsigned char)a[i] ^ (unsigned char)b[i]));
    return difference == 0;
}

/* Takes the same time whatever the offered text is, but for its length. */
static bool token_matches(const struct guard_rules *rules, const char *offered, size_t length)
{
    char padded[GUARD_TOKEN_LIMIT + 1] = {0};
    if (length > GUARD_TOKEN_LIMIT)
        return false;
    memcpy(padded, offered, length);
    return guard_equal(padded, rules->token, sizeof padded);
}

/* The next element of a comma-separated list, trimmed; NULL at its end. */
static const char *next_item(const char **list, size_t *length)
{
    const char *at = *list + strspn(*list, " \t,");
    if (!*at)
        return NULL;
    size_t span = strcspn(at, ",");
    *list = at + span;
    while (span > 0 && (at[span - 1] == ' ' || at[span - 1] == '\t'))
        span--;
    *length = span;
    return at;
}

bool guard_protocol_offered(const char *protocols, const char *name)
{
    size_t length;
    for (const char *item; protocols && (item = next_item(&protocols, &length));)
        if (length == strlen(name) && memcmp(item, name, length) == 0)
            return true;
    return false;
}

bool guard_token_ok(const struct guard_rules *rules, const char *authorization, const char *protocols)
{
    static const char bearer[] = "Bearer ", prefix[] = "token.";
    size_t length;
    if (!rules->token[0])
        return true;
    if (authorization && strncasecmp(authorization, bearer, sizeof bearer - 1) == 0) {
        const char *offered = authorization + sizeof bearer - 1;
        if (token_matches(rules, offered, strlen(offered)))
            return true;
    }
    for (const char *item; protocols && (item = next_item(&protocols, &length));)
        if (length > sizeof prefix - 1 && memcmp(item, prefix, sizeof prefix - 1) == 0 &&
            token_matches(rules, item + sizeof prefix - 1, length - (sizeof prefix - 1)))
            return true;
    return false;
}
