// A gated activation keeps its input for backward in fp8, without a scale (Megatron-core's
// activation_func_fp8_input_store: fusions/fused_bias_swiglu.py, SwiGLUFunction and WeightedSwiGLUFunction): a cast
// before it, and one back before its backward. PyTorch casts to fp8 by a kernel of these two types alone, from fp8 by
// the general one, which takes elements one by one (aten/src/ATen/native/cuda/Copy.cu, float8_copy_kernel_cuda,
// direct_copy_kernel_cuda). Fused operations find a scale first, and cast both ways by kernels of their own
// (Transformer Engine v2.8, pytorch/ops/basic/activation.py, cache_quantized_input).

#include "sim/step/lower_ops.h"

static int64_t elements_of(const Lowering *lowering, int32_t input) {
    return lowering->tensors[input].bytes / dtype_bytes(lowering->tensors[input].dtype);
}

static OpRef kept(Lowering *lowering, const char *name, int32_t input) {
    return op_whole(lowering,
                    lowering_tensor(lowering, name, ROLE_ACTIVATION, DTYPE_FP8, elements_of(lowering, input)));
}

void lower_stored(Lowering *lowering, const StoredInput *stored, int32_t input, int64_t elements) {
    if (lowering->plan->fp8_activation) {
        Op *op = op_copy(lowering, SECTION_LAYER_FORWARD, PHASE_FORWARD, stored->to, 1, elements,
                         op_whole(lowering, input), kept(lowering, stored->kept, input));
        op->task.cast_bytes = has_fused_mlp(lowering) ? elements * lowering->dims.element : 0;
    }
}

int32_t lower_stored_backward(Lowering *lowering, const StoredInput *stored, int32_t input, int64_t elements) {
    if (!lowering->plan->fp8_activation) {
        return input;
    }
    const OpRef from = kept(lowering, stored->kept, input);
    const int32_t again = activation(lowering, stored->again, elements_of(lowering, input));
    Op *op = op_copy(lowering, SECTION_LAYER_BACKWARD, PHASE_BACKWARD, stored->from, 1, elements, from,
                     op_whole(lowering, again));
    op->task.dtype = DTYPE_FP8;
    if (!has_fused_mlp(lowering)) {
        take_elements_apart(lowering, op);
    }
    return again;
}
