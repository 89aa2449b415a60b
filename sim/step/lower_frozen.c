// Pass 3b: units that are not trained. Operations that compute only their gradients are dropped; one that computes an
// input gradient too, such as a norm's, keeps that. What only the dropped operations read is then not kept for backward
// either. Input gradients below the lowest trained layer are not dropped: the layers are one loop.

#include "sim/step/lower.h"
#include "sim/step/sharding.h"

// In a unit that is not trained, or after the adapters of one whose adapters are.
static bool is_frozen_gradient(const Lowering *lowering, const OpRef *ref) {
    bool found = false;
    for (int32_t u = 0; u < lowering->unit_count; u++) {
        const Unit *unit = &lowering->units[u];
        if (ref->tensor == lowering->gradients[u]) {
            const int64_t trained = unit->trained_elements * dtype_bytes(lowering->tensors[ref->tensor].dtype);
            found |= !unit->trainable || ref->offset_bytes >= trained;
        }
    }
    return found;
}

// False if nothing is left to write.
static bool leave_gradients_out(const Lowering *lowering, Op *op) {
    bool left_out = false, writes = false;
    for (int k = 0; k < op->operand_count; k++) {
        OpRef *ref = &op->operands[k];
        if (ref->tensor >= 0 && is_frozen_gradient(lowering, ref)) {
            const Access access = ref->access;
            *ref = op_absent();
            ref->access = access;
            left_out = true;
        }
        writes |= ref->tensor >= 0 && (ref->access & ACCESS_WRITE);
    }
    return writes || !left_out;
}

// FSDP 1 registers a hook on the inputs of a unit whose parameters are all frozen (adapters are separate units). The
// hook holds references until it is removed after backward: to the inputs that checkpointing detached, and with them
// their gradients (PyTorch's fsdp/_runtime_utils.py, _register_post_backward_reshard_only_hook and _finalize_params;
// autograd/graph.py, register_multi_grad_hook).
bool holds_inputs(const Lowering *lowering) {
    const TrainPlan *plan = lowering->plan;
    return lowering->target->frozen_held && lowering_adapts(lowering) && plan->zero == 3 &&
           plan->recompute == RECOMPUTE_FULL && !plan_keeps_layers(plan);
}

static bool freezes(const Lowering *lowering) {
    return lowering->choice->frozen || lowering_adapts(lowering);
}

// FSDP 1 leaves its root gathered, and where that is frozen no gradient of its own ends that: what is left is resharded
// when backward has ended (fsdp/_runtime_utils.py, _post_backward_final_callback).
static void hold_root(Lowering *lowering) {
    const OpList *list = &lowering->lists[SECTION_LAYER_BACKWARD];
    const bool held =
        lowering->target->root_kept && sharding_gathers(lowering) && !lowering->units[UNIT_EMBEDDING].trainable;
    for (size_t i = list->count; i > 0 && held; i--) {
        if (list->ops[i - 1]->mark == MARK_NONE &&
            list->ops[i - 1]->task.kind == TASK_GEMM) {  // its time is no operand's
            op_operand(list->ops[i - 1], op_whole(lowering, lowering->weights[UNIT_EMBEDDING]), ACCESS_READ);
            break;
        }
    }
}

void lower_frozen(Lowering *lowering) {
    for (Section section = SECTION_BEGIN; section <= SECTION_END && freezes(lowering); section++) {
        const OpList in = lowering->lists[section];
        OpList out = {0};
        for (size_t i = 0; i < in.count; i++) {
            if (leave_gradients_out(lowering, in.ops[i])) {
                op_list_pass(lowering->arena, &out, in.ops[i]);
            }
        }
        lowering->lists[section] = out;
    }
    if (freezes(lowering)) {
        hold_root(lowering);
    }
}
