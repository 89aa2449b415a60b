// On which address of this machine the rendezvous listens, and where ranks look for it. Private to exec/launch.

#pragma once

#include <stddef.h>
#include <stdint.h>

// IPv4 addresses in host order. Everywhere: on all addresses of this machine.
static const uint32_t RENDEZVOUS_EVERYWHERE = 0, RENDEZVOUS_HERE = 0x7f000001;

// hosts: "node1:2,node2:2" as a launcher takes them. The address of this machine that leads to all of them;
// RENDEZVOUS_EVERYWHERE where several do, or where a name is the launcher's own.
uint32_t rendezvous_address(const char *hosts);

// Appends " ADDRESS" for every place to look for a rendezvous that listens on `address`.
void rendezvous_address_words(uint32_t address, char *text, size_t text_bytes);
