// The async mode: one thread per communicator and one for the compute lane, ordered by nothing but lane order and events. On a CPU it
// hides little; it is there to run the program as truly concurrently as a GPU would, so that a missing event shows.

#pragma once

#include "exec/worker/session.h"

// jitter_seed 0 = no injected waits.
Status lanes_open(Session *session, uint64_t jitter_seed, Arena *arena, Error *error);
void lanes_close(Session *session);
Status lanes_run_step(Session *session, Error *error);
