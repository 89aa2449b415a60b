// Which of the plans that fit is recommended: one that leaves some of the memory free, because predictions of memory
// err and a run out of memory is lost, and of those that are level the simplest.

#pragma once

#include "autotune/result.h"
#include "sim/base/arena.h"

// Of the memory limit, what a plan should take at most: all of a limit that somebody gave.
double best_usable_bytes(const TuneRequest *request);

bool best_leaves_room(const TuneRequest *request, double reserved_bytes);

// Is the first the better choice of a shape, or the better shape? Plans that leave room come first, unless least memory
// is the objective; then in the order of the objective.
bool best_prefers(const TuneRequest *request, const Prediction *first, const Prediction *second);

// Puts the best in front of the ranked entries, in place of its shape's own entry, and says why (texts in the arena).
void best_choose(TuneResult *result, Arena *arena);
