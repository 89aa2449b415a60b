// Determined by the system's routes: a datagram socket connected to a host has the local address that leads there.
// Hosts that are this machine itself can reach any of its addresses. IPv4 only, like the rendezvous.

#define _GNU_SOURCE  // getaddrinfo, IFF_ in strict C

#include "exec/launch/rendezvous_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NAME_BYTES = 256, LOOPBACK_NET = 127 };

static bool is_loopback(uint32_t address) {
    return address >> 24 == LOOPBACK_NET;
}

static bool address_towards(const char *name, uint32_t *here) {
    const struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    struct sockaddr_in own;
    socklen_t bytes = sizeof own;
    if (getaddrinfo(name, "9", &wanted, &found) != 0) {  // any port: nothing is sent
        return false;
    }
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool known = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                       getsockname(fd, (struct sockaddr *)&own, &bytes) == 0;
    if (known) {
        *here = ntohl(own.sin_addr.s_addr);
    }
    if (fd >= 0) {
        close(fd);
    }
    freeaddrinfo(found);
    return known;
}

uint32_t rendezvous_address(const char *hosts) {
    uint32_t chosen = RENDEZVOUS_HERE;
    for (const char *at = hosts; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        char name[NAME_BYTES];
        uint32_t here;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ":,"), at);
        if (!name[0]) {
            continue;
        }
        if (!address_towards(name, &here) || (!is_loopback(here) && !is_loopback(chosen) && chosen != here)) {
            return RENDEZVOUS_EVERYWHERE;
        }
        chosen = is_loopback(here) ? chosen : here;
    }
    return chosen;
}

static void add_word(const struct in_addr *address, char *text, size_t text_bytes) {
    char word[INET_ADDRSTRLEN];
    const size_t used = strlen(text);
    if (inet_ntop(AF_INET, address, word, sizeof word) && used + strlen(word) + 2 <= text_bytes) {
        snprintf(text + used, text_bytes - used, " %s", word);
    }
}

void rendezvous_address_words(uint32_t address, char *text, size_t text_bytes) {
    const struct in_addr one = {.s_addr = htonl(address != RENDEZVOUS_EVERYWHERE ? address : RENDEZVOUS_HERE)};
    struct ifaddrs *all = NULL;
    if (address == RENDEZVOUS_EVERYWHERE && getifaddrs(&all) == 0) {
        for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
            if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_UP) &&
                !(at->ifa_flags & IFF_LOOPBACK)) {
                add_word(&((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr, text, text_bytes);
            }
        }
        freeifaddrs(all);
    }
    add_word(&one, text, text_bytes);  // loopback last: useless on another host
}
