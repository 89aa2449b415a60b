// Pass 4: sharding over dp_shard x cp and replication. Decides what a unit's weights and gradients are, and replaces
// unit marks by gathers and reductions (Rajbhandari et al. 2020, ZeRO stages; FSDP2's schedule: sim/SOURCES.md P6):
//
//   stage   weights read      gradient written            shard gradient            after the update
//   0       whole             whole, summed over steps    -  (all-reduce at the end, or each step and then summed)
//   1       whole             whole, summed over steps    reduce-scatter at the end  all-gather of weights
//   2       whole             one layer at a time         reduce-scatter each step   all-gather of weights
//   3       gathered          one layer at a time         reduce-scatter each step
//
// A plan that reduces on the last micro-step (grad_sync) sums whole gradients over micro-steps at any stage; a target
// with a gradient buffer allocates all of them from the start and reduces in it; one that reduces late does so after
// the last backward (stages 0 and 1), as all do a unit with a table that two stages have (tied.h). Where nothing
// overlaps, kernels wait for a reduction to accumulate into the shard gradient on their lane. dp_replicate adds an
// all-reduce of the shard at the end, or on each micro-step. Experts that ep spreads are whole or sharded among the
// ranks with the same ones (sim/SOURCES.md E5).

#include "sim/step/lower_ops.h"
#include "sim/step/mixed.h"
#include "sim/step/tied.h"

// ---- what the units' tensors are

static int32_t unit_tensor(Lowering *lowering, const char *name, BufferRole role, Dtype dtype, int64_t elements,
                           int32_t slots) {
    const int32_t tensor = lowering_tensor(lowering, name, role, dtype, elements);
    lowering->tensors[tensor].slots = slots;
    return tensor;
}

static int32_t persistent_tensor(Lowering *lowering, const char *name, BufferRole role, Dtype dtype, int64_t elements,
                                 int32_t slots) {
    const int32_t tensor = unit_tensor(lowering, name, role, dtype, elements, slots);
    lowering->tensors[tensor].persistent = true;
    return tensor;
}

static bool gathers(const Lowering *lowering) {
    return lowering->plan->zero == 3;
}

// The previous layer comes next only if all layers are on one stage.
static bool prefetches_backward(const Lowering *lowering) {
    return lowering->target->backward_prefetch && !lowering_has_stages(lowering);
}

static bool is_late(const Lowering *lowering, int unit) {  // gathered when backward reaches its layer
    return unit == UNIT_EXPERTS && lowering->ep > 1 && lowering->target->experts_apart;
}

static int32_t ring_slots(const Unit *unit, int depth) {
    return unit->instances > 1 ? depth : 1;  // over layers; edge units have one instance
}

// Frozen parameters in the dtype that forward reads, next to masters of what is trained.
static bool stays_half(const Lowering *lowering) {
    return lowering_adapts(lowering) && !lowering->target->upcasts_frozen;
}

static void choose_weights(Lowering *lowering, int u) {
    Unit *unit = &lowering->units[u];
    const UnitNames *names = unit_names(lowering, u);
    const Dtype dtype = unit->dtype;
    const bool lone = stays_half(lowering) && !unit->trainable, beside = stays_half(lowering) && unit->trainable;
    const Dtype master_dtype = lone ? dtype : lowering->master_dtype;
    const bool has_master = master_dtype != dtype;
    const bool fp8 = fp8_keeps_unit(lowering, u);
    const bool halved = has_master && !fp8 && lowering->plan->optimizer == OPTIMIZER_ADAMW_BF16 &&
                        lowering->target->masters_beside_remainders;
    const int64_t master_elements =
        (beside && has_master ? unit->trained_shard : unit->shard_elements) / (halved ? 2 : 1);
    const bool packed = u == UNIT_LAYER && weights_are_packed(lowering);
    const Dtype stored = packed || fp8 ? DTYPE_FP8 : dtype;
    if (gathers(lowering)) {
        const bool kept = lowering->plan->reshard == RESHARD_NEVER;
        const int32_t slots = kept ? unit->instances : ring_slots(unit, lowering->target->shard_copies ? 1 : 2);
        const bool in_bytes = packed || (u == UNIT_LAYER && fp8_gathers_weights(lowering));
        lowering->weights[u] = unit->gathered =
            unit_tensor(lowering, names->weights, ROLE_GATHERED, in_bytes ? DTYPE_FP8 : dtype,
                        gathered_elements(lowering, u), slots);
        if (slots < unit->instances) {
            mixed_set_widest(lowering, u, unit->gathered);
        }
        const int64_t stored_elements =
            packed || fp8 ? gathered_elements(lowering, u) / unit->shards : unit->shard_elements;
        const bool only_packed = packed && !has_master;
        unit->master = persistent_tensor(lowering, names->master, ROLE_PARAMETER, only_packed ? stored : master_dtype,
                                         only_packed ? stored_elements : master_elements, unit->instances);
        const bool updated_elsewhere = lowering->plan->offload == OFFLOAD_OPTIMIZER;
        if (has_master && (beside || !lowering->target->shard_copies || updated_elsewhere)) {
            unit->working =
                persistent_tensor(lowering, names->working, ROLE_PARAMETER, stored, stored_elements, unit->instances);
        }
        return;
    }
    lowering->weights[u] = unit->working = persistent_tensor(lowering, names->weights, ROLE_PARAMETER, stored,
                                                             gathered_elements(lowering, u), unit->instances);
    unit->master = has_master ? persistent_tensor(lowering, names->master, ROLE_PARAMETER, master_dtype,
                                                  master_elements, unit->instances)
                              : unit->working;
}

static bool adds_half_gradients(const Lowering *lowering) {
    return lowering->target->half_gradients && lowering->dims.gradient_dtype != lowering->dims.dtype;
}

// Of several reductions in a step.
static bool sums_shards(const Lowering *lowering, int unit) {
    return unit_reduces_each(lowering, unit) || plan_rounds(lowering->plan) > 1;
}

static int round_steps(const Lowering *lowering) {
    return lowering->choice->alone ? lowering->plan->grad_accum : plan_round_steps(lowering->plan);
}

static void choose_gradients(Lowering *lowering, int u) {
    Unit *unit = &lowering->units[u];
    const UnitNames *names = unit_names(lowering, u);
    const bool buffered = lowering->target->gradient_buffer;
    const bool summed = !unit_reduces_each(lowering, u) && (lowering->plan->zero == 0 || round_steps(lowering) > 1);
    const bool updated = lowering->plan->update_in_backward;
    const bool kept = !updated && (buffered || summed || target_reduces_late(lowering->target, lowering->plan));
    const int32_t slots = kept ? unit->instances : ring_slots(unit, lowering->target->shard_copies ? 1 : 2);
    unit->gradient_full = unit_tensor(lowering, names->gradients, ROLE_GRADIENT, lowering->dims.gradient_dtype,
                                      unit->trained_padded, slots);
    if (slots < unit->instances) {
        mixed_set_widest(lowering, u, unit->gradient_full);
    }
    lowering->tensors[unit->gradient_full].persistent = buffered && (unit->trainable || lowering->choice->frozen);
    lowering->gradients[u] = unit->gradient_full;
    if (adds_half_gradients(lowering)) {
        lowering->gradients[u] = unit->gradient_half =
            unit_tensor(lowering, names->half_gradients, ROLE_GRADIENT, lowering->dims.dtype, unit->trained_padded,
                        unit->instances);
        lowering->tensors[unit->gradient_half].held = true;
    }
    // A gradient buffer is reduced in place: the shard is part of it.
    const bool in_place =
        (lowering->plan->zero == 0 && !sums_shards(lowering, u)) ||
        (buffered && lowering->plan->zero > 0 && lowering->dims.reduce_dtype == lowering->master_dtype &&
         !plan_offloads_states(lowering->plan));
    unit->gradient_shard = in_place
                               ? unit->gradient_full
                               : unit_tensor(lowering, names->shard_gradient, ROLE_GRADIENT, lowering->master_dtype,
                                             unit->trained_shard, updated ? 1 : unit->instances);
    const bool graphed =
        lowering->target->graphs_hold_gradients && target_cuda_graphs(lowering->target, lowering->plan);
    const bool from_before = lowering->choice->alone && plan_rounds(lowering->plan) > 1;
    if (unit->trainable && (graphed || from_before)) {  // a graph writes where it did when captured
        lowering->tensors[unit->gradient_shard].persistent = true;
    }
}

// Ranks with the same whole gradient of a unit, each of other tokens.
static int16_t data_group_of(const Lowering *lowering, int unit) {
    return unit == UNIT_EXPERTS && lowering->expert_data_group > 0 ? lowering->expert_data_group : lowering->data_group;
}

// Buckets of DDP, allocated with the model: a copy of every gradient that no task of the step touches.
static void keep_buckets(Lowering *lowering, int u) {
    const Unit *unit = &lowering->units[u];
    if (adds_half_gradients(lowering) && lowering->plan->zero == 0 &&
        lowering_group_size(lowering, data_group_of(lowering, u)) > 1) {
        const int32_t buckets = persistent_tensor(lowering, unit_names(lowering, u)->copies, ROLE_GRADIENT,
                                                  lowering->dims.dtype, unit->trained_padded, unit->instances);
        lowering->tensors[buckets].untouched = true;
    }
}

void lower_unit_tensors(Lowering *lowering) {
    for (int u = 0; u < lowering->unit_count; u++) {
        lowering->weights[u] = lowering->gradients[u] = -1;
        if (lowering->units[u].instances == 0) {
            continue;
        }
        choose_weights(lowering, u);
        near_shard(lowering, u);
        choose_gradients(lowering, u);
        if (lowering->units[u].trainable) {
            keep_buckets(lowering, u);
            lower_states(lowering, u, unit_names(lowering, u)->moment1, unit_names(lowering, u)->moment2);
        }
        lower_offload(lowering, &lowering->units[u]);
    }
    fp8_choose_weights(lowering);
}

// ---- emitting

typedef struct Place {
    int unit;
    int index;  // layer offset, or the slot itself when absolute
    bool absolute;
    int guard;
    Phase phase;
    OpList *out;
    const OpRef *behind;  // a gather waits for it; NULL
} Place;

static OpRef place_ref(const Lowering *lowering, const Place *place, int32_t tensor) {
    OpRef ref = op_whole(lowering, tensor);
    ref.index = (int16_t)place->index;
    return ref;
}

static Op *place_append(Lowering *lowering, const Place *place, Op op) {
    op.task.unit = (int16_t)place->unit;
    op.task.layer_guard = (int16_t)place->guard;
    op.task.phase = place->phase;
    op.absolute = place->absolute;
    return op_list_append(lowering->arena, place->out, &op);
}

static Op *place_move(Lowering *lowering, const Place *place, LaneId lane, Op op, int32_t from, int32_t to) {
    op.task.lane = (int16_t)lane;
    op_operand(&op, place_ref(lowering, place, from), ACCESS_READ);
    op_operand(&op, place_ref(lowering, place, to), op.task.kind == TASK_ACCUMULATE ? ACCESS_UPDATE : ACCESS_WRITE);
    return place_append(lowering, place, op);
}

static Op *place_copy(Lowering *lowering, const Place *place, LaneId lane, const char *name, int32_t from, int32_t to) {
    const Tensor *source = &lowering->tensors[from];
    const int64_t elements = source->bytes / dtype_bytes(source->dtype);
    return place_move(lowering, place, lane, op_local(TASK_COPY, place->phase, name, source->dtype, 1, elements), from,
                      to);
}

static Op *place_collective(Lowering *lowering, const Place *place, Op op, OpRef in, OpRef out) {
    op.task.dtype = lowering->tensors[in.tensor].dtype;
    const bool in_place = op.task.kind == TASK_ALL_REDUCE;
    op.task.payload_bytes = op.task.kind == TASK_ALL_GATHER ? out.bytes : in.bytes;
    op_operand(&op, in, in_place ? ACCESS_UPDATE : ACCESS_READ);
    if (!in_place) {
        op_operand(&op, out, ACCESS_WRITE);
    }
    return place_append(lowering, place, op);
}

static int32_t gather_out(Lowering *lowering, int u) {
    const Tensor weights = lowering->tensors[lowering->weights[u]];
    const int32_t raw = unit_tensor(lowering, unit_names(lowering, u)->raw, ROLE_COMMUNICATION, weights.dtype,
                                    weights.bytes / dtype_bytes(weights.dtype), ring_slots(&lowering->units[u], 2));
    lowering->tensors[raw].widest_bytes = weights.widest_bytes;
    return raw;
}

// From the neighbours, which kept part of what the first forward gathered, unconverted.
static void emit_near_gather(Lowering *lowering, const Place *place) {
    const Op gather =
        op_collective(lowering, TASK_ALL_GATHER, LANE_AG, lowering->near_group, "gather near weights", place->phase);
    const int32_t to =
        lowering->target->shard_copies ? gather_out(lowering, place->unit) : lowering->weights[place->unit];
    Op *made = place_collective(lowering, place, gather, place_ref(lowering, place, near_shard(lowering, place->unit)),
                                place_ref(lowering, place, to));
    if (place->behind) {
        op_operand(made, *place->behind, ACCESS_READ);
    }
}

static bool gathers_near(const Lowering *lowering, const Place *place) {
    return lowering->plan->reshard_ranks > 1 && !(lowering->first && place->phase == PHASE_FORWARD);
}

static void emit_gather(Lowering *lowering, const Place *place) {
    if (gathers_near(lowering, place)) {
        emit_near_gather(lowering, place);
        return;
    }
    Unit *unit = &lowering->units[place->unit];
    const Op gather =
        op_collective(lowering, TASK_ALL_GATHER, LANE_AG, unit->shard_group, "gather weights", place->phase);
    if (!lowering->target->shard_copies) {
        const int32_t part = unit->working >= 0 ? unit->working : unit->master;
        place_collective(lowering, place, gather, place_ref(lowering, place, part),
                         place_ref(lowering, place, lowering->weights[place->unit]));
        return;
    }
    const Tensor weights = lowering->tensors[lowering->weights[place->unit]];
    const int32_t part = unit_tensor(lowering, unit_names(lowering, place->unit)->part, ROLE_COMMUNICATION,
                                     weights.dtype, weights.bytes / dtype_bytes(weights.dtype) / unit->shards, 1);
    Op *copy = place_copy(lowering, place, lowering->target->shards_wait ? LANE_COMPUTE : LANE_AG, "gather copy in",
                          unit->working >= 0 ? unit->working : unit->master, part);
    if (weights.scale >= 0) {
        op_operand(copy, op_whole(lowering, weights.scale), ACCESS_READ);
    }
    if (place->behind) {
        op_operand(copy, *place->behind, ACCESS_READ);
    }
    place_collective(lowering, place, gather, place_ref(lowering, place, part),
                     place_ref(lowering, place, gather_out(lowering, place->unit)));
}

// What a rank keeps for its near shard is part of what it copies: no extra time.
static void emit_copy_out(Lowering *lowering, const Place *place) {
    if (!lowering->target->shard_copies) {
        return;
    }
    Op *copy = place_copy(lowering, place, LANE_COMPUTE, "gather copy out", gather_out(lowering, place->unit),
                          lowering->weights[place->unit]);
    if (lowering->plan->reshard_ranks > 1 && !gathers_near(lowering, place)) {
        op_operand(copy, place_ref(lowering, place, near_shard(lowering, place->unit)), ACCESS_WRITE);
    }
}

// With a root unit the embedding's mark handles it: the head's does nothing.
static bool is_in_root(const Lowering *lowering, const Op *mark) {
    return mark->task.unit == UNIT_HEAD && lowering->head_unit != UNIT_HEAD;
}

static void regather_embedding(Lowering *lowering, OpList *out) {
    const Place place = {.unit = UNIT_EMBEDDING, .phase = PHASE_BACKWARD, .out = out};
    emit_gather(lowering, &place);
    emit_copy_out(lowering, &place);
}

// A stage that keeps gathered parameters gathers them once.
static bool is_gathered_already(const Lowering *lowering) {
    return lowering_has_stages(lowering) && lowering->plan->reshard == RESHARD_NEVER && !lowering->first;
}

static void emit_need(Lowering *lowering, OpList *out, const Op *mark, Section section) {
    const bool backward = section == SECTION_LAYER_BACKWARD;
    if (is_gathered_already(lowering) || !gathers(lowering) || is_in_root(lowering, mark) ||
        (backward && lowering->plan->reshard == RESHARD_NEVER)) {
        return;
    }
    Place place = {.unit = mark->task.unit,
                   .phase = mark->task.phase,
                   .out = out,
                   .behind = mark->operand_count > 0 ? &mark->operands[AT_NEED_BEHIND] : NULL};
    if (!backward || !prefetches_backward(lowering) || is_late(lowering, place.unit)) {
        emit_gather(lowering, &place);
        emit_copy_out(lowering, &place);
        return;
    }
    emit_copy_out(lowering, &place);  // this layer's gather was issued by the layer after it
    place.index = place.guard = -1;
    emit_gather(lowering, &place);
}

// FSDP2 issues the first backward gather before the head's backward, and gathers the embedding again, which nothing
// reads. A root unit with embedding and head was freed after forward: gathered first, exposed; FSDP 1 keeps it.
static void emit_backward_begin(Lowering *lowering, OpList *out, const Op *mark) {
    if (!gathers(lowering) || !prefetches_backward(lowering) || lowering->plan->reshard == RESHARD_NEVER) {
        return;
    }
    if (mark->task.unit == UNIT_HEAD) {
        if (lowering->target->root_unit && !lowering->target->root_kept) {
            regather_embedding(lowering, out);
        }
        Place place = {.index = lowering->model->layers - 1, .absolute = true, .phase = PHASE_BACKWARD, .out = out};
        for (place.unit = 0; place.unit < lowering->unit_count; place.unit++) {
            if (lowering->units[place.unit].layered && !is_late(lowering, place.unit)) {
                emit_gather(lowering, &place);
            }
        }
    } else if (mark->task.unit == UNIT_EMBEDDING && !lowering->target->root_unit) {
        regather_embedding(lowering, out);
    }
}

// A tp rank that saw only its own tokens (between blocks), or only its own heads, has a partial sum of these gradients.
static void emit_norm_gradient_sum(Lowering *lowering, const Place *place) {
    const Unit *unit = &lowering->units[place->unit];
    if (lowering->tp == 1 || unit->partial_elements == 0) {
        return;
    }
    OpRef norms = place_ref(lowering, place, unit->gradient_full);
    norms.bytes = unit->partial_elements * dtype_bytes(lowering->dims.gradient_dtype);
    place_collective(
        lowering, place,
        op_collective(lowering, TASK_ALL_REDUCE, LANE_TP, lowering->tp_group, "norm gradient sum", PHASE_REDUCE), norms,
        op_absent());
}

// No operation writes the padding; what is reduced must be defined all the same.
static void emit_zero_padding(Lowering *lowering, const Place *place) {
    const Unit *unit = &lowering->units[place->unit];
    if (unit->trained_padded == unit->trained_elements) {
        return;
    }
    OpRef tail = place_ref(lowering, place, lowering->gradients[place->unit]);
    const Dtype dtype = lowering->tensors[tail.tensor].dtype;
    tail.offset_bytes = unit->trained_elements * dtype_bytes(dtype);
    tail.bytes -= tail.offset_bytes;
    Op op = op_local(TASK_ZERO, place->phase, "zero padding", dtype, 1, unit->trained_padded - unit->trained_elements);
    op_operand(&op, tail, ACCESS_WRITE);
    place_append(lowering, place, op);
}

static OpRef indexed(const Place *place, OpRef ref) {
    ref.index = (int16_t)place->index;
    return ref;
}

static void emit_replica_sum(Lowering *lowering, const Place *place, OpRef gradient) {
    const int16_t group = lowering->units[place->unit].replica_group;
    if (lowering_group_size(lowering, group) > 1) {
        place_collective(
            lowering, place,
            op_collective(lowering, TASK_ALL_REDUCE, LANE_REP, group, "replica gradient sum", PHASE_REDUCE), gradient,
            op_absent());
    }
}

static bool adds_to_shard(const Lowering *lowering, int unit) {
    return (unit_reduces_each(lowering, unit) && !lowering->first) || lowering->adds;
}

// The reduced part goes into the shard gradient: written, added, or cast.
static void emit_shard_gradient(Lowering *lowering, const Place *place, int32_t part, LaneId lane) {
    const int32_t shard = lowering->units[place->unit].gradient_shard;
    if (!adds_to_shard(lowering, place->unit)) {
        place_copy(lowering, place, lane, "shard gradient cast", part, shard);
        return;
    }
    const Op add = op_local(TASK_ACCUMULATE, place->phase, "shard gradient add", lowering->tensors[part].dtype, 1,
                            lowering->units[place->unit].trained_shard);
    place_move(lowering, place, lane, add, part, shard);
}

static int32_t reduce_source(Lowering *lowering, const Place *place) {
    const Unit *unit = &lowering->units[place->unit];
    const bool as_computed = lowering->dims.gradient_dtype == lowering->dims.reduce_dtype;
    if (!lowering->target->shard_copies && as_computed) {
        return unit->gradient_full;
    }
    // One buffer, so only one reduction is in flight: the next copy-in waits for it.
    const int32_t source = unit_tensor(lowering, unit_names(lowering, place->unit)->reduce_in, ROLE_COMMUNICATION,
                                       lowering->dims.reduce_dtype, unit->trained_padded, 1);
    Op *copy = place_copy(lowering, place, LANE_COMPUTE, "reduce copy in", unit->gradient_full, source);
    if (place->unit == UNIT_EMBEDDING && lowering->target->root_kept && gathers(lowering)) {
        op_operand(copy, op_whole(lowering, lowering->weights[UNIT_EMBEDDING]), ACCESS_READ);  // it is freed here
    }
    return source;
}

static void emit_reduce_scatter(Lowering *lowering, const Place *place) {
    const Unit *unit = &lowering->units[place->unit];
    const bool waits = target_reduce_overlap(lowering->target, lowering->plan) == REDUCE_OVERLAP_OFF;
    const bool cast = lowering->dims.reduce_dtype != lowering->master_dtype || plan_offloads_states(lowering->plan) ||
                      (waits && lowering->plan->zero >= 2);
    const bool each = unit_reduces_each(lowering, place->unit), adds = adds_to_shard(lowering, place->unit);
    const bool replicas = lowering_group_size(lowering, unit->replica_group) > 1;
    const int32_t source = reduce_source(lowering, place);
    const int32_t part = cast || adds
                             ? unit_tensor(lowering, unit_names(lowering, place->unit)->reduce_out, ROLE_COMMUNICATION,
                                           lowering->dims.reduce_dtype, unit->trained_shard,
                                           replicas && (cast || lowering->replicas_each) ? unit->instances : 1)
                             : unit->gradient_shard;
    place_collective(
        lowering, place,
        op_collective(lowering, TASK_REDUCE_SCATTER, LANE_RS, unit->shard_group, "reduce gradients", PHASE_REDUCE),
        place_ref(lowering, place, source),
        part == unit->gradient_full ? indexed(place, own_slice(lowering, unit, part))
                                    : place_ref(lowering, place, part));
    const bool replicas_first = lowering->replicas_each || (cast && lowering->last && !each);
    if (replicas_first) {
        emit_replica_sum(lowering, place, place_ref(lowering, place, part));
    }
    if (cast || adds) {
        emit_shard_gradient(lowering, place, part,
                            waits                        ? LANE_COMPUTE
                            : replicas_first && replicas ? LANE_REP
                                                         : LANE_RS);
    }
    if (lowering->last && !replicas_first) {
        emit_replica_sum(lowering, place, indexed(place, shard_gradient(lowering, unit)));
    }
}

// Into the fp32 buffer, on every micro-step.
static void emit_half_gradient(Lowering *lowering, const Place *place) {
    const Unit *unit = &lowering->units[place->unit];
    const int32_t half = lowering->gradients[place->unit];
    if (half == unit->gradient_full) {
        return;
    }
    emit_zero_padding(lowering, place);
    if (lowering->first) {
        place_copy(lowering, place, LANE_COMPUTE, "gradient cast", half, unit->gradient_full);
        return;
    }
    const Op add =
        op_local(TASK_ACCUMULATE, place->phase, "gradient add", lowering->tensors[half].dtype, 1, unit->trained_padded);
    place_move(lowering, place, LANE_COMPUTE, add, half, unit->gradient_full);
}

// Stage 0 has no shard: all data ranks reduce the whole gradient.
static void emit_all_reduce(Lowering *lowering, const Place *place) {
    const Unit *unit = &lowering->units[place->unit];
    const int16_t group = data_group_of(lowering, place->unit);
    if (lowering_group_size(lowering, group) > 1) {
        place_collective(lowering, place,
                         op_collective(lowering, TASK_ALL_REDUCE, LANE_REP, group, "gradient sum", PHASE_REDUCE),
                         place_ref(lowering, place, unit->gradient_full), op_absent());
    }
    if (sums_shards(lowering, place->unit)) {
        emit_shard_gradient(lowering, place, unit->gradient_full, LANE_REP);
    }
}

// Over all ranks that have a different part of it.
static void emit_reduction(Lowering *lowering, const Place *place) {
    (lowering->plan->zero > 0 ? emit_reduce_scatter : emit_all_reduce)(lowering, place);
}

static bool reduces_late(const Lowering *lowering, int unit) {
    return unit_is_tied(lowering, unit) || target_reduces_late(lowering->target, lowering->plan);
}

void lower_late_reduce(Lowering *lowering, Section section, int unit) {
    if (reduces_late(lowering, unit)) {
        emit_reduction(lowering, &(Place){.unit = unit, .phase = PHASE_REDUCE, .out = &lowering->lists[section]});
    }
}

// A root unit is reduced at the end of backward: the head's gradient waits for the embedding's.
static void emit_gradient(Lowering *lowering, OpList *out, const Op *mark) {
    const int unit = mark->task.unit;
    const Place place = {.unit = unit, .phase = PHASE_REDUCE, .out = out};
    if (is_in_root(lowering, mark) || !lowering->units[unit].trainable) {
        return;
    }
    emit_half_gradient(lowering, &place);
    if (!unit_reduces_each(lowering, unit) && !lowering->last) {
        return;
    }
    if (lowering->gradients[unit] == lowering->units[unit].gradient_full) {
        emit_zero_padding(lowering, &place);
    }
    emit_norm_gradient_sum(lowering, &place);
    if (!reduces_late(lowering, unit)) {
        emit_reduction(lowering, &place);
    }
    if (lowering->plan->update_in_backward) {  // FSDP2 runs the hooks on the stream that ends the reduction
        const bool replicas = lowering_group_size(lowering, lowering->units[unit].replica_group) > 1;
        lower_unit_update(lowering, out, unit, replicas ? LANE_REP : lowering->plan->zero > 0 ? LANE_RS : LANE_COMPUTE);
    }
}

// Whole gradients that are summed over micro-steps: every write after the first micro-step adds.
static void accumulate_gradients(Lowering *lowering, OpList *list) {
    if (!lowering->reduce_each) {
        mixed_drop_zeros(list);
    }
    for (size_t i = 0; i < list->count; i++) {
        Op *op = list->ops[i];
        for (int k = 0; k < op->operand_count; k++) {
            OpRef *ref = &op->operands[k];
            for (int u = 0; u < lowering->unit_count; u++) {
                if (ref->tensor == lowering->gradients[u] && ref->access == ACCESS_WRITE &&
                    !unit_reduces_each(lowering, u)) {
                    ref->access = ACCESS_UPDATE;
                    op->task.accumulate = true;
                }
            }
        }
    }
}

void lower_sharding(Lowering *lowering) {
    for (Section section = SECTION_BEGIN; section <= SECTION_END; section++) {
        OpList in = lowering->lists[section];
        OpList out = {0};
        if (!lowering->first && !adds_half_gradients(lowering)) {
            accumulate_gradients(lowering, &in);
        }
        for (size_t i = 0; i < in.count; i++) {
            switch (in.ops[i]->mark) {
            case MARK_UNIT_NEED:
                emit_need(lowering, &out, in.ops[i], section);
                break;
            case MARK_UNIT_BACKWARD:
                emit_backward_begin(lowering, &out, in.ops[i]);
                break;
            case MARK_UNIT_GRADIENT:
                emit_gradient(lowering, &out, in.ops[i]);
                break;
            default:
                op_list_pass(lowering->arena, &out, in.ops[i]);
            }
        }
        lowering->lists[section] = out;
    }
}
