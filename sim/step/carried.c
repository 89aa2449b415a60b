// Micro-steps in flight: what forward saves for its micro-step's backward has slots per micro-step, for as many as are
// in flight at once. Chunks of a stage have most in flight at different times. Our executor lets slots take turns at
// places, the fewer the less often each is used: where its stages have several chunks, every micro-step has its own.

#include "sim/step/carried.h"

#include "sim/step/lower_ops.h"
#include "sim/step/slots.h"

Work section_work(Section section) {
    return section == SECTION_BEGIN || section == SECTION_LAYER_FORWARD ? WORK_FORWARD
           : section >= SECTION_TAIL_WEIGHTS                            ? WORK_WEIGHTS
                                                                        : WORK_BACKWARD;
}

// Weights and gradients are shared by all micro-steps.
static bool belongs_to_micro_step(const Tensor *tensor) {
    return !tensor->persistent && (tensor->role == ROLE_ACTIVATION || tensor->role == ROLE_LOGITS ||
                                   tensor->role == ROLE_COMMUNICATION || tensor->role == ROLE_RUNTIME);
}

typedef struct Carried {
    bool *by[WORK_COUNT];  // per tensor: written by this work of the micro-step so far
    bool *inputs;          // written by backward, even if to one of several slots
} Carried;

// Micro-steps over which a tensor lives, from the work that wrote it until this one; 0 = none wrote it.
static int32_t micro_steps_since(const Carried *carried, int32_t tensor, Work work, const MicroLoops *loops) {
    if (work == WORK_WEIGHTS && !carried->by[WORK_WEIGHTS][tensor]) {
        return carried->by[WORK_FORWARD][tensor] ? loops->until_weights : carried->inputs[tensor] ? loops->held : 0;
    }
    const bool left_behind = carried->by[WORK_FORWARD][tensor] && !carried->by[WORK_BACKWARD][tensor];
    return work == WORK_BACKWARD && left_behind ? loops->in_flight : 0;
}

static void note_carried(Lowering *lowering, const Op *op, Work work, const Carried *carried, const MicroLoops *loops) {
    for (int k = 0; k < op->operand_count; k++) {
        const OpRef *ref = &op->operands[k];
        if (ref->tensor < 0) {
            continue;
        }
        Tensor *tensor = &lowering->tensors[ref->tensor];
        const int32_t since = micro_steps_since(carried, ref->tensor, work, loops);
        if ((ref->access & ACCESS_READ) && since > !lowering->choice->alone && belongs_to_micro_step(tensor)) {
            tensor->micro_steps = tensor->micro_steps > since ? tensor->micro_steps : since;
        }
        const bool writes = ref->access & ACCESS_WRITE;
        if (writes && (work == WORK_FORWARD || tensor->slots == 1)) {  // with several slots only one is written
            carried->by[work][ref->tensor] = true;
        }
        carried->inputs[ref->tensor] |= writes && work == WORK_BACKWARD;
    }
}

static bool is_of_other_layers(Section section, bool keep) {
    return keep ? section == SECTION_LAYER_BACKWARD || section == SECTION_LAYER_WEIGHTS
                : section == SECTION_KEPT_BACKWARD || section == SECTION_KEPT_WEIGHTS;
}

static void part_micro_steps(Lowering *lowering) {
    const LoweringChoice *choice = lowering->choice;
    const int32_t all = plan_round_steps(lowering->plan);
    if (choice->alone || lowering->held->chunk_count == 1 || !target_is_executor(lowering->target)) {
        return;
    }
    const int32_t messages[] = {residual_stream(lowering), gradient_stream(lowering)};
    for (int32_t t = 0; t < (int32_t)lowering->tensor_count; t++) {
        Tensor *tensor = &lowering->tensors[t];
        if (tensor->micro_steps > 1 && t != messages[0] && t != messages[1] && tensor->slots * all <= PLACED_SLOTS) {
            tensor->micro_steps = all;
        }
    }
}

void carried_choose(Lowering *lowering, const Variant *variants, const MicroLoops *loops) {
    const bool several = loops->in_flight > 1 || loops->until_weights > 1 || lowering->choice->alone;
    for (int v = 0; v < 2 * MICRO_KINDS && several; v++) {  // of layers that recompute, and of those that keep
        Carried carried = {.inputs = ARENA_ARRAY(lowering->arena, bool, lowering->tensor_count)};
        for (Work work = 0; work < WORK_COUNT; work++) {
            carried.by[work] = ARENA_ARRAY(lowering->arena, bool, lowering->tensor_count);
        }
        for (int s = 0; s < variants[v / 2].stretch_count; s++) {
            const Stretch *stretch = &variants[v / 2].stretches[s];
            for (size_t i = 0; i < stretch->list.count && !is_of_other_layers(stretch->section, v % 2); i++) {
                note_carried(lowering, stretch->list.ops[i], section_work(stretch->section), &carried, loops);
            }
        }
    }
    part_micro_steps(lowering);
}
