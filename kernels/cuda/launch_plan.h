// Launch sizes for given problem sizes, as pure functions. Work is counted in packs: PACK elements that a thread moves
// at once (16 bytes of bf16, 32 of fp32), or single elements where rows are not at 16-byte addresses. Grids are capped
// at a number of blocks per processor and kernels stride over the rest, so no size is too large for a grid.

#pragma once

#include "kernels/cuda/launch_shape.h"

enum {
    PACK = 8,
    WORD_FLOATS = 4,  // in 16 bytes: what a thread moves at once where flat passes read or write fp32
    FLAT_THREADS = 256,
    FLAT_BLOCKS = 32,  // per processor: four times the resident number, so that the last wave is short
    ROW_THREADS = 512,
    LONG_ROW_THREADS = 1024,
    ROW_KEPT = 4,         // packs of a row that a thread keeps in registers
    BACKWARD_WARPS = 32,  // per processor, in kernels that keep sums over rows
    STRETCH_WARPS = 8,
    COLUMN_PACKS = 32,  // in a block of column sums: packs across, rows at a time
    COLUMN_GROUPS = 8,
    COLUMN_BLOCKS = 8,  // per processor
    FINISH_COLUMNS = 32,
    SQUARE_BLOCKS = 8,  // per processor
    ROPE_BLOCKS = 16,   // per processor
    SORT_ROWS = 256,    // placed per block
    ROUTE_WARPS = 4,
    ROUTE_BLOCKS = 16,   // per processor
    CHOICE_CHUNK = 256,  // choices of experts that a block sorts
    REGROUP_THREADS = 128,
    REGROUP_BLOCKS = 16,  // per processor
    WARP_THREADS = 32
};

static inline int64_t launch_at_most(int64_t x, int64_t limit) {
    return x < limit ? x : limit;
}

static inline int64_t launch_at_least(int64_t x, int64_t limit) {
    return x > limit ? x : limit;
}

static inline int64_t launch_parts(int64_t x, int64_t part) {
    return (x + part - 1) / part;
}

static inline bool launch_is_wide(uint64_t addresses, int64_t strides) {
    return addresses % 16 == 0 && strides % PACK == 0;
}

// Whole warps, at least one, for this many packs at a time.
static inline uint32_t launch_threads(int64_t packs, int64_t most) {
    return (uint32_t)launch_at_most(launch_parts(launch_at_least(packs, 1), WARP_THREADS) * WARP_THREADS, most);
}

static inline LaunchShape launch_grid(int64_t across, int64_t down, int64_t threads, int64_t shared_bytes) {
    const LaunchShape shape = {(uint32_t)across, (uint32_t)down, 1, (uint32_t)threads, (uint32_t)shared_bytes};
    return shape;
}

static inline LaunchShape launch_line(int64_t blocks, int64_t threads, int64_t shared_bytes) {
    return launch_grid(blocks, 1, threads, shared_bytes);
}

static inline int64_t launch_blocks(int processors) {
    return (int64_t)processors * FLAT_BLOCKS;
}

// `packs` packs in sequence, assigned to any thread.
static inline LaunchShape launch_flat(int64_t packs, int processors) {
    const int64_t blocks = launch_at_least(launch_parts(packs, FLAT_THREADS), 1);
    return launch_line(launch_at_most(blocks, launch_blocks(processors)), FLAT_THREADS, 0);
}

// Rows of packs: x over the packs of a row, y over rows.
static inline LaunchShape launch_plane(int64_t rows, int64_t packs, int processors) {
    const uint32_t threads = launch_threads(packs, FLAT_THREADS);
    const int64_t across = launch_at_most(launch_parts(launch_at_least(packs, 1), threads), launch_blocks(processors));
    const int64_t down = launch_parts(launch_blocks(processors) * FLAT_THREADS / threads, across);
    const int64_t most = launch_at_most(launch_at_least(down, 1), LAUNCH_MAX_GRID_YZ);
    return launch_grid(across, launch_at_most(launch_at_least(rows, 1), most), threads, 0);
}

// One block per row, whose threads have ROW_KEPT packs in flight at once, and a float per warp.
static inline LaunchShape launch_rows(int64_t rows, int64_t packs) {
    const int64_t threads = launch_at_least(launch_parts(packs, ROW_KEPT), launch_at_most(packs, ROW_THREADS / 4));
    return launch_line(launch_at_most(launch_at_least(rows, 1), LAUNCH_MAX_GRID_X),
                       launch_threads(threads, ROW_THREADS), WARP_THREADS * 4);
}

// Vocabulary rows: few are in flight at once, so that a row is still in cache when it is reread.
static inline LaunchShape launch_long_rows(int64_t rows, int64_t packs) {
    return launch_line(launch_at_most(launch_at_least(rows, 1), LAUNCH_MAX_GRID_X),
                       launch_threads(packs, LONG_ROW_THREADS), WARP_THREADS * 4);
}

// Blocks that each walk every grid_x-th row and keep one sum per column in shared memory.
static inline LaunchShape launch_row_sums(int64_t rows, int64_t cols, int64_t packs, int processors) {
    const uint32_t threads = (uint32_t)launch_at_least(launch_threads(packs, ROW_THREADS), ROW_THREADS / 4);
    const int64_t blocks = (int64_t)processors * (BACKWARD_WARPS * WARP_THREADS / threads);
    return launch_line(launch_at_most(launch_at_least(rows, 1), blocks), threads, (WARP_THREADS + cols) * 4);
}

// A segment's columns in shared memory, rounded up to whole passes of a warp.
static inline int64_t launch_stretch_room(int64_t width, int pack) {
    return launch_parts(width, pack * WARP_THREADS) * pack * WARP_THREADS;
}

// One segment per warp; each warp keeps one sum per column of a segment in shared memory.
static inline LaunchShape launch_stretch_sums(int64_t stretches, int64_t room, int processors) {
    const int64_t most = LAUNCH_SHARED_BYTES / (room * 4);
    const int64_t warps = most >= STRETCH_WARPS ? STRETCH_WARPS : most >= 4 ? 4 : most >= 2 ? 2 : 1;
    const int64_t blocks = launch_parts(launch_at_least(stretches, 1), warps);
    return launch_line(launch_at_most(blocks, processors * (BACKWARD_WARPS / warps)), warps * WARP_THREADS,
                       warps * room * 4);
}

// Column sums: x over the columns, y over parts of the rows; a second launch adds the parts' sums.
static inline LaunchShape launch_columns(int64_t rows, int64_t cols, int width, int processors) {
    const int64_t across = launch_parts(launch_at_least(cols, 1), COLUMN_PACKS * width);
    const int64_t wanted = launch_parts((int64_t)processors * COLUMN_BLOCKS, across);
    const int64_t most = launch_parts(launch_at_least(rows, 1), COLUMN_GROUPS);
    return launch_grid(across, launch_at_most(wanted, launch_at_most(most, 1024)), COLUMN_PACKS * COLUMN_GROUPS,
                       COLUMN_GROUPS * COLUMN_PACKS * width * 4);
}

static inline LaunchShape launch_columns_finish(int64_t cols) {
    return launch_line(launch_parts(launch_at_least(cols, 1), FINISH_COLUMNS), FINISH_COLUMNS * COLUMN_GROUPS,
                       FINISH_COLUMNS * COLUMN_GROUPS * 4);
}

static inline LaunchShape launch_squares(int64_t packs, int processors) {
    const int64_t blocks = launch_at_least(launch_parts(packs, FLAT_THREADS), 1);
    const uint32_t most = (uint32_t)(processors * SQUARE_BLOCKS);
    return launch_line(launch_at_most(blocks, most), FLAT_THREADS, WARP_THREADS * 8);
}

// One row after another, with frequency (double), sine and cosine for half of a head's rotated elements.
static inline LaunchShape launch_rope(int64_t rows, int64_t packs, int64_t half, int processors) {
    const int64_t rounds = launch_parts(launch_at_least(packs, 1), FLAT_THREADS);  // all of equal length
    const uint32_t threads = launch_threads(launch_parts(packs, rounds), FLAT_THREADS);
    const uint32_t most = (uint32_t)(processors * ROPE_BLOCKS);
    return launch_line(launch_at_most(launch_at_least(rows, 1), most), threads, half * 16);
}

static inline LaunchShape launch_sort(int64_t rows) {
    return launch_line(launch_parts(launch_at_least(rows, 1), SORT_ROWS), SORT_ROWS, SORT_ROWS * 4);
}

// One warp per row and per WARP_THREADS packs of it.
static inline LaunchShape launch_runs(int64_t rows, int64_t packs) {
    const int64_t warps = launch_at_least(rows, 1) * launch_parts(launch_at_least(packs, 1), WARP_THREADS);
    const int64_t blocks = launch_parts(warps, FLAT_THREADS / WARP_THREADS);
    return launch_line(launch_at_most(blocks, LAUNCH_MAX_GRID_X), FLAT_THREADS, 0);
}

// MoE layers: one warp per row, with three words of shared memory per expert, and one per expert for the block.
static inline LaunchShape launch_route(int64_t rows, int experts, int processors) {
    const int64_t blocks = launch_parts(launch_at_least(rows, 1), ROUTE_WARPS);
    return launch_line(launch_at_most(blocks, (int64_t)processors * ROUTE_BLOCKS), ROUTE_WARPS * WARP_THREADS,
                       (3 * ROUTE_WARPS + 1) * experts * 4);
}

static inline LaunchShape launch_choices(int64_t chunks, int experts) {
    return launch_line(chunks, CHOICE_CHUNK, (CHOICE_CHUNK + experts) * 4);
}

static inline LaunchShape launch_experts(int experts) {
    return launch_line(experts, WARP_THREADS, 0);
}

static inline LaunchShape launch_visits(int64_t sequences, int experts) {
    return launch_line(sequences, CHOICE_CHUNK, 2 * experts * 4);
}

// One block per row at a time, and where each segment of rows begins and ends.
static inline LaunchShape launch_regroup(int64_t rows, int stretches, int processors) {
    const uint32_t most = (uint32_t)(processors * REGROUP_BLOCKS);
    return launch_line(launch_at_most(launch_at_least(rows, 1), most), REGROUP_THREADS, stretches * 8);
}
