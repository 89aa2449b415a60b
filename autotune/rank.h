// The order in which choices are better: tokens per second, then less memory, then plan text, so that it is total.

#pragma once

#include "autotune/result.h"

// qsort comparison of Prediction, best first.
int rank_compare(const void *a, const void *b);

void rank_entries(Prediction *entries, int count);
