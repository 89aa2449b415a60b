// Sums and maxima of rows in a fixed order, the same for every transport that combines on the host.

#pragma once

#include "exec/transport/transport.h"

// out[i] = combined over rows 0, 1, ... in this order; out may be one of the rows.
void reduce_rows(const float *const *rows, int row_count, int64_t count, ReduceOp op, float *out);
