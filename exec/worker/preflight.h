// Quick checks before a run: every group's collectives with sums that must come out exactly, how fast each rank
// computes, whose clock is off. Rank 0 writes what all ranks found (schema ndtune.preflight-result/1,
// exec/launch/preflight.h).

#pragma once

#include "exec/worker/session.h"

Status preflight_run(Session *session, Arena *arena, Error *error);
