// Pass 5c: weight gradients separate from input gradients, for schedules that defer them. Backward is split into two
// lists: what computes or reduces weight gradients goes to the second one, the rest stays. What the second list reads
// from the first is held for every layer and micro-step in between (lower_lanes.c). An operation that computes both, a
// norm's backward, sets its small weight gradient aside, and the second list picks it up. What backward recomputes for
// weight gradients gets its own tensor, separate from forward's. A chunked loss computes the head's gradients right
// away: its logits are not held.

#include "sim/step/lower_ops.h"

bool lowering_splits(const Lowering *lowering) {
    return lowering->choice->schedule->splits;
}

static bool is_gradient(const Lowering *lowering, const OpRef *ref) {
    return ref->tensor >= 0 && lowering->tensors[ref->tensor].role == ROLE_GRADIENT;
}

// Whether it computes more than weight gradients.
static bool makes_more(const Lowering *lowering, const Op *op) {
    bool more = false;
    for (int k = 0; k < op->operand_count; k++) {
        const OpRef *ref = &op->operands[k];
        more |= ref->tensor >= 0 && (ref->access & ACCESS_WRITE) && !is_gradient(lowering, ref);
    }
    return more;
}

static bool touches_gradients(const Lowering *lowering, const Op *op) {
    bool touches = op->task.phase == PHASE_REDUCE;
    for (int k = 0; k < op->operand_count; k++) {
        touches |= is_gradient(lowering, &op->operands[k]);
    }
    return touches;
}

static const char *slice_name(const Lowering *lowering, int64_t element, int unit) {
    const Unit *of = &lowering->units[unit];
    int32_t slice = of->first_slice;
    while (lowering->slices[slice].offset_elements != element) {
        slice++;
        ASSERT(slice < of->first_slice + of->slice_count);
    }
    return lowering->slices[slice].name;
}

static int unit_of_gradient(const Lowering *lowering, int32_t tensor) {
    int unit = 0;
    while (lowering->gradients[unit] != tensor) {
        unit++;
        ASSERT(unit < lowering->unit_count);
    }
    return unit;
}

// The gradient is set aside, and moved from there to its destination.
static void put_aside(Lowering *lowering, Op *op, OpRef *ref, OpList *weights) {
    const Dtype dtype = lowering->tensors[ref->tensor].dtype;
    const int64_t elements = ref->bytes / dtype_bytes(dtype);
    const char *slice =
        slice_name(lowering, ref->offset_bytes / dtype_bytes(dtype), unit_of_gradient(lowering, ref->tensor));
    const int32_t aside = lowering_tensor(lowering, arena_format(lowering->arena, "%s gradient aside", slice),
                                          ROLE_ACTIVATION, dtype, elements);
    const bool adds = op->task.accumulate;
    Op move = op_local(adds ? TASK_ACCUMULATE : TASK_COPY, PHASE_BACKWARD, "gradient from aside", dtype, 1, elements);
    move.only = op->only;
    op_list_move(lowering, weights, move, op_whole(lowering, aside), *ref, adds ? ACCESS_UPDATE : ACCESS_WRITE);
    *ref = op_whole(lowering, aside);
    ref->access = ACCESS_WRITE;
}

static void put_all_aside(Lowering *lowering, Op *op, OpList *weights) {
    for (int k = 0; k < op->operand_count; k++) {
        if (is_gradient(lowering, &op->operands[k])) {
            put_aside(lowering, op, &op->operands[k], weights);
        }
    }
    op->task.accumulate = false;
}

static bool reads(const OpList *list, int32_t tensor) {
    bool found = false;
    for (size_t i = 0; i < list->count; i++) {
        for (int k = 0; k < list->ops[i]->operand_count; k++) {
            const OpRef *ref = &list->ops[i]->operands[k];
            found |= ref->tensor == tensor && (ref->access & ACCESS_READ);
        }
    }
    return found;
}

static void rename_tensor(OpList *list, int32_t from, int32_t to) {
    for (size_t i = 0; i < list->count; i++) {
        for (int k = 0; k < list->ops[i]->operand_count; k++) {
            OpRef *ref = &list->ops[i]->operands[k];
            ref->tensor = ref->tensor == from ? to : ref->tensor;
        }
    }
}

// Forward's tensor is freed long before, and later micro-steps overwrite it while weight gradients are pending.
static void part_from_forward(Lowering *lowering, OpList *inputs, OpList *weights) {
    for (size_t i = 0; i < inputs->count; i++) {
        const Op *op = inputs->ops[i];
        for (int k = 0; k < op->operand_count && op->task.phase == PHASE_RECOMPUTE; k++) {
            const int32_t tensor = op->operands[k].tensor;
            if (tensor >= 0 && (op->operands[k].access & ACCESS_WRITE) && reads(weights, tensor)) {
                const Tensor old = lowering->tensors[tensor];
                const int32_t again = lowering_tensor(lowering, arena_format(lowering->arena, "%s again", old.name),
                                                      old.role, old.dtype, old.bytes / dtype_bytes(old.dtype));
                rename_tensor(inputs, tensor, again);
                rename_tensor(weights, tensor, again);
            }
        }
    }
}

static bool overlaps(const OpRef *a, const OpRef *b) {
    return a->tensor >= 0 && a->tensor == b->tensor && a->index == b->index &&
           a->offset_bytes < b->offset_bytes + b->bytes && b->offset_bytes < a->offset_bytes + a->bytes;
}

// Does backward write later what this one reads, such as a sum of input gradients so far? Then it cannot be deferred.
static bool is_overwritten(const Lowering *lowering, const OpList *all, size_t at) {
    bool found = false;
    for (size_t later = at + 1; later < all->count; later++) {
        const Op *op = all->ops[later];
        for (int k = 0; k < op->operand_count; k++) {
            const OpRef *write = &op->operands[k];
            for (int r = 0; r < all->ops[at]->operand_count && (write->access & ACCESS_WRITE); r++) {
                const OpRef *read = &all->ops[at]->operands[r];
                found |= (read->access & ACCESS_READ) && !is_gradient(lowering, read) && overlaps(read, write);
            }
        }
    }
    return found;
}

static void split_section(Lowering *lowering, Section section, Section of_weights) {
    const OpList all = lowering->lists[section];
    OpList inputs = {0}, weights = {0};
    for (size_t i = 0; i < all.count; i++) {
        Op *op = all.ops[i];
        const bool touches = touches_gradients(lowering, op),
                   more = op->task.phase != PHASE_REDUCE && makes_more(lowering, op);
        if (touches && more) {
            put_all_aside(lowering, op, &weights);
        }
        const bool deferred = touches && !more && !is_overwritten(lowering, &all, i);
        op_list_pass(lowering->arena, deferred ? &weights : &inputs, op);
    }
    part_from_forward(lowering, &inputs, &weights);
    lowering->lists[section] = inputs;
    lowering->lists[of_weights] = weights;
}

void lower_split(Lowering *lowering) {
    static const Section sections[][2] = {{SECTION_LAYER_BACKWARD, SECTION_LAYER_WEIGHTS},
                                          {SECTION_KEPT_BACKWARD, SECTION_KEPT_WEIGHTS},
                                          {SECTION_END, SECTION_END_WEIGHTS},
                                          {SECTION_TAIL, SECTION_TAIL_WEIGHTS}};
    const int count = lowering->loss_chunks > 1 ? 3 : 4;
    for (int i = 0; i < count && lowering_splits(lowering); i++) {
        split_section(lowering, sections[i][0], sections[i][1]);
    }
}
