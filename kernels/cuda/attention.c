// The single entry point to attention on a GPU: a plan selects the tier, and calls are dispatched to it.

#include "kernels/cuda/attention.h"

#include "kernels/cuda/attention_launch.h"
#include "kernels/cuda/attention_own.h"
#include "kernels/cuda/cudnn_attention.h"

#include <stdio.h>

bool cuda_attention_plan(AttentionTier asked, const CudaAttention *call, const AttentionMeans *means,
                         CudnnAttention *cudnn, AttentionPlan *plan, char why[ATTENTION_WHY_BYTES]) {
    AttentionMeans left = *means;
    left.cudnn = left.cudnn && cudnn;
    *plan = (AttentionPlan){.call = *call, .tier = attention_tier(asked, call, &left)};
    if (plan->tier == ATTENTION_TIER_CUDNN) {
        plan->cudnn_plan = cudnn_attention_plan(cudnn, call, &plan->workspace_bytes, why);
        if (plan->cudnn_plan >= 0 || asked == ATTENTION_TIER_CUDNN) {
            return plan->cudnn_plan >= 0;
        }
        left.cudnn = false;
        *plan = (AttentionPlan){.call = *call, .tier = attention_tier(asked, call, &left)};
    }
    if (plan->tier == ATTENTION_TIER_AUTO) {
        const AttentionTier tier = asked == ATTENTION_TIER_AUTO ? ATTENTION_TIER_SCALAR : asked;
        snprintf(why, ATTENTION_WHY_BYTES,
                 "attention %s cannot serve head_dim %d, %lld queries at %lld, keys at %lld: %s",
                 attention_tier_name(tier), call->block.head_dim, (long long)call->block.queries,
                 (long long)call->block.q_first, (long long)call->block.k_first, attention_refusal(tier, call, &left));
        return false;
    }
    if (plan->tier == ATTENTION_TIER_OWN) {
        plan->workspace_bytes = attention_own_workspace_bytes(call);
    }
    return true;
}

int cuda_attention(const AttentionPlan *plan, CudnnAttention *cudnn, const AttentionData *data,
                   struct CUstream_st *stream) {
    typedef int Launcher(const CudaAttention *call, const AttentionData *data, struct CUstream_st *stream);
    static Launcher *const launchers[ATTENTION_TIERS][2] = {
        [ATTENTION_TIER_SCALAR] = {attention_scalar_forward, attention_scalar_backward},
        [ATTENTION_TIER_OWN] = {attention_own_forward, attention_own_backward},
    };
    if (plan->tier == ATTENTION_TIER_CUDNN) {
        return cudnn_attention_run(cudnn, plan->cudnn_plan, data, stream);
    }
    return launchers[plan->tier][plan->call.backward](&plan->call, data, stream);
}
