/* Numeric socket addresses: what --listen names, and what a connection comes from. */
#ifndef GPUTAP_BRIDGE_ADDRESS_H
#define GPUTAP_BRIDGE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 16 bytes whatever the family, v4 as v4-mapped. */
struct address_key {
    uint8_t bytes[16];
};

/* Strict: four decimal numbers, or an IPv6 literal without scope. */
bool address_key_parse(const char *numeric, struct address_key *key);
bool address_key_loopback(const struct address_key *key);
void address_key_print(const struct address_key *key, char *out, size_t size);

#endif
