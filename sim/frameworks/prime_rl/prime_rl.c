// prime-rl: transformers' dense models and its own of experts under fully_shard, in loops of its own for RL and SFT.
// Read at PrimeIntellect-ai/prime-rl@d8f290ef0, where its training code is, with PyTorch 2.9 and transformers 4.56. A
// compiled layer that is checkpointed runs eagerly: its attention breaks the graph (_is_packed_sequence asks the
// device, kernels of FlashAttention 3 have no shapes), and a break inside a checkpoint leaves all of it uncompiled
// (pytorch/pytorch issue 139989). Not modelled: ring attention, its several adapters side by side, 75 stops of the host
// in its head.

#include "sim/frameworks/framework.h"
#include "sim/frameworks/pytorch.h"

// An operation on a DTensor, before PyTorch 2.10 (its pull request 166371: 36 to 40 us). AdamW is built without
// foreach, which is not chosen for DTensors: eight operations for each parameter (torch/optim/adam.py,
// _single_tensor_adam), and two of its norm and clipping (clip_grad_norm_).
#define DTENSOR_HOST_S 38e-6
enum { OPERATIONS_OF_A_TENSOR = 8 + 2 };

// get_response_lengths (utils.py, until fa21395a6) looks at each position on the device: it is picked and
// compared, 4.8 us each (pytorch/pytorch pull request 160580, of the least operation), and read, 11.1 us
// (Tencent-Hunyuan/UniRL pull request 441: 5.7 ms of 512, 22.8 of 2,048).
#define POSITION_HOST_S (2 * 4.8e-6 + 11.1e-6)

// _ChunkedLogProbEntropyFn (models/layers/lm_head.py), bytes a logit: to fp32 6, over the temperature 8, largest 4,
// less it 8, exp 8, sum 4, times logits 12, sum 4; backward to fp32 6, over the temperature 8, less the sum 8, exp 8,
// times the gradient 8, over the temperature 8, to bf16 for each of two products 12. (Sums of the hidden gradient: 6
// bytes of a hidden width for 2,048 logits more.)
#define HEAD_BYTES (54.0 + 58.0)

static const TargetVersion prime_rl_sft = {
    .version = "2026-01-sft",
    .extends = &pytorch_fsdp,
    .evidence = "7 published runs",
    .settings = SETTINGS(
        SET(axes, AXES_DP | AXES_EP), SET(axes_unmodelled, AXES_CP),  // parallel_dims.py; ring_flash_attn
        SET_TEXT(stages_note, "it has no pipelines"),                 // the same
        SET(reduce_dtype_bf16, DTYPE_FP32),                           // reduce_dtype (config.py)
        SET(replicas_each_step, true),  // never calls set_requires_gradient_sync (sft/train.py, rl/train.py)
        SET_TEXT(grad_sync_note, "its loops reduce on every micro-step and have no switch for it"),
        SET(recompute_counts, RECOMPUTE_EVERY_FIRST),  // apply_ac (model.py): layer_id % freq == 0
        SET(default_fused, FUSED_EAGER), SET(compiles, true),
        SET(norms_keep, true),              // models/layers/rms_norm.py, transformers' modeling_qwen3.py
        SET(runtime.strided_rotary, true),  // apply_rotary_pos_emb once heads are before tokens, in both
        SET(expert_flavour, EXPERTS_WEIGHTED_FP32), SET(weighs_in_fp32, true),  // models/layers/moe.py
        SET(allocator, ALLOCATOR_EXPANDABLE), SET(replayed_slack, 0.05),  // rl.py, .github/workflows/benchmarks.yaml
        SET_TEXT(loss_note, "its loss is PyTorch's, on fp32 logits of all tokens"),
        // cast_float_and_contiguous: the logits, which a dictionary keeps, log-softmax and two gradients
        SET(loss_fp32_copies[FUSED_EAGER], 4), SET(loss_fp32_copies[FUSED_COMPILED], 4),
        SET(own_optimizer, OPTIMIZER_ADAMW_LOOP),           // optim.py
        SET(runtime.optimizer_bytes_per_parameter, 80.0),   // as OPTIMIZER_ADAMW_LOOP moves (sim/plan/optimizers.c)
        SET(optimizer_temporary_bytes_per_parameter, 8.0),  // the same
        SET(optimizers, OPTIMIZER_BIT(OPTIMIZER_SGD_MOMENTUM)),
        SET(runtime.host_s_per_tensor, OPERATIONS_OF_A_TENSOR *DTENSOR_HOST_S), SET(finetunes, 1u << FINETUNE_LORA),
        SET(upcasts_frozen, true),                 // lora.py; optimization_dtype float32
        SET(pack_flavour, PACKS_ONE_ROW),          // documents by position_ids
        SET(runtime.step_fixed_s, 5e-3),           // estimated, of a bare loop
        SET(runtime.relative_uncertainty, 0.12)),  // estimated
};

static const TargetVersion prime_rl = {
    .version = "2026-01",
    .extends = &prime_rl_sft,
    .evidence = "25 published runs",
    .settings = SETTINGS(
        // fused_lm_head_chunk_size: 2,048 words at a time, for which as many planes of some tokens stand here
        SET(own_loss, LOSS_CHUNKED), SET(loss_chunks, 32), SET(loss_remakes_logits, true),
        SET(loss_collects_half, true),  // zeros_like(hidden)
        SET_TEXT(loss_note, "its loss of RL runs the head in parts of the vocabulary"),
        SET(runtime.loss_bytes_per_logit, HEAD_BYTES), SET(runtime.host_s_per_token, POSITION_HOST_S)),
};

static const FrameworkSynonym synonyms[] = {
    {"prime", NULL},
    {NULL, NULL},
};

const Framework framework_prime_rl = {
    .name = "prime-rl",
    .versions = (const TargetVersion *const[]){&prime_rl, &prime_rl_sft, NULL},
    .synonyms = synonyms,
    .logs_reserved = true,  // max_memory_reserved
};
