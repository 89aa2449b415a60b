// A stand-in for libcudnn.so.9, for tests only: the twelve functions that kernels/cuda opens, with graphs evaluated on
// the CPU as cuDNN's manual defines their operations (matmul, pointwise, reduction, reshape). Descriptors are lists of
// attributes; sums are double, tensors are rounded to their type. It checks whether a graph means what it should and is
// bound to the right memory, not whether cuDNN has a kernel for it (test_cudnn_plans does).

#include <cudnn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/bf16.h"

enum { ATTRIBUTES = 12, RANK = 4, MADE = 4096 };

typedef struct Attribute {
    cudnnBackendAttributeName_t name;
    int64_t count;
    void *values;
} Attribute;

typedef struct Descriptor {
    cudnnBackendDescriptorType_t type;
    Attribute attributes[ATTRIBUTES];
    int count;
    bool finalized;
    double *numbers;  // a tensor's, packed, while a graph runs
} Descriptor;

// Plans outlive the descriptors that they were made from: all are kept until the end.
static Descriptor *made[MADE];
static int made_count;

__attribute__((destructor)) static void forget(void) {
    for (int i = 0; i < made_count; i++) {
        for (int j = 0; j < made[i]->count; j++) {
            free(made[i]->attributes[j].values);
        }
        free(made[i]);
    }
}

static size_t bytes_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;  // enumerations
    }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    *handle = (cudnnHandle_t)(void *)made;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    (void)handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    (void)stream;
    return handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

size_t cudnnGetVersion(void) {
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_SUCCESS ? "success" : "refused by the stand-in";
}

void cudnnGetLastErrorString(char *text, size_t bytes) {
    snprintf(text, bytes, "(stand-in)");
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
    if (made_count == MADE) {
        return CUDNN_STATUS_INTERNAL_ERROR;
    }
    Descriptor *one = calloc(1, sizeof *one);
    one->type = type;
    made[made_count++] = one;
    *descriptor = one;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    return descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
    Descriptor *one = descriptor;
    if (!one || one->finalized || one->count == ATTRIBUTES || count < 1) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    const size_t bytes = bytes_of(type) * (size_t)count;
    Attribute *attribute = &one->attributes[one->count++];
    *attribute = (Attribute){name, count, malloc(bytes)};
    memcpy(attribute->values, values, bytes);
    return CUDNN_STATUS_SUCCESS;
}

static const Attribute *attribute_of(const Descriptor *descriptor, cudnnBackendAttributeName_t name) {
    for (int i = 0; i < descriptor->count; i++) {
        if (descriptor->attributes[i].name == name) {
            return &descriptor->attributes[i];
        }
    }
    return NULL;
}

static Descriptor *part_of(const Descriptor *descriptor, cudnnBackendAttributeName_t name) {
    const Attribute *attribute = attribute_of(descriptor, name);
    return attribute ? *(Descriptor **)attribute->values : NULL;
}

static int number_of(const Descriptor *descriptor, cudnnBackendAttributeName_t name) {
    return *(const int *)attribute_of(descriptor, name)->values;
}

static const int64_t *numbers_of(const Descriptor *descriptor, cudnnBackendAttributeName_t name) {
    return attribute_of(descriptor, name)->values;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    Descriptor *one = descriptor;
    if (!one || one->finalized) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    one->finalized = true;
    return CUDNN_STATUS_SUCCESS;
}

// The heuristic has one engine: the graph itself.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values) {
    const Descriptor *one = descriptor;
    *count = 1;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        *(int64_t *)values = 100;
        return CUDNN_STATUS_SUCCESS;
    }
    if (name != CUDNN_ATTR_ENGINEHEUR_RESULTS || room < 1) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    const Descriptor *graph = part_of(one, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    return cudnnBackendSetAttribute(*(cudnnBackendDescriptor_t *)values, CUDNN_ATTR_ENGINECFG_ENGINE, type, 1, &graph);
}

// ---------------------------------------------------------------------------------------------- tensors

typedef struct Index {
    int64_t at[RANK];
} Index;

static const int64_t *dims_of(const Descriptor *tensor) {
    return numbers_of(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
}

static int64_t size_of(const Descriptor *tensor) {
    const int64_t *dims = dims_of(tensor);
    return dims[0] * dims[1] * dims[2] * dims[3];
}

static Index index_of(const Descriptor *tensor, int64_t number) {
    const int64_t *dims = dims_of(tensor);
    Index index;
    for (int i = RANK - 1; i >= 0; i--) {
        index.at[i] = number % dims[i];
        number /= dims[i];
    }
    return index;
}

static int64_t offset_of(const Descriptor *tensor, Index index) {
    const int64_t *strides = numbers_of(tensor, CUDNN_ATTR_TENSOR_STRIDES);
    int64_t offset = 0;
    for (int i = 0; i < RANK; i++) {
        offset += index.at[i] * strides[i];
    }
    return offset;
}

// The index in `to` that corresponds to an index in `from`: sizes of 1 broadcast, heads of a group share one.
static int64_t place_in(const Descriptor *to, const Descriptor *from, Index index) {
    int64_t place = 0;
    for (int i = 0; i < RANK; i++) {
        place = place * dims_of(to)[i] + index.at[i] * dims_of(to)[i] / dims_of(from)[i];
    }
    return place;
}

static bool flag_of(const Descriptor *tensor, cudnnBackendAttributeName_t name) {
    const Attribute *attribute = attribute_of(tensor, name);
    return attribute && *(const bool *)attribute->values;
}

static bool is_bf16(const Descriptor *tensor) {
    return number_of(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_BFLOAT16;
}

// The memory that the pack binds to a tensor; NULL: none.
static void *memory_of(const Descriptor *pack, const Descriptor *tensor) {
    const Attribute *ids = attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    void **pointers = attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->values;
    for (int64_t i = 0; i < ids->count; i++) {
        if (((const int64_t *)ids->values)[i] == *numbers_of(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID)) {
            return pointers[i];
        }
    }
    return NULL;
}

static bool load(const Descriptor *pack, Descriptor *tensor) {
    const void *memory = memory_of(pack, tensor);
    if (tensor->numbers) {
        return true;
    }
    if (!memory) {
        return false;
    }
    tensor->numbers = malloc((size_t)size_of(tensor) * sizeof(double));
    for (int64_t i = 0; i < size_of(tensor); i++) {
        const int64_t at = offset_of(tensor, index_of(tensor, i));
        tensor->numbers[i] =
            (double)(is_bf16(tensor) ? bf16_value(((const uint16_t *)memory)[at]) : ((const float *)memory)[at]);
    }
    return true;
}

// Rounds a result to its type and, unless it is virtual, stores it where the pack says.
static bool store(const Descriptor *pack, Descriptor *tensor) {
    const bool is_virtual = flag_of(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    void *memory = memory_of(pack, tensor);
    if (!is_virtual && (!memory || flag_of(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE))) {
        return false;
    }
    for (int64_t i = 0; i < size_of(tensor); i++) {
        const float x = (float)tensor->numbers[i];
        const uint16_t half = bf16_of(x);
        const int64_t at = offset_of(tensor, index_of(tensor, i));
        tensor->numbers[i] = (double)(is_bf16(tensor) ? bf16_value(half) : x);
        if (!is_virtual && is_bf16(tensor)) {
            ((uint16_t *)memory)[at] = half;
        } else if (!is_virtual) {
            ((float *)memory)[at] = x;
        }
    }
    return true;
}

// ---------------------------------------------------------------------------------------------- operations

static void matmul(const Descriptor *a, const Descriptor *b, Descriptor *c) {
    const int64_t depth = dims_of(a)[3];
    for (int64_t i = 0; i < size_of(c); i++) {
        const Index at = index_of(c, i);
        double sum = 0.0;
        const int64_t a_head = at.at[1] * dims_of(a)[1] / dims_of(c)[1],
                      b_head = at.at[1] * dims_of(b)[1] / dims_of(c)[1];
        const int64_t row = ((at.at[0] * dims_of(a)[1] + a_head) * dims_of(a)[2] + at.at[2]) * depth;
        const int64_t col = (at.at[0] * dims_of(b)[1] + b_head) * depth * dims_of(b)[3] + at.at[3];
        for (int64_t k = 0; k < depth; k++) {
            sum += a->numbers[row + k] * b->numbers[col + k * dims_of(b)[3]];
        }
        c->numbers[i] = sum;
    }
}

static double point(int mode, double x, double b, double t) {
    switch (mode) {
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_EXP:
        return exp(x);
    case CUDNN_POINTWISE_LOG:
        return log(x);
    case CUDNN_POINTWISE_IDENTITY:
        return x;
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b ? 1.0 : 0.0;
    case CUDNN_POINTWISE_BINARY_SELECT:
        return t != 0.0 ? x : b;
    default:
        return (double)NAN;
    }
}

static void pointwise(const Descriptor *operation, const Descriptor *x, Descriptor *y) {
    const Descriptor *function = part_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const Descriptor *b = part_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    const Descriptor *t = part_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    const int mode = number_of(function, CUDNN_ATTR_POINTWISE_MODE);
    for (int64_t i = 0; i < size_of(y); i++) {
        const Index at = index_of(y, i);
        y->numbers[i] = mode == CUDNN_POINTWISE_GEN_INDEX
                            ? (double)at.at[*numbers_of(function, CUDNN_ATTR_POINTWISE_AXIS)]
                            : point(mode, x->numbers[place_in(x, y, at)], b ? b->numbers[place_in(b, y, at)] : 0.0,
                                    t ? t->numbers[place_in(t, y, at)] : 0.0);
    }
}

static void reduce(int mode, const Descriptor *x, Descriptor *y) {
    for (int64_t i = 0; i < size_of(y); i++) {
        y->numbers[i] = mode == CUDNN_REDUCE_TENSOR_MAX ? -(double)INFINITY : 0.0;
    }
    for (int64_t i = 0; i < size_of(x); i++) {
        double *to = &y->numbers[place_in(y, x, index_of(x, i))];
        *to = mode == CUDNN_REDUCE_TENSOR_MAX ? fmax(*to, x->numbers[i]) : *to + x->numbers[i];
    }
}

// The same memory with other sizes and strides.
static void reshape(const Descriptor *x, Descriptor *y) {
    int64_t last = 0;
    for (int64_t i = 0; i < size_of(x); i++) {
        const int64_t at = offset_of(x, index_of(x, i));
        last = at > last ? at : last;
    }
    double *memory = calloc((size_t)last + 1, sizeof *memory);
    for (int64_t i = 0; i < size_of(x); i++) {
        memory[offset_of(x, index_of(x, i))] = x->numbers[i];
    }
    for (int64_t i = 0; i < size_of(y); i++) {
        const int64_t at = offset_of(y, index_of(y, i));
        y->numbers[i] = at <= last ? memory[at] : (double)NAN;
    }
    free(memory);
}

// Which attributes of an operation are its tensors, inputs first.
typedef struct Kind {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, b, t, y;
} Kind;

static const Kind kinds[] = {
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
     CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
     CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
     CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC},
};

static const Kind *kind_of(const Descriptor *operation) {
    const Kind *kind = kinds;
    while (kind->type != operation->type) {
        kind++;
    }
    return kind;
}

static bool run(const Descriptor *operation, const Descriptor *pack) {
    const Kind *kind = kind_of(operation);
    Descriptor *x = part_of(operation, kind->x), *b = part_of(operation, kind->b), *t = part_of(operation, kind->t);
    Descriptor *y = part_of(operation, kind->y);
    if (!load(pack, x) || (b && !load(pack, b)) || (t && !load(pack, t)) || y->numbers) {
        return false;
    }
    y->numbers = malloc((size_t)size_of(y) * sizeof(double));
    if (kind == &kinds[0]) {
        matmul(x, b, y);
    } else if (kind == &kinds[1]) {
        pointwise(operation, x, y);
    } else if (kind == &kinds[2]) {
        reduce(number_of(part_of(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC), CUDNN_ATTR_REDUCTION_OPERATOR), x, y);
    } else {
        reshape(x, y);
    }
    return store(pack, y);
}

// NVIDIA's own frontend binds exactly the tensors of a plan's graph, at addresses aligned as the tensors say.
static bool has_tensor(const Descriptor *operation, int64_t id, const void *memory) {
    const Kind *kind = kind_of(operation);
    const cudnnBackendAttributeName_t names[] = {kind->x, kind->b, kind->t, kind->y};
    for (int i = 0; i < 4; i++) {
        const Descriptor *tensor = part_of(operation, names[i]);
        if (tensor && *numbers_of(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID) == id) {
            const int64_t alignment = *numbers_of(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
            return flag_of(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE) ||
                   (!flag_of(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL) && (uintptr_t)memory % (uintptr_t)alignment == 0);
        }
    }
    return false;
}

static bool binds_the_graph(const Attribute *operations, const Descriptor *pack) {
    const Attribute *ids = attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    void **pointers = attribute_of(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->values;
    for (int64_t i = 0; i < ids->count; i++) {
        bool has = false;
        for (int64_t o = 0; !has && o < operations->count; o++) {
            has = has_tensor(((Descriptor **)operations->values)[o], ((const int64_t *)ids->values)[i], pointers[i]);
        }
        if (!has) {
            return false;
        }
    }
    return true;
}

// The library writes results of attention in the type of its inputs, whatever their tensors specify (an H200 did): fp32
// rows whose rest nobody reads are refused here. Statistics have one column and are fp32.
static bool results_are_bf16(const Attribute *operations) {
    Descriptor **all = operations->values;
    for (int64_t i = 0; i < operations->count; i++) {
        const Descriptor *y = part_of(all[i], kind_of(all[i])->y);
        bool read = flag_of(y, CUDNN_ATTR_TENSOR_IS_VIRTUAL) || is_bf16(y) || dims_of(y)[RANK - 1] == 1;
        for (int64_t o = 0; o < operations->count && !read; o++) {
            const Kind *kind = kind_of(all[o]);
            read = part_of(all[o], kind->x) == y || part_of(all[o], kind->b) == y || part_of(all[o], kind->t) == y;
        }
        if (!read) {
            return false;
        }
    }
    return true;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
    const Descriptor *engine = part_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const Descriptor *graph = part_of(engine, CUDNN_ATTR_ENGINECFG_ENGINE);
    const Attribute *operations = attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    bool right = handle != NULL && ((Descriptor *)pack)->finalized && binds_the_graph(operations, pack) &&
                 results_are_bf16(operations);
    for (int64_t i = 0; right && i < operations->count; i++) {
        right = run(((Descriptor **)operations->values)[i], pack);
    }
    for (int i = 0; i < made_count; i++) {
        free(made[i]->numbers);
        made[i]->numbers = NULL;
    }
    return right ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
