// Plans of cuDNN's attention, cached by shape, and their runs. cuDNN writes o, dq, dk and dv in the type of its inputs,
// whatever their tensors specify (9.19 on an H200: it made the plan and wrote half of each row). So results kept in
// fp32 go through workspace in bf16, packed: a block of a ring is merged into (o, lse) from there, gradients are added.
// The causal mask of a graph begins at its corner, so the blocks served are those whose first query is their first key,
// or whose keys are all visible: every block of a ring and of zigzag halves. A run's scratch, placed after cuDNN's own
// workspace, is laid out by the plan.

#include "kernels/cuda/cudnn_attention.h"

#include "kernels/cuda/attention_launch.h"
#include "kernels/cuda/cudnn_attention_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS = 256, KEY_NUMBERS = 24, ALIGNMENT_BYTES = 256 };

typedef enum {
    SCRATCH_O,
    SCRATCH_LSE,
    SCRATCH_DELTA,
    SCRATCH_DQ_SUM,
    SCRATCH_DQ,
    SCRATCH_DK,
    SCRATCH_DV,
    SCRATCHES
} Scratch;

typedef struct Plan {
    int64_t key[KEY_NUMBERS];
    CudaAttention asked, graph;  // the caller's layouts, and the graph's
    cudnnBackendDescriptor_t plan;
    int64_t at[SCRATCHES];  // offset of each scratch in the workspace
    int64_t workspace_bytes;
} Plan;

struct CudnnAttention {
    CudnnLibrary library;
    cudnnHandle_t handle;             // NULL: plans only
    cudnnBackendDescriptor_t device;  // for plans only
    Plan plans[PLANS];
    int count;
    char why[CUDNN_WHY_BYTES];
};

static bool device_describe(CudnnAttention *cudnn, const char *json, char *why) {
    const CudnnAttribute text = {CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json),
                                 json};
    cudnn->device = cudnn_describe(&cudnn->library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &text, 1, why);
    return cudnn->device != NULL;
}

CudnnAttention *cudnn_attention_open(const char *device_json, char why[ATTENTION_WHY_BYTES]) {
    CudnnAttention *cudnn = calloc(1, sizeof *cudnn);
    if (!cudnn) {
        snprintf(why, ATTENTION_WHY_BYTES, "no memory for cuDNN's plans");
        return NULL;
    }
    if (!cudnn_library_open(&cudnn->library, why)) {
        free(cudnn);
        return NULL;
    }
    const cudnnStatus_t status = device_json ? CUDNN_STATUS_SUCCESS : cudnn->library.create(&cudnn->handle);
    if (status != CUDNN_STATUS_SUCCESS) {
        snprintf(why, ATTENTION_WHY_BYTES, "cuDNN does not start on this GPU: %s", cudnn->library.error_name(status));
    }
    if (status != CUDNN_STATUS_SUCCESS || (device_json && !device_describe(cudnn, device_json, why))) {
        cudnn_attention_close(cudnn);
        return NULL;
    }
    return cudnn;
}

void cudnn_attention_close(CudnnAttention *cudnn) {
    if (!cudnn) {
        return;
    }
    for (int i = 0; i < cudnn->count; i++) {
        cudnn->library.release(cudnn->plans[i].plan);
    }
    if (cudnn->device) {
        cudnn->library.release(cudnn->device);
    }
    if (cudnn->handle) {
        cudnn->library.destroy(cudnn->handle);
    }
    cudnn_library_close(&cudnn->library);
    free(cudnn);
}

size_t cudnn_attention_version(const CudnnAttention *cudnn) {
    return cudnn->library.version();
}

const char *cudnn_attention_error(const CudnnAttention *cudnn) {
    return cudnn->why;
}

static void key_of(const CudaAttention *call, int64_t key[KEY_NUMBERS]) {
    const KernelAttention *b = &call->block;
    const int64_t numbers[KEY_NUMBERS] = {
        b->queries,
        b->keys,
        b->q_first == b->k_first,
        b->heads,
        b->kv_heads,
        b->head_dim,
        b->q_stride,
        b->kv_stride,
        b->o_stride,
        b->lse_stride,
        call->sequences,
        call->q_sequence,
        call->kv_sequence,
        call->o_sequence,
        call->lse_sequence,
        call->output,
        call->merge,
        call->backward,
        call->gradient,
        call->dq_stride,
        call->dkv_stride,
        call->dq_sequence,
        call->dkv_sequence,
    };
    memcpy(key, numbers, sizeof numbers);
}

// Whether results are kept in fp32 and so go through workspace.
static bool goes_through(const CudaAttention *call) {
    return (call->backward ? call->gradient : call->output) == KERNEL_FP32;
}

// The graph's own layouts: results that go through workspace are packed there.
static CudaAttention graph_call(const CudaAttention *call) {
    CudaAttention graph = *call;
    KernelAttention *b = &graph.block;
    const int64_t q_width = (int64_t)b->heads * b->head_dim, kv_width = (int64_t)b->kv_heads * b->head_dim;
    if (!call->backward && goes_through(call)) {
        graph.output = KERNEL_BF16;
        b->o_stride = q_width;
        b->lse_stride = b->queries;
        graph.o_sequence = b->queries * q_width;
        graph.lse_sequence = b->heads * b->queries;
    }
    if (call->backward && goes_through(call)) {
        graph.gradient = KERNEL_BF16;
        graph.dq_stride = q_width;
        graph.dkv_stride = kv_width;
        graph.dq_sequence = b->queries * q_width;
        graph.dkv_sequence = b->keys * kv_width;
    }
    return graph;
}

// Places the scratch buffers after cuDNN's workspace.
static void plan_scratch(Plan *plan) {
    const CudaAttention *call = &plan->graph;
    const KernelAttention *b = &call->block;
    const int64_t rows = call->sequences * b->heads * b->queries;
    const int64_t kv_bytes = 2 * call->sequences * b->keys * b->kv_heads * b->head_dim;
    const bool through = goes_through(&plan->asked), merge = through && !call->backward;
    const bool add = through && call->backward;
    const int64_t bytes[SCRATCHES] = {
        [SCRATCH_O] = merge ? rows * b->head_dim * 2 : 0,
        [SCRATCH_LSE] = merge ? rows * 4 : 0,
        [SCRATCH_DELTA] = call->backward ? rows * 4 : 0,
        [SCRATCH_DQ_SUM] = call->backward ? rows * b->head_dim * 4 : 0,
        [SCRATCH_DQ] = add ? rows * b->head_dim * 2 : 0,
        [SCRATCH_DK] = add ? kv_bytes : 0,
        [SCRATCH_DV] = add ? kv_bytes : 0,
    };
    for (int i = 0; i < SCRATCHES; i++) {
        plan->at[i] = (plan->workspace_bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
        plan->workspace_bytes = plan->at[i] + bytes[i];
    }
}

static bool plan_make(CudnnAttention *cudnn, Plan *plan, char *why) {
    snprintf(why, CUDNN_WHY_BYTES, "cuDNN: the graph is too large");
    CudnnGraph graph = {.library = &cudnn->library, .handle = cudnn->handle, .device = cudnn->device, .why = why};
    plan->graph = graph_call(&plan->asked);
    plan->plan = attention_graph_plan(&graph, &plan->graph, &plan->workspace_bytes);
    cudnn_graph_release(&graph);
    plan_scratch(plan);
    return plan->plan != NULL;
}

int cudnn_attention_plan(CudnnAttention *cudnn, const CudaAttention *call, int64_t *workspace_bytes,
                         char why[ATTENTION_WHY_BYTES]) {
    Plan made = {.asked = *call};
    key_of(call, made.key);
    int at = 0;
    while (at < cudnn->count && memcmp(cudnn->plans[at].key, made.key, sizeof made.key) != 0) {
        at++;
    }
    if (at == PLANS) {
        snprintf(why, ATTENTION_WHY_BYTES, "more than %d shapes of attention in one run", PLANS);
        return -1;
    }
    if (at == cudnn->count) {
        if (!plan_make(cudnn, &made, why)) {
            return -1;
        }
        cudnn->plans[cudnn->count++] = made;
    }
    *workspace_bytes = cudnn->plans[at].workspace_bytes;
    return at;
}

typedef struct Binding {
    void *pointers[GRAPH_BOUND];
    float scale, hidden, one;
} Binding;

// The memory of each tensor of the graph: the caller's buffers or scratch.
static void bind(const Plan *plan, const AttentionData *data, Binding *to) {
    const bool through = goes_through(&plan->asked), merge = through && !plan->asked.backward;
    const bool add = through && plan->asked.backward;
    char *scratch = data->workspace;
    to->scale = 1.0f / sqrtf((float)plan->asked.block.head_dim);
    to->hidden = -INFINITY;
    to->one = 1.0f;
    void *const pointers[GRAPH_BOUND] = {
        [GRAPH_Q] = (void *)data->q,
        [GRAPH_K] = (void *)data->k,
        [GRAPH_V] = (void *)data->v,
        [GRAPH_O] = merge ? scratch + plan->at[SCRATCH_O] : data->o,
        [GRAPH_LSE] = merge ? scratch + plan->at[SCRATCH_LSE] : (void *)data->lse,
        [GRAPH_SCALE] = &to->scale,
        [GRAPH_HIDDEN] = &to->hidden,
        [GRAPH_D_O] = (void *)data->d_o,
        [GRAPH_DQ] = add ? scratch + plan->at[SCRATCH_DQ] : data->dq,
        [GRAPH_DK] = add ? scratch + plan->at[SCRATCH_DK] : data->dk,
        [GRAPH_DV] = add ? scratch + plan->at[SCRATCH_DV] : data->dv,
        [GRAPH_DELTA] = scratch + plan->at[SCRATCH_DELTA],
        [GRAPH_DQ_SUM] = scratch + plan->at[SCRATCH_DQ_SUM],
        [GRAPH_ONE] = &to->one,
    };
    memcpy(to->pointers, pointers, sizeof pointers);
}

static int execute(CudnnAttention *cudnn, const Plan *plan, const AttentionData *data, struct CUstream_st *stream) {
    const CudnnLibrary *library = &cudnn->library;
    Binding binding;
    bind(plan, data, &binding);
    int64_t ids[GRAPH_BOUND];
    void *pointers[GRAPH_BOUND];
    const int most = plan->asked.backward ? GRAPH_BOUND : GRAPH_BOUND_FORWARD;
    int bound = 0;
    for (int i = 0; i < most; i++) {
        if (i != GRAPH_HIDDEN || attention_graph_hides(&plan->graph)) {
            ids[bound] = i + 1;
            pointers[bound++] = binding.pointers[i];
        }
    }
    void *workspace = data->workspace;
    const CudnnAttribute attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, bound, ids},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, bound, pointers},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace},
    };
    const cudnnBackendDescriptor_t pack =
        cudnn_describe(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attributes, 3, cudnn->why);
    if (!pack) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    cudnnStatus_t status = library->set_stream(cudnn->handle, stream);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = library->execute(cudnn->handle, plan->plan, pack);
    }
    if (status != CUDNN_STATUS_SUCCESS) {
        char detail[CUDNN_WHY_BYTES / 2] = "";
        library->last_error(detail, sizeof detail);
        snprintf(cudnn->why, sizeof cudnn->why, "cuDNN attention: %s %s", library->error_name(status), detail);
    }
    library->release(pack);
    return (int)status;
}

// Merges or adds what the graph left in scratch.
static int finish(const Plan *plan, const AttentionData *data, struct CUstream_st *stream) {
    const CudaAttention *asked = &plan->asked;
    const char *scratch = data->workspace;
    if (!goes_through(asked)) {
        return 0;
    }
    if (!asked->backward) {
        return attention_merge(asked, scratch + plan->at[SCRATCH_O],
                               (const float *)(const void *)(scratch + plan->at[SCRATCH_LSE]), data->o, data->lse,
                               stream);
    }
    const KernelAttention *b = &asked->block;
    const AttentionRows q_rows = {asked->sequences, b->queries, (int64_t)b->heads * b->head_dim, asked->dq_stride,
                                  asked->dq_sequence};
    const AttentionRows kv_rows = {asked->sequences, b->keys, (int64_t)b->kv_heads * b->head_dim, asked->dkv_stride,
                                   asked->dkv_sequence};
    int status = attention_add_rows(&q_rows, scratch + plan->at[SCRATCH_DQ], data->dq, stream);
    if (status == 0) {
        status = attention_add_rows(&kv_rows, scratch + plan->at[SCRATCH_DK], data->dk, stream);
    }
    return status ? status : attention_add_rows(&kv_rows, scratch + plan->at[SCRATCH_DV], data->dv, stream);
}

int cudnn_attention_run(CudnnAttention *cudnn, int plan, const AttentionData *data, struct CUstream_st *stream) {
    if (!cudnn->handle) {
        snprintf(cudnn->why, sizeof cudnn->why, "cuDNN was opened for a described device: its plans do not run");
        return CUDNN_STATUS_NOT_INITIALIZED;
    }
    int status = execute(cudnn, &cudnn->plans[plan], data, stream);
    if (status == 0) {
        status = finish(&cudnn->plans[plan], data, stream);
        if (status != 0) {
            snprintf(cudnn->why, sizeof cudnn->why, "a kernel behind cuDNN's attention: CUDA error %d", status);
        }
    }
    return status;
}
