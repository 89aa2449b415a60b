// The two graphs of attention and the tensors that a caller binds.

#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/cudnn_graph.h"

// Tensors backed by memory, and constants: bf16 unless stated otherwise. Other tensors exist only inside the graphs.
enum {
    GRAPH_Q,
    GRAPH_K,
    GRAPH_V,
    GRAPH_O,
    GRAPH_LSE,  // fp32
    GRAPH_SCALE,
    GRAPH_HIDDEN,  // the score of a masked key, -inf: only in graphs that mask
    GRAPH_BOUND_FORWARD,
    GRAPH_D_O = GRAPH_BOUND_FORWARD,
    GRAPH_DQ,
    GRAPH_DK,
    GRAPH_DV,
    GRAPH_DELTA,   // fp32
    GRAPH_DQ_SUM,  // fp32, packed [sequence][head][query][head_dim]
    GRAPH_ONE,
    GRAPH_BOUND
};

// Whether some key comes after some query.
bool attention_graph_hides(const CudaAttention *call);
// Builds the call's graph for the graph's device. The caller releases the graph and the plan; NULL: see graph->why.
cudnnBackendDescriptor_t attention_graph_plan(CudnnGraph *graph, const CudaAttention *call, int64_t *workspace_bytes);
