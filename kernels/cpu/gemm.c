// Matrix product on OpenBLAS; no other file uses it. OpenBLAS itself runs on one thread and the product is split here
// into a grid of blocks of c, one per thread: all kernels then share one thread pool (two pools would spin against each
// other), and the sum over k is never split, so a block's bits do not depend on the other blocks. Each dimension is
// below 2^31 (OpenBLAS' index type).

#include "kernels/cpu/grid.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernels.h"

#include <cblas.h>
#include <string.h>

typedef struct Gemm {
    bool trans_a, trans_b;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    float factor;
    bool accumulate;
    Grid grid;
} Gemm;

static void gemm_block(const void *context, int64_t begin, int64_t end) {
    const Gemm *g = context;
    for (int64_t part = begin; part < end; part++) {
        const int row = (int)(part / g->grid.cols), col = (int)(part % g->grid.cols);
        const int64_t m0 = grid_cut(g->m, row, g->grid.rows), n0 = grid_cut(g->n, col, g->grid.cols);
        const int64_t m = grid_cut(g->m, row + 1, g->grid.rows) - m0, n = grid_cut(g->n, col + 1, g->grid.cols) - n0;
        if (m == 0 || n == 0) {
            continue;
        }
        cblas_sgemm(CblasRowMajor, g->trans_a ? CblasTrans : CblasNoTrans, g->trans_b ? CblasTrans : CblasNoTrans,
                    (blasint)m, (blasint)n, (blasint)g->k, g->factor, g->a + (g->trans_a ? m0 : m0 * g->k),
                    (blasint)(g->trans_a ? g->m : g->k), g->b + (g->trans_b ? n0 * g->k : n0),
                    (blasint)(g->trans_b ? g->k : g->n), g->accumulate ? 1.0f : 0.0f, g->c + m0 * g->n + n0,
                    (blasint)g->n);
    }
}

void kernel_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c,
                 bool accumulate) {
    kernel_gemm_scaled(trans_a, trans_b, m, n, k, 1.0f, a, b, c, accumulate);
}

void kernel_gemm_scaled(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float factor, const float *a,
                        const float *b, float *c, bool accumulate) {
    if (k == 0 && !accumulate) {
        memset(c, 0, sizeof(float) * (size_t)(m * n));
    }
    if (m == 0 || n == 0 || k == 0) {
        return;
    }
    const Gemm g = {trans_a, trans_b, m, n, k, a, b, c, factor, accumulate, grid_choose(m, n, k, parallel_threads())};
    parallel_items((int64_t)g.grid.rows * g.grid.cols, gemm_block, &g);
}

typedef struct GroupedGemm {
    const KernelGroups *groups;
    bool trans_a, trans_b;
    int64_t outer, inner;
    const float *a, *b;
    float *c;
    bool accumulate;
} GroupedGemm;

static int64_t rows_before(const KernelGroups *groups, int64_t group) {
    int64_t rows = 0;
    for (int part = 0; part < groups->parts; part++) {
        for (int64_t g = 0; g < group; g++) {
            rows += groups->counts[part * groups->count + g];
        }
    }
    return rows;
}

// Products of one group each: with its outer x inner weights, or their gradient.
static void grouped_products(const void *context, int64_t begin, int64_t end) {
    const GroupedGemm *g = context;
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = rows_before(g->groups, group), rows = rows_before(g->groups, group + 1) - first;
        const int64_t weights = group * g->outer * g->inner;
        if (g->trans_a) {
            kernel_gemm(true, false, g->outer, g->inner, rows, g->a + first * g->outer, g->b + first * g->inner,
                        g->c + weights, g->accumulate);
        } else {
            kernel_gemm(false, g->trans_b, rows, g->outer, g->inner, g->a + first * g->inner, g->b + weights,
                        g->c + first * g->outer, g->accumulate);
        }
    }
}

// Each group is one work item: the thread that takes it works on it alone.
void kernel_grouped_gemm(const KernelGroups *groups, bool trans_a, bool trans_b, int64_t outer, int64_t inner,
                         const float *a, const float *b, float *c, bool accumulate) {
    const GroupedGemm grouped = {groups, trans_a, trans_b, outer, inner, a, b, c, accumulate};
    parallel_items(groups->count, grouped_products, &grouped);
}

// OpenBLAS maps a packing buffer the first time this many products above its small-matrix size (100^3) run at once:
// most likely here, and not inside a step.
static void gemm_warm_up(const void *context, int64_t begin, int64_t end) {
    (void)context;
    enum { SIZE = 104 };
    float a[SIZE * SIZE], c[SIZE * SIZE];
    memset(a, 0, sizeof a);
    for (int64_t i = begin; i < end; i++) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIZE, SIZE, SIZE, 1.0f, a, SIZE, a, SIZE, 0.0f, c, SIZE);
    }
}

const char *kernel_blas_name(void) {
    return openblas_get_corename();
}

void kernel_set_threads(int threads) {
    openblas_set_num_threads(1);
    parallel_set_threads(threads);
    parallel_items(4 * (int64_t)parallel_threads(), gemm_warm_up, NULL);
}
