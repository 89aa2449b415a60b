// The only place that fills in cuDNN's descriptors. Every descriptor is a list of attributes, set and finalized by
// cudnn_describe; a graph's rows are converted into such lists. Engines come from heuristic mode A, best first.

#include "kernels/cuda/cudnn_graph.h"

#include <stdio.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static bool complain(const CudnnLibrary *library, const char *what, cudnnStatus_t status, char *why) {
    char detail[CUDNN_WHY_BYTES / 2] = "";
    library->last_error(detail, sizeof detail);
    snprintf(why, CUDNN_WHY_BYTES, "cuDNN %zu: %s: %s %s", library->version(), what, library->error_name(status),
             detail);
    return false;
}

static bool fill(const CudnnLibrary *library, cudnnBackendDescriptor_t descriptor, const CudnnAttribute *attributes,
                 int count, char *why) {
    for (int i = 0; i < count; i++) {
        const CudnnAttribute *a = &attributes[i];
        if (a->count == 0) {
            continue;
        }
        const cudnnStatus_t status = library->set(descriptor, a->name, a->type, a->count, a->values);
        if (status != CUDNN_STATUS_SUCCESS) {
            char what[64];
            snprintf(what, sizeof what, "attribute %d", (int)a->name);
            return complain(library, what, status, why);
        }
    }
    const cudnnStatus_t status = library->finalize(descriptor);
    return status == CUDNN_STATUS_SUCCESS || complain(library, "a descriptor", status, why);
}

cudnnBackendDescriptor_t cudnn_describe(const CudnnLibrary *library, cudnnBackendDescriptorType_t type,
                                        const CudnnAttribute *attributes, int count, char *why) {
    cudnnBackendDescriptor_t descriptor = NULL;
    const cudnnStatus_t status = library->describe(type, &descriptor);
    if (status != CUDNN_STATUS_SUCCESS) {
        complain(library, "a new descriptor", status, why);
        return NULL;
    }
    if (!fill(library, descriptor, attributes, count, why)) {
        library->release(descriptor);
        return NULL;
    }
    return descriptor;
}

// A descriptor that lives as long as the graph.
static cudnnBackendDescriptor_t make(CudnnGraph *graph, cudnnBackendDescriptorType_t type,
                                     const CudnnAttribute *attributes, int count) {
    if (graph->failed || graph->made_count == CUDNN_GRAPH_DESCRIPTORS) {
        graph->failed = true;
        return NULL;
    }
    const cudnnBackendDescriptor_t made = cudnn_describe(graph->library, type, attributes, count, graph->why);
    graph->failed = made == NULL;
    if (made) {
        graph->made[graph->made_count++] = made;
    }
    return made;
}

void cudnn_graph_tensors(CudnnGraph *graph, const CudnnTensorRow *rows, int count, const CudnnShape *shapes) {
    const int64_t alignment_bytes = 16;
    for (int i = 0; i < count; i++) {
        const CudnnShape *shape = &shapes[rows[i].shape];
        const int64_t id = i + 1;
        const bool is_virtual = rows[i].kind == CUDNN_VIRTUAL, by_value = rows[i].kind == CUDNN_SCALAR;
        const CudnnAttribute attributes[] = {
            {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &rows[i].type},
            {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shape->dims},
            {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, shape->strides},
            {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
            {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment_bytes},
            {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual},
            {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value},
        };
        graph->tensors[i] = make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, COUNT(attributes));
    }
}

static cudnnBackendDescriptor_t operation_matmul(CudnnGraph *graph, const CudnnOpRow *row) {
    const cudnnDataType_t fp32 = CUDNN_DATA_FLOAT;
    const CudnnAttribute product[] = {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &fp32}};
    const cudnnBackendDescriptor_t matmul = make(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR, product, COUNT(product));
    const CudnnAttribute attributes[] = {
        {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[row->x]},
        {CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[row->b]},
        {CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[row->y]},
        {CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &matmul},
    };
    return make(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, attributes, COUNT(attributes));
}

// Computes in the type of its result, but in fp32 for bf16 results.
static cudnnBackendDescriptor_t operation_pointwise(CudnnGraph *graph, const CudnnOpRow *row, cudnnDataType_t result) {
    const cudnnPointwiseMode_t mode = (cudnnPointwiseMode_t)row->mode;
    const cudnnDataType_t precision = result == CUDNN_DATA_BFLOAT16 ? CUDNN_DATA_FLOAT : result;
    const int64_t axis = row->axis;
    const CudnnAttribute function[] = {
        {CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision},
        {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, mode == CUDNN_POINTWISE_GEN_INDEX, &axis},
    };
    const cudnnBackendDescriptor_t pointwise =
        make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, function, COUNT(function));
    const bool has_b = row->b != CUDNN_NONE, has_t = row->t != CUDNN_NONE;
    const CudnnAttribute attributes[] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointwise},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[row->x]},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, has_b,
         has_b ? &graph->tensors[row->b] : NULL},
        {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, has_t,
         has_t ? &graph->tensors[row->t] : NULL},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[row->y]},
    };
    return make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, attributes, COUNT(attributes));
}

static cudnnBackendDescriptor_t operation_reduce(CudnnGraph *graph, const CudnnOpRow *row) {
    const cudnnReduceTensorOp_t mode = (cudnnReduceTensorOp_t)row->mode;
    const cudnnDataType_t fp32 = CUDNN_DATA_FLOAT;
    const CudnnAttribute function[] = {
        {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode},
        {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &fp32},
    };
    const cudnnBackendDescriptor_t reduction =
        make(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, function, COUNT(function));
    const CudnnAttribute attributes[] = {
        {CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &reduction},
        {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[row->x]},
        {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[row->y]},
    };
    return make(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, attributes, COUNT(attributes));
}

static cudnnBackendDescriptor_t operation_reshape(CudnnGraph *graph, const CudnnOpRow *row) {
    const CudnnAttribute attributes[] = {
        {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[row->x]},
        {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->tensors[row->y]},
    };
    return make(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, attributes, COUNT(attributes));
}

static cudnnBackendDescriptor_t operation(CudnnGraph *graph, const CudnnTensorRow *tensors, const CudnnOpRow *row) {
    switch (row->kind) {
    case CUDNN_OP_MATMUL:
        return operation_matmul(graph, row);
    case CUDNN_OP_POINTWISE:
        return operation_pointwise(graph, row, tensors[row->y].type);
    case CUDNN_OP_REDUCE:
        return operation_reduce(graph, row);
    case CUDNN_OP_RESHAPE:
        return operation_reshape(graph, row);
    case CUDNN_OP_ALIAS:
        break;
    }
    graph->tensors[row->y] = graph->tensors[row->x];
    return NULL;
}

void cudnn_graph_operations(CudnnGraph *graph, const CudnnTensorRow *tensors, const CudnnOpRow *rows, int count,
                            unsigned features) {
    for (int i = 0; i < count && !graph->failed; i++) {
        if ((rows[i].when & ~features) != 0 || (rows[i].unless & features) != 0) {
            continue;
        }
        const cudnnBackendDescriptor_t made = operation(graph, tensors, &rows[i]);
        if (made) {
            graph->operations[graph->operation_count++] = made;
        }
    }
}

static cudnnBackendDescriptor_t plan_of(CudnnGraph *graph, cudnnBackendDescriptor_t engine) {
    const CudnnAttribute attributes[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine},
        {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, graph->handle != NULL, &graph->handle},
        {CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->handle == NULL, &graph->device},
    };
    return cudnn_describe(graph->library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attributes, COUNT(attributes),
                          graph->why);
}

static cudnnBackendDescriptor_t heuristic_of(CudnnGraph *graph) {
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    const CudnnAttribute whole[] = {
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, graph->handle != NULL, &graph->handle},
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->operation_count, graph->operations},
    };
    const cudnnBackendDescriptor_t operations =
        make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, whole, COUNT(whole));
    const CudnnAttribute question[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operations},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
        {CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->handle == NULL, &graph->device},
    };
    return make(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, question, COUNT(question));
}

// Puts the heuristic's engine configurations into engines[room]; returns their number.
static int64_t engines_of(CudnnGraph *graph, cudnnBackendDescriptor_t *engines, int64_t room) {
    const CudnnLibrary *library = graph->library;
    const cudnnBackendDescriptor_t heuristic = heuristic_of(graph);
    int64_t found = 0;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    for (int64_t i = 0; i < room && !graph->failed && status == CUDNN_STATUS_SUCCESS; i++) {
        status = library->describe(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &engines[i]);
    }
    if (!graph->failed && status == CUDNN_STATUS_SUCCESS) {
        status = library->get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, &found,
                              engines);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        complain(library, "the heuristic", status, graph->why);
        return 0;
    }
    if (found == 0 && !graph->failed) {
        snprintf(graph->why, CUDNN_WHY_BYTES, "cuDNN %zu has no engine for this graph", library->version());
    }
    return found < room ? found : room;
}

cudnnBackendDescriptor_t cudnn_graph_plan(CudnnGraph *graph, int64_t *workspace_bytes) {
    enum { CANDIDATES = 8 };
    cudnnBackendDescriptor_t engines[CANDIDATES] = {NULL}, plan = NULL;
    const int64_t found = engines_of(graph, engines, CANDIDATES);
    for (int64_t i = 0; i < found && !plan; i++) {
        plan = plan_of(graph, engines[i]);
    }
    int64_t count = 0;
    if (plan && graph->library->get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                    workspace_bytes) != CUDNN_STATUS_SUCCESS) {
        graph->library->release(plan);
        plan = NULL;
    }
    for (int i = 0; i < CANDIDATES; i++) {
        if (engines[i]) {
            graph->library->release(engines[i]);
        }
    }
    return plan;
}

void cudnn_graph_release(CudnnGraph *graph) {
    while (graph->made_count > 0) {
        graph->library->release(graph->made[--graph->made_count]);
    }
}
