// Which of the plans that fit is recommended: one with memory headroom, because memory predictions have errors and a
// run that hits OOM is lost; among those that predictions do not tell apart, the simplest.

#pragma once

#include "autotune/result.h"
#include "sim/base/arena.h"

// The most memory that a plan should use: all of the limit if the request gives one.
double best_usable_bytes(const TuneRequest *request);

bool best_leaves_room(const TuneRequest *request, double reserved_bytes);

// Is the first the better choice of a shape, or the better shape? Plans that leave room come first, unless least memory
// is the objective; then in the order of the objective.
bool best_prefers(const TuneRequest *request, const Prediction *first, const Prediction *second);

// Of those that leave room, or of those that do not; NULL = there is none.
const Prediction *best_fastest(const TuneResult *result, bool with_room);

// Puts the best in front of the ranked entries, in place of its shape's own entry, and says why (texts in the arena).
void best_choose(TuneResult *result, Arena *arena);
