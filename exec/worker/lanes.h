// The async mode: one thread per communicator and one for the compute lane, ordered only by lane order and events. On a
// CPU it hides little; its purpose is to run the program as concurrently as a GPU would, so that a missing event shows.

#pragma once

#include "exec/worker/session.h"

Status lanes_open(Session *session, Arena *arena,
                  Error *error);  // waits are injected where the request has a jitter seed
void lanes_close(Session *session);
Status lanes_run_step(Session *session, Error *error);
