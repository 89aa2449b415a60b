// Kernel shapes derived from a task and the rank that runs it. No kernel is called here.

#include "exec/device/task_call.h"

#include <math.h>

// ---------------------------------------------------------------------------------------------- tokens

// Sequence of this micro-batch and data coordinate, as an index into the global batch of one step.
static int64_t global_sequence(const TaskCall *call, int local) {
    const Mesh *mesh = &call->program->plan.mesh;
    const int data_ranks = mesh_group_size(mesh, AXES_BATCH);
    int data_index = 0;  // in the axes' default order, so that their order does not change who has which tokens
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        data_index = AXES_BATCH & AXIS_BIT(axis) ? data_index * mesh->size[axis] + call->at->at[axis] : data_index;
    }
    return ((int64_t)call->instance->micro_step * data_ranks + data_index) * call->task->sequences + local;
}

void call_load_tokens(const TaskCall *call, int32_t *tokens, int32_t *targets) {
    const SequenceChunks chunks = step_token_chunks(call->program, call->at);
    for (int s = 0; s < call->task->sequences; s++) {
        data_sequence(call->data, call->step, global_sequence(call, s), call->program->plan.seq + 1, call->sequence);
        for (int c = 0; c < chunks.count; c++) {
            for (int i = 0; i < chunks.length; i++) {
                *tokens++ = call->sequence[chunks.start[c] + i];
                *targets++ = call->sequence[chunks.start[c] + i + 1];
            }
        }
    }
}

KernelEmbed call_vocabulary(const TaskCall *call) {
    const Task *task = call->task;
    return (KernelEmbed){.rows = task->rows,
                         .cols = task->cols,
                         .first = call_vocab_first(call, task->inner),
                         .range = task->inner,
                         .scale = task->scaled ? sqrtf((float)task->cols) : 1.0f};
}

KernelEmbed call_position_table(const TaskCall *call) {
    const Task *task = call->task;
    return (KernelEmbed){.rows = task->rows, .cols = task->cols, .range = task->inner, .scale = 1.0f};
}

const int32_t *call_position_entries(const TaskCall *call) {
    const bool split = call->task->rows < plan_local_tokens(&call->program->plan);
    return call->positions + (split ? call->at->at[AXIS_TP] * call->task->rows : 0);
}

// ---------------------------------------------------------------------------------------------- layers

QkStretches call_qk_stretches(const TaskCall *call) {
    const Task *task = call->task;
    const bool heads = task->inner == task->head_dim;
    const int64_t q_width = (int64_t)task->heads * task->head_dim, k_width = (int64_t)task->kv_heads * task->head_dim;
    const int q_parts = heads ? task->heads : 1, k_parts = heads ? task->kv_heads : 1;
    return (QkStretches){
        .q = {task->rows, q_parts, q_width / q_parts, task->stride, q_width + k_width, q_parts + k_parts},
        .k = {task->rows, k_parts, k_width / k_parts, task->kv_stride, q_width + k_width, q_parts + k_parts},
        .k_before = q_width,
        .k_rstd = q_parts};
}

// transformers' DeepseekV3Attention norms latents with its norm's own default, whatever rms_norm_eps says.
static const float LATENT_EPS = 1e-6F;

KernelNorm call_norm(const TaskCall *call) {
    const Task *task = call->task;
    const bool layer = task->kind == TASK_LAYERNORM;
    const int added = task_added_operand(task), y = layer ? AT_LAYERNORM_Y : AT_RMSNORM_Y;
    float *const statistics = call_floats(call, y + 1);  // for a layer norm: means, then 1 / deviations
    return (KernelNorm){.rows = task->rows,
                        .cols = task->cols,
                        .eps = task->stride > 0 ? LATENT_EPS : (float)call->program->model.norm_eps,
                        .x = call_operand(call, AT_NORM_X),
                        .add = added ? call_operand(call, added) : NULL,
                        .w = call_operand(call, AT_NORM_W),
                        .bias = layer ? call_operand(call, AT_LAYERNORM_BIAS) : NULL,
                        .added = added ? call_operand(call, added + 1) : NULL,
                        .y = call_operand(call, y),
                        .mean = layer ? statistics : NULL,
                        .rstd = layer ? statistics + task->rows : statistics,
                        .x_stride = task->stride};
}

KernelNormBackward call_norm_backward(const TaskCall *call) {
    const Task *task = call->task;
    const bool layer = task->kind == TASK_LAYERNORM_BACKWARD;
    float *const statistics = call_floats(call, AT_NORM_BACKWARD_STATISTICS);
    return (KernelNormBackward){.rows = task->rows,
                                .cols = task->cols,
                                .dy = call_operand(call, AT_NORM_BACKWARD_DY),
                                .x = call_operand(call, AT_NORM_BACKWARD_X),
                                .w = call_operand(call, AT_NORM_BACKWARD_W),
                                .mean = layer ? statistics : NULL,
                                .rstd = layer ? statistics + task->rows : statistics,
                                .residual = call_operand(call, AT_NORM_BACKWARD_RESIDUAL),
                                .dx = call_operand(call, AT_NORM_BACKWARD_DX),
                                .dw = call_operand(call, AT_NORM_BACKWARD_DW),
                                .accumulate = task->accumulate,
                                .x_stride = task->stride};
}

KernelKeys call_keys(const TaskCall *call) {
    const ModelSpec *model = &call->program->model;
    const LatentAttention *latent = &model->latent;
    return (KernelKeys){.rows = call->task->rows,
                        .heads = model->heads / call->program->plan.mesh.size[AXIS_TP],
                        .still = model->head_dim - latent->rope,
                        .turning = latent->rope,
                        .value = latent->value,
                        .shared_stride = latent->kv_rank + latent->rope};
}

int64_t call_keys_shared(const TaskCall *call) {
    return call->program->model.latent.kv_rank;
}

int call_still(const TaskCall *call, const KernelRope *turning) {
    return call->program->model.latent.kv_rank > 0 ? turning->head_dim - turning->turning : 0;
}

// Sliding-window layers may be rotated by their own angles, unscaled.
static bool turns_locally(const TaskCall *call) {
    const ModelSpec *model = &call->program->model;
    return model->rope_local > 0 &&
           model_layer_slides(model, stage_model_layer(&call->program->held, call->instance->layer));
}

QkTurns call_turns(const TaskCall *call) {
    const Task *task = call->task;
    const bool local = turns_locally(call);
    const RopeScaling none = {0}, *scaling = local ? &none : &call->program->model.rope_scaling;
    QkTurns turns = {.q = {.heads = task->heads,
                           .head_dim = task->head_dim,
                           .turning = (int)task->inner,
                           .stride = task->stride,
                           .theta = local ? call->program->model.rope_local : call->program->model.rope_theta,
                           .backward = task->backward,
                           .factor = scaling->factor,
                           .low = scaling->low,
                           .high = scaling->high,
                           .original = scaling->original}};
    const ModelSpec *model = &call->program->model;
    const bool latent = model->latent.kv_rank > 0;  // the task's figures are for prices: one key shared by all heads
    turns.q.head_dim = latent ? model->head_dim : task->head_dim;
    turns.k = turns.q;
    turns.k.heads = latent ? task->heads : task->kv_heads;
    turns.k.stride = task->kv_stride;
    const int64_t q_bytes = (int64_t)task->heads * task->head_dim * dtype_bytes(call_dtype(call, AT_ROPE_Q));
    if (call->operand[AT_ROPE_K] == call->operand[AT_ROPE_Q] + q_bytes && task->stride == task->kv_stride) {
        turns.q.heads += turns.k.heads;
        turns.k.heads = 0;
    }
    return turns;
}

// ---------------------------------------------------------------------------------------------- layers of experts

Routing call_routing(const TaskCall *call, int operand) {
    const int64_t choices = call_elements(call, operand) / 2;
    return (Routing){call_floats(call, operand), call_ints(call, operand) + choices};
}

KernelRoute call_route_shape(const TaskCall *call) {
    const Task *task = call->task;
    const Experts *experts = &call->program->model.experts;
    return (KernelRoute){.rows = task->rows,
                         .experts = (int)task->cols,
                         .active = (int)task->inner,
                         .unscaled = experts->unscaled,
                         .sigmoid = experts->sigmoid.groups > 0,
                         .groups = experts->sigmoid.groups,
                         .active_groups = experts->sigmoid.active_groups,
                         .factor = (float)experts->sigmoid.factor};
}

KernelSpread call_spread_shape(const TaskCall *call, int routing) {
    const Task *task = call->task;
    return (KernelSpread){task->rows, task->cols, (int)task->inner, call_routing(call, routing).places};
}

int64_t call_rows_of_sequence(const TaskCall *call) {
    return call->task->rows / call->program->plan.micro_batch;
}

float call_balance_factor(const TaskCall *call) {
    const TrainPlan *plan = &call->program->plan;
    const Experts *experts = &call->program->model.experts;
    return (float)(experts->balance * experts->count / ((double)plan_tokens_per_step(plan) * plan->seq));
}

bool call_bias_is_anothers(const TaskCall *call) {
    return call->task->replicated > 0 && call->at->at[AXIS_TP] > 0;
}

int64_t groups_rows(const KernelGroups *groups, int group) {
    int64_t rows = 0;
    for (int part = 0; part < groups->parts; part++) {
        rows += groups->counts[part * groups->count + group];
    }
    return rows;
}

KernelGroups call_groups(const TaskCall *call, int came) {
    const StepProgram *program = call->program;
    const int ranks = program->plan.mesh.size[AXIS_EP];
    return (KernelGroups){ranks, program->model.experts.count / ranks, call_ints(call, came)};
}

static int64_t rows_that_came(const TaskCall *call, int came) {
    const KernelGroups groups = call_groups(call, came);
    int64_t rows = 0;
    for (int i = 0; i < groups.parts * groups.count; i++) {
        rows += groups.counts[i];
    }
    return rows;
}

KernelGated call_gated_shape(const TaskCall *call) {
    static const KernelActivation activations[ACTIVATION_COUNT] = {[ACTIVATION_SILU] = KERNEL_SILU,
                                                                   [ACTIVATION_GELU] = KERNEL_GELU,
                                                                   [ACTIVATION_GELU_NEW] = KERNEL_GELU_TANH,
                                                                   [ACTIVATION_GELU_TANH] = KERNEL_GELU_TANH};
    const Task *task = call->task;
    return (KernelGated){activations[task->activation], task->rows, task->cols, task->stride};
}

KernelGated call_gated_experts(const TaskCall *call, int came) {
    KernelGated shape = call_gated_shape(call);
    if (call->task->operand_count > came && call->program->model.experts.bias) {
        shape.activation = KERNEL_CLAMPED;
    }
    return shape;
}

KernelGated call_gated_rows(const TaskCall *call, int came) {
    KernelGated shape = call_gated_experts(call, came);
    shape.rows = call->task->operand_count > came ? rows_that_came(call, came) : shape.rows;
    return shape;
}

// ---------------------------------------------------------------------------------------------- loss and optimizer

// Gradients are scaled by 1 / tokens of the global step, so those of ranks and micro-batches simply add.
static float call_loss_gradient(const TaskCall *call) {
    return (float)(1.0 / (double)plan_tokens_per_step(&call->program->plan));
}

KernelLoss call_loss(const TaskCall *call) {
    const Task *task = call->task;
    float *const sums = call_floats(call, AT_LOSS_SUMS);
    return (KernelLoss){.rows = task->rows,
                        .cols = task->cols,
                        .first = call_vocab_first(call, task->cols),
                        .targets = call_ints(call, AT_LOSS_TARGETS),
                        .row_max = call_floats(call, AT_LOSS_ROW_MAX),
                        .sum_exp = sums,
                        .target_logit = sums + task->rows,
                        .gradient = call_loss_gradient(call),
                        .cap = (float)call->program->model.logit_cap};
}

// The part of elements [begin, end) of the task's unit, and of those below lead_end, that lies in this rank's shard.
static ShardStretch shard_stretch(const TaskCall *call, int64_t begin, int64_t lead_end, int64_t end) {
    int64_t first, count;
    step_shard_range(call->program, &call->program->units[call->task->unit], call->at, &first, &count);
    const int64_t cuts[] = {begin - first, lead_end - first, end - first};
    int64_t in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = cuts[i] < 0 ? 0 : cuts[i] < count ? cuts[i] : count;
    }
    return (ShardStretch){in[0], in[2] - in[0], in[1] - in[0]};
}

ShardStretch call_replicated_stretch(const TaskCall *call) {
    const Unit *unit = &call->program->units[call->task->unit];
    const int64_t counted = call->task->inner > 0 ? call->task->inner : unit->elements;
    return shard_stretch(call, 0, call->task->replicated, counted);
}

bool call_update_stretch(const TaskCall *call, int32_t *slice, ShardStretch *stretch) {
    const Unit *unit = &call->program->units[call->task->unit];
    const ParamSlice *slices = &call->program->slices[unit->first_slice];
    if (*slice >= unit->slice_count) {
        return false;
    }
    int32_t at = *slice;
    const int64_t begin = slices[at].offset_elements;
    int64_t lead_end = begin;
    for (; at < unit->slice_count && !slices[at].decay; at++) {
        lead_end = slices[at].offset_elements + slices[at].local_rows * slices[at].local_cols;
    }
    while (at < unit->slice_count && slices[at].decay) {
        at++;
    }
    *slice = at;
    *stretch =
        shard_stretch(call, begin, lead_end, at < unit->slice_count ? slices[at].offset_elements : unit->elements);
    return true;
}

KernelAdamw call_adamw_options(const TaskCall *call) {
    const DeviceNumbers *numbers = call->numbers;
    return (KernelAdamw){.lr = (float)numbers->lr,
                         .beta1 = (float)numbers->beta1,
                         .beta2 = (float)numbers->beta2,
                         .eps = (float)numbers->eps,
                         .weight_decay = (float)numbers->weight_decay,
                         .step = call->step + 1};
}
