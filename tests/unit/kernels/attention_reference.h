// Attention in double, query by query, straight from the definition; the oracle of the attention tests.

#pragma once

#include "kernels/kernels.h"

typedef struct AttentionCase {
    KernelAttention shape;
    int64_t q_size, kv_size, o_size, lse_size;
    float *q, *k, *v, *d_o;
    double *wide_q, *wide_k, *wide_v, *wide_d_o;  // the same numbers
    double *o, *lse;                              // reference_attention's answer
    double *scores;                               // of the query at work
} AttentionCase;

// Random inputs for the shape; freed by attention_case_free.
AttentionCase attention_case(KernelAttention shape, uint64_t seed);
void attention_case_free(AttentionCase *c);

// Fills c->o and c->lse from the wide inputs.
void reference_attention(const AttentionCase *c);

// Outputs of a case: of these heads and queries.
typedef struct AttentionPart {
    const AttentionCase *of;
    int head, heads;
    int64_t query, queries;
} AttentionPart;

// sum over the part's outputs of wide_d_o * o: its derivative by an input on which no other output depends is that
// input's gradient. `context` is an AttentionPart.
double reference_attention_value(const void *context);

// Shapes with odd sizes, gaps in the strides, offsets, grouped heads, and blocks that are partly or wholly in the
// future.
extern const KernelAttention attention_shapes[];
extern const int attention_shape_count;

// Window sizes in tokens, shorter and longer than a tile and than the shapes; ended by 0.
extern const int attention_windows[];
