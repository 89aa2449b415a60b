// Which address of this machine the rendezvous listens on, and where ranks connect. Private to exec/launch.

#pragma once

#include <stddef.h>
#include <stdint.h>

// IPv4 addresses in host byte order. Everywhere: on all addresses of this machine.
static const uint32_t RENDEZVOUS_EVERYWHERE = 0, RENDEZVOUS_HERE = 0x7f000001;

// hosts: "node1:2,node2:2" as a launcher takes them. The address of this machine that routes to all of them;
// RENDEZVOUS_EVERYWHERE where several do, or where a name is known only to the launcher.
uint32_t rendezvous_address(const char *hosts);

// Appends " ADDRESS" for every address at which a rendezvous listening on `address` can be reached.
void rendezvous_address_words(uint32_t address, char *text, size_t text_bytes);
