// Messages between two members of a stand-in communicator, through a slot that both map.

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { CHANNEL_BYTES = 16 << 10 };

// From one member to another; both count chunks.
typedef struct Channel {
    _Alignas(64) atomic_uint given, taken;
    size_t bytes;  // of the whole message
    _Alignas(64) char slot[CHANNEL_BYTES];
} Channel;

// A message out and one in that run at the same time; a NULL channel = none. The outgoing one ends when the other
// member has taken all of it.
typedef struct Exchange {
    Channel *out, *in;
    const char *from;
    char *to;
    size_t out_bytes, in_bytes;
    size_t given, taken;  // so far
    atomic_int *aborted;
    bool odd;  // the other member sends a different size than is received
} Exchange;

bool exchange_run(Exchange *exchange);  // false: aborted, or odd
