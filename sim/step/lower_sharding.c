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

#include "sim/step/sharding.h"

OpRef place_ref(const Lowering *lowering, const Place *place, int32_t tensor) {
    OpRef ref = op_whole(lowering, tensor);
    ref.index = (int16_t)place->index;
    return ref;
}

Op *place_append(Lowering *lowering, const Place *place, Op op) {
    op.task.unit = (int16_t)place->unit;
    op.task.layer_guard = (int16_t)place->guard;
    op.task.phase = place->phase;
    op.absolute = place->absolute;
    return op_list_append(lowering->arena, place->out, &op);
}

Op *place_move(Lowering *lowering, const Place *place, LaneId lane, Op op, int32_t from, int32_t to) {
    op.task.lane = (int16_t)lane;
    op_operand(&op, place_ref(lowering, place, from), ACCESS_READ);
    op_operand(&op, place_ref(lowering, place, to), op.task.kind == TASK_ACCUMULATE ? ACCESS_UPDATE : ACCESS_WRITE);
    return place_append(lowering, place, op);
}

Op *place_copy(Lowering *lowering, const Place *place, LaneId lane, const char *name, int32_t from, int32_t to) {
    const Tensor *source = &lowering->tensors[from];
    const int64_t elements = source->bytes / dtype_bytes(source->dtype);
    return place_move(lowering, place, lane, op_local(TASK_COPY, place->phase, name, source->dtype, 1, elements), from,
                      to);
}

Op *place_collective(Lowering *lowering, const Place *place, Op op, OpRef in, OpRef out) {
    op.task.dtype = lowering->tensors[in.tensor].dtype;
    const bool in_place = op.task.kind == TASK_ALL_REDUCE;
    op.task.payload_bytes = op.task.kind == TASK_ALL_GATHER ? out.bytes : in.bytes;
    op_operand(&op, in, in_place ? ACCESS_UPDATE : ACCESS_READ);
    if (!in_place) {
        op_operand(&op, out, ACCESS_WRITE);
    }
    return place_append(lowering, place, op);
}

// The previous layer comes next only if all layers are on one stage.
static bool prefetches_backward(const Lowering *lowering) {
    return lowering->target->backward_prefetch && !lowering_has_stages(lowering);
}

static bool is_late(const Lowering *lowering, int unit) {  // gathered when backward reaches its layer
    return unit == UNIT_EXPERTS && lowering->ep > 1 && lowering->target->experts_apart;
}

static int32_t gather_out(Lowering *lowering, int u) {
    const Tensor weights = lowering->tensors[lowering->weights[u]];
    const int32_t raw =
        unit_tensor(lowering, unit_names(lowering, u)->raw, ROLE_COMMUNICATION, weights.dtype,
                    weights.bytes / dtype_bytes(weights.dtype), sharding_ring_slots(&lowering->units[u], 2));
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

bool sharding_is_in_root(const Lowering *lowering, const Op *mark) {
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
    if (is_gathered_already(lowering) || !sharding_gathers(lowering) || sharding_is_in_root(lowering, mark) ||
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
    if (!sharding_gathers(lowering) || !prefetches_backward(lowering) || lowering->plan->reshard == RESHARD_NEVER) {
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

void lower_sharding(Lowering *lowering) {
    for (Section section = SECTION_BEGIN; section <= SECTION_END; section++) {
        OpList in = lowering->lists[section];
        OpList out = {0};
        if (!lowering->first && !sharding_adds_half(lowering)) {
            sharding_accumulate(lowering, &in);
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
                sharding_emit_gradient(lowering, &out, in.ops[i]);
                break;
            default:
                op_list_pass(lowering->arena, &out, in.ops[i]);
            }
        }
        lowering->lists[section] = out;
    }
}
