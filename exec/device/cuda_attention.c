// Attention on a GPU. A task is one call per visible pair of chunks, over all its sequences at once; plans are made
// before the first step. A result that sums over several pairs is accumulated in fp32, in scratch that lives from ring
// step 0 to the last, and rounded once: o by the log-sum-exp merge, dq over all pairs, dk and dv over those of one
// block. fp32 gradients use scratch too: kernels add to existing values.

#include "exec/device/attention_pairs.h"
#include "exec/device/cuda.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cudnn_attention.h"
#include "sim/base/log.h"

enum { MOST_PAIRS = 4 };

typedef struct PairPlan {
    AttentionPlan plan;
    int64_t q_row, k_row, lse_at;  // of the first sequence
} PairPlan;

// One task on this rank, for sliding-window layers or for the others.
typedef struct TaskPlan {
    PairPlan pairs[MOST_PAIRS];
    int count;
    int64_t q_width, k_width, v_width;  // of rows in the sums
    int64_t dv_stride;                  // of the gradient they are rounded to
    bool sums_o, sums_gradients;        // accumulated in scratch
    bool delta;                         // some tier needs it
} TaskPlan;

struct CudaAttentions {
    TaskPlan *plans;   // by attention task: for layers with full attention, then for those with a window
    int32_t *of_task;  // by task: index into plans
    AttentionMeans means;
    CudnnAttention *cudnn;
    void *workspace;
    float *o, *dq, *dkv;  // scratch
    int64_t workspace_bytes, o_bytes, dq_bytes, dkv_bytes;
};

static bool is_backward(const Task *task) {
    return task->kind == TASK_ATTENTION_BACKWARD;
}

static bool is_last(const TaskCall *call) {
    return call->task->ring_step == call->program->plan.mesh.size[AXIS_CP] - 1;
}

// ---------------------------------------------------------------------------------------------- plans

static TaskPlan *plan_of(const CudaAttentions *attention, const TaskCall *call) {
    return &attention->plans[attention->of_task[call->instance->task] + (attention_window(call) > 0)];
}

// Values laid out like keys need no offsets of their own, and a window that covers all keys masks nothing.
static KernelAttention block_of(const Pair *pair) {
    KernelAttention block = pair->shape;
    const KernelValues *values = &block.values;
    if (values->dim == block.head_dim && values->stride == block.kv_stride && values->apart == block.head_dim) {
        block.values = (KernelValues){0};
    }
    block.window = block.q_first + block.queries - 1 - block.k_first < block.window ? 0 : block.window;
    return block;
}

static CudaAttention call_of(const Blocks *blocks, const Pair *pair, const TaskPlan *plan) {
    const TaskCall *call = blocks->call;
    const Task *task = call->task;
    const KernelValues *values = &pair->shape.values;
    CudaAttention made = {.block = block_of(pair),
                          .sequences = task->sequences,
                          .q_sequence = blocks->local * task->stride,
                          .kv_sequence = blocks->local * task->kv_stride,
                          .v_sequence = blocks->local * values->stride,
                          .o_sequence = blocks->local * blocks->o_stride,
                          .lse_sequence = blocks->local * task->heads,
                          .input = store_of(call, AT_ATTENTION_Q),
                          .output = plan->sums_o ? KERNEL_FP32 : store_of(call, AT_ATTENTION_O)};
    if (is_backward(task)) {
        made.backward = true;
        made.gradient = plan->sums_gradients ? KERNEL_FP32 : KERNEL_BF16;
        made.dq_stride = plan->sums_gradients ? plan->q_width : task->stride;
        made.dkv_stride = plan->sums_gradients ? plan->k_width + plan->v_width : task->kv_stride;
        made.dv_stride = plan->sums_gradients ? made.dkv_stride : values->gradient_stride;
        made.dq_sequence = blocks->local * made.dq_stride;
        made.dkv_sequence = blocks->local * made.dkv_stride;
        made.dv_sequence = blocks->local * made.dv_stride;
    }
    return made;
}

// bf16 gradients of a single pair are written directly; everything else is summed first.
static TaskPlan task_plan(const Blocks *blocks) {
    const TaskCall *call = blocks->call;
    const Heads *heads = &blocks->heads;
    const bool single = call->program->plan.mesh.size[AXIS_CP] == 1;
    TaskPlan plan = {.q_width = (int64_t)call->task->heads * heads->dim,
                     .k_width = (int64_t)heads->kv * heads->dim,
                     .v_width = (int64_t)heads->kv * heads->values.dim,
                     .dv_stride = heads->values.gradient_stride};
    if (!is_backward(call->task)) {
        plan.sums_o = !single && store_of(call, AT_ATTENTION_O) == KERNEL_BF16;
    } else {
        const bool halves = store_of(call, AT_ATTENTION_BACKWARD_DQ) == KERNEL_BF16 &&
                            store_of(call, AT_ATTENTION_BACKWARD_DK) == KERNEL_BF16;
        plan.sums_gradients = !(single && halves);
        plan.delta = call_optional(call, AT_ATTENTION_BACKWARD_SINKS) != NULL;
    }
    return plan;
}

static Status pair_plan(Device *cuda, const Blocks *blocks, int query, int key, TaskPlan *plan, Error *error) {
    CudaAttentions *attention = cuda->attention;
    const Pair pair = attention_pair(blocks, 0, query, key);
    CudaAttention call = call_of(blocks, &pair, plan);
    PairPlan *made = &plan->pairs[plan->count++];
    AttentionMeans means = attention->means;
    means.cudnn = means.cudnn && pair.lse_at % 4 == 0;  // its tensors are 16-byte aligned, a chunk's lse may not be
    char why[ATTENTION_WHY_BYTES] = "";
    call.deterministic = cuda->setup.deterministic;
    // A query chunk's first block initializes its result; the own keys, on ring step 0, are always visible.
    call.merge = !call.backward && blocks->call->task->ring_step > 0;
    for (int i = 0; i < plan->count - 1; i++) {
        call.merge = call.merge || (!call.backward && plan->pairs[i].q_row == pair.q_row);
    }
    FAIL_IF(!cuda_attention_plan(ATTENTION_TIER_AUTO, &call, &means, attention->cudnn, &made->plan, why), error,
            STATUS_USAGE, "task '%s': %s", blocks->call->task->name, why);
    if (attention->cudnn && made->plan.tier != ATTENTION_TIER_CUDNN) {
        const char *refusal = means.cudnn ? attention_refusal(ATTENTION_TIER_CUDNN, &call, &means)
                                          : "a chunk's log-sum-exp begins at no multiple of 16 bytes";
        log_note("device cuda: task '%s' runs %s attention, not cuDNN's: %s", blocks->call->task->name,
                 attention_tier_name(made->plan.tier), refusal ? refusal : why);
    }
    made->q_row = pair.q_row;
    made->k_row = pair.k_row;
    made->lse_at = pair.lse_at;
    plan->delta = plan->delta || plan->sums_gradients || made->plan.tier != ATTENTION_TIER_CUDNN;
    if (made->plan.workspace_bytes > attention->workspace_bytes) {
        attention->workspace_bytes = made->plan.workspace_bytes;
    }
    return STATUS_OK;
}

static void need(int64_t *most, bool wanted, int64_t elements) {
    const int64_t bytes = elements * (int64_t)sizeof(float);
    *most = wanted && bytes > *most ? bytes : *most;
}

static Status plan_task(Device *cuda, const TaskCall *call, TaskPlan *plan, Error *error) {
    CudaAttentions *attention = cuda->attention;
    const Blocks blocks = attention_blocks(call);
    *plan = task_plan(&blocks);
    for (int i = 0; i < blocks.query.count; i++) {
        for (int j = 0; j < blocks.key.count; j++) {
            if (attention_visible(&blocks, i, j)) {
                TRY(pair_plan(cuda, &blocks, i, j, plan, error));
            }
        }
    }
    need(&attention->o_bytes, plan->sums_o, call->task->rows * blocks.o_stride);
    need(&attention->dq_bytes, plan->sums_gradients, call->task->rows * plan->q_width);
    need(&attention->dkv_bytes, plan->sums_gradients, call->task->rows * (plan->k_width + plan->v_width));
    return STATUS_OK;
}

static Status memory_take(Device *cuda, Error *error) {
    CudaAttentions *attention = cuda->attention;
    const struct {
        int64_t bytes;
        void **memory;
    } parts[] = {{attention->workspace_bytes, &attention->workspace},
                 {attention->o_bytes, (void **)&attention->o},
                 {attention->dq_bytes, (void **)&attention->dq},
                 {attention->dkv_bytes, (void **)&attention->dkv}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].bytes > 0) {
            TRY(cuda_take(cuda, parts[i].bytes, "attention", parts[i].memory, error));
        }
    }
    return STATUS_OK;
}

// Plans that request cudnn get it, or an error that says why not; a call it has no kernel for goes to our own kernels,
// as do all others.
static Status means_find(Device *cuda, Error *error) {
    CudaAttentions *attention = cuda->attention;
    const bool wanted =
        cuda->setup.program->plan.attention == ATTENTION_CUDNN && cuda->setup.program->plan.precision == DTYPE_BF16;
    char why[ATTENTION_WHY_BYTES];
    attention->cudnn = wanted ? cudnn_attention_open(NULL, why) : NULL;
    if (wanted && !attention->cudnn) {
        error_set(error, STATUS_ENVIRONMENT, "attention cudnn: %s", why);
        return error_hint(error, "--attention flash runs our own kernel");
    }
    attention->means = (AttentionMeans){.arch = 10 * cuda->properties.major + cuda->properties.minor,
                                        .shared_bytes = (int64_t)cuda->properties.sharedMemPerBlockOptin,
                                        .cudnn = attention->cudnn != NULL};
    return STATUS_OK;
}

// At the first instance of each task on each kind of layer.
static Status plans_make(Device *cuda, Error *error) {
    StepCursor cursor = step_cursor_begin(cuda->setup.program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        if (cuda->attention->of_task[instance.task] < 0) {
            continue;
        }
        const TaskCall call = placement_call(&cuda->placement, &instance);
        TaskPlan *plan = plan_of(cuda->attention, &call);
        if (plan->q_width == 0) {
            TRY(plan_task(cuda, &call, plan, error));
        }
    }
    return STATUS_OK;
}

Status cuda_attention_open(Device *cuda, Arena *arena, Error *error) {
    const StepProgram *program = cuda->setup.program;
    CudaAttentions *attention = cuda->attention = ARENA_NEW(arena, CudaAttentions);
    int32_t count = 0;
    TRY(means_find(cuda, error));
    attention->of_task = ARENA_ARRAY(arena, int32_t, program->task_count);
    for (int32_t t = 0; t < program->task_count; t++) {
        const TaskKind kind = program->tasks[t].kind;
        const bool attends = kind == TASK_ATTENTION || kind == TASK_ATTENTION_BACKWARD;
        attention->of_task[t] = attends ? 2 * count : -1;
        count += attends;
    }
    attention->plans = ARENA_ARRAY(arena, TaskPlan, 2 * count + 1);
    TRY(plans_make(cuda, error));
    return memory_take(cuda, error);
}

void cuda_attention_close(Device *cuda) {
    CudaAttentions *attention = cuda->attention;
    if (!attention) {
        return;
    }
    if (attention->cudnn) {
        cudnn_attention_close(attention->cudnn);
    }
    cudaFree(attention->workspace);
    cudaFree(attention->o);
    cudaFree(attention->dq);
    cudaFree(attention->dkv);
}

// ---------------------------------------------------------------------------------------------- running

static char *rows_at(char *base, KernelStore store, int64_t elements) {
    return base + elements * kernel_store_bytes(store);
}

// cuDNN has its own codes and messages.
static int pair_run(const TaskCall *call, const PairPlan *pair, const AttentionData *data, cudaStream_t stream) {
    CudnnAttention *cudnn = call->device->attention->cudnn;
    const int code = cuda_attention(&pair->plan, cudnn, data, stream);
    if (code != 0 && pair->plan.tier == ATTENTION_TIER_CUDNN) {
        cuda_note_failure(call->device, call->task, cudnn_attention_error(cudnn));
        return 0;
    }
    return code;
}

// All rows of a task, for passes over them.
static CudaAttention whole_of(const TaskCall *call, const TaskPlan *plan) {
    CudaAttention whole = plan->pairs[0].plan.call;
    whole.block.queries = call->task->rows / call->task->sequences;
    return whole;
}

// Values start where keys do, or after the key part of a head.
static char *values_at(const TaskCall *call, const CudaAttention *shape, int64_t row) {
    const KernelAttention *block = &shape->block;
    return rows_at(call->operand[AT_ATTENTION_V], shape->input,
                   row * (block->values.dim > 0 ? block->values.stride : block->kv_stride));
}

static int add_sinks(const TaskCall *call, const TaskPlan *plan, void *o, cudaStream_t stream) {
    const void *const sinks = call_optional(call, AT_ATTENTION_SINKS);
    const CudaAttention whole = whole_of(call, plan);
    return !sinks || !is_last(call) ? 0
                                    : cuda_attention_sinks(&whole, store_of(call, AT_ATTENTION_SINKS), sinks, o,
                                                           call_floats(call, AT_ATTENTION_LSE), stream);
}

int cuda_attention_forward(const TaskCall *call, const KernelCuda *at) {
    const CudaAttentions *attention = call->device->attention;
    const TaskPlan *plan = plan_of(attention, call);
    char *const o = plan->sums_o ? (char *)attention->o : call->operand[AT_ATTENTION_O];
    int code = 0;
    for (int i = 0; i < plan->count && code == 0; i++) {
        const PairPlan *pair = &plan->pairs[i];
        const CudaAttention *shape = &pair->plan.call;
        const int64_t kv = pair->k_row * shape->block.kv_stride;
        const AttentionData data = {
            .q = rows_at(call->operand[AT_ATTENTION_Q], shape->input, pair->q_row * shape->block.q_stride),
            .k = rows_at(call->operand[AT_ATTENTION_K], shape->input, kv),
            .v = values_at(call, shape, pair->k_row),
            .o = rows_at(o, shape->output, pair->q_row * shape->block.o_stride),
            .lse = call_floats(call, AT_ATTENTION_LSE) + pair->lse_at,
            .workspace = attention->workspace};
        code = pair_run(call, pair, &data, at->stream);
    }
    code = code ? code : add_sinks(call, plan, o, at->stream);
    if (code == 0 && plan->sums_o && is_last(call)) {
        const int64_t width = plan->pairs[0].plan.call.block.o_stride;
        const KernelCudaCopy rows = {KERNEL_FP32, store_of(call, AT_ATTENTION_O), call->task->rows, width, width,
                                     width};
        code = kernel_cuda_copy_rows(at, &rows, attention->o, call->operand[AT_ATTENTION_O]);
    }
    return code;
}

// Sums start from zero: dk and dv of every block, dq on ring step 0. Then delta, once for all ring steps.
static int sinks_backward(const TaskCall *call, const CudaAttention *whole, cudaStream_t stream) {
    const void *const sinks = call_optional(call, AT_ATTENTION_BACKWARD_SINKS);
    if (!sinks) {
        return 0;
    }
    const AttentionSinksBack back = {store_of(call, AT_ATTENTION_BACKWARD_SINKS),
                                     store_of(call, AT_ATTENTION_BACKWARD_DSINKS),
                                     sinks,
                                     call_floats(call, AT_ATTENTION_LSE),
                                     call_floats(call, AT_ATTENTION_BACKWARD_WORKSPACE),
                                     call->operand[AT_ATTENTION_BACKWARD_DSINKS],
                                     call->task->accumulate};
    return cuda_attention_sinks_backward(whole, &back, stream);
}

static int backward_begin(const TaskCall *call, const CudaAttentions *attention, const TaskPlan *plan,
                          cudaStream_t stream) {
    const Task *task = call->task;
    const int64_t q_bytes = task->rows * plan->q_width * (int64_t)sizeof(float);
    const int64_t kv_bytes = task->rows * (plan->k_width + plan->v_width) * (int64_t)sizeof(float);
    int code = plan->sums_gradients ? (int)cudaMemsetAsync(attention->dkv, 0, (size_t)kv_bytes, stream) : 0;
    if (code == 0 && task->ring_step == 0 && plan->sums_gradients) {
        code = (int)cudaMemsetAsync(attention->dq, 0, (size_t)q_bytes, stream);
    }
    if (code == 0 && task->ring_step == 0 && plan->delta) {
        const CudaAttention whole = whole_of(call, plan);
        code = cuda_attention_delta(&whole, call->operand[AT_ATTENTION_O], call->operand[AT_ATTENTION_BACKWARD_DO],
                                    call_floats(call, AT_ATTENTION_BACKWARD_WORKSPACE), stream);
        code = code ? code : sinks_backward(call, &whole, stream);
    }
    return code;
}

static AttentionData backward_data(const TaskCall *call, const CudaAttentions *attention, const TaskPlan *plan,
                                   const PairPlan *pair) {
    const CudaAttention *shape = &pair->plan.call;
    const int64_t q = pair->q_row * shape->block.q_stride, kv = pair->k_row * shape->block.kv_stride;
    const int64_t o = pair->q_row * shape->block.o_stride;
    const int64_t dq = pair->q_row * shape->dq_stride, dkv = pair->k_row * shape->dkv_stride;
    const int64_t dv = shape->block.values.dim > 0 ? pair->k_row * shape->dv_stride : dkv;
    char *const to_dq = plan->sums_gradients ? (char *)attention->dq : call->operand[AT_ATTENTION_BACKWARD_DQ];
    char *const dk = plan->sums_gradients ? (char *)attention->dkv : call->operand[AT_ATTENTION_BACKWARD_DK];
    char *const to_dv =
        plan->sums_gradients ? (char *)(attention->dkv + plan->k_width) : call->operand[AT_ATTENTION_BACKWARD_DV];
    return (AttentionData){.q = rows_at(call->operand[AT_ATTENTION_Q], shape->input, q),
                           .k = rows_at(call->operand[AT_ATTENTION_K], shape->input, kv),
                           .v = values_at(call, shape, pair->k_row),
                           .o = rows_at(call->operand[AT_ATTENTION_O], shape->output, o),
                           .lse = call_floats(call, AT_ATTENTION_LSE) + pair->lse_at,
                           .d_o = rows_at(call->operand[AT_ATTENTION_BACKWARD_DO], shape->input, o),
                           .delta = call_floats(call, AT_ATTENTION_BACKWARD_WORKSPACE) + pair->lse_at,
                           .dq = rows_at(to_dq, shape->gradient, dq),
                           .dk = rows_at(dk, shape->gradient, dkv),
                           .dv = rows_at(to_dv, shape->gradient, dv),
                           .workspace = attention->workspace};
}

static int backward_end(const TaskCall *call, const CudaAttentions *attention, const TaskPlan *plan,
                        const KernelCuda *at) {
    const Task *task = call->task;
    const int64_t stride = plan->k_width + plan->v_width;
    const KernelCudaCopy k = {
        KERNEL_FP32, store_of(call, AT_ATTENTION_BACKWARD_DK), task->rows, plan->k_width, stride, task->kv_stride};
    const KernelCudaCopy v = {
        KERNEL_FP32, store_of(call, AT_ATTENTION_BACKWARD_DV), task->rows, plan->v_width, stride, plan->dv_stride};
    const KernelCudaCopy q = {
        KERNEL_FP32, store_of(call, AT_ATTENTION_BACKWARD_DQ), task->rows, plan->q_width, plan->q_width, task->stride};
    int code = 0;
    if (plan->sums_gradients) {
        code = kernel_cuda_copy_rows(at, &k, attention->dkv, call->operand[AT_ATTENTION_BACKWARD_DK]);
        code = code ? code
                    : kernel_cuda_copy_rows(at, &v, attention->dkv + plan->k_width,
                                            call->operand[AT_ATTENTION_BACKWARD_DV]);
    }
    if (code == 0 && plan->sums_gradients && is_last(call)) {
        code = kernel_cuda_copy_rows(at, &q, attention->dq, call->operand[AT_ATTENTION_BACKWARD_DQ]);
    }
    return code;
}

int cuda_attention_backward(const TaskCall *call, const KernelCuda *at) {
    const CudaAttentions *attention = call->device->attention;
    const TaskPlan *plan = plan_of(attention, call);
    int code = backward_begin(call, attention, plan, at->stream);
    for (int i = 0; i < plan->count && code == 0; i++) {
        const AttentionData data = backward_data(call, attention, plan, &plan->pairs[i]);
        code = pair_run(call, &plan->pairs[i], &data, at->stream);
    }
    return code ? code : backward_end(call, attention, plan, at);
}
