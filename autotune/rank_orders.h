// The orders of a shape's axes over the ranks that are worth pricing.

#pragma once

#include "autotune/result.h"

// Writes them, the default (or the one that was asked for) first; returns how many. Canonical for the shape.
int rank_orders_find(const TuneRequest *request, const Mesh *shape, AxisOrder orders[AXIS_ORDERS]);
