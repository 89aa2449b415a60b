// Which kernel PyTorch's scaled_dot_product_attention takes where cuDNN's comes first (can_use_cudnn_attention of
// aten/src/ATen/native/transformers/cuda/sdp_utils.cpp), as far as a training decides it; the chip and its cuDNN are
// asked elsewhere. A mask other than the plain causal one, which a window or documents are, has no causal kernel: what
// cuDNN's computes then is not priced, and such plans keep flash.

#include <string.h>

#include "sim/frameworks/target.h"

// check_cudnn_tensor_shapes: multiples of 8 to 128, and 192 of keys and queries where values have 128. Up to 256 from a
// frontend of 1.24 on, which no release has.
static bool has_kernel_of(const ModelSpec *model) {
    enum { STEP = 8, LARGEST = 128, LATENT_KEYS = 192 };
    const int keys = model->head_dim, values = model->latent.kv_rank > 0 ? model->latent.value : keys;
    const bool fits = keys <= LARGEST && values <= LARGEST;
    return (fits && keys % STEP == 0 && values % STEP == 0) || (keys == LATENT_KEYS && values == LARGEST);
}

// Sinks, and scores that are capped or have a bias by position, are operations of a model's own code; GPT2Config's
// attn_pdrop of 0.1 is no multiple of a 16th (check_cudnn_dropout).
static bool is_plain(const ModelSpec *model, int seq) {
    const bool slides = model->window > 0 && model->window < seq;
    const bool drops = model->type && strcmp(model->type, "gpt2") == 0;
    return !slides && !drops && !model->sinks && model->attention_cap == 0 && model->position != POSITION_ALIBI;
}

bool target_takes_cudnn(const Target *target, const ModelSpec *model, const TrainPlan *plan) {
    const bool by_sdpa = target->cudnn_first == CUDNN_FIRST_BY_PYTORCH ||
                         (target->cudnn_first == CUDNN_FIRST_BY_CODE && model->experts.count == 0);
    const bool half = plan->precision != DTYPE_FP32;  // check_dtypes_low_precision
    return by_sdpa && half && plan->pack == 0 && has_kernel_of(model) && is_plain(model, plan->seq);
}
