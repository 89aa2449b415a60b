// GPU tasks except products and attention: operands and sizes are passed to the kernels unchanged, with the format of
// the data in memory.

#include "exec/device/cuda.h"

// ---------------------------------------------------------------------------------------------- tokens

static int embed(const TaskCall *call, const KernelCuda *at) {
    const KernelEmbed shape = call_vocabulary(call);
    return kernel_cuda_embed(at, store_of(call, AT_EMBED_X), &shape, call_ints(call, AT_EMBED_TOKENS),
                             call_operand(call, AT_EMBED_TABLE), call_operand(call, AT_EMBED_X), false);
}

static int embed_backward(const TaskCall *call, const KernelCuda *at) {
    const KernelEmbed shape = call_vocabulary(call);
    return kernel_cuda_embed_backward(
        at, store_of(call, AT_EMBED_BACKWARD_DX), store_of(call, AT_EMBED_BACKWARD_DTABLE), &shape,
        call_ints(call, AT_EMBED_BACKWARD_TOKENS), call_operand(call, AT_EMBED_BACKWARD_DX),
        call_operand(call, AT_EMBED_BACKWARD_DTABLE), call->task->accumulate);
}

static int64_t embed_backward_workspace(const TaskCall *call, const KernelCuda *at) {
    const bool embeds = call->task->kind == TASK_EMBED_BACKWARD;
    const KernelEmbed shape = embeds ? call_vocabulary(call) : call_position_table(call);
    (void)at;
    return kernel_cuda_embed_backward_workspace(&shape);
}

static int position(const TaskCall *call, const KernelCuda *at) {
    const KernelEmbed shape = call_position_table(call);
    return kernel_cuda_embed(at, store_of(call, AT_POSITION_X), &shape, call_position_entries(call),
                             call_operand(call, AT_POSITION_TABLE), call_operand(call, AT_POSITION_X), true);
}

static int position_backward(const TaskCall *call, const KernelCuda *at) {
    const KernelEmbed shape = call_position_table(call);
    return kernel_cuda_embed_backward(at, store_of(call, AT_POSITION_X), store_of(call, AT_POSITION_TABLE), &shape,
                                      call->positions, call_operand(call, AT_POSITION_X),
                                      call_operand(call, AT_POSITION_TABLE), call->task->accumulate);
}

// ---------------------------------------------------------------------------------------------- norms

static int norm(const TaskCall *call, const KernelCuda *at) {
    const KernelNorm norm = call_norm(call);
    return kernel_cuda_norm(at, store_of(call, AT_NORM_X), &norm);
}

// Only a layer norm has a bias.
static int norm_backward(const TaskCall *call, const KernelCuda *at) {
    const Task *task = call->task;
    const KernelNormBackward norm = call_norm_backward(call);
    int code = 0;
    if (call_operand(call, AT_NORM_BACKWARD_DBIAS)) {
        code = kernel_cuda_column_sum(at, store_of(call, AT_NORM_BACKWARD_DY), store_of(call, AT_NORM_BACKWARD_DBIAS),
                                      task->rows, task->cols, norm.dy, call_operand(call, AT_NORM_BACKWARD_DBIAS),
                                      task->accumulate);
    }
    return code ? code
                : kernel_cuda_norm_backward(at, store_of(call, AT_NORM_BACKWARD_DY),
                                            store_of(call, AT_NORM_BACKWARD_DW), &norm);
}

static int64_t norm_backward_workspace(const TaskCall *call, const KernelCuda *at) {
    const KernelNormBackward norm = call_norm_backward(call);
    const int64_t own = kernel_cuda_norm_backward_workspace(at, &norm);
    const int64_t bias = kernel_cuda_column_sum_workspace(at, call->task->rows, call->task->cols);
    return own > bias ? own : bias;
}

static char *behind(const TaskCall *call, int index, int64_t elements) {
    return call->operand[index] + elements * kernel_store_bytes(store_of(call, index));
}

static int qk_norm(const TaskCall *call, const KernelCuda *at) {
    const QkStretches s = call_qk_stretches(call);
    const KernelStore store = store_of(call, AT_QK_NORM_Q);
    const float eps = (float)call->program->model.norm_eps;
    const int code = kernel_cuda_stretch_norm(at, store, &s.q, eps, call_operand(call, AT_QK_NORM_WQ),
                                              call_operand(call, AT_QK_NORM_Q), call_operand(call, AT_QK_NORM_BEFORE),
                                              call_floats(call, AT_QK_NORM_RSTD));
    return code
               ? code
               : kernel_cuda_stretch_norm(at, store, &s.k, eps, call_operand(call, AT_QK_NORM_WK),
                                          call_operand(call, AT_QK_NORM_K), behind(call, AT_QK_NORM_BEFORE, s.k_before),
                                          call_floats(call, AT_QK_NORM_RSTD) + s.k_rstd);
}

static int qk_norm_backward(const TaskCall *call, const KernelCuda *at) {
    const QkStretches s = call_qk_stretches(call);
    const KernelStore store = store_of(call, AT_QK_NORM_BACKWARD_DQ);
    const bool add = call->task->accumulate;
    const int code = kernel_cuda_stretch_norm_backward(
        at, store, store_of(call, AT_QK_NORM_BACKWARD_DWQ), &s.q, call_operand(call, AT_QK_NORM_BACKWARD_WQ),
        call_operand(call, AT_QK_NORM_BACKWARD_BEFORE), call_floats(call, AT_QK_NORM_BACKWARD_RSTD),
        call_operand(call, AT_QK_NORM_BACKWARD_DQ), call_operand(call, AT_QK_NORM_BACKWARD_DWQ), add);
    return code ? code
                : kernel_cuda_stretch_norm_backward(
                      at, store, store_of(call, AT_QK_NORM_BACKWARD_DWK), &s.k,
                      call_operand(call, AT_QK_NORM_BACKWARD_WK), behind(call, AT_QK_NORM_BACKWARD_BEFORE, s.k_before),
                      call_floats(call, AT_QK_NORM_BACKWARD_RSTD) + s.k_rstd,
                      call_operand(call, AT_QK_NORM_BACKWARD_DK), call_operand(call, AT_QK_NORM_BACKWARD_DWK), add);
}

static int64_t qk_norm_backward_workspace(const TaskCall *call, const KernelCuda *at) {
    const QkStretches s = call_qk_stretches(call);
    const int64_t q = kernel_cuda_stretch_norm_backward_workspace(at, &s.q);
    const int64_t k = kernel_cuda_stretch_norm_backward_workspace(at, &s.k);
    return q > k ? q : k;
}

// ---------------------------------------------------------------------------------------------- layers

static int column_sum(const TaskCall *call, const KernelCuda *at) {
    if (call->task->operand_count > AT_COLUMN_SUM_CAME) {
        return cuda_expert_bias_gradient(call, at);
    }
    return kernel_cuda_column_sum(at, store_of(call, AT_COLUMN_SUM_X), store_of(call, AT_COLUMN_SUM_SUMS),
                                  call->task->rows, call->task->cols, call_operand(call, AT_COLUMN_SUM_X),
                                  call_operand(call, AT_COLUMN_SUM_SUMS), call->task->accumulate);
}

static int64_t column_sum_workspace(const TaskCall *call, const KernelCuda *at) {
    const int64_t room = call_elements(call, AT_COLUMN_SUM_X) / call->task->cols;  // of experts, for rows that come
    return kernel_cuda_column_sum_workspace(at, room > call->task->rows ? room : call->task->rows, call->task->cols);
}

static int rope(const TaskCall *call, const KernelCuda *at) {
    const QkTurns turns = call_turns(call);
    const int64_t still = call_still(call, &turns.q);
    const int code = kernel_cuda_rope(at, store_of(call, AT_ROPE_Q), call->task->rows, &turns.q, call->positions,
                                      behind(call, AT_ROPE_Q, still));
    return code || turns.k.heads == 0 ? code
                                      : kernel_cuda_rope(at, store_of(call, AT_ROPE_K), call->task->rows, &turns.k,
                                                         call->positions, behind(call, AT_ROPE_K, still));
}

static int activation(const TaskCall *call, const KernelCuda *at) {
    const KernelGated shape = call_gated_shape(call);
    return kernel_cuda_activation(at, store_of(call, AT_ACTIVATION_X), shape.activation, shape.rows * shape.cols,
                                  call_operand(call, AT_ACTIVATION_X), call_operand(call, AT_ACTIVATION_Y));
}

static int activation_backward(const TaskCall *call, const KernelCuda *at) {
    const KernelGated shape = call_gated_shape(call);
    return kernel_cuda_activation_backward(at, store_of(call, AT_ACTIVATION_BACKWARD_DY), shape.activation,
                                           shape.rows * shape.cols, call_operand(call, AT_ACTIVATION_BACKWARD_DY),
                                           call_operand(call, AT_ACTIVATION_BACKWARD_X),
                                           call_operand(call, AT_ACTIVATION_BACKWARD_DX));
}

static int add(const TaskCall *call, const KernelCuda *at) {
    const Task *task = call->task;
    const KernelStore store = store_of(call, AT_ADD_C);
    if (call_operand(call, AT_ADD_BIAS)) {
        return kernel_cuda_add_bias(at, store, task->rows, task->cols, call_operand(call, AT_ADD_A),
                                    call_operand(call, AT_ADD_B), call_operand(call, AT_ADD_BIAS),
                                    call_operand(call, AT_ADD_C));
    }
    return kernel_cuda_add(at, store, call_elements(call, AT_ADD_C), call_operand(call, AT_ADD_A),
                           call_operand(call, AT_ADD_B), call_operand(call, AT_ADD_C));
}

// ---------------------------------------------------------------------------------------------- loss

static int loss_max(const TaskCall *call, const KernelCuda *at) {
    const KernelLoss loss = {
        .rows = call->task->rows, .cols = call->task->cols, .row_max = call_floats(call, AT_LOSS_MAX_ROW_MAX)};
    return kernel_cuda_loss_max(at, store_of(call, AT_LOSS_MAX_LOGITS), &loss, call_operand(call, AT_LOSS_MAX_LOGITS));
}

static int loss_sum(const TaskCall *call, const KernelCuda *at) {
    const KernelLoss loss = call_loss(call);
    return kernel_cuda_loss_sum(at, store_of(call, AT_LOSS_LOGITS), &loss, call_operand(call, AT_LOSS_LOGITS));
}

static int loss_gradient(const TaskCall *call, const KernelCuda *at) {
    const KernelLoss loss = call_loss(call);
    return kernel_cuda_loss_gradient(at, store_of(call, AT_LOSS_LOGITS), &loss, call_operand(call, AT_LOSS_LOGITS),
                                     call_floats(call, AT_LOSS_LOSS), call->task->accumulate);
}

static int loss(const TaskCall *call, const KernelCuda *at) {
    const KernelLoss rows = call_loss(call);
    return kernel_cuda_loss(at, store_of(call, AT_LOSS_LOGITS), &rows, call_operand(call, AT_LOSS_LOGITS),
                            call_floats(call, AT_LOSS_LOSS), call->task->accumulate);
}

// ---------------------------------------------------------------------------------------------- copies and sums

// The same rows in consecutive blocks, with their strides.
static int copy_blocks(const TaskCall *call, const KernelCuda *at, const KernelCudaCopy *rows, int64_t from_elements,
                       int64_t to_elements) {
    const int64_t from_bytes = from_elements * dtype_bytes(call_dtype(call, AT_COPY_SRC));
    const int64_t to_bytes = to_elements * dtype_bytes(call_dtype(call, AT_COPY_DST));
    int failed = 0;
    for (int64_t block = 0; block < task_blocks(call->task) && !failed; block++) {
        failed = kernel_cuda_copy_rows(at, rows, (char *)call_operand(call, AT_COPY_SRC) + block * from_bytes,
                                       (char *)call_operand(call, AT_COPY_DST) + block * to_bytes);
    }
    return failed;
}

static int copy_keys(const TaskCall *call, const KernelCuda *at) {
    const KernelKeys keys = call_keys(call);
    const KernelStore store = store_of(call, AT_COPY_SRC);
    const int64_t shared = call_keys_shared(call);
    return call->task->operand_count > AT_KEYS_DSHARED
               ? kernel_cuda_part_keys(at, store, &keys, call_operand(call, AT_COPY_SRC),
                                       call_operand(call, AT_KEYS_DV), call_operand(call, AT_COPY_DST),
                                       behind(call, AT_KEYS_DSHARED, shared))
               : kernel_cuda_join_keys(at, store, &keys, call_operand(call, AT_COPY_SRC),
                                       behind(call, AT_KEYS_SHARED, shared), call_operand(call, AT_COPY_DST));
}

static int copy(const TaskCall *call, const KernelCuda *at) {
    const Task *task = call->task;
    if (call_copies_keys(call)) {
        return copy_keys(call, at);
    }
    const KernelCudaCopy rows = {.from = store_of(call, AT_COPY_SRC),
                                 .to = store_of(call, AT_COPY_DST),
                                 .rows = task->rows,
                                 .cols = task->cols,
                                 .src_stride = task->stride > 0 ? task->stride : task->cols,
                                 .dst_stride = task->cols};
    return copy_blocks(call, at, &rows, task->cols, task->rows * task->cols);
}

static int unpack(const TaskCall *call, const KernelCuda *at) {
    const Task *task = call->task;
    const KernelCudaCopy rows = {.from = store_of(call, AT_COPY_SRC),
                                 .to = store_of(call, AT_COPY_DST),
                                 .rows = task->rows,
                                 .cols = task->cols,
                                 .src_stride = task->cols,
                                 .dst_stride = task->stride};
    return copy_blocks(call, at, &rows, task->rows * task->cols, task->cols);
}

static int accumulate(const TaskCall *call, const KernelCuda *at) {
    return kernel_cuda_accumulate(at, store_of(call, AT_COPY_SRC), store_of(call, AT_COPY_DST),
                                  call_elements(call, AT_COPY_DST), call_operand(call, AT_COPY_SRC),
                                  call_operand(call, AT_COPY_DST));
}

static int zero(const TaskCall *call, const KernelCuda *at) {
    return kernel_cuda_zero(at, task_operand(call->program, call->task, AT_ZERO_DST)->ref.bytes,
                            call_operand(call, AT_ZERO_DST));
}

// ---------------------------------------------------------------------------------------------- optimizer

static int square_sum(const TaskCall *call, const KernelCuda *at) {
    const ShardStretch shard = call_replicated_stretch(call);
    return kernel_cuda_square_sum(at, store_of(call, AT_SQUARE_SUM_GRADIENT), shard.count, shard.lead,
                                  1.0 / call->program->plan.mesh.size[AXIS_TP],
                                  call_operand(call, AT_SQUARE_SUM_GRADIENT), call_floats(call, AT_SQUARE_SUM_SUM),
                                  call->task->accumulate);
}

static int64_t square_sum_workspace(const TaskCall *call, const KernelCuda *at) {
    (void)call;
    return kernel_cuda_square_sum_workspace(at);
}

static int clip(const TaskCall *call, const KernelCuda *at) {
    return kernel_cuda_clip(at, (float)call->numbers->clip, call_floats(call, AT_CLIP_NORM_SQUARE),
                            call_floats(call, AT_CLIP_SCALE));
}

static void *from_element(const TaskCall *call, int index, int64_t element) {
    char *const at = call_operand(call, index);
    return at ? at + element * dtype_bytes(call_dtype(call, index)) : NULL;
}

static int update_stretch(const TaskCall *call, const KernelCuda *at, const ShardStretch *shard) {
    const KernelAdamw options = call_adamw_options(call);
    void *const working = from_element(call, AT_ADAMW_WORKING, shard->first);
    const bool half = working && store_of(call, AT_ADAMW_WORKING) == KERNEL_BF16;
    const KernelCudaUpdate update = {.gradients = store_of(call, AT_ADAMW_GRADIENT),
                                     .state = store_of(call, AT_ADAMW_MASTER),
                                     .count = shard->count,
                                     .undecayed = shard->lead,
                                     .scale = call_floats(call, AT_ADAMW_SCALE),
                                     .gradient = from_element(call, AT_ADAMW_GRADIENT, shard->first),
                                     .master = from_element(call, AT_ADAMW_MASTER, shard->first),
                                     .moment1 = from_element(call, AT_ADAMW_M, shard->first),
                                     .moment2 = from_element(call, AT_ADAMW_V, shard->first),
                                     .working = half ? working : NULL};
    const int code = kernel_cuda_adamw(at, &options, &update);
    if (code || !working || half) {
        return code;
    }
    const KernelCudaCopy row = {update.state, store_of(call, AT_ADAMW_WORKING), 1, shard->count, shard->count,
                                shard->count};
    return kernel_cuda_copy_rows(at, &row, update.master, working);
}

static int adamw(const TaskCall *call, const KernelCuda *at) {
    ShardStretch shard;
    int code = 0;
    for (int32_t slice = 0; !code && call_update_stretch(call, &slice, &shard);) {
        code = update_stretch(call, at, &shard);
    }
    return code;
}

// ---------------------------------------------------------------------------------------------- the tables

CudaTask *const cuda_tasks[TASK_KIND_COUNT] = {
    [TASK_LOAD_TOKENS] = cuda_load_tokens,
    [TASK_EMBED] = embed,
    [TASK_EMBED_BACKWARD] = embed_backward,
    [TASK_POSITION] = position,
    [TASK_POSITION_BACKWARD] = position_backward,
    [TASK_RMSNORM] = norm,
    [TASK_RMSNORM_BACKWARD] = norm_backward,
    [TASK_LAYERNORM] = norm,
    [TASK_LAYERNORM_BACKWARD] = norm_backward,
    [TASK_QK_NORM] = qk_norm,
    [TASK_QK_NORM_BACKWARD] = qk_norm_backward,
    [TASK_COLUMN_SUM] = column_sum,
    [TASK_GEMM] = cuda_gemm,
    [TASK_ROPE] = rope,
    [TASK_ATTENTION] = cuda_attention_forward,
    [TASK_ATTENTION_BACKWARD] = cuda_attention_backward,
    [TASK_SWIGLU] = cuda_gated,
    [TASK_SWIGLU_BACKWARD] = cuda_gated_backward,
    [TASK_ACTIVATION] = activation,
    [TASK_ACTIVATION_BACKWARD] = activation_backward,
    [TASK_ADD] = add,
    [TASK_LOSS_MAX] = loss_max,
    [TASK_LOSS_SUM] = loss_sum,
    [TASK_LOSS_GRADIENT] = loss_gradient,
    [TASK_LOSS] = loss,
    [TASK_SQUARE_SUM] = square_sum,
    [TASK_CLIP] = clip,
    [TASK_ADAMW] = adamw,
    [TASK_COPY] = copy,
    [TASK_UNPACK] = unpack,
    [TASK_ACCUMULATE] = accumulate,
    [TASK_ZERO] = zero,
    [TASK_GROUPED_GEMM] = cuda_grouped_gemm,
    [TASK_ROUTE] = cuda_route,
    [TASK_ROUTE_BACKWARD] = cuda_route_backward,
    [TASK_PERMUTE] = cuda_permute,
    [TASK_UNPERMUTE] = cuda_unpermute,
    [TASK_UNPERMUTE_BACKWARD] = cuda_unpermute_backward,
};

static int64_t route_workspace(const TaskCall *call, const KernelCuda *at) {
    const KernelRoute shape = call_route_shape(call);
    (void)at;
    return kernel_cuda_route_workspace(&shape);
}

typedef int64_t Workspace(const TaskCall *call, const KernelCuda *at);

static Workspace *const workspaces[TASK_KIND_COUNT] = {
    [TASK_EMBED_BACKWARD] = embed_backward_workspace,
    [TASK_POSITION_BACKWARD] = embed_backward_workspace,
    [TASK_RMSNORM_BACKWARD] = norm_backward_workspace,
    [TASK_LAYERNORM_BACKWARD] = norm_backward_workspace,
    [TASK_QK_NORM_BACKWARD] = qk_norm_backward_workspace,
    [TASK_COLUMN_SUM] = column_sum_workspace,
    [TASK_SQUARE_SUM] = square_sum_workspace,
    [TASK_ROUTE] = route_workspace,
};

Status cuda_workspaces_open(Device *cuda, Error *error) {
    const StepProgram *program = cuda->setup.program;
    for (int32_t t = 0; t < program->task_count; t++) {
        const Task *task = &program->tasks[t];
        if (workspaces[task->kind]) {
            const StepInstance instance = {.task = t};
            const TaskCall call = placement_call(&cuda->placement, &instance);
            const KernelCuda at = cuda_place(&call, cuda, NULL);
            const int64_t bytes = workspaces[task->kind](&call, &at);
            int64_t *most = &cuda->workspace_bytes[cuda->lanes.of_lane[task->lane]];
            *most = bytes > *most ? bytes : *most;
        }
    }
    for (int i = 0; i < cuda->lanes.stream_count; i++) {
        if (cuda->workspace_bytes[i] > 0) {
            TRY(cuda_take(cuda, cuda->workspace_bytes[i], "workspaces of kernels", &cuda->workspace[i], error));
        }
    }
    return STATUS_OK;
}
