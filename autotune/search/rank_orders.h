// The orders of a shape's axes over the ranks (rank layouts) that are worth pricing.

#pragma once

#include "autotune/result.h"

// They, the default (or the one that was asked for) first, in the arena; *count says how many. Canonical for the shape.
const AxisOrder *rank_orders_find(const TuneRequest *request, const Mesh *shape, Arena *arena, int *count);
