// What lives in host memory: parts of a unit; and what the first layers save for backward, which moves there beside the
// layers that follow and back beside their backward. Of N first layers of L, layer i has to be there before layer
// i + L - N begins, and comes back as soon as that layer's backward has ended, so L - N layers' worth stays on the
// accelerator (Transformer Engine, pytorch/cpu_offload.py, DefaultOffloadSynchronizer): slots that take turns.

#include "sim/step/lower_ops.h"

// What the update reads and writes; masters stay on the device if nothing else holds the weights.
static void move_to_host(Lowering *lowering, const Unit *unit, bool gathered) {
    const bool copied = unit->working >= 0 && unit->working != unit->master;
    const int32_t moved[] = {unit->moment1, unit->moment2, unit->gradient_shard};
    for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++) {
        if (moved[i] >= 0) {
            lowering->tensors[moved[i]].host = true;
        }
    }
    const bool parameters = lowering->plan->offload == OFFLOAD_PARAMETERS;
    lowering->tensors[unit->master].host = copied || parameters;
    if (copied && parameters && gathered) {
        lowering->tensors[unit->working].host = true;  // frozen ones along with adapters
    }
}

void lower_offload(Lowering *lowering, const Unit *unit) {
    const bool gathered = lowering->plan->zero == 3;
    if (unit->trainable && plan_offloads_states(lowering->plan)) {
        move_to_host(lowering, unit, gathered);
    } else if (!unit->trainable && lowering->plan->offload == OFFLOAD_PARAMETERS && gathered) {
        lowering->tensors[unit->master].host = true;  // what is not trained is offloaded too
    }
}

// ---- what layers save

bool lowering_offloads_saved(const Lowering *lowering) {
    return plan_offloads_activations(lowering->plan) && lowering->target->offloads_saved;
}

int32_t lowering_saved_layers(const Lowering *lowering) {
    const int32_t layers = lowering->model->layers;
    return lowering_offloads_saved(lowering) ? layers - plan_offload_layers(lowering->plan, layers) : layers;
}

// Smaller tensors stay (_check_if_offload): here of one sequence, so that programs of all micro-batches are alike.
enum { LEAST_ELEMENTS = 256 * 1024 };

static void note_written(const Op *op, bool *written) {
    for (int k = 0; k < op->operand_count; k++) {
        if (op->operands[k].tensor >= 0 && (op->operands[k].access & ACCESS_WRITE)) {
            written[op->operands[k].tensor] = true;
        }
    }
}

static int64_t elements_of(const Tensor *tensor) {
    return tensor->bytes / dtype_bytes(tensor->dtype);
}

static bool may_move(const Lowering *lowering, const Tensor *tensor) {
    const bool activation = tensor->role == ROLE_ACTIVATION || tensor->role == ROLE_COMMUNICATION;
    return activation && !tensor->persistent && !tensor->cheap &&
           (tensor->slots == 0 || tensor->slots >= lowering_saved_layers(lowering)) &&
           elements_of(tensor) / lowering->plan->micro_batch >= LEAST_ELEMENTS;
}

// One way, behind all of a layer: of that layer, or of the one that its slots are free for.
static void add_copy(Lowering *lowering, Section section, int32_t from, int32_t to, int index, int guard) {
    const char *name = section == SECTION_LAYER_FORWARD ? "saved to host" : "saved from host";
    OpRef source = op_whole(lowering, from), target = op_whole(lowering, to);
    source.index = target.index = (int16_t)index;
    Op *op = op_copy(lowering, section, layer_phase(section), name, 1, elements_of(&lowering->tensors[from]), source,
                     target);
    op->task.lane = LANE_HOST;
    op->task.dtype = lowering->tensors[from].dtype;
    op->task.layer_guard = (int16_t)guard;
}

static void move_saved(Lowering *lowering, int32_t saved) {
    const int32_t kept = lowering_saved_layers(lowering);
    const Tensor tensor = lowering->tensors[saved];
    const int32_t host = lowering_tensor(lowering, arena_format(lowering->arena, "%s on host", tensor.name),
                                         tensor.role, tensor.dtype, elements_of(&tensor));
    lowering->tensors[host].slots = lowering->model->layers - kept;
    lowering->tensors[host].host = true;
    if (tensor.slots == 0) {
        lowering->tensors[saved].slots = kept;
    }
    add_copy(lowering, SECTION_LAYER_FORWARD, saved, host, 0, kept);
    add_copy(lowering, SECTION_LAYER_BACKWARD, host, saved, -kept, -kept);
}

void lower_offload_saved(Lowering *lowering) {
    if (!lowering_offloads_saved(lowering)) {
        return;
    }
    const OpList forward = lowering->lists[SECTION_LAYER_FORWARD], backward = lowering->lists[SECTION_LAYER_BACKWARD];
    const size_t tensors = lowering->tensor_count;
    bool *saved = ARENA_ARRAY(lowering->arena, bool, tensors), *made = ARENA_ARRAY(lowering->arena, bool, tensors);
    for (size_t i = 0; i < forward.count; i++) {
        note_written(forward.ops[i], saved);
    }
    for (size_t i = 0; i < backward.count; i++) {
        const Op *op = backward.ops[i];
        for (int k = 0; k < op->operand_count; k++) {
            const int32_t tensor = op->operands[k].tensor;
            const bool reads = tensor >= 0 && (op->operands[k].access & ACCESS_READ);
            if (reads && saved[tensor] && !made[tensor] && may_move(lowering, &lowering->tensors[tensor])) {
                move_saved(lowering, tensor);
                saved[tensor] = false;
            }
        }
        note_written(op, made);
    }
}
