// How a product is split into blocks of c, one per thread; the sum over k is never split.

#pragma once

#include <stdint.h>

enum { GRID_UNIT = 32 };  // a multiple of every OpenBLAS register tile

static const double GRID_FLOP = 4e6;  // about 15 us at 270 GFLOP/s; below, a fork and join is not worth it

typedef struct Grid {
    int rows, cols;
} Grid;

// Where part `part` of m rows or n columns begins.
static inline int64_t grid_cut(int64_t size, int part, int parts) {
    const int64_t units = (size + GRID_UNIT - 1) / GRID_UNIT;
    const int64_t at = units * part / parts * GRID_UNIT;
    return at < size ? at : size;
}

// The grid whose blocks are closest to squares: each thread reads m/rows + n/cols rows of length k.
static inline Grid grid_choose(int64_t m, int64_t n, int64_t k, int threads) {
    Grid grid = {1, 1};
    double best = -1.0;
    for (int rows = 1; rows <= threads && 2.0 * (double)m * (double)n * (double)k >= GRID_FLOP; rows++) {
        const double read = (double)m / rows + (double)n * rows / threads;
        if (threads % rows == 0 && (best < 0.0 || read < best)) {
            best = read;
            grid = (Grid){rows, threads / rows};
        }
    }
    return grid;
}
