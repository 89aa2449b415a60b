// Attention as cuDNN graphs, with one table of tensors and one of operations per direction. Forward: softmax(scale Q
// K^T) V with the log-sum-exp of each row as a second result. Backward (Dao 2023, algorithm 2):
//   P = exp(scale Q K^T - lse), dV = P^T dO, dS = P (dO V^T - delta) scale, dK = dS^T Q, dQ = dS K.
// cuDNN recognizes the pattern and runs one fused kernel; the score tensors are virtual. Causal: query row i sees key
// column j when i >= j. Grouped-query: dK and dV of every query head are virtual, then summed over each group.

#include "kernels/cuda/cudnn_attention_graph.h"

enum { CAUSAL = 1, GROUPED = 2 };  // features of a graph

typedef enum {
    OF_Q,
    OF_K,
    OF_K_TURNED,
    OF_V_TURNED,
    OF_O,
    OF_SCORES,
    OF_SCORES_TURNED,
    OF_ROWS,
    OF_DELTA,
    OF_ONE,
    OF_DQ,
    OF_DKV,
    OF_DKV_ALL,  // one per query head
    OF_DQ_SUM,
    SHAPES
} ShapeOf;

enum {
    SCORES = GRAPH_BOUND_FORWARD,
    SCALED,
    ROW,
    COLUMN,
    SEEN,
    MASKED,
    MAXIMUM,
    BELOW,
    WEIGHT,
    SUM,
    LOG_SUM,
    PROBABILITY,
    FORWARD_TENSORS
};

#define FP32 CUDNN_DATA_FLOAT
#define BF16 CUDNN_DATA_BFLOAT16

static const CudnnTensorRow forward_tensors[FORWARD_TENSORS] = {
    [GRAPH_Q] = {BF16, CUDNN_REAL, OF_Q},
    [GRAPH_K] = {BF16, CUDNN_REAL, OF_K_TURNED},
    [GRAPH_V] = {BF16, CUDNN_REAL, OF_K},
    [GRAPH_O] = {BF16, CUDNN_REAL, OF_O},
    [GRAPH_LSE] = {FP32, CUDNN_REAL, OF_ROWS},
    [GRAPH_SCALE] = {FP32, CUDNN_SCALAR, OF_ONE},
    [GRAPH_HIDDEN] = {FP32, CUDNN_SCALAR, OF_ONE},
    [SCORES] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [SCALED] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [ROW] = {CUDNN_DATA_INT32, CUDNN_VIRTUAL, OF_SCORES},
    [COLUMN] = {CUDNN_DATA_INT32, CUDNN_VIRTUAL, OF_SCORES},
    [SEEN] = {CUDNN_DATA_BOOLEAN, CUDNN_VIRTUAL, OF_SCORES},
    [MASKED] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [MAXIMUM] = {FP32, CUDNN_VIRTUAL, OF_ROWS},
    [BELOW] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [WEIGHT] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [SUM] = {FP32, CUDNN_VIRTUAL, OF_ROWS},
    [LOG_SUM] = {FP32, CUDNN_VIRTUAL, OF_ROWS},
    [PROBABILITY] = {BF16, CUDNN_VIRTUAL, OF_SCORES},
};

#define MATMUL(a, b, y, ...)                                                                                           \
    { CUDNN_OP_MATMUL, 0, a, b, CUDNN_NONE, y, __VA_ARGS__ }
#define POINT1(mode, x, y, ...)                                                                                        \
    { CUDNN_OP_POINTWISE, CUDNN_POINTWISE_##mode, x, CUDNN_NONE, CUDNN_NONE, y, __VA_ARGS__ }
#define POINT2(mode, x, b, y, ...)                                                                                     \
    { CUDNN_OP_POINTWISE, CUDNN_POINTWISE_##mode, x, b, CUDNN_NONE, y, __VA_ARGS__ }
#define SELECT(x, b, t, y, ...)                                                                                        \
    { CUDNN_OP_POINTWISE, CUDNN_POINTWISE_BINARY_SELECT, x, b, t, y, __VA_ARGS__ }
#define REDUCE(mode, x, y, ...)                                                                                        \
    { CUDNN_OP_REDUCE, CUDNN_REDUCE_TENSOR_##mode, x, CUDNN_NONE, CUDNN_NONE, y, __VA_ARGS__ }
#define TURN(x, y, ...)                                                                                                \
    { CUDNN_OP_RESHAPE, 0, x, CUDNN_NONE, CUDNN_NONE, y, __VA_ARGS__ }
#define ALIAS(x, y, ...)                                                                                               \
    { CUDNN_OP_ALIAS, 0, x, CUDNN_NONE, CUDNN_NONE, y, __VA_ARGS__ }

// After the operands: `when`, `unless`, axis.
static const CudnnOpRow forward_operations[] = {
    MATMUL(GRAPH_Q, GRAPH_K, SCORES, 0, 0, 0),
    POINT2(MUL, SCORES, GRAPH_SCALE, SCALED, 0, 0, 0),
    POINT1(GEN_INDEX, SCALED, ROW, CAUSAL, 0, 2),
    POINT1(GEN_INDEX, SCALED, COLUMN, CAUSAL, 0, 3),
    POINT2(CMP_GE, ROW, COLUMN, SEEN, CAUSAL, 0, 0),
    SELECT(SCALED, GRAPH_HIDDEN, SEEN, MASKED, CAUSAL, 0, 0),
    ALIAS(SCALED, MASKED, 0, CAUSAL, 0),
    REDUCE(MAX, MASKED, MAXIMUM, 0, 0, 0),
    POINT2(SUB, MASKED, MAXIMUM, BELOW, 0, 0, 0),
    POINT1(EXP, BELOW, WEIGHT, 0, 0, 0),
    REDUCE(ADD, WEIGHT, SUM, 0, 0, 0),
    POINT1(LOG, SUM, LOG_SUM, 0, 0, 0),
    POINT2(ADD, MAXIMUM, LOG_SUM, GRAPH_LSE, 0, 0, 0),
    POINT2(DIV, WEIGHT, SUM, PROBABILITY, 0, 0, 0),
    MATMUL(PROBABILITY, GRAPH_V, GRAPH_O, 0, 0, 0),
};

enum {
    B_PRODUCT = GRAPH_BOUND,
    B_ROW_SUM,
    B_SCORES,
    B_SCALED,
    B_BELOW,
    B_ROW,
    B_COLUMN,
    B_SEEN,
    B_MASKED,
    B_PROBABILITY,
    B_PROBABILITY_TURNED,
    B_DV_ALL,
    B_DP,
    B_DP_CENTRED,
    B_DP_WEIGHED,
    B_DS,
    B_DS_TURNED,
    B_DK_ALL,
    B_K,
    BACKWARD_TENSORS
};

static const CudnnTensorRow backward_tensors[BACKWARD_TENSORS] = {
    [GRAPH_Q] = {BF16, CUDNN_REAL, OF_Q},
    [GRAPH_K] = {BF16, CUDNN_REAL, OF_K_TURNED},
    [GRAPH_V] = {BF16, CUDNN_REAL, OF_V_TURNED},
    [GRAPH_O] = {BF16, CUDNN_REAL, OF_O},
    [GRAPH_LSE] = {FP32, CUDNN_REAL, OF_ROWS},
    [GRAPH_SCALE] = {FP32, CUDNN_SCALAR, OF_ONE},
    [GRAPH_HIDDEN] = {FP32, CUDNN_SCALAR, OF_ONE},
    [GRAPH_D_O] = {BF16, CUDNN_REAL, OF_O},
    [GRAPH_DQ] = {BF16, CUDNN_REAL, OF_DQ},
    [GRAPH_DK] = {BF16, CUDNN_REAL, OF_DKV},
    [GRAPH_DV] = {BF16, CUDNN_REAL, OF_DKV},
    [GRAPH_DELTA] = {FP32, CUDNN_REAL, OF_DELTA},
    [GRAPH_DQ_SUM] = {FP32, CUDNN_REAL, OF_DQ_SUM},
    [GRAPH_ONE] = {FP32, CUDNN_SCALAR, OF_ONE},
    [B_PRODUCT] = {FP32, CUDNN_VIRTUAL, OF_O},
    [B_ROW_SUM] = {FP32, CUDNN_VIRTUAL, OF_ROWS},
    [B_SCORES] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [B_SCALED] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [B_BELOW] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [B_ROW] = {CUDNN_DATA_INT32, CUDNN_VIRTUAL, OF_SCORES},
    [B_COLUMN] = {CUDNN_DATA_INT32, CUDNN_VIRTUAL, OF_SCORES},
    [B_SEEN] = {CUDNN_DATA_BOOLEAN, CUDNN_VIRTUAL, OF_SCORES},
    [B_MASKED] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [B_PROBABILITY] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [B_PROBABILITY_TURNED] = {BF16, CUDNN_VIRTUAL, OF_SCORES_TURNED},
    [B_DV_ALL] = {BF16, CUDNN_VIRTUAL, OF_DKV_ALL},
    [B_DP] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [B_DP_CENTRED] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [B_DP_WEIGHED] = {FP32, CUDNN_VIRTUAL, OF_SCORES},
    [B_DS] = {BF16, CUDNN_VIRTUAL, OF_SCORES},
    [B_DS_TURNED] = {BF16, CUDNN_VIRTUAL, OF_SCORES_TURNED},
    [B_DK_ALL] = {BF16, CUDNN_VIRTUAL, OF_DKV_ALL},
    [B_K] = {BF16, CUDNN_VIRTUAL, OF_K},
};

static const CudnnOpRow backward_operations[] = {
    POINT2(MUL, GRAPH_D_O, GRAPH_O, B_PRODUCT, 0, 0, 0),
    REDUCE(ADD, B_PRODUCT, B_ROW_SUM, 0, 0, 0),
    POINT2(MUL, B_ROW_SUM, GRAPH_ONE, GRAPH_DELTA, 0, 0, 0),
    MATMUL(GRAPH_Q, GRAPH_K, B_SCORES, 0, 0, 0),
    POINT2(MUL, B_SCORES, GRAPH_SCALE, B_SCALED, 0, 0, 0),
    POINT2(SUB, B_SCALED, GRAPH_LSE, B_BELOW, 0, 0, 0),
    POINT1(GEN_INDEX, B_BELOW, B_ROW, CAUSAL, 0, 2),
    POINT1(GEN_INDEX, B_BELOW, B_COLUMN, CAUSAL, 0, 3),
    POINT2(CMP_GE, B_ROW, B_COLUMN, B_SEEN, CAUSAL, 0, 0),
    SELECT(B_BELOW, GRAPH_HIDDEN, B_SEEN, B_MASKED, CAUSAL, 0, 0),
    ALIAS(B_BELOW, B_MASKED, 0, CAUSAL, 0),
    POINT1(EXP, B_MASKED, B_PROBABILITY, 0, 0, 0),
    TURN(B_PROBABILITY, B_PROBABILITY_TURNED, 0, 0, 0),
    MATMUL(B_PROBABILITY_TURNED, GRAPH_D_O, B_DV_ALL, GROUPED, 0, 0),
    REDUCE(ADD, B_DV_ALL, GRAPH_DV, GROUPED, 0, 0),
    MATMUL(B_PROBABILITY_TURNED, GRAPH_D_O, GRAPH_DV, 0, GROUPED, 0),
    MATMUL(GRAPH_D_O, GRAPH_V, B_DP, 0, 0, 0),
    POINT2(SUB, B_DP, GRAPH_DELTA, B_DP_CENTRED, 0, 0, 0),
    POINT2(MUL, B_DP_CENTRED, B_PROBABILITY, B_DP_WEIGHED, 0, 0, 0),
    POINT2(MUL, B_DP_WEIGHED, GRAPH_SCALE, B_DS, 0, 0, 0),
    TURN(B_DS, B_DS_TURNED, 0, 0, 0),
    MATMUL(B_DS_TURNED, GRAPH_Q, B_DK_ALL, GROUPED, 0, 0),
    REDUCE(ADD, B_DK_ALL, GRAPH_DK, GROUPED, 0, 0),
    MATMUL(B_DS_TURNED, GRAPH_Q, GRAPH_DK, 0, GROUPED, 0),
    TURN(GRAPH_K, B_K, 0, 0, 0),
    MATMUL(B_DS, B_K, GRAPH_DQ_SUM, 0, 0, 0),
    POINT1(IDENTITY, GRAPH_DQ_SUM, GRAPH_DQ, 0, 0, 0),
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

// [sequence][head][row][head_dim] with the heads of a token adjacent, and the same transposed.
static CudnnShape token_rows(const CudaAttention *call, int64_t heads, int64_t rows, int64_t stride, int64_t sequence) {
    const int64_t head_dim = call->block.head_dim;
    return (CudnnShape){{call->sequences, heads, rows, head_dim}, {sequence, head_dim, stride, 1}};
}

static CudnnShape turned(CudnnShape shape) {
    return (CudnnShape){{shape.dims[0], shape.dims[1], shape.dims[3], shape.dims[2]},
                        {shape.strides[0], shape.strides[1], shape.strides[3], shape.strides[2]}};
}

static CudnnShape packed(int64_t sequences, int64_t heads, int64_t rows, int64_t cols) {
    return (CudnnShape){{sequences, heads, rows, cols}, {heads * rows * cols, rows * cols, cols, 1}};
}

static void shapes_of(const CudaAttention *call, CudnnShape shapes[SHAPES]) {
    const KernelAttention *b = &call->block;
    const int64_t n = call->sequences;
    shapes[OF_Q] = token_rows(call, b->heads, b->queries, b->q_stride, call->q_sequence);
    shapes[OF_K] = token_rows(call, b->kv_heads, b->keys, b->kv_stride, call->kv_sequence);
    shapes[OF_K_TURNED] = shapes[OF_V_TURNED] = turned(shapes[OF_K]);
    shapes[OF_O] = token_rows(call, b->heads, b->queries, b->o_stride, call->o_sequence);
    shapes[OF_SCORES] = packed(n, b->heads, b->queries, b->keys);
    shapes[OF_SCORES_TURNED] = turned(shapes[OF_SCORES]);
    shapes[OF_ROWS] = (CudnnShape){{n, b->heads, b->queries, 1}, {call->lse_sequence, b->lse_stride, 1, 1}};
    shapes[OF_DELTA] = packed(n, b->heads, b->queries, 1);
    shapes[OF_ONE] = packed(1, 1, 1, 1);
    shapes[OF_DQ] = token_rows(call, b->heads, b->queries, call->dq_stride, call->dq_sequence);
    shapes[OF_DKV] = token_rows(call, b->kv_heads, b->keys, call->dkv_stride, call->dkv_sequence);
    shapes[OF_DKV_ALL] = packed(n, b->heads, b->keys, b->head_dim);
    shapes[OF_DQ_SUM] = packed(n, b->heads, b->queries, b->head_dim);
}

static void build(CudnnGraph *graph, const CudaAttention *call, unsigned features, const CudnnShape *shapes) {
    const bool backward = call->backward;
    const CudnnTensorRow *rows = backward ? backward_tensors : forward_tensors;
    cudnn_graph_tensors(graph, rows, backward ? BACKWARD_TENSORS : FORWARD_TENSORS, shapes);
    cudnn_graph_operations(graph, rows, backward ? backward_operations : forward_operations,
                           backward ? COUNT(backward_operations) : COUNT(forward_operations), features);
}

bool attention_graph_hides(const CudaAttention *call) {
    const KernelAttention *b = &call->block;
    return b->k_first + b->keys - 1 > b->q_first;
}

cudnnBackendDescriptor_t attention_graph_plan(CudnnGraph *graph, const CudaAttention *call, int64_t *workspace_bytes) {
    const KernelAttention *b = &call->block;
    const unsigned features = (attention_graph_hides(call) ? CAUSAL : 0u) | (b->heads == b->kv_heads ? 0u : GROUPED);
    CudnnShape shapes[SHAPES];
    shapes_of(call, shapes);
    build(graph, call, features, shapes);
    return cudnn_graph_plan(graph, workspace_bytes);
}
