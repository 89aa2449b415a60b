// A second copy of the parameters among neighbours (reshard_ranks): each rank's part of it, from the first forward on.

#include "sim/step/lower.h"

int32_t near_shard(Lowering *lowering, int u) {
    if (lowering->plan->reshard_ranks <= 1) {
        return -1;
    }
    const Tensor weights = lowering->tensors[lowering->weights[u]];
    const int64_t elements = weights.bytes / dtype_bytes(weights.dtype) / lowering->plan->reshard_ranks;
    const int32_t tensor =
        lowering_tensor(lowering, unit_names(lowering, u)->near, ROLE_PARAMETER, weights.dtype, elements);
    lowering->tensors[tensor].slots = lowering->units[u].instances;
    lowering->tensors[tensor].persistent = true;
    return tensor;
}
