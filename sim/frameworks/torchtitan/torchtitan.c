// torchtitan (sim/SOURCES.md P4). The version of a published run follows from its date.

#include "sim/frameworks/framework.h"
#include "sim/frameworks/pytorch.h"
#include "sim/frameworks/torchtitan/torchtitan_files.h"

static const TargetVersion torchtitan_0_2 = {
    .version = "0.2",
    .extends = &pytorch_fsdp,
    .evidence = "118 published runs",
    .settings = SETTINGS(
        SET(recompute_whole, true),                   // full = whole block, early_stop False (P4)
        SET(selective_flavour, SELECTIVE_OPS),        // selective_ac_option "op" (P4)
        SET(recompute_counts, RECOMPUTE_EVERY_LAST),  // selective_ac_option "n" (_apply_layer_sac counts from 1)
        SET(zigzag, true), SET(axes, AXES_DP | AXES_TP | AXES_CP | AXES_PP | AXES_EP),
        SET(pp_schedules, PP_BIT(PP_1F1B) | PP_BIT(PP_GPIPE) | PP_BIT(PP_INTERLEAVED) | PP_BIT(PP_ZERO_BUBBLE) |
                              PP_BIT(PP_ZBV) | PP_BIT(PP_DUALPIPEV) | PP_BIT(PP_FILE)),
        // first_ and last_stage_less_layers, module_fqns_per_model_part (distributed/pipeline_parallel.py)
        SET(splits, PP_BIT(SPLIT_EVEN) | PP_BIT(SPLIT_WEIGHTED) | PP_BIT(SPLIT_CHUNKS)),
        SET(pp_keeps_gathered, true),  // reshard_after_forward "default" is off with pp; REDUCE_GRAD after the last
                                       // backward (torch.distributed.pipelining.stage)
        SET(pp_rounds, true),  // each of its gradient_accumulation_steps is a pp_schedule.step (train.py), which
                               // reduces and reshards at its end (_post_backward of the same)
        // stage.py of the same: _prepare_forward_infra and _prepare_backward_infra, once for all micro-batches
        SET(buffers_each_message, true),
        SET(cp_allgather, true),  // 0.2.2 reads context_parallel_rotate_method in validation only
                                  // (tests/frameworks)
        // A traced functional collective is followed by its wait_tensor (_functional_collectives.py,
        // _maybe_wrap_tensor), which Inductor leaves there (config.py, reorder_for_compute_comm_overlap False)
        SET(cp_compiled_waits, true), SET(reduce_dtype_bf16, DTYPE_FP32),
        SET(reduces_fp32_only, true),   // mixed_precision_reduce allows float32
                                        // only (P2)
        SET(replicas_each_step, true),  // never calls set_requires_gradient_sync (P2; tests/frameworks:
                                        // replicate2_shard2_accumulate)
        SET_TEXT(grad_sync_note, "its trainer reduces on every micro-step and has no switch for it"),
        SET(tp_copies, true),  // torch.distributed._functional_collectives: cat of chunks where the dimension is not 0
        SET(allocator, ALLOCATOR_EXPANDABLE),        // its run_train.sh
        SET(expert_flavour, EXPERTS_WEIGHTED_FP32),  // models/moe.py
        SET(aten_norms, true),  // its nn.RMSNorm, since PyTorch 2.9 (native_functions.yaml: _fused_rms_norm_cuda)
        // apply_compile leaves out MoE.forward and the dispatcher until its 5242bdf71 (2026-04-14)
        SET(routes_eagerly, true),
        SET(sums_by_product, true),       // torch.bmm from its e1f7f318a (2025-11-21) to 8bc267dea (2026-04-06)
        SET(runtime.pads_alone, true),    // indices_padding_wrapper, until its fe80b63cf (2026-04-02)
        SET(runtime.indexes_rows, true),  // x[index]; Inductor leaves its gradient to ATen in bf16
        SET(dispatchers, DISPATCH_BIT(DISPATCH_DEEPEP) | DISPATCH_BIT(DISPATCH_HYBRIDEP)),  // moe_comm_backend
        SET(fp8_flavour, FP8_TORCHAO),                                                      // Float8LinearConverter
        SET(fp8_recipes, FP8_BIT(FP8_TENSORWISE) | FP8_BIT(FP8_ROWWISE) | FP8_BIT(FP8_ROWWISE_BF16)),
        // its 6a3a9da95 (models/attention.py), on Blackwell 3b85aa31f of 2025-05-14; v0.2.2, ScaledDotProductAttention-
        // Wrapper: sdpa_kernel([CUDNN_ATTENTION, FLASH_ATTENTION, MATH], set_priority=True)
        SET_TEXT(runtime.cudnn_since, "2025-10-09"), SET(cudnn_first, CUDNN_FIRST_BY_CODE),
        // FlexAttention with document masks is every language model's own since its 169545712 (get_attention_config);
        // C4, its recipes' data, has 156e9 tokens in 365e6 documents (arXiv 2104.08758, table 1)
        SET_TEXT(runtime.masks_since, "2026-06-09"), SET(runtime.masked_tokens, 427),
        SET(vocab_uneven, true),  // DTensor shards rows unevenly: apply_tp of 1003 entries over 2 ranks trains as one
        SET(seq_by_tp, true),     // ParallelDims.seq_len_divisor of 0.2.2, asserted by every parallelize
        SET(replicate_rule, REPLICATE_NOT_BESIDE_TP),  // R > 1 with S = C = 1 is DDP, which does not combine (P4)
        SET(runtime.autocasts, true),  // maybe_enable_amp (distributed/utils.py, 0b44d4c43 of 2025-06-16 to 00b7f5693)
        SET(default_fused, FUSED_COMPILED),     // its published recipes compile each block
        SET(tp_overlap_exposed, 0.65),          // async TP (sim/SOURCES.md A6)
        SET(tp_overlap_part_bytes, 2 * 2),      // get_symm_mem_workspace: two parts that are scattered
        SET(runtime.step_fixed_s, 5e-3),        // estimated: no Trainer around the step
        SET(loss_fp32_copies[FUSED_FUSED], 3),  // tests/frameworks/memory: log-softmax and two gradients;
        SET(loss_fp32_copies[FUSED_EAGER], 3),  // compiled, Inductor of PyTorch 2.11 writes the gradient from
                                                // bf16 logits at once
        SET(split_loss_fp32_copies, 1),         // the same: loss_parallel's exponentials
        SET(runtime.optimizer_bytes_per_parameter, 40.0),  // sim/SOURCES.md A6
        SET(updates_in_backward, true),                    // optimizer.early_step_in_backward (components/optimizer.py)
        SET(pack_flavour, PACKS_BY_MASK),  // flavors _flex and _varlen, of documents that see themselves only
        SET(optimizers, OPTIMIZER_BIT(OPTIMIZER_ADAMW_FOREACH)),  // implementation: fused, its default, or foreach
        // Reserved over live bytes, where no allocator is replayed; 0.2 fits half of its groups better, fewer fit.
        SET(runtime.allocator_slack, 0.15), SET(replayed_slack, 0.15),
        SET(runtime.relative_uncertainty, 0.12)),  // 118 runs of two years, -20 to +14 % at 80 %
};

// 0.2.1 and its logs before: repeat_kv of its llama3, llama4 and qwen3 until ff0829c10 (2026-01-27), then enable_gqa.
static const TargetVersion torchtitan_0_2_1 = {
    .version = "0.2.1",
    .extends = &torchtitan_0_2,
    .until = "2026-02",
    .evidence = "44 published runs",
    .settings = SETTINGS(SET(repeats_keys, true), SET(cudnn_first, CUDNN_NEVER_FIRST)),  // its logs of before 2025-10
};

// Its logs of 2025-02 and 2025-06.
static const TargetVersion torchtitan_0_1 = {
    .version = "0.1",
    .extends = &torchtitan_0_2_1,
    .until = "2025-04",
    .evidence = "45 published runs",
    .settings = SETTINGS(
        SET(sums_by_product, false),         // scatter_add
        SET(runtime.autocasts, false),       // nor does anything else cast where nothing is sharded
        SET(aten_norms, false),              // operation by operation until PyTorch 2.8
        SET(updates_in_backward, false),     // as its logs have it: not looked at
        SET(seq_by_tp, false),               // v0.1.0 asserts nothing of the kind
        SET(allocator, ALLOCATOR_SEGMENTS),  // its logs of 2024-12 and 2025-02, first step and later: 42.1 and 49.6 GiB
        SET(loss_fp32_copies[FUSED_COMPILED], 3)),  // Inductor kept the log-softmax: compiled runs held what eager do
};

// Before its #391.
static const TargetVersion torchtitan_0_0 = {
    .version = "0.0",
    .extends = &torchtitan_0_1,
    .until = "2024-07",
    .evidence = "12 published runs",
    .settings = SETTINGS(SET(root_unit, true),          // embedding, norm and output until pytorch/torchtitan f336766da
                         SET(tp_overlap_exposed, 0.0),  // async TP came later that summer
                         SET(loss_fp32_copies[FUSED_FUSED], 4),  // the logits live through backward
                         SET(loss_fp32_copies[FUSED_EAGER], 4), SET(loss_fp32_copies[FUSED_COMPILED], 4)),
};

static const TargetVersion torchtitan_head = {
    .version = "head",
    .extends = &torchtitan_0_2,
    .evidence = "unvalidated",
    .settings = SETTINGS(
        SET(recompute_counts, RECOMPUTE_ALL_ALIKE),  // SelectiveAC is by operation only
        // get_attention_config refuses sdpa of language models: FlexAttention or varlen, masked by the documents whose
        // positions its data loaders count (models/common/config_utils.py, since its PR 3571)
        SET(cudnn_first, CUDNN_NEVER_FIRST), SET(pack_flavour, PACKS_BY_MASK_ALWAYS),
        SET(updates_in_backward, false),  // gone (components/optimizer)
        SET(routes_eagerly, false),       // a block is compiled as a whole (its 5242bdf71)
        SET(sums_by_product, false),      // scatter_add again,
        // deterministic (ops/scatter_add.py), which puts rows by index since PyTorch 2.9; rows are padded no more
        SET(runtime.sums_sorted, true), SET(runtime.pads_alone, false),
        // repeat_interleave (models/gpt_oss/moe.py), whose gradient is an index_add: in bf16 Inductor makes it ATen's
        // index_put_ (needs_fallback_due_to_atomic_add_limitations)
        SET(runtime.repeats_biases, true),
        // Float8, MXFP8 and NVFP4LinearConverter (components/quantization)
        SET(fp8_recipes, FP8_BIT(FP8_TENSORWISE) | FP8_BIT(FP8_ROWWISE) | FP8_BIT(FP8_ROWWISE_BF16) | FP8_BIT(FP8_MX) |
                             FP8_BIT(FP8_NVFP4)),
        SET(seq_by_tp, false),               // counts tokens of a micro-batch instead (trainer.py)
        SET(cp_scatters, true),              // gradients are reduced back at the local_map boundary (P4)
        SET(cp_gathers_first, true),         // at which all keys and values are gathered
        SET(replicate_rule, REPLICATE_ANY),  // fully_shard is always applied (P4)
        SET(runtime.autocasts, false),       // and casts
        // Its loss runs on an eighth of the tokens at a time (ChunkedLossWrapper, which our file of it sets): no fp32
        // plane of all logits lives (P4).
        SET(loss_fp32_copies[FUSED_FUSED], 0), SET(loss_fp32_copies[FUSED_EAGER], 0), SET(split_loss_fp32_copies, 0)),
};

// The release (wheel of 0.3.0), recorded in tests/frameworks/traces/torchtitan-0.3.
static const TargetVersion torchtitan_0_3 = {
    .version = "0.3",
    .extends = &torchtitan_head,
    .evidence = "unvalidated",
    .settings = SETTINGS(
        // fp8 gathers and tensorwise scales are gone (components/quantization/float8.py)
        SET(fp8_recipes, FP8_BIT(FP8_ROWWISE) | FP8_BIT(FP8_ROWWISE_BF16) | FP8_BIT(FP8_MX) | FP8_BIT(FP8_NVFP4)),
        SET(own_loss, LOSS_CHUNKED), SET(loss_chunks, 8),  // ChunkedLossWrapper of every recipe (components/loss.py),
                                                           // which collects the hidden gradient in fp32
        SET(losses, LOSS_BIT(LOSS_WHOLE)),                 // a recipe's config.loss without it
        SET_TEXT(loss_note, "it has no kernel for head and loss"),
        SET(optimizers, OPTIMIZER_BIT(OPTIMIZER_ADAMW_FOREACH) |   // components/optimizer/optimizer.py: foreach and
                            OPTIMIZER_BIT(OPTIMIZER_ADAMW_BF16)),  // fused_opt_states_bf16
        SET(loss_regathers, true),     // ChunkedLossWrapper reshards final norm and head around the parts
        SET(cp_keeps_gathered, true),  // FlexAttention saves K and V of flex_cp_allgather
        SET(cp_block, 128),            // _DEFAULT_SPARSE_BLOCK_SIZE of its block mask (models/common/attention.py)
        // 13 bytes a logit of a part (pytorch/torchtitan PR 4514): bf16 and three fp32 copies, less what is shared
        SET(loss_fp32_copies[FUSED_FUSED], 3), SET(loss_fp32_copies[FUSED_EAGER], 3),
        SET(loss_fp32_copies[FUSED_COMPILED], 3), SET(split_loss_fp32_copies, 1), SET(own_graphs, true),
        SET(graph_switch, true),  // training.disable_cuda_graphs, false (config/configs.py)
        SET(fused_qkv, true),     // fuse_qkv of its llama3 and qwen3 flavours; w1 and w3 are two
        // LoRAConverter: adapters of the parameters' dtype in the blocks' units (components/lora.py); training.dtype is
        // that of what is frozen too
        SET(finetunes, 1u << FINETUNE_LORA), SET(upcasts_frozen, true),
        SET(graphs_hold_gradients, true),  // zero_grad(set_to_none=disable_cuda_graphs) (trainer.py)
        SET_TEXT(graphs_note, "it refuses CUDA graphs of a pipeline"),  // _validate_cuda_graphs (trainer.py)
        SET(seq_by_tp, true)),  // seq_len_divisor is tp x 2 cp (distributed/parallel_dims.py)
};

static const FrameworkSynonym synonyms[] = {
    {"titan", NULL},
    {"torchtune", "torchtune shards by FSDP version 2"},
    {"fsdp", "FSDP version 2"},
    {"fsdp2", FULLY_SHARD_WORDS},
    {"pytorch", FULLY_SHARD_WORDS},
    {NULL, NULL},
};

// components/metrics.py of 0.2.
static const LogPattern logs[] = {
    {.name = "torchtitan",
     .pattern = "step: *[0-9]+ .*tps(): *" LOG_NUMBER "()",
     .quantity = STEP_TOKENS_PER_S,
     .words = "tps:"},
    {.name = NULL},
};

// schedules.py of torch.distributed.pipelining and pipeline_llm of its own: orders of several stages have at least
// two on each rank, and compiled ones cannot have their weights' gradients apart.
static const char *refuse(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const char *schedule = pp_schedule_names[plan->pp_schedule];
    const char *uncounted = torchtitan_refuse_count(model, plan, arena);
    if (!plan_has_stages(plan) || uncounted || !plan_splits_backward(plan)) {
        return uncounted;
    }
    REFUSE_IF(arena, plan_chunks(plan) < 2 && plan->pp_schedule != PP_FILE,
              "%s runs %s with at least 2 stages on each rank: use virtual_stages 2", target->name, schedule);
    REFUSE_IF(arena, plan->fused == FUSED_COMPILED, "PyTorch refuses %s of compiled stages: use fused eager", schedule);
    return NULL;
}

static const MeasuredChip measured[] = {
    {"H100-96GB-HBM2e-500W", 95, 256, 0.073, 0.004}, {"A100-SXM4-80GB", 10, 64, 0.023, 0.011},
    {"B200-SXM-180GB", 6, 8, 0.268, -0.268},         {"MI300X-192GB", 4, 8, 0.044, -0.044},
    {"H100-SXM5-80GB", 3, 128, 0.012, -0.012},       {0},
};

static const ChipWidth widths[] = {{"A100-SXM4-80GB", 0.6, 0.25},  // 0.36, of one page
                                   {"B200-SXM-180GB", 1.5, 0.25},  // 1.53: its two machines are 19 to 45 % slower
                                   {0}};

const Framework framework_torchtitan = {
    .name = "torchtitan",
    .refuse = refuse,
    .measured = measured,
    .widths = widths,
    .experts = {11, 0.217, -0.217, 0.232},  // of its commits; the width of a guess holds them all
    .versions = (const TargetVersion *const[]){&torchtitan_0_2, &torchtitan_0_0, &torchtitan_0_1, &torchtitan_0_2_1,
                                               &torchtitan_head, &torchtitan_0_3, NULL},
    .formats = (const ExportFormat *const[]){&export_torchtitan_toml, &export_torchtitan_python, NULL},
    .config = &import_torchtitan,
    .synonyms = synonyms,
    .logs = logs,
    .log_name = "torchtitan",
    .micro_batch = "local_batch_size",
    .accumulation = "global_batch_size",
    .of_stages = {"pipeline_parallel_microbatch_size", "local_batch_size"},
    .accumulation_is_batch = true,
    .has_pipelines = true,
    .logs_reserved = true,  // components/metrics.py: max_reserved_gib
};
