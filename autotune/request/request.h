// From what was asked to a TuneRequest: looks up models, clusters and targets; fills in defaults and reports them.

#pragma once

#include "autotune/request/asked.h"

// Fills *request (texts in the arena). On an error asked->about is the part that it concerns.
Status request_resolve(Asked *asked, const RequestDefaults *defaults, Arena *arena, TuneRequest *request, Error *error);

// A profile without a network cannot hold a world larger than its node; a rank or node index must be within the world.
Status request_check_world(Asked *asked, const TuneRequest *request, Error *error);

// The plan of this shape with what was asked, canonical.
void request_plan(const TuneRequest *request, const Mesh *mesh, TrainPlan *plan);
