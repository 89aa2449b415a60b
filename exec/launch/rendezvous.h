// The launcher's side of the rendezvous: listens, hands out the request, keeps every rank's row and what ranks brought.
// Private to exec/launch.

#pragma once

#include "exec/protocol/rendezvous_wire.h"
#include "exec/transport/watchdog.h"

typedef struct Rendezvous Rendezvous;

// address: to listen on (rendezvous_address.h). request: its text. Lives in
// the arena, except for what rendezvous_close frees.
Status rendezvous_open(int world, uint32_t address, const char *request, Arena *arena, Rendezvous **rendezvous,
                       Error *error);
void rendezvous_lines_close(
    Rendezvous *rendezvous);  // ranks that are still there end at once; the progress table stays
void rendezvous_close(Rendezvous *rendezvous);
const char *rendezvous_setting(const Rendezvous *rendezvous);          // for RENDEZVOUS_VARIABLE
ProgressRow *rendezvous_progress_table(const Rendezvous *rendezvous);  // a row per rank

// Serves what has come, waits at most wait_s for it.
void rendezvous_serve(Rendezvous *rendezvous, double wait_s);

RankWatch *rendezvous_ranks(const Rendezvous *rendezvous);     // by rank: who said hello, goodbye, anything
const char *rendezvous_failure(const Rendezvous *rendezvous);  // JSON of the first rank that failed; NULL = none
const char *rendezvous_result(const Rendezvous *rendezvous);   // JSON; NULL before it came
int rendezvous_first_lost(const Rendezvous *rendezvous);       // ended without goodbye; -1 = none
