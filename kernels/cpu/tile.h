// The one inner product of attention: c[row, col] (+)= sum over k of a(row, k) b[k, col] on tiles that fit in the first
// two cache levels. Columns are vector lanes (queries in the score products, head dimensions in the key and value
// gradients), a is broadcast; a block of ROWS x VECTORS sums stays in registers. BLAS calls per 64 x 64 tile are
// slower: they pack both operands every time.

#pragma once

#include "kernels/cpu/cap.h"
#include "kernels/cpu/lanes.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stdbool.h>

enum { TILE = 64, TILE_HEAD = 256 };  // queries or keys per tile; largest head_dim

typedef struct TileProduct {
    int64_t rows, cols, depth;  // cols is a multiple of 8
    const float *a;
    int64_t a_row, a_step;  // a(row, k) = a[row * a_row + k * a_step]
    const float *b;
    int64_t b_stride;
    float *c;
    int64_t c_stride;
    bool accumulate;
} TileProduct;

typedef float Half __attribute__((vector_size(32)));  // 8 lanes: the remainder of head_dim past a multiple of LANES
typedef float HalfAt __attribute__((vector_size(32), aligned(4), may_alias));

#define TILE_BLOCK(name, Vector, VectorAt, WIDTH, ROWS, VECTORS)                                                       \
    static inline void name(const TileProduct *p, int64_t row, int64_t col) {                                          \
        const float *a = p->a + row * p->a_row, *b = p->b + col;                                                       \
        float *c = p->c + row * p->c_stride + col;                                                                     \
        const int64_t a_row = p->a_row, a_step = p->a_step, b_stride = p->b_stride, c_stride = p->c_stride;            \
        Vector sum[ROWS][VECTORS];                                                                                     \
        for (int r = 0; r < ROWS; r++) {                                                                               \
            for (int v = 0; v < VECTORS; v++) {                                                                        \
                sum[r][v] = p->accumulate ? (Vector) * (const VectorAt *)(c + r * c_stride + v * WIDTH) : (Vector){0}; \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t k = p->depth; k > 0; k--, a += a_step, b += b_stride) {                                           \
            Vector y[VECTORS];                                                                                         \
            for (int v = 0; v < VECTORS; v++) {                                                                        \
                y[v] = *(const VectorAt *)(b + v * WIDTH);                                                             \
            }                                                                                                          \
            for (int r = 0; r < ROWS; r++) {                                                                           \
                const Vector x = a[r * a_row] - (Vector){0};                                                           \
                for (int v = 0; v < VECTORS; v++) {                                                                    \
                    sum[r][v] += x * y[v];                                                                             \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        for (int r = 0; r < ROWS; r++) {                                                                               \
            for (int v = 0; v < VECTORS; v++) {                                                                        \
                *(VectorAt *)(c + r * c_stride + v * WIDTH) = sum[r][v];                                               \
            }                                                                                                          \
        }                                                                                                              \
    }

// Rows first to last of a column panel: blocks of four rows, then single rows.
#define TILE_PANEL(name, block4, block1)                                                                               \
    static inline void name(const TileProduct *p, int64_t col) {                                                       \
        int64_t row = 0;                                                                                               \
        for (; row + 4 <= p->rows; row += 4) {                                                                         \
            block4(p, row, col);                                                                                       \
        }                                                                                                              \
        for (; row < p->rows; row++) {                                                                                 \
            block1(p, row, col);                                                                                       \
        }                                                                                                              \
    }

#if LANES == 16
#define TILE_VECTORS 4  // 16 sums in 32 registers
#else
#define TILE_VECTORS 2  // 8 sums in 16 registers
#endif

TILE_BLOCK(tile_wide4, Lanes, LanesAt, LANES, 4, TILE_VECTORS)
TILE_BLOCK(tile_wide1, Lanes, LanesAt, LANES, 1, TILE_VECTORS)
TILE_PANEL(tile_wide, tile_wide4, tile_wide1)
TILE_BLOCK(tile_narrow4, Lanes, LanesAt, LANES, 4, 1)
TILE_BLOCK(tile_narrow1, Lanes, LanesAt, LANES, 1, 1)
TILE_PANEL(tile_narrow, tile_narrow4, tile_narrow1)
TILE_BLOCK(tile_half4, Half, HalfAt, 8, 4, 1)
TILE_BLOCK(tile_half1, Half, HalfAt, 8, 1, 1)
TILE_PANEL(tile_half, tile_half4, tile_half1)

static inline void tile_product(const TileProduct *p) {
    int64_t col = 0;
    for (; col + TILE_VECTORS * LANES <= p->cols; col += TILE_VECTORS * LANES) {
        tile_wide(p, col);
    }
    for (; col + LANES <= p->cols; col += LANES) {
        tile_narrow(p, col);
    }
    if (col < p->cols) {
        tile_half(p, col);
    }
}

typedef float Four __attribute__((vector_size(16)));
typedef float FourAt __attribute__((vector_size(16), aligned(4), may_alias));

// to[col][row] = factor * from[row][col]: transposes a 4 x 4 block.
static inline void turn_block(const float *from, int64_t stride, float factor, float *to, int64_t to_stride) {
    const Four r0 = *(const FourAt *)from, r1 = *(const FourAt *)(from + stride);
    const Four r2 = *(const FourAt *)(from + 2 * stride), r3 = *(const FourAt *)(from + 3 * stride);
    const Four low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5),
               high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    const Four low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5),
               high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    *(FourAt *)to = factor * __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    *(FourAt *)(to + to_stride) = factor * __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    *(FourAt *)(to + 2 * to_stride) = factor * __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    *(FourAt *)(to + 3 * to_stride) = factor * __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

// The lanes of so many queries, in whole vectors: those behind them are neither written nor read.
static inline int64_t tile_lanes(int64_t queries) {
    return (queries + LANES - 1) / LANES * LANES;
}

// to[t][row] = factor * from[row][t]: the tile with its rows as lanes, 0 in lanes past the last row. head_dim is a
// multiple of 8.
static inline void tile_transpose(const float *from, int64_t stride, int64_t rows, int head_dim, float factor,
                                  float *to) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) {
        for (int t = 0; t < head_dim; t += 4) {
            turn_block(from + row * stride + t, stride, factor, to + t * TILE + row, TILE);
        }
    }
    for (; row < rows; row++) {
        for (int t = 0; t < head_dim; t++) {
            to[t * TILE + row] = factor * from[row * stride + t];
        }
    }
    for (int t = 0; row < tile_lanes(rows) && t < head_dim; t++) {
        for (int64_t past = row; past < tile_lanes(rows); past++) {
            to[t * TILE + past] = 0.0f;
        }
    }
}

// The inverse: to[row][t] = from[t][row] for so many rows, `to` packed with head_dim columns.
static inline void tile_transpose_back(const float *from, int64_t rows, int head_dim, float *to) {
    for (int t = 0; t < head_dim; t += 4) {
        for (int64_t row = 0; row < rows; row += 4) {
            turn_block(from + t * TILE + row, TILE, 1.0f, to + row * head_dim + t, head_dim);
        }
    }
}

static inline void tile_clear(float *sums, int64_t rows, int head_dim) {
    for (int t = 0; t < head_dim; t++) {
        for (int64_t row = 0; row < tile_lanes(rows); row++) {
            sums[t * TILE + row] = 0.0f;
        }
    }
}

static inline int64_t tile_value_stride(const KernelAttention *shape) {
    return shape->values.dim > 0 ? shape->values.stride : shape->kv_stride;
}

static inline int64_t tile_value_at(const KernelAttention *shape, int64_t key, int64_t kv_head) {
    const int64_t apart = shape->values.dim > 0 ? shape->values.apart : shape->head_dim;
    return key * tile_value_stride(shape) + kv_head * apart;
}

// Causal visibility in one step: queries of a tile against keys of the block.
typedef struct TileSight {
    int64_t keys;       // of this step: a whole tile where everything is visible, 16 on the diagonal
    int64_t shift;      // query i sees key j when i >= j + shift
    int64_t window;     // and i < j + shift + window; 0: always
    int64_t col, cols;  // the lanes that see any key, in whole vectors; cols 0: none
    bool masked;
} TileSight;

// c[key][query] = row `key` of a times column `query` of b, for the step's keys and the lanes that see any.
static inline void tile_dots(const TileSight *sight, const float *a, int64_t a_row, int64_t depth, const float *b,
                             float *c) {
    const TileProduct dots = {.rows = sight->keys,
                              .cols = sight->cols,
                              .depth = depth,
                              .a = a,
                              .a_row = a_row,
                              .a_step = 1,
                              .b = b + sight->col,
                              .b_stride = TILE,
                              .c = c + sight->col,
                              .c_stride = TILE};
    tile_product(&dots);
}

enum { DIAGONAL = 16 };  // keys per step on the diagonal: keeps the masked work small

// The next step, at key `key`, of the tile of `queries` queries that begins at `first`; keys 0 when none of them sees
// this key or any later one.
static inline TileSight tile_sight(const KernelAttention *shape, int64_t first, int64_t queries, int64_t key) {
    const int64_t keys = shape->keys;
    TileSight sight = {.window = shape->window};
    sight.shift = shape->k_first + key - shape->q_first - first;
    if (key >= keys || sight.shift > queries - 1) {
        return sight;
    }
    sight.keys = keys - key < TILE ? keys - key : TILE;
    sight.masked = sight.shift + sight.keys - 1 > 0;
    if (sight.masked && sight.keys > DIAGONAL) {
        sight.keys = DIAGONAL;
        sight.masked = sight.shift + sight.keys - 1 > 0;
    }
    sight.col = sight.shift > 0 ? sight.shift / LANES * LANES : 0;
    int64_t end = queries;
    if (sight.window > 0) {
        const int64_t last = sight.shift + sight.keys - 1 + sight.window;  // queries from here on see none
        sight.masked = sight.masked || sight.shift + sight.window < queries;
        end = last < queries ? last : queries;
    }
    sight.cols = end > sight.col ? tile_lanes(end) - sight.col : 0;
    return sight;
}

// First key of the first step of the tile whose queries begin at `first`: none of them looks back further. Steps are
// the same wherever a walk begins.
static inline int64_t tile_first_key(const KernelAttention *shape, int64_t first) {
    const int64_t key = shape->q_first + first - shape->window + 1 - shape->k_first;
    return shape->window > 0 && key > 0 ? key / TILE * TILE : 0;
}

// Applies the soft cap to all scores, including those that are masked afterwards.
static inline void tile_cap(const TileSight *sight, float cap, float *scores) {
    for (int64_t j = 0; j < sight->keys; j++) {
        float *restrict row = scores + j * TILE;
        for (int64_t i = sight->col; i < sight->col + sight->cols; i++) {
            row[i] = cap_softly(row[i], cap);
        }
    }
}

// Subtracts slope times distance, i - (j + shift) tokens, from the scores.
static inline void tile_alibi(const TileSight *sight, float slope, float *scores) {
    for (int64_t j = 0; slope != 0.0f && j < sight->keys; j++) {
        float *restrict row = scores + j * TILE;
        const int32_t ahead = (int32_t)(j + sight->shift);
        for (int32_t i = (int32_t)sight->col; i < (int32_t)(sight->col + sight->cols); i++) {
            row[i] += slope * (float)(ahead - i);
        }
    }
}

// Masks scores[j][i], j in keys: -inf where query i comes before key j, or j is outside query i's window.
static inline void tile_mask(const TileSight *sight, float *scores) {
    for (int64_t j = 0; sight->masked && j < sight->keys; j++) {
        const int64_t end = j + sight->shift < TILE ? j + sight->shift : TILE;
        for (int64_t i = sight->col; i < end; i++) {
            scores[j * TILE + i] = -__builtin_inff();
        }
        const int64_t behind = j + sight->shift + sight->window;
        for (int64_t i = behind > sight->col ? behind : sight->col; sight->window > 0 && i < sight->col + sight->cols;
             i++) {
            scores[j * TILE + i] = -__builtin_inff();
        }
    }
}
