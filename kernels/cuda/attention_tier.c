// Which tier serves a call, as a list of reasons against each tier: pure, so that every case can be tested without a
// GPU. AUTO takes cuDNN where its library was opened, since its kernels use the features of each generation (sm_90:
// about twice as fast forward as any mma.sync kernel), then our own, then the scalar one.

#include "kernels/cuda/attention.h"

#include "kernels/cuda/attention_own.h"
#include "kernels/heads.h"

#include <stddef.h>

static const char *const names[ATTENTION_TIERS] = {"auto", "scalar", "own", "cudnn"};

const char *attention_tier_name(AttentionTier tier) {
    return names[tier];
}

static bool all_eights(const CudaAttention *call) {
    const KernelAttention *b = &call->block;
    int64_t all = b->q_stride | b->kv_stride | b->o_stride | call->q_sequence | call->kv_sequence | call->o_sequence;
    if (call->backward) {
        all |= call->dq_stride | call->dkv_stride | call->dq_sequence | call->dkv_sequence;
    }
    return all % 8 == 0;
}

static const char *refusal_of_any(const CudaAttention *call) {
    const KernelAttention *b = &call->block;
    if (b->head_dim % 8 != 0 || b->head_dim < 8 || b->head_dim > 256) {
        return "head_dim is a multiple of 8 up to 256";
    }
    if (kernel_value_dim(b) % 8 != 0 || kernel_value_dim(b) > 256) {
        return "values are a multiple of 8 elements up to 256";
    }
    if (b->kv_heads < 1 || b->heads % b->kv_heads != 0) {
        return "every key head has equally many query heads";
    }
    if (b->queries < 1 || b->keys < 1 || b->queries > INT32_MAX / 2 || b->keys > INT32_MAX / 2) {
        return "a block has 1 to 2^30 queries and keys";
    }
    if (b->heads > LAUNCH_MAX_GRID_YZ || call->sequences < 1 || call->sequences > LAUNCH_MAX_GRID_YZ) {
        return "heads and sequences are 1 to 65535";
    }
    return call->merge && !call->backward && call->output != KERNEL_FP32 ? "what is merged into is fp32" : NULL;
}

static const char *refusal_of_cores(const CudaAttention *call) {
    if (call->input != KERNEL_BF16) {
        return "tensor cores take bf16";
    }
    if (call->block.alibi_heads != 0) {
        return "ALiBi is the scalar tier's";
    }
    if (call->block.values.dim > 0) {
        return "values that lie apart from keys are the scalar tier's";
    }
    return all_eights(call) ? NULL : "rows begin at multiples of 8 elements";
}

static const char *refusal_of_own(const CudaAttention *call, const AttentionMeans *means) {
    if (means->arch < 80) {
        return "bf16 tensor cores begin with sm_80";
    }
    if (call->block.head_dim != 64 && call->block.head_dim != 128) {
        return "our own kernel has head_dim 64 and 128";
    }
    const LaunchShape shape = attention_own_shape(call);
    if (shape.shared_bytes > means->shared_bytes) {
        return "the device's shared memory is too small for our own kernel";
    }
    return launch_shape_is_legal(&shape) ? refusal_of_cores(call) : "too many tiles for one launch";
}

static const char *refusal_of_cudnn(const CudaAttention *call, const AttentionMeans *means) {
    const KernelAttention *b = &call->block;
    if (!means->cudnn) {
        return "cuDNN is not there";
    }
    if (means->arch < 80 || b->head_dim > 128) {
        return "cuDNN's fused attention is for sm_80 and newer and head_dim up to 128";
    }
    if (b->window > 0) {
        return "a window is our own kernels'";
    }
    if (b->q_first != b->k_first && b->k_first + b->keys - 1 > b->q_first) {
        return "the causal border does not begin at the block's corner";
    }
    if (call->backward && call->output != KERNEL_BF16) {
        return "cuDNN reads o in the type of q";
    }
    if (call->backward && call->deterministic) {
        return "cuDNN's backward pass adds in no fixed order";
    }
    return refusal_of_cores(call);
}

const char *attention_refusal(AttentionTier tier, const CudaAttention *call, const AttentionMeans *means) {
    const char *refusal = refusal_of_any(call);
    if (refusal) {
        return refusal;
    }
    switch (tier) {
    case ATTENTION_TIER_OWN:
        return refusal_of_own(call, means);
    case ATTENTION_TIER_CUDNN:
        return refusal_of_cudnn(call, means);
    default:
        return NULL;
    }
}

AttentionTier attention_tier(AttentionTier asked, const CudaAttention *call, const AttentionMeans *means) {
    static const AttentionTier order[] = {ATTENTION_TIER_CUDNN, ATTENTION_TIER_OWN, ATTENTION_TIER_SCALAR};
    for (int i = 0; i < 3; i++) {
        if ((asked == ATTENTION_TIER_AUTO || asked == order[i]) && !attention_refusal(order[i], call, means)) {
            return order[i];
        }
    }
    return ATTENTION_TIER_AUTO;
}
