// Quick checks before a run: every group's collectives with sums that must be exact, each rank's compute speed, clock
// offsets. Rank 0 writes the findings of all ranks (schema ndtune.preflight-result/1, exec/launch/preflight.h).

#pragma once

#include "exec/worker/session.h"

Status preflight_run(Session *session, Arena *arena, Error *error);
