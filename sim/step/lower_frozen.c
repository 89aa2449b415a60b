// Pass 3b: units that are not trained. Operations that make nothing but their gradients go; one that makes an input
// gradient too, a norm's, keeps that. What those operations alone read is then not kept for backward either. Input
// gradients below the lowest trained layer are not left out: the layers are one loop.

#include "sim/step/lower.h"

static bool is_frozen_gradient(const Lowering *lowering, int32_t tensor) {
    bool found = false;
    for (int32_t u = 0; u < lowering->unit_count; u++) {
        found |= !lowering->units[u].trainable && tensor == lowering->gradients[u];
    }
    return found;
}

// False where nothing is left to write.
static bool leave_gradients_out(const Lowering *lowering, Op *op) {
    bool left_out = false, writes = false;
    for (int k = 0; k < op->operand_count; k++) {
        OpRef *ref = &op->operands[k];
        if (ref->tensor >= 0 && is_frozen_gradient(lowering, ref->tensor)) {
            const Access access = ref->access;
            *ref = op_absent();
            ref->access = access;
            left_out = true;
        }
        writes |= ref->tensor >= 0 && (ref->access & ACCESS_WRITE);
    }
    return writes || !left_out;
}

void lower_frozen(Lowering *lowering) {
    for (Section section = SECTION_BEGIN; section <= SECTION_END && lowering->choice->frozen; section++) {
        const OpList in = lowering->lists[section];
        OpList out = {0};
        for (size_t i = 0; i < in.count; i++) {
            if (leave_gradients_out(lowering, in.ops[i])) {
                op_list_pass(lowering->arena, &out, in.ops[i]);
            }
        }
        lowering->lists[section] = out;
    }
}
