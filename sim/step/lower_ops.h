// Operations that the layers pass composes; private to sim/step.

#pragma once

#include "sim/step/lower.h"

typedef struct Gemm {
    const char *name;
    OpRef a, b, c;
    int64_t m, n, k;
    bool trans_a, trans_b, accumulate;
} Gemm;

// One linear layer y = x W^T, W [out, in] in the stretch first..last of a unit.
typedef struct Linear {
    const char *name, *first, *last;
    const char *backward_name, *weight_name;
    int unit;
    int64_t in, out;
} Linear;

typedef struct NormBackward {
    int32_t dy, rstd;
    OpRef x, w, residual, dx, dw;
} NormBackward;

enum { MAX_PARTS = 3 };

typedef struct Projection {
    Linear linear[MAX_PARTS];
    int32_t y[MAX_PARTS], dy[MAX_PARTS];
    int count;
} Projection;

// Where q, k and v are: columns of one tensor or tensors of their own.
typedef struct AttentionRefs {
    OpRef q, k, v;
    int64_t stride, kv_stride;
} AttentionRefs;

int32_t tokens_by(Lowering *lowering, const char *name, int64_t width);
int32_t between_by_hidden(Lowering *lowering, const char *name);
int32_t residual_stream(Lowering *lowering);
int32_t gradient_stream(Lowering *lowering);
int32_t row_statistics(Lowering *lowering, const char *name, int64_t rows);
OpRef column(const Lowering *lowering, int32_t tensor, int64_t first_column);
OpRef stream_at(const Lowering *lowering, int32_t x, int index);
void mark_tp(Lowering *lowering, Section section, Mark mark, OpRef in, OpRef out, const char *name);
void mark_unit(Lowering *lowering, Section section, Mark mark, int unit);
void add_gemm(Lowering *lowering, Section section, Phase phase, const Gemm *gemm);
void add_forward(Lowering *lowering, Section section, const Linear *linear, int32_t x, int32_t y);
void add_input_gradient(Lowering *lowering, Section section, const Linear *linear, OpRef dy, int32_t dx);
void add_weight_gradient(Lowering *lowering, Section section, const Linear *linear, OpRef dy, int32_t x);
void add_norm(Lowering *lowering, Section section, OpRef x, OpRef w, int32_t y, int32_t rstd);
void add_norm_backward(Lowering *lowering, Section section, const NormBackward *norm);
void add_sum(Lowering *lowering, Section section, OpRef a, OpRef b, OpRef c, int64_t elements);
Projection attention_projection(Lowering *lowering);
Projection mlp_projection(Lowering *lowering);
void projection_forward(Lowering *lowering, const Projection *projection, int32_t x);
void projection_backward(Lowering *lowering, const Projection *projection, int32_t x, int32_t dx,
                         const char *part_name);
AttentionRefs attention_refs(const Lowering *lowering, const int32_t part[MAX_PARTS], int count);
void set_attention_shape(const Lowering *lowering, Task *task, const AttentionRefs *refs);
void add_rope(Lowering *lowering, Section section, const AttentionRefs *refs, bool backward);
double attention_flops(const Lowering *lowering);
void add_attention(Lowering *lowering, const AttentionRefs *refs, int32_t o, int32_t lse);
void add_attention_backward(Lowering *lowering, const AttentionRefs *refs, const AttentionRefs *gradients, int32_t o,
                            int32_t lse, int32_t d_o);
