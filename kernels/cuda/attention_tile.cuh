// Tiles of bf16 rows in shared memory and the fragments of them that tensor cores multiply. A tile consists of panels
// of 64 columns, one after the other; a row of a panel is eight pieces of 16 bytes, and piece p of row r is stored at
// p ^ (r % 8), so that eight rows of one column of pieces fall into eight groups of banks (ldmatrix and cp.async
// without conflicts), which is also the layout that a warpgroup's products require of their operands.
//   upright: tile[m][k] as the left operand, tile[k][n] as the right one (transposed on the way).
//   crossed: tile[n][k] as the right operand, tile[k][m] as the left one (transposed on the way).

#pragma once

#include "kernels/cuda/bf16.cuh"
#include "kernels/cuda/words.cuh"

enum { PIECE = 8, PANEL = 64, PANEL_PIECES = PANEL / PIECE };  // elements in 16 bytes; columns of a panel

struct alignas(8) Two {
    float x, y;
};

static __device__ __forceinline__ int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static __device__ __forceinline__ int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

template <int ROWS> static __device__ __forceinline__ Bf16 *tile_panel(Bf16 *tile, int panel) {
    return tile + panel * (ROWS * PANEL);
}

static __device__ __forceinline__ Bf16 *tile_piece(Bf16 *panel, int row, int piece) {
    return panel + row * PANEL + (piece ^ (row & 7)) * PIECE;
}

// Starts copying ROWS rows from global memory; rows from `left` (at least 1) on become zeros. A thread copies the same
// piece of every (THREADS / ACROSS)th row, whose index modulo 8 stays the same.
template <int WIDTH, int ROWS, int THREADS>
static __device__ __forceinline__ void tile_fetch(Bf16 *tile, const Bf16 *from, int64_t stride, int64_t left) {
    constexpr int ACROSS = WIDTH / PIECE, STEP = THREADS / ACROSS;
    static_assert(THREADS % ACROSS == 0 && ROWS % STEP == 0 && STEP % 8 == 0, "whole rounds of copies");
    const int row = (int)threadIdx.x / ACROSS, piece = (int)threadIdx.x % ACROSS;
    const int rows = (int)least(left, ROWS);
    Bf16 *const to = tile_piece(tile_panel<ROWS>(tile, piece / PANEL_PIECES), row, piece % PANEL_PIECES);
    const Bf16 *const at = from + piece * PIECE;
#pragma unroll
    for (int i = 0; i < ROWS; i += STEP) {
        const bool inside = row + i < rows;
        word_copy16(to + i * PANEL, at + (inside ? row + i : 0) * stride, inside);
    }
}

// The 16 x 16 elements starting at (row, 8 * piece) of a tile of ROWS rows; piece is even.
template <int ROWS>
static __device__ __forceinline__ void tile_upright(uint32_t x[4], Bf16 *tile, int row, int piece, int lane) {
    Bf16 *const panel = tile_panel<ROWS>(tile, piece / PANEL_PIECES);
    word_ldmatrix4(x, tile_piece(panel, row + lane % 16, piece % PANEL_PIECES + lane / 16));
}

template <int ROWS>
static __device__ __forceinline__ void tile_upright_transposed(uint32_t x[4], Bf16 *tile, int row, int piece,
                                                               int lane) {
    Bf16 *const panel = tile_panel<ROWS>(tile, piece / PANEL_PIECES);
    word_ldmatrix4_transposed(x, tile_piece(panel, row + lane % 16, piece % PANEL_PIECES + lane / 16));
}

template <int ROWS>
static __device__ __forceinline__ void tile_crossed(uint32_t x[4], Bf16 *tile, int row, int piece, int lane) {
    Bf16 *const panel = tile_panel<ROWS>(tile, piece / PANEL_PIECES);
    word_ldmatrix4(x, tile_piece(panel, row + lane % 8 + lane / 16 * 8, piece % PANEL_PIECES + lane / 8 % 2));
}

template <int ROWS>
static __device__ __forceinline__ void tile_crossed_transposed(uint32_t x[4], Bf16 *tile, int row, int piece,
                                                               int lane) {
    Bf16 *const panel = tile_panel<ROWS>(tile, piece / PANEL_PIECES);
    word_ldmatrix4_transposed(x,
                              tile_piece(panel, row + lane % 8 + lane / 16 * 8, piece % PANEL_PIECES + lane / 8 % 2));
}

// c[64 rows of left from `row` on][64 rows of right] = left right^T over WIDTH columns, issued by a warpgroup.
template <int WIDTH, int LEFT_ROWS, int RIGHT_ROWS>
static __device__ __forceinline__ void tile_group_product(float (*c)[4], Bf16 *left, int row, Bf16 *right) {
#pragma unroll
    for (int step = 0; step < WIDTH / 16; step++) {
        const int panel = step / 4, col = step % 4 * 16;
        word_group_mma<64, false>(c, word_group_operand(tile_panel<LEFT_ROWS>(left, panel) + row * PANEL + col),
                                  word_group_operand(tile_panel<RIGHT_ROWS>(right, panel) + col), step > 0);
    }
}

// sums[64][WIDTH] += weights[64][ROWS] rows[ROWS][WIDTH], issued by a warpgroup.
template <int WIDTH, int ROWS>
static __device__ __forceinline__ void tile_group_gather(float (*sums)[4], const uint32_t weights[ROWS / 16][4],
                                                         Bf16 *rows) {
#pragma unroll
    for (int step = 0; step < ROWS / 16; step++) {
#pragma unroll
        for (int panel = 0; panel < WIDTH / PANEL; panel++) {
            word_group_mma_rows(sums + panel * (PANEL / 8), weights[step],
                                word_group_operand(tile_panel<ROWS>(rows, panel) + 16 * step * PANEL));
        }
    }
}

// Two adjacent 16 x 8 results as the 16 x 16 left operand of the next product, in bf16.
static __device__ __forceinline__ void tile_repack(uint32_t a[4], const float left[4], const float right[4]) {
    a[0] = word_bf16_pair(left[0], left[1]);
    a[1] = word_bf16_pair(left[2], left[3]);
    a[2] = word_bf16_pair(right[0], right[1]);
    a[3] = word_bf16_pair(right[2], right[3]);
}

#define LOG2_E 1.4426950408889634f

// The key head of a query head.
static __device__ __forceinline__ int64_t key_head(const KernelAttention &block, int head) {
    return head / (block.heads / block.kv_heads);
}
