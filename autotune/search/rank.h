// The order in which choices are better: tokens per second, then less memory, then plan text, so that it is total.

#pragma once

#include "autotune/result.h"

// The comparison of an objective.
int (*rank_order(Objective objective))(const void *, const void *);

void rank_entries(Prediction *entries, int count, Objective objective);  // the best first

// Marks the entries that no other one beats in both tokens per second and memory.
void rank_mark_pareto(Prediction *entries, int count);
