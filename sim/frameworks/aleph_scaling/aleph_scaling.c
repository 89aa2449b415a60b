// Aleph Alpha's scaling: linear layers that are parallel by themselves, its own pipelines and ZeRO-1. Read at
// Aleph-Alpha/scaling@7848929 (2024-08), src/scaling: its first public state, which still has the kernel of norms that
// its runs of 2023 chose. That is fused mode `fused` here; what else a layer does is operation by operation in either.

#include "sim/frameworks/framework.h"
#include "sim/frameworks/pytorch.h"

static const TargetVersion aleph_scaling_0_1 = {
    .version = "0.1",
    .extends = &pytorch,
    .evidence = "273 published runs, none fitted",
    .settings = SETTINGS(
        SET(axes, AXES_DP | AXES_TP | AXES_PP), SET(pp_schedules, PP_BIT(PP_1F1B)),
        SET(messages_in_turn, true),  // RecvActivation, SendGrad (core/nn/pipeline_schedule/train.py)
        SET(layer_rule, LAYERS_AS_MODULES), SET(ties_stages, true),  // TiedLayerSpec
        // Of gate and up each reduces its own input gradient, and nothing runs meanwhile (core/nn/linear/utils.py);
        // the head's columns are gathered (parallel_output=False of column_parallel_linear.py)
        SET(sp_switch, true), SET(tp_apart, true), SET(tp_splits_head, true), SET(tp_splits_embedding, true),
        SET(fused_qkv, true),    // attention_qkv_in_one (transformer/context/config.py)
        SET(packed_kept, true),  // queries and keys are turned into copies, values stay a view (attention.py)
        SET(gate_kept, true), SET(activation_apart, true),  // silu(x) * gate (core/nn/mlp.py)
        SET(norms_keep, true),       // _norm(x.float()).type_as(x) * weight (core/nn/norm/rms_norm.py)
        SET(recompute_whole, true),  // _checkpoint_without_reentrant (parallel_module/activation_checkpointing.py)
        SET(default_fused, FUSED_EAGER), SET(fused_softmax, true),
        // Gradients of autograd in bf16 until the step, which all-reduces buckets of them in fp32 after the last
        // backward (core/optimizer/allreduce.py); a rank takes its part (parameter_group.py, step_prequel)
        SET(deferred_reduce, true), SET_TEXT(grad_sync_note, "gradients are reduced once, in the optimizer's step"),
        SET(half_sums, true), SET(late_reduce, true), SET(runtime.scatters_by_all_reduce, true), SET(max_zero, 1),
        // Of a gradient: flattened 4, divided 4, cast back 6, put back 4, scaled 4, its norm 2; the cast to fp32 is a
        // task of its own (the same, scale_grads_and_get_grad_norm_squared)
        SET(runtime.whole_bytes_per_parameter, 24.0),
        // x.float() and log_softmax; backward nll_loss's gradient, log_softmax and its gradient (cross_entropy.py)
        SET(loss_fp32_copies[FUSED_FUSED], 3), SET(loss_fp32_copies[FUSED_EAGER], 3),
        SET(logits_held, true),  // PIPELINE_STAGE_OUTPUT of the last stage is read, not taken; two of them
                                 // (required_buffer_count, core/nn/pipeline_schedule/train.py)
        SET_TEXT(loss_note, "its cross-entropy works on whole logits"),
        // 50.6 measured of the same operations (tests/gpu/MECHANISMS.md), and argmax reads fp32 once
        SET(runtime.loss_bytes_per_logit, 50.6 + 4),
        SET(runtime.optimizer_bytes_per_parameter, 80.0 + 24),  // foreach AdamW (sim/SOURCES.md H6); zeroed 4, cast 6,
                                                                // clipped 8, written back 6
        SET(runtime.host_s_per_op, PYTHON_2023_HOST_S), SET(runtime.follows_processor, false),
        SET(runtime.relative_uncertainty, 0.1)),  // estimated
};

static const FrameworkSynonym synonyms[] = {
    {"aleph-alpha", "Aleph Alpha trains by its own scaling"},
    {NULL, NULL},
};

const Framework framework_aleph_scaling = {
    .name = "aleph_scaling",
    .versions = (const TargetVersion *const[]){&aleph_scaling_0_1, NULL},
    .synonyms = synonyms,
    .has_pipelines = true,
};
