// The kernels of kernels.h on a GPU: the same shapes, layouts and guarantees, plus where to run and the format of the
// data in memory. Storage is fp32 or bf16, arithmetic and sums are fp32 (squares and losses fp64), narrowing rounds to
// nearest even. rstd, mean, row maxima, sums and losses are fp32, tokens and positions int32.
// Every function enqueues work on the stream and returns a cudaError_t (0: launched). None allocates; scratch memory
// comes from the workspace, whose size a function of the same name with _workspace returns. Sums have a fixed order:
// equal inputs on equal devices give equal bits. Pointers need the alignment of their elements; rows at 16-byte
// addresses are faster.

#pragma once

#include "kernels/kernels.h"
#include "kernels/latent.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;  // cudaStream_t is a pointer to it

typedef enum { KERNEL_FP32, KERNEL_BF16, KERNEL_STORES } KernelStore;

typedef struct KernelCuda {
    struct CUstream_st *stream;
    int processors;   // streaming multiprocessors of the device
    void *workspace;  // of this stream, 256-byte aligned
    int64_t workspace_bytes;
} KernelCuda;

static inline int64_t kernel_store_bytes(KernelStore store) {
    return store == KERNEL_BF16 ? 2 : 4;
}

// ---- table rows; table and x are `store`
int kernel_cuda_embed(const KernelCuda *at, KernelStore store, const KernelEmbed *shape, const int32_t *entries,
                      const void *table, void *x, bool accumulate);
// dx is `store`, dtable `sums`. Rows are sorted by entry by counting, in O(rows^2) time: 0.5 ms for 65,536 on an H200,
// by arithmetic.
int64_t kernel_cuda_embed_backward_workspace(const KernelEmbed *shape);
int kernel_cuda_embed_backward(const KernelCuda *at, KernelStore store, KernelStore sums, const KernelEmbed *shape,
                               const int32_t *entries, const void *dx, void *dtable, bool accumulate);

// ---- norms; dw is `sums`, all else `store`
int kernel_cuda_norm(const KernelCuda *at, KernelStore store, const KernelNorm *norm);
enum { KERNEL_CUDA_NORM_COLS = 40 * 1024 };  // maximum in backward
int64_t kernel_cuda_norm_backward_workspace(const KernelCuda *at, const KernelNormBackward *norm);
int kernel_cuda_norm_backward(const KernelCuda *at, KernelStore store, KernelStore sums,
                              const KernelNormBackward *norm);

int kernel_cuda_stretch_norm(const KernelCuda *at, KernelStore store, const KernelStretches *shape, float eps,
                             const void *w, void *x, void *before, float *rstd);
int64_t kernel_cuda_stretch_norm_backward_workspace(const KernelCuda *at, const KernelStretches *shape);
int kernel_cuda_stretch_norm_backward(const KernelCuda *at, KernelStore store, KernelStore sums,
                                      const KernelStretches *shape, const void *w, const void *before,
                                      const float *rstd, void *dx, void *dw, bool accumulate);

// ---- within rows
int kernel_cuda_rope(const KernelCuda *at, KernelStore store, int64_t rows, const KernelRope *shape,
                     const int32_t *position, void *x);
int kernel_cuda_activation(const KernelCuda *at, KernelStore store, KernelActivation activation, int64_t count,
                           const void *x, void *y);
int kernel_cuda_activation_backward(const KernelCuda *at, KernelStore store, KernelActivation activation, int64_t count,
                                    const void *dy, const void *x, void *dx);
int kernel_cuda_gated(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *gate,
                      const void *up, void *s);
int kernel_cuda_gated_backward(const KernelCuda *at, KernelStore store, const KernelGated *shape, const void *ds,
                               const void *gate, const void *up, void *dgate, void *dup);

// ---- MoE layers; weights, dweights and visits are fp32, places and counts int32, all in device memory. The shape's
// correction is not used: it has the logits' format.
int64_t kernel_cuda_route_workspace(const KernelRoute *shape);
int kernel_cuda_route(const KernelCuda *at, KernelStore store, const KernelRoute *shape, const void *logits,
                      const void *correction, float *weights, int32_t *places, int32_t *counts);
int kernel_cuda_count_visits(const KernelCuda *at, const KernelRoute *shape, int64_t sequence, const int32_t *places,
                             const int32_t *counts, float *visits);
// The gradients of both the routing and the load-balancing loss, in one pass.
typedef struct KernelCudaRouteBackward {
    const void *logits;
    const float *weights, *dweights;
    const int32_t *places, *counts;
    void *dlogits;
    const float *visits;  // NULL: no load-balancing loss
    int64_t sequence;
    float factor;
} KernelCudaRouteBackward;
int kernel_cuda_route_backward(const KernelCuda *at, KernelStore store, const KernelRoute *shape,
                               const KernelCudaRouteBackward *back);

int kernel_cuda_spread(const KernelCuda *at, KernelStore store, const KernelSpread *shape, const void *x, void *y);
// gate[rows] may be NULL; otherwise sigmoid(gate) times more is added.
typedef struct KernelCudaCollect {
    KernelSpread shape;
    const float *weights;
    const void *y, *more, *gate;
    void *x;
} KernelCudaCollect;
int kernel_cuda_collect(const KernelCuda *at, KernelStore store, const KernelCudaCollect *collect);
int kernel_cuda_collect_backward(const KernelCuda *at, KernelStore store, const KernelSpread *shape,
                                 const float *weights, const void *dx, const void *y, void *dy, float *dweights);
// Same as kernel_shared_backward.
int kernel_cuda_shared_backward(const KernelCuda *at, KernelStore store, int64_t rows, int64_t cols, const void *gate,
                                const void *y, const void *dx, void *dy, void *dgate);
// Moves as many rows as the counts, which are in device memory, say, at most `rows`.
int kernel_cuda_regroup(const KernelCuda *at, KernelStore store, const KernelGroups *groups, int64_t rows, int64_t cols,
                        bool back, const void *from, void *to);

// ---- keys of latent attention (latent.h)
int kernel_cuda_join_keys(const KernelCuda *at, KernelStore store, const KernelKeys *keys, const void *up,
                          const void *shared, void *k);
int kernel_cuda_part_keys(const KernelCuda *at, KernelStore store, const KernelKeys *keys, const void *dk,
                          const void *dv, void *dup, void *dshared);

// ---- cross-entropy in the three steps of kernels.h, with logits of one vocabulary range at a time; no cap
int kernel_cuda_loss_max(const KernelCuda *at, KernelStore store, const KernelLoss *loss, const void *logits);
int kernel_cuda_loss_sum(const KernelCuda *at, KernelStore store, const KernelLoss *loss, const void *logits);
int kernel_cuda_loss_gradient(const KernelCuda *at, KernelStore store, const KernelLoss *loss, void *logits,
                              float *total, bool accumulate);
// Fused, where this rank has the whole vocabulary: maximum and sum in one read, and the gradient while the row is in
// cache.
int kernel_cuda_loss(const KernelCuda *at, KernelStore store, const KernelLoss *loss, void *logits, float *total,
                     bool accumulate);

// ---- elementwise
int kernel_cuda_add(const KernelCuda *at, KernelStore store, int64_t count, const void *a, const void *b, void *c);
int kernel_cuda_add_bias(const KernelCuda *at, KernelStore store, int64_t rows, int64_t cols, const void *a,
                         const void *b, const void *bias, void *c);
int64_t kernel_cuda_column_sum_workspace(const KernelCuda *at, int64_t rows, int64_t cols);
int kernel_cuda_column_sum(const KernelCuda *at, KernelStore store, KernelStore sums_store, int64_t rows, int64_t cols,
                           const void *x, void *sums, bool accumulate);
int kernel_cuda_zero(const KernelCuda *at, int64_t bytes, void *x);

// From one format to another, or the same one.
typedef struct KernelCudaCopy {
    KernelStore from, to;
    int64_t rows, cols, src_stride, dst_stride;  // elements
} KernelCudaCopy;
int kernel_cuda_copy_rows(const KernelCuda *at, const KernelCudaCopy *copy, const void *src, void *dst);
int kernel_cuda_accumulate(const KernelCuda *at, KernelStore from, KernelStore to, int64_t count, const void *src,
                           void *dst);

int64_t kernel_cuda_square_sum_workspace(const KernelCuda *at);
int kernel_cuda_square_sum(const KernelCuda *at, KernelStore store, int64_t count, int64_t light, double light_weight,
                           const void *x, float *sum, bool accumulate);
// out = {min(1, clip / norm), norm}, from *norm_square.
int kernel_cuda_clip(const KernelCuda *at, float clip, const float *norm_square, float *out);

// The state (master and moments) is `state`; working: NULL, or a copy of the master in bf16, written in the same pass.
// scale is in device memory.
typedef struct KernelCudaUpdate {
    KernelStore gradients, state;
    int64_t count, undecayed;
    const float *scale;
    const void *gradient;
    void *master, *moment1, *moment2, *working;
} KernelCudaUpdate;
int kernel_cuda_adamw(const KernelCuda *at, const KernelAdamw *options, const KernelCudaUpdate *update);

// Adds one in memory that the host reads concurrently. Streams that count at the same time may count once.
int kernel_cuda_count(const KernelCuda *at, unsigned *count);

int kernel_cuda_normal(const KernelCuda *at, KernelStore store, const KernelNormal *stream, int64_t count, void *x);

#ifdef __cplusplus
}
#endif
