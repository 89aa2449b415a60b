// Reductions of a unit's gradient, in place of its mark (lower_sharding.c).

#include "sim/step/mixed.h"
#include "sim/step/sharding.h"
#include "sim/step/tied.h"

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
    if (place->unit == UNIT_EMBEDDING && lowering->target->root_kept && sharding_gathers(lowering)) {
        op_operand(copy, op_whole(lowering, lowering->weights[UNIT_EMBEDDING]), ACCESS_READ);  // it is freed here
    }
    return source;
}

static void emit_reduce_scatter(Lowering *lowering, const Place *place) {
    const Unit *unit = &lowering->units[place->unit];
    const bool waits = target_reduce_overlap(lowering->target, lowering->plan) == REDUCE_OVERLAP_OFF;
    const bool cast = lowering->dims.reduce_dtype != updated_dtype(lowering) || plan_offloads_states(lowering->plan) ||
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
    const int16_t group = sharding_data_group(lowering, place->unit);
    if (lowering_group_size(lowering, group) > 1) {
        place_collective(lowering, place,
                         op_collective(lowering, TASK_ALL_REDUCE, LANE_REP, group, "gradient sum", PHASE_REDUCE),
                         place_ref(lowering, place, unit->gradient_full), op_absent());
    }
    if (sharding_sums_shards(lowering, place->unit)) {
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
void sharding_emit_gradient(Lowering *lowering, OpList *out, const Op *mark) {
    const int unit = mark->task.unit;
    const Place place = {.unit = unit, .phase = PHASE_REDUCE, .out = out};
    if (sharding_is_in_root(lowering, mark) || !lowering->units[unit].trainable) {
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

void sharding_accumulate(Lowering *lowering, OpList *list) {
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
