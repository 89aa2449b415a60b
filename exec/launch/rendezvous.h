// The launcher's side of the rendezvous: listens, hands out the request, keeps every rank's row and what ranks sent.
// Private to exec/launch.

#pragma once

#include "exec/protocol/rendezvous_wire.h"
#include "exec/transport/watchdog.h"

enum { RENDEZVOUS_SETTING_BYTES = 1024 };

typedef struct Rendezvous {
    char setting[RENDEZVOUS_SETTING_BYTES];  // value of RENDEZVOUS_VARIABLE
    ProgressRow *table;                      // a row per rank
    RankWatch *ranks;                        // by rank: who said hello, goodbye, anything
    int first_lost;                          // disconnected without goodbye; -1 = none
    char *failure;                           // JSON of the first rank that failed; NULL = none
    char *result;                            // JSON; NULL until received
    // Internal:
    int world, listen_fd, line_count;
    struct Line *lines;
    const char *request;
    char *shared;  // what rank 0 shares with all others; NULL until received
    size_t shared_bytes;
    char token[RENDEZVOUS_TOKEN_BYTES];
} Rendezvous;

// address: to listen on (rendezvous_address.h). request: its text. Allocated in the arena, except for what
// rendezvous_close frees.
Status rendezvous_open(int world, uint32_t address, const char *request, Arena *arena, Rendezvous **rendezvous,
                       Error *error);
void rendezvous_lines_close(
    Rendezvous *rendezvous);  // ranks that are still connected end at once; the progress table stays
void rendezvous_close(Rendezvous *rendezvous);

// Handles everything that has arrived; waits at most wait_s for it.
void rendezvous_serve(Rendezvous *rendezvous, double wait_s);
