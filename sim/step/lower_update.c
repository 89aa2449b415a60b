// Pass 4b: the end of a step. Loss and gradient norm are summed over the ranks that hold different parts of them, the
// clip scale is computed, and the optimizer runs over each unit's shard; stages 1 and 2 then gather the updated
// weights. With updates in backward, each on the lane that ends the reduction of its gradient, only the sum of the loss
// remains, and nothing is clipped.

#include "sim/step/lower_ops.h"
#include "sim/step/tied.h"

#include <math.h>

// ---- states

// An instance's trained slices on a rank, where states are quantized or only some parameters have them: in bytes.
static int64_t state_bytes(const Lowering *lowering, const Unit *unit, int state) {
    double bytes = 0;
    for (int32_t i = 0; i < unit->trained_slices; i++) {
        const ParamSlice *slice = &lowering->slices[unit->first_slice + i];
        const OptimizerTensor tensor = {.rows = slice->local_rows,
                                        .cols = slice->local_cols,
                                        .is_matrix = slice_is_matrix(slice),
                                        .in_layer = unit->layered,
                                        .is_embedding = slice->part == UNIT_EMBEDDING,
                                        .shards = unit->shards,
                                        .master_bytes = dtype_bytes(lowering->master_dtype)};
        bytes += optimizer_state_bytes(unit->optimizer, state, &tensor);
    }
    return (int64_t)ceil(bytes);
}

static int32_t choose_state(Lowering *lowering, const Unit *unit, int state, const char *name) {
    const int plain = optimizer_plain_bytes(unit->optimizer, state, dtype_bytes(lowering->master_dtype));
    const Dtype dtype = plain == dtype_bytes(lowering->master_dtype) ? lowering->master_dtype
                        : plain == dtype_bytes(DTYPE_BF16)           ? DTYPE_BF16
                        : plain > dtype_bytes(DTYPE_FP8)             ? DTYPE_FP32
                                                                     : DTYPE_FP8;
    const int64_t elements = plain > 0 ? unit->trained_shard : state_bytes(lowering, unit, state);
    if (elements == 0) {
        return -1;
    }
    const int32_t tensor = lowering_tensor(lowering, name, ROLE_OPTIMIZER, dtype, elements);
    lowering->tensors[tensor].slots = unit->instances;
    lowering->tensors[tensor].persistent = true;
    return tensor;
}

void lower_states(Lowering *lowering, int u, const char *first, const char *second) {
    Unit *unit = &lowering->units[u];
    unit->moment1 = choose_state(lowering, unit, 0, first);
    unit->moment2 = choose_state(lowering, unit, 1, second);
}

// ---- the end of a step

static OpRef scalar(Lowering *lowering, const char *name, int64_t elements) {
    const int32_t tensor = lowering_tensor(lowering, name, ROLE_RUNTIME, DTYPE_FP32, elements);
    lowering->tensors[tensor].persistent = true;
    lowering->tensors[tensor].slots = 1;
    return op_whole(lowering, tensor);
}

static void emit_square_sum(Lowering *lowering, Section section, int u) {
    const Unit *unit = &lowering->units[u];
    const int64_t counted = unit_counted_elements(lowering, u);
    if (counted == 0) {
        return;
    }
    Op *op = op_add(lowering, section, TASK_SQUARE_SUM, PHASE_OPTIMIZER, "gradient square sum");
    op->task.unit = (int16_t)u;
    op_size(op, 1, unit->trained_shard);
    if (counted < unit->trained_elements) {
        op->task.inner = counted;
        op->task.cols = counted < unit->trained_shard ? counted : unit->trained_shard;
    }
    op->task.replicated = unit->replicated_elements;
    op->task.accumulate = true;
    op->task.dtype = lowering->tensors[unit->gradient_shard].dtype;
    op_operand(op, shard_gradient(lowering, unit), ACCESS_READ);
    const bool apart = u == UNIT_EXPERTS && lowering->expert_square_tensor >= 0;
    op_operand(op, op_whole(lowering, apart ? lowering->expert_square_tensor : lowering->norm_square_tensor),
               ACCESS_UPDATE);
}

static void emit_scalar_sum(Lowering *lowering, int16_t group, int32_t tensor, const char *name) {
    if (lowering_group_size(lowering, group) == 1) {
        return;
    }
    Op op = op_collective(lowering, TASK_ALL_REDUCE, LANE_CTL, group, name, PHASE_OPTIMIZER);
    op.task.dtype = DTYPE_FP32;
    op.task.payload_bytes = lowering->tensors[tensor].bytes;
    op_operand(&op, op_whole(lowering, tensor), ACCESS_UPDATE);
    op_list_append(lowering->arena, &lowering->lists[SECTION_UPDATE], &op);
}

// The leading part of a shard that is trained.
static OpRef trained_part(const Lowering *lowering, const Unit *unit, OpRef shard) {
    const Dtype dtype = lowering->tensors[shard.tensor].dtype;  // packed: what is trained leads, unpacked
    const int64_t bytes = unit->trained_shard * dtype_bytes(dtype == DTYPE_FP8 ? lowering->dims.dtype : dtype);
    shard.bytes = bytes < shard.bytes ? bytes : shard.bytes;
    return shard;
}

static OpRef master_ref(const Lowering *lowering, const Unit *unit) {
    return trained_part(lowering, unit,
                        unit->master == unit->working ? own_slice(lowering, unit, unit->master)
                                                      : op_whole(lowering, unit->master));
}

// Whether updated weights are made and gathered in bf16 before they are cast: in the unit's gradient buffer.
static bool updates_in_gradients(const Lowering *lowering, const Unit *unit) {
    return fp8_gathers_half(lowering) && fp8_keeps_unit(lowering, (int)(unit - lowering->units));
}

static OpRef half_of_gradients(const Lowering *lowering, const Unit *unit, bool own) {
    OpRef ref = op_whole(lowering, unit->gradient_full);
    ref.bytes = (own ? unit->shard_elements : unit->padded_elements) * lowering->dims.element;
    if (own && unit->shards > 1) {
        ref.rank_group = unit->shard_group;
        ref.rank_stride_bytes = ref.bytes;
    }
    return ref;
}

static OpRef working_ref(const Lowering *lowering, const Unit *unit) {
    if (unit->working < 0 || unit->working == unit->master) {
        return op_absent();
    }
    if (updates_in_gradients(lowering, unit)) {
        return half_of_gradients(lowering, unit, true);
    }
    return trained_part(lowering, unit,
                        unit->gathered >= 0 ? op_whole(lowering, unit->working)
                                            : own_slice(lowering, unit, unit->working));
}

// Gradients in the masters' dtype, for part of the shard at a time, where they are reduced in another dtype.
static int64_t copied_gradients(const Lowering *lowering, int64_t elements) {
    const int64_t most = lowering->target->update_copies;
    const bool copies = lowering->plan->zero == 3 && !plan_offloads_states(lowering->plan);
    return !copies ? 0 : elements < most ? elements : most;
}

// This rank's share of all trained parameters.
static int64_t trained_here(const Lowering *lowering) {
    int64_t elements = 0;
    for (int32_t u = 0; u < lowering->unit_count; u++) {
        const Unit *unit = &lowering->units[u];
        elements += unit->trainable ? unit->trained_shard * unit->instances : 0;
    }
    return elements;
}

// And of the largest one. Not modelled: FSDP version 1 makes one tensor of a unit.
static int64_t largest_here(const Lowering *lowering) {
    int64_t most = 0;
    for (int32_t u = 0; u < lowering->unit_count; u++) {
        const Unit *unit = &lowering->units[u];
        for (int32_t i = 0; i < (unit->trainable ? unit->trained_slices : 0); i++) {
            const ParamSlice *slice = &lowering->slices[unit->first_slice + i];
            const int64_t elements = slice->local_rows * slice->local_cols / unit->shards;
            most = elements > most ? elements : most;
        }
    }
    return most;
}

// Elements whose temporaries are alive together: all parameters, or one tensor. A target that copies gradients updates
// flat copies: one of all, at stage 3 one of as many as are copied at a time (runtime/zero/stage3.py _optimizer_step).
static int64_t updated_together(const Lowering *lowering) {
    const int64_t most = lowering->target->update_copies;
    const Optimizer said = lowering->plan->optimizer;
    const Optimizer runs = said == OPTIMIZER_TARGET ? lowering->target->own_optimizer : said;
    if (optimizer_rows[runs].by_tensor && most == 0) {
        return largest_here(lowering);
    }
    const int64_t elements = trained_here(lowering);
    return most > 0 && lowering->plan->zero == 3 && elements > most ? most : elements;
}

static double temporary_bytes(const Lowering *lowering) {
    const Optimizer said = lowering->plan->optimizer;
    const bool casts = said == OPTIMIZER_ADAMW_BF16 && lowering->target->casts_half_states;
    return said == OPTIMIZER_TARGET ? lowering->target->optimizer_temporary_bytes_per_parameter
           : casts                  ? 2.0 * dtype_bytes(DTYPE_FP32)
                                    : optimizer_rows[said].temporary_bytes;
}

// What an optimizer holds in addition to its states.
static OpRef update_temporary(Lowering *lowering) {
    const double bytes_per_parameter = temporary_bytes(lowering);
    const bool at_once =
        !lowering->plan->update_in_backward;  // temporaries of per-parameter optimizers are not counted
    if (!at_once || (bytes_per_parameter <= 0 && lowering->target->update_copies == 0)) {
        return op_absent();
    }
    const double together = (double)updated_together(lowering) * bytes_per_parameter / dtype_bytes(DTYPE_FP32);
    const int64_t held = (int64_t)together + copied_gradients(lowering, trained_here(lowering));
    if (held == 0) {
        return op_absent();
    }
    const int32_t tensor =
        lowering_tensor(lowering, "optimizer temporary", ROLE_OPTIMIZER, lowering->master_dtype, held);
    lowering->tensors[tensor].slots = 1;
    lowering->tensors[tensor].host = plan_offloads_states(lowering->plan);
    return op_whole(lowering, tensor);
}

// The norms lead a unit.
static int64_t undecayed_elements(const Lowering *lowering, const Unit *unit) {
    const ParamSlice *slice = &lowering->slices[unit->first_slice];
    int64_t elements = 0;
    for (int32_t i = 0; i < unit->slice_count && !slice[i].decay; i++) {
        elements += slice[i].local_rows * slice[i].local_cols;
    }
    return elements;
}

// For the matrix being orthogonalised, in bf16: X, its two sums and the last product, A, its square and B.
static OpRef orthogonal_workspace(Lowering *lowering, const Unit *unit) {
    enum { OF_X = 4, OF_A = 3 };
    int64_t most = 0;
    for (int32_t i = 0; i < unit->trained_slices && unit_is_orthogonalized(unit); i++) {
        const ParamSlice *slice = &lowering->slices[unit->first_slice + i];
        const int64_t rows = slice->local_rows / slice->blocks, cols = slice->local_cols;
        const int64_t side = rows < cols ? rows : cols;
        const int64_t elements = OF_X * rows * cols + OF_A * side * side;
        most = side > 1 && elements > most ? elements : most;
    }
    if (most == 0) {
        return op_absent();
    }
    const int32_t tensor = lowering_tensor(lowering, "orthogonal workspace", ROLE_OPTIMIZER, DTYPE_BF16, most);
    lowering->tensors[tensor].slots = 1;
    return op_whole(lowering, tensor);
}

static OpRef state_ref(const Lowering *lowering, int32_t state) {
    return state >= 0 ? op_whole(lowering, state) : op_absent();
}

// Of all units that are sharded: their updated weights, whole.
static int64_t updated_bytes(const Lowering *lowering) {
    int64_t bytes = 0;
    for (int u = 0; u < lowering->unit_count; u++) {
        const Unit *unit = &lowering->units[u];
        const bool sharded = unit->instances > 0 && unit->shards > 1 && unit->gathered < 0;
        bytes += sharded ? lowering->tensors[unit->working].bytes * unit->instances : 0;
    }
    return bytes;
}

static void emit_flat_copy(Lowering *lowering, Section section, int u, const char *name, OpRef from, OpRef to) {
    const Dtype dtype = lowering->tensors[to.tensor].dtype;
    const OpRef whole = op_whole(lowering, lowering->units[u].working);
    const int64_t bytes = from.bytes < whole.bytes ? from.bytes : whole.bytes;
    Op copy = op_local(TASK_COPY, PHASE_OPTIMIZER, name, dtype, 1, bytes / dtype_bytes(dtype));
    copy.task.lane = LANE_AG;
    copy.task.unit = (int16_t)u;
    op_list_move(lowering, &lowering->lists[section], copy, from, to,
                 to.access == ACCESS_UPDATE ? ACCESS_UPDATE : ACCESS_WRITE);
}

static OpRef flat_tensor(Lowering *lowering, const char *name, const Unit *unit, int parts, int pieces) {
    const Dtype dtype = lowering->tensors[unit->working].dtype;
    const int32_t tensor = lowering_tensor(lowering, name, ROLE_COMMUNICATION, dtype,
                                           updated_bytes(lowering) / dtype_bytes(dtype) / parts);
    lowering->tensors[tensor].slots = 1;
    lowering->tensors[tensor].pieces = pieces;
    return op_whole(lowering, tensor);
}

// The rank's part and what every rank's will replace are copied into flat blocks that are as large as all units; NCCL
// gathers into one more, from which the parts and then the weights are copied. Not modelled: one gather of all units
// when all are updated; each uses the front of the blocks.
static void emit_flat_gather(Lowering *lowering, Section section, int u, Op *gather) {
    const Unit *unit = &lowering->units[u];
    const OpRef part = flat_tensor(lowering, "flat part", unit, unit->shards, 0);
    OpRef parts = flat_tensor(lowering, "flat parts", unit, 1, unit->shards);
    const OpRef block = flat_tensor(lowering, "flat weights", unit, 1, 0);
    const OpRef own = gather->operands[AT_COLLECTIVE_FROM], whole = gather->operands[AT_COLLECTIVE_TO];
    emit_flat_copy(lowering, section, u, "flatten own weights", own, part);
    emit_flat_copy(lowering, section, u, "flatten weights", whole, parts);
    gather->operand_count = 0;
    op_operand(gather, part, ACCESS_READ);
    gather->operands[AT_COLLECTIVE_FROM].bytes = own.bytes;
    op_operand(gather, block, ACCESS_WRITE);
    op_list_append(lowering->arena, &lowering->lists[section], gather);
    parts.access = ACCESS_UPDATE;
    emit_flat_copy(lowering, section, u, "parts of all ranks", block, parts);
    emit_flat_copy(lowering, section, u, "weights of their parts", parts, whole);
}

// Gathers whole weights after the update of a shard.
static void emit_regather(Lowering *lowering, Section section, int u) {
    const Unit *unit = &lowering->units[u];
    Op gather =
        op_collective(lowering, TASK_ALL_GATHER, LANE_AG, unit->shard_group, "gather updated weights", PHASE_OPTIMIZER);
    const bool part = unit->trained_elements < unit->elements, aside = updates_in_gradients(lowering, unit);
    gather.task.unit = (int16_t)u;
    OpRef whole = aside ? half_of_gradients(lowering, unit, false) : op_whole(lowering, unit->working);
    whole.bytes = part ? unit->trained_padded * dtype_bytes(lowering->dims.dtype) : whole.bytes;
    gather.task.payload_bytes = whole.bytes;
    op_operand(&gather,
               aside ? half_of_gradients(lowering, unit, true)
                     : trained_part(lowering, unit, own_slice(lowering, unit, unit->working)),
               ACCESS_READ);
    op_operand(&gather, whole, part ? ACCESS_UPDATE : ACCESS_WRITE);
    if (lowering->target->gathers_flat && !part && !aside) {
        emit_flat_gather(lowering, section, u, &gather);
    } else {
        op_list_append(lowering->arena, &lowering->lists[section], &gather);
    }
}

// The first unit allocates the temporary for all.
static void emit_update(Lowering *lowering, Section section, int u, bool first) {
    const Unit *unit = &lowering->units[u];
    const OpRef temporary = update_temporary(lowering);
    const bool by_adamw = optimizer_rows[unit->optimizer].rule == UPDATE_ADAMW;
    Op *op = op_add(lowering, section, by_adamw ? TASK_ADAMW : TASK_UPDATE, PHASE_OPTIMIZER,
                    by_adamw ? "adamw" : optimizer_names[unit->optimizer]);
    op->task.unit = (int16_t)u;
    op_size(op, 1, unit->trained_shard);
    op->task.inner = undecayed_elements(lowering, unit);
    op_operand(op, master_ref(lowering, unit), ACCESS_UPDATE);
    op_operand(op, state_ref(lowering, unit->moment1), ACCESS_UPDATE);
    op_operand(op, state_ref(lowering, unit->moment2), ACCESS_UPDATE);
    op_operand(op, shard_gradient(lowering, unit), ACCESS_READ);
    op_operand(op, lowering->norm_tensor >= 0 ? op_whole(lowering, lowering->norm_tensor) : op_absent(), ACCESS_READ);
    op_operand(op, working_ref(lowering, unit), ACCESS_WRITE);
    op_operand(op, temporary, first ? ACCESS_WRITE : ACCESS_UPDATE);
    if (unit_is_orthogonalized(unit)) {
        op_operand(op, orthogonal_workspace(lowering, unit), ACCESS_WRITE);
    }
    if (u == UNIT_LAYER && lowering->weight_scales >= 0) {
        op_operand(op, op_whole(lowering, lowering->weight_scales), ACCESS_UPDATE);
    }
    if (unit->shards > 1 && unit->gathered < 0) {
        emit_regather(lowering, section, u);
    }
}

void lower_unit_update(Lowering *lowering, OpList *out, int unit, LaneId lane) {
    OpList *list = &lowering->lists[SECTION_UPDATE_LAYER];
    const size_t first = list->count;
    emit_update(lowering, SECTION_UPDATE_LAYER, unit, false);
    for (size_t i = first; i < list->count; i++) {
        list->ops[i]->task.lane = (int16_t)lane;
        op_list_pass(lowering->arena, out, list->ops[i]);
    }
    list->count = first;
}

static void emit_zero(Lowering *lowering, Section section, int32_t tensor, const char *name) {
    Op *zero = op_add(lowering, section, TASK_ZERO, PHASE_OPTIMIZER, name);
    op_size(zero, 1, 1);
    zero->task.dtype = DTYPE_FP32;
    op_operand(zero, op_whole(lowering, tensor), ACCESS_WRITE);
}

// The loss is computed where the head is; every rank gets the sum.
static void zero_missing_loss(Lowering *lowering) {
    if (lowering->loss_tensor < 0) {
        lowering->loss_tensor = scalar(lowering, "loss", 1).tensor;
        emit_zero(lowering, SECTION_UPDATE, lowering->loss_tensor, "zero loss");
    }
}

// Gradients of each unit are added to the norm, the layers' before those of the edges.
static void emit_norm(Lowering *lowering) {
    lowering->norm_square_tensor = scalar(lowering, "norm square", 1).tensor;
    lowering->norm_tensor = scalar(lowering, "clip scale and norm", 2).tensor;
    emit_zero(lowering, SECTION_NORM, lowering->norm_square_tensor, "zero norm");
    if (lowering->expert_norm_group > 0) {
        lowering->expert_square_tensor = scalar(lowering, "norm square of experts", 1).tensor;
        emit_zero(lowering, SECTION_NORM, lowering->expert_square_tensor, "zero norm of experts");
    }
    for (int edges = 0; edges < 2; edges++) {
        for (int u = lowering->unit_count - 1; u >= 0; u--) {
            if (lowering->units[u].trainable && lowering->units[u].layered != (edges == 1)) {
                lower_tied_gradient(lowering, u);
                lower_late_reduce(lowering, edges ? SECTION_UPDATE : SECTION_NORM_LAYER, u);
                emit_square_sum(lowering, edges ? SECTION_UPDATE : SECTION_NORM_LAYER, u);
            }
        }
    }
}

// Whole replicas have the same square of the rest where they have other experts: each is summed over its own ranks.
static void add_expert_square(Lowering *lowering) {
    const int32_t experts = lowering->expert_square_tensor;
    if (experts < 0) {
        return;
    }
    emit_scalar_sum(lowering, lowering->expert_norm_group, experts, "norm sum over ranks of experts");
    Op *add = op_add(lowering, SECTION_UPDATE, TASK_ACCUMULATE, PHASE_OPTIMIZER, "add norm of experts");
    op_size(add, 1, 1);
    add->task.dtype = DTYPE_FP32;
    op_operand(add, op_whole(lowering, experts), ACCESS_READ);
    op_operand(add, op_whole(lowering, lowering->norm_square_tensor), ACCESS_UPDATE);
}

static void emit_clip(Lowering *lowering) {
    emit_scalar_sum(lowering, lowering->norm_group, lowering->norm_square_tensor, "norm sum over ranks");
    add_expert_square(lowering);
    Op *clip = op_add(lowering, SECTION_UPDATE, TASK_CLIP, PHASE_OPTIMIZER, "clip");
    op_size(clip, 1, 1);
    clip->task.dtype = DTYPE_FP32;
    op_operand(clip, op_whole(lowering, lowering->norm_square_tensor), ACCESS_READ);
    op_operand(clip, op_whole(lowering, lowering->norm_tensor), ACCESS_WRITE);
}

static void emit_updates(Lowering *lowering) {
    bool first = true;
    for (int layers = 0; layers < 2; layers++) {  // the edges are updated before the layers
        for (int u = 0; u < lowering->unit_count; u++) {
            if (lowering->units[u].trainable && lowering->units[u].layered == (layers == 1)) {
                emit_update(lowering, layers ? SECTION_UPDATE_LAYER : SECTION_UPDATE, u, first);
                first = false;
            }
        }
    }
}

void lower_update(Lowering *lowering) {
    const bool at_the_end = !lowering->plan->update_in_backward;
    if (at_the_end) {
        emit_norm(lowering);
    }
    zero_missing_loss(lowering);
    emit_scalar_sum(lowering, lowering->loss_group, lowering->loss_tensor, "loss sum over ranks");
    if (at_the_end) {
        emit_clip(lowering);
        emit_updates(lowering);
    }
}
