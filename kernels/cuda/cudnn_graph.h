// cuDNN graphs as tables: rows of tensors, rows of operations on them, built into an execution plan. The first failure
// is kept and every later step does nothing, so that callers check once, at the end.

#pragma once

#include "kernels/cuda/cudnn_library.h"

#include <stdint.h>

enum { CUDNN_GRAPH_TENSORS = 40, CUDNN_GRAPH_OPERATIONS = 32, CUDNN_GRAPH_DESCRIPTORS = 160, CUDNN_NONE = -1 };

typedef struct CudnnShape {
    int64_t dims[4], strides[4];
} CudnnShape;

typedef enum { CUDNN_REAL, CUDNN_VIRTUAL, CUDNN_SCALAR } CudnnTensorKind;  // virtual: only inside the graph

// A tensor's number is its index in the table; its unique id for cuDNN is that number + 1.
typedef struct CudnnTensorRow {
    cudnnDataType_t type;
    CudnnTensorKind kind;
    int shape;  // index into the caller's shapes
} CudnnTensorRow;

typedef enum {
    CUDNN_OP_MATMUL,
    CUDNN_OP_POINTWISE,
    CUDNN_OP_REDUCE,
    CUDNN_OP_RESHAPE,
    CUDNN_OP_ALIAS  // y is an alias of tensor x
} CudnnOpKind;

// y = op(x, b, t): tensors, or CUDNN_NONE.
typedef struct CudnnOpRow {
    CudnnOpKind kind;
    int mode;  // for a pointwise operation or a reduction
    int x, b, t, y;
    unsigned when, unless;  // the row belongs to graphs with all of the features `when` and none of `unless`
    int axis;               // for GEN_INDEX
} CudnnOpRow;

typedef struct CudnnGraph {
    const CudnnLibrary *library;
    cudnnHandle_t handle;             // the plan is for its device, or, when NULL,
    cudnnBackendDescriptor_t device;  // for a device with these properties
    cudnnBackendDescriptor_t made[CUDNN_GRAPH_DESCRIPTORS];
    int made_count;
    cudnnBackendDescriptor_t tensors[CUDNN_GRAPH_TENSORS];
    cudnnBackendDescriptor_t operations[CUDNN_GRAPH_OPERATIONS];
    int operation_count;
    bool failed;
    char *why;  // CUDNN_WHY_BYTES
} CudnnGraph;

typedef struct CudnnAttribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;  // 0: the attribute is left out
    const void *values;
} CudnnAttribute;

// A finalized descriptor with these attributes; NULL after a failure. The caller must release it.
cudnnBackendDescriptor_t cudnn_describe(const CudnnLibrary *library, cudnnBackendDescriptorType_t type,
                                        const CudnnAttribute *attributes, int count, char *why);

void cudnn_graph_tensors(CudnnGraph *graph, const CudnnTensorRow *rows, int count, const CudnnShape *shapes);
void cudnn_graph_operations(CudnnGraph *graph, const CudnnTensorRow *tensors, const CudnnOpRow *rows, int count,
                            unsigned features);
// The first plan of the heuristic that builds, NULL when none does; the caller must release it.
cudnnBackendDescriptor_t cudnn_graph_plan(CudnnGraph *graph, int64_t *workspace_bytes);
void cudnn_graph_release(CudnnGraph *graph);
