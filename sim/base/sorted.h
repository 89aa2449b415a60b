// Numbers in ascending order, for medians and quartiles.

#pragma once

#include <stdlib.h>

static inline int sorted_order(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static inline void sorted_doubles(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, sorted_order);
}
