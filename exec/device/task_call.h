// A task with its operands resolved, and what follows from task, program and rank alone: the same on every device, so
// that a device's task files hold only kernel calls.

#pragma once

#include "exec/data/data.h"
#include "exec/device/device.h"
#include "kernels/exact.h"
#include "kernels/kernels.h"
#include "kernels/latent.h"

enum { TASK_MAX_OPERANDS = 13 };

typedef struct TaskCall {
    Device *device;  // that runs it
    const StepProgram *program;
    const Task *task;
    const StepInstance *instance;
    const MeshCoordinates *at;
    const DeviceNumbers *numbers;
    int64_t step;
    const DataSource *data;
    int32_t *sequence;                  // host: room for seq + 1 tokens
    const int32_t *positions;           // of this rank's local token rows in one micro-batch, in device memory
    char *operand[TASK_MAX_OPERANDS];   // NULL where absent
    ExactSum *sums[TASK_MAX_OPERANDS];  // bitwise: the exact sums of the operand's floats
    bool bitwise;
} TaskCall;

static inline float *call_floats(const TaskCall *call, int index) {
    return (float *)(void *)call->operand[index];
}

static inline uint16_t *call_halves(const TaskCall *call, int index) {
    return (uint16_t *)(void *)call->operand[index];
}

static inline int32_t *call_ints(const TaskCall *call, int index) {
    return (int32_t *)(void *)call->operand[index];
}

// An operand that some models or targets omit: not listed, or absent.
static inline void *call_operand(const TaskCall *call, int index) {
    return index < call->task->operand_count ? call->operand[index] : NULL;
}

static inline float *call_optional(const TaskCall *call, int index) {
    return call_operand(call, index);
}

static inline Dtype call_dtype(const TaskCall *call, int index) {
    return call->program->buffers[task_operand(call->program, call->task, index)->ref.buffer].dtype;
}

// Number of elements in the operand.
static inline int64_t call_elements(const TaskCall *call, int index) {
    return task_operand(call->program, call->task, index)->ref.bytes / dtype_bytes(call_dtype(call, index));
}

// Indices after the operands of task_kind.h, where a shared expert has a gate.
enum { AT_SUM_GATE = AT_UNPERMUTE_MORE + 1 };
enum { AT_SUM_BACKWARD_MORE = AT_UNPERMUTE_BACKWARD_DWEIGHTS + 1, AT_DGATE, AT_SUM_BACKWARD_GATE, AT_DMORE };

// A copy of latent attention's keys, which are concatenated from two parts. Other tasks may have an extra buffer there.
static inline bool call_copies_keys(const TaskCall *call) {
    return call->program->model.latent.kv_rank > 0 && call->program->target->own_kernels &&
           call->task->operand_count > AT_KEYS_SHARED;
}

// The keys of a copy that concatenates or splits them, and where their shared part begins.
KernelKeys call_keys(const TaskCall *call);
int64_t call_keys_shared(const TaskCall *call);
// For RMS norm and layer norm, including those of latents.
KernelNorm call_norm(const TaskCall *call);
KernelNormBackward call_norm_backward(const TaskCall *call);
// Elements of a head before those that are rotated.
int call_still(const TaskCall *call, const KernelRope *turning);

// First vocabulary entry of this rank when its task is split by vocabulary into ranges of this size.
static inline int64_t call_vocab_first(const TaskCall *call, int64_t range) {
    return call->task->vocab_split ? call->at->at[AXIS_TP] * range : 0;
}

// TASK_LOAD_TOKENS, into host memory: sequences of the global batch, restricted to this rank's chunks.
void call_load_tokens(const TaskCall *call, int32_t *tokens, int32_t *targets);

KernelEmbed call_vocabulary(const TaskCall *call);
// The position table, and the first of this task's positions: forward, a tp rank may have its own stretch of the local
// tokens only.
KernelEmbed call_position_table(const TaskCall *call);
const int32_t *call_position_entries(const TaskCall *call);

// Stretches of the queries and of the keys, as consecutive parts of one packed row.
typedef struct QkStretches {
    KernelStretches q, k;
    int64_t k_before, k_rstd;  // where those of the keys begin in a row
} QkStretches;
QkStretches call_qk_stretches(const TaskCall *call);

// Adjacent heads of one row are rotated together: k has none then.
typedef struct QkTurns {
    KernelRope q, k;
} QkTurns;
QkTurns call_turns(const TaskCall *call);

// Weights of a routing's choices, followed by their places.
typedef struct Routing {
    float *weights;
    int32_t *places;
} Routing;
Routing call_routing(const TaskCall *call, int operand);
KernelRoute call_route_shape(const TaskCall *call);  // without the correction
KernelSpread call_spread_shape(const TaskCall *call, int routing);
int64_t call_rows_of_sequence(const TaskCall *call);  // on this rank
// Experts x the fraction of a sequence's tokens that visits each x its mean probability, for the mean sequence.
float call_balance_factor(const TaskCall *call);
// tp ranks sum their parts of a product: the first adds the bias they all hold, and computes its gradient.
bool call_bias_is_anothers(const TaskCall *call);

// Rows of the local experts, as received.
KernelGroups call_groups(const TaskCall *call, int came);
int64_t groups_rows(const KernelGroups *groups, int group);

KernelGated call_gated_shape(const TaskCall *call);
// For experts, where that operand is present: in models whose experts' products have biases (gpt_oss), gates are
// clamped.
KernelGated call_gated_experts(const TaskCall *call, int came);  // with the rows of call_gated_shape
KernelGated call_gated_rows(const TaskCall *call, int came);

KernelLoss call_loss(const TaskCall *call);  // of the tasks with AT_LOSS_SUMS

// Elements [first, first + count) of this rank's shard of the task's unit; the first `lead` are replicated on
// every tp rank (square sum) or take no weight decay (AdamW).
typedef struct ShardStretch {
    int64_t first, count, lead;
} ShardStretch;
ShardStretch call_replicated_stretch(const TaskCall *call);  // all of the shard that is counted
// Norms and biases, then the matrices after them: one stretch for most units, more where a router comes first. *slice
// starts at 0; false: no more.
bool call_update_stretch(const TaskCall *call, int32_t *slice, ShardStretch *stretch);
KernelAdamw call_adamw_options(const TaskCall *call);
