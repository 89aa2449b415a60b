// Hugging Face accelerate and transformers' Trainer. What 1.14 runs is taken from huggingface/accelerate 16cb6eb (tag
// v1.14.0), PyTorch's fsdp/_fully_shard and transformers' tensor_parallel.py.

#include "sim/frameworks/accelerate/accelerate.h"

#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/pytorch.h"

static const TargetVersion accelerate_1_14 = {
    .version = "1.14",
    .extends = &pytorch_fsdp,
    .until = "2026-09",
    .evidence = "unvalidated",
    .settings = SETTINGS(
        SET(tp_flavour, TP_HF),  // transformers' plan: each projection reduces its own input gradient (P8)
        SET(recompute_flavour, RECOMPUTE_CHILD),  // wraps norm1, attention, norm2, mlp separately (P2)
        // accelerator.py prepare_model: forward of one GPU and of DDP. FSDP 2, which shows halves, does not come there
        // (_prepare_fsdp2 of 1.10 to 1.15; 1.6 did)
        SET(runtime.autocasts, true),
        SET(runtime.copies_buckets, true),  // gradient_as_bucket_view of DistributedDataParallelKwargs is off
        SET(runtime.strided_rotary, true),  // apply_rotary_pos_emb of transformers' models
        // grouped_mm_experts_forward of transformers 5 (integrations/moe.py), the default since its first
        SET(runtime.indexes_experts, true), SET(zigzag, true),  // torch context_parallel's head-tail balancer (P3, P7)
        SET(cp_ring, true),                                     // cp_comm_strategy alltoall (P3)
        SET(cp_allgather, true),                                // the default strategy (P3)
        SET(cp_compiled_waits, true),                           // _templated_ring_attention, traced: each wait in place
        SET(deferred_reduce, true),                             // accumulate() -> no_sync: last micro-step only (P2)
        SET(grad_syncs, GRAD_SYNC_BIT(GRAD_SYNC_EACH) |         // GradientAccumulationPlugin(sync_each_batch=True),
                            GRAD_SYNC_BIT(GRAD_SYNC_LAST)),     // accelerator.py accumulate()
        // use_liger_kernel of Trainer, AutoLigerKernelForCausalLM in a script of one's own: its fused linear
        // cross-entropy alone
        SET(losses, LOSS_BIT(LOSS_WHOLE) | LOSS_BIT(LOSS_FUSED)), SET_TEXT(loss_note, "Liger's kernel is loss=fused"),
        SET(runtime.casts_loss_sums, true),  // Liger 0.8.2 of 2026-08
        SET_TEXT(grad_sync_note, "sync_each_batch reduces over shards and replicas alike"),
        SET(fp8_recipes, FP8_BIT(FP8_TENSORWISE) | FP8_BIT(FP8_ROWWISE) | FP8_BIT(FP8_ROWWISE_BF16)),
        SET(fp8_flavour, FP8_TORCHAO),  // AORecipeKwargs, the default backend (accelerate 1.14 utils/dataclasses.py)
        SET(replicate_rule, REPLICATE_NOT_BESIDE_TP_OR_CP),  // ParallelismConfig's check (P1)
        SET(axes, AXES_DP | AXES_TP | AXES_CP), SET(default_fused, FUSED_EAGER),
        // utils/dataclasses.py and inference.py of 1.15
        SET_TEXT(stages_note, "its ParallelismConfig has dp_replicate, dp_shard, cp, sp and tp, pp_degree is its "
                              "MegatronLM plugin's (--target megatron) and prepare_pippy only infers"),
        // peft and bitsandbytes; fsdp2_prepare_model upcasts what requires gradients only (P2)
        SET(finetunes, 1u << FINETUNE_LORA | 1u << FINETUNE_QLORA | 1u << FINETUNE_LORA_INT8), SET(adapters_cast, true),
        SET(compiles, true),               // TorchDynamoPlugin(use_regional_compilation=True), torch_compile
        SET(runtime.other_share, 0.06),    // fms-acceleration on 1 to 4 A100, fused runs; Oumi's ask for as much alone
        SET(runtime.step_fixed_s, 10e-3),  // estimated: half of fsdp1's 20 ms lower end (sim/SOURCES.md A6); without
                                           // it the accelerate rows score no worse
        SET(loss_fp32_copies[FUSED_EAGER], 2),              // upcast logits, log-softmax; fused: none
        SET(loss_fp32_copies[FUSED_COMPILED], 1),           // the same
        SET(runtime.optimizer_bytes_per_parameter, 80.0),   // foreach AdamW (sim/plan/optimizers.c)
        SET(bf16_optimizer_bytes_per_parameter, 40.0),      // the same chain
        SET(optimizer_temporary_bytes_per_parameter, 4.0),  // foreach temporary: sim/SOURCES.md A7, 12 + 4 + 4
        SET(pack_flavour, PACKS_ROWS),  // DataCollatorWithFlattening of transformers, flash_attention_2
        SET(own_optimizer, OPTIMIZER_ADAMW_FOREACH),
        SET(optimizers, OPTIMIZERS_OF_TRANSFORMERS | OPTIMIZER_BIT(OPTIMIZER_SGD_MOMENTUM) |
                            OPTIMIZER_BIT(OPTIMIZER_ADAMW_FOREACH_2_0) | OPTIMIZER_BIT(OPTIMIZER_ADAMW_LOOP)),
        SET(unsharded_optimizers, OPTIMIZERS_OF_BITSANDBYTES),  // their kernels read plain tensors, not DTensors
        SET(runtime.relative_uncertainty, 0.09)),               // judged: no run of this version is published
                                                                // at 80 % (sim/SOURCES.md A2, nothing fitted)
};

// tests/frameworks/traces/accelerate-1.15.
const TargetVersion accelerate_1_15 = {
    .version = "1.15",
    .extends = &accelerate_1_14,
    .evidence = "unvalidated",
    .settings = SETTINGS(SET(runtime.casts_loss_sums, false),      // Liger 0.8.3 of 2026-09
                         SET(recompute_flavour, RECOMPUTE_BLOCK),  // fsdp2_apply_ac wraps the layer itself (PR #4172)
                         // activation_checkpointing_offload (dataclasses.py, fsdp_utils.py fsdp2_apply_ac)
                         SET(offloads, 1u << OFFLOAD_PARAMETERS | 1u << OFFLOAD_ACTIVATIONS),
                         // PyTorch 2.11 and newer, seen on that day (huggingface/transformers#48163)
                         SET_TEXT(runtime.cudnn_since, "2026-08-31"), SET(cudnn_first, CUDNN_FIRST_BY_PYTORCH),
                         SET(cp_full_attention, true)),  // _attach_context_parallel_hooks refuses others
};

// Before PR #4015.
const TargetVersion accelerate_1_13 = {
    .version = "1.13",
    .extends = &accelerate_1_14,
    .evidence = "unvalidated",
    .settings = SETTINGS(SET(root_unit, true)),  // embedding, norm and head sit in the root unit (P2)
};

// transformers' Trainer over FSDP version 1, before fsdp_version 2 (accelerate 1.6, of April 2025).
static const TargetVersion accelerate_1_0 = {
    .version = "1.0",
    .extends = &accelerate_1_13,
    .until = "2025-04",
    .evidence = "54 published runs of two stacks",
    .settings = SETTINGS(
        SET(root_kept, true),  // tests/frameworks: fsdp1; what is cast to bf16 before the gather leaves no bf16 shard
        SET(tp_flavour, TP_AR), SET(runtime.autocasts_shards, true),  // prepare_model, before FSDP wraps the model
        SET(runtime.shard_hooks, SHARD_HOOKS_FLAT),                   // FlatParamHandle
        SET(recompute_flavour, RECOMPUTE_BLOCK),           // gradient_checkpointing: a layer's input is all that stays
        SET(runtime.casts_loss_sums, false),               // Liger 0.5
        SET(unsharded_optimizers, 0),                      // flat parameters are plain tensors
        SET(runtime.indexes_experts, false),               // a loop over experts, which is not modelled
        SET(frozen_held, true), SET(upcasts_norms, true),  // TRL before 0.25 (sim/step/lower_upcast.c)
        // modeling_llama.py of transformers 4.45: fp32 logits and their shifted copy, and the log-softmax of PyTorch's
        // loss; kernels write the gradient over the copy
        SET(loss_fp32_copies[FUSED_EAGER], 3), SET(loss_fp32_copies[FUSED_FUSED], 2), SET(axes, AXES_DP),
        SET(compiles, false), SET(zigzag, false), SET(cp_ring, false), SET(cp_allgather, false),
        SET(fp8_flavour, FP8_NONE), SET(replicate_rule, REPLICATE_ANY),  // HYBRID_SHARD
        SET(runtime.allocator_slack, 0.0),  // what it reports is what lives, to the last per mille (fms-acceleration)
        SET(runtime.relative_uncertainty, 0.08)),
};

static const FrameworkSynonym synonyms[] = {
    {"llama-factory", "LLaMA-Factory trains by it"},
    {"verl", "verl trains by it"},
    {"unsloth", "Unsloth trains by transformers' Trainer, mostly on one GPU: there is nothing to shard"},
    {"lightning", "Lightning's FSDP strategy is FSDP version 2"},
    {"torchtune", "torchtune shards by FSDP version 2"},
    {"fsdp", "FSDP version 2"},
    {"fsdp2", FULLY_SHARD_WORDS},
    {"pytorch", FULLY_SHARD_WORDS},
    {NULL, NULL},
};

static const SourceName sources[] = {
    {.name = "accelerate", .whole = true},
    {.name = "hfaccelerate"},
    {.name = "hftrainer"},
    {.name = "huggingfacetrainer"},
    {.name = "transformerstrainer"},
    {.name = "peft"},
    {.name = "fms"},
    {.name = NULL},
};

// Of transformers 4.57: the Trainer's summary; its progress bar is tqdm's, which smooths over some steps.
static const LogPattern logs[] = {
    {.name = "HF Trainer, progress bar",
     .pattern = "[0-9]+/[0-9]+ \\[[0-9:]+<[^,]*(), *" LOG_NUMBER "(s/it|it/s)",
     .quantity = STEP_BAR,
     .words = "its progress bar, else train_steps_per_second; trainer_state.json of a run that ended",
     .anybodys = true},
    {.name = "HF Trainer, summary",
     .pattern = "['\"]train_steps_per_second['\"]():? *" LOG_NUMBER "()",
     .quantity = STEP_STEPS_PER_S,
     .average = true,
     .anybodys = true},
    {.name = NULL},
};

static const MeasuredChip measured[] = {
    {"A100-SXM4-80GB", 34, 4, 0.009, 0.001},
    {"A100-SXM4-40GB", 20, 16, 0.052, -0.030},
    {0},
};

const Framework framework_accelerate = {
    .name = "accelerate",
    .measured = measured,
    .versions =
        (const TargetVersion *const[]){&accelerate_1_15, &accelerate_1_14, &accelerate_1_13, &accelerate_1_0, NULL},
    .refuse = transformers_refuse,
    .formats =
        (const ExportFormat *const[]){&export_accelerate_yaml, &export_accelerate_python, &export_hf_trainer, NULL},
    .config = &import_accelerate,
    .synonyms = synonyms,
    .sources = sources,
    .name_is_word = true,
    .logs = logs,
    .log_name = "HF Trainer",
    .micro_batch = "DataLoader batch_size",
    .accumulation = "gradient_accumulation_steps",
    .compile = "dynamo_config.dynamo_backend: INDUCTOR (Trainer: torch_compile=True)",
    .fuse_loss = "_apply_liger_kernel_to_instance(fused_linear_cross_entropy=True) (Trainer: use_liger_kernel=True)",
    .sync_each = "GradientAccumulationPlugin(sync_each_batch=True)",
};
