// Which parts of a unit live in host memory.

#include "sim/step/lower.h"

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
