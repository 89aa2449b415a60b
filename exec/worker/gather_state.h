// The first moments or weights of all parameters, unsharded, in one file: float32, unit by unit, instance by instance,
// tensor by tensor, each in its global row-major layout. The file does not depend on the mesh. With beta1 = 0 a first
// moment is the clipped gradient of the last step, which is how tests see every gradient of every rank.

#pragma once

#include "exec/worker/session.h"

typedef enum { GATHER_MOMENTS, GATHER_WEIGHTS } GatherState;

Status gather_state(Session *session, GatherState state, const char *path, Arena *arena, Error *error);
