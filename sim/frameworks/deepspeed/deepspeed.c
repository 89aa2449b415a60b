// DeepSpeed's ZeRO. Its sequence parallelism is Ulysses. tp ranks are neighbours
// (deepspeed/utils/groups.py).

#include <string.h>

#include "sim/frameworks/deepspeed/deepspeed_files.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/pytorch.h"

static const TargetVersion deepspeed_0_19 = {
    .version = "0.19",
    .extends = &pytorch,
    .evidence = "unvalidated",
    .settings = SETTINGS(
        SET_TEXT(loss_note, "its chunked_cross_entropy keeps the logits"),
        SET_TEXT(grad_sync_note, "stages 2 and 3 reduce on every micro-step, stages 0 and 1 on the last"),
        // Stage 0: engine.py allreduce_gradients, after backward. Stages 1, 2: overlap_comm is false by default
        // (runtime/zero/config.py overlap_comm_valid): stage_1_and_2.py reduces on the stream of the kernels, at stage
        // 1 in reduce_gradients, after backward.
        SET(serial_stages, 1u << 0 | 1u << 1 | 1u << 2), SET(overlap_stages, 1u << 1 | 1u << 2),
        SET(axes, AXES_DP | AXES_TP | AXES_PP), SET(pp_schedules, PP_BIT(PP_1F1B)),
        SET(stages_max_zero, 1),  // PipelineEngine asserts it (runtime/pipe/engine.py)
        // PipelineModule.forward checkpoints by CheckpointFunction (runtime/activation_checkpointing/checkpointing.py)
        SET(stages_recompute_whole, true),
        SET(slices_messages, true),       // pipe_partitioned and grad_partitioned (runtime/pipe/engine.py)
        SET(messages_in_turn, true),      // TrainSchedule's SendActivation, RecvGrad
        SET(splits, PP_BIT(SPLIT_EVEN)),  // partition_method 'uniform', or 'type:regex' of the layers
        SET(layer_rule, LAYERS_BY_PARAMETERS), SET(ties_stages, true),  // TiedLayerSpec (runtime/pipe/module.py)
        SET(tp_flavour, TP_AR),                                         // autotp_size
        SET(reduce_dtype_bf16, DTYPE_BF16), SET(shard_copies, true),    // bucket copies
        SET(backward_prefetch, true), SET(max_zero, 3),
        SET(zero_stages, 1u << 1 | 1u << 2 | 1u << 3),  // zero_optimization.stage
        SET(reshards_near, true),                       // zero_hpz_partition_size
        SET(default_fused, FUSED_EAGER),
        SET(offloads, 1u << OFFLOAD_OPTIMIZER | 1u << OFFLOAD_PARAMETERS),  // runtime/zero/offload_config.py
        SET(runtime.step_fixed_s, 20e-3),  // estimated between accelerate's and fsdp1's
        SET(runtime.loss_by_row, true),
        SET(loss_fp32_copies[FUSED_EAGER], 2),  // upcast logits, log-softmax; fused: none
        SET(loss_fp32_copies[FUSED_COMPILED], 1), SET(runtime.optimizer_bytes_per_parameter, 28.0),  // FusedAdam
        SET(pack_flavour, PACKS_ROWS), SET(cudnn_first, CUDNN_FIRST_BY_PYTORCH),  // your script's attention
        // peft and bitsandbytes; runtime/engine.py _configure_distributed_model casts the module whole, adapters too
        SET(finetunes, 1u << FINETUNE_LORA | 1u << FINETUNE_QLORA | 1u << FINETUNE_LORA_INT8),
        // runtime/engine.py _configure_basic_optimizer: torch_adam of AdamW's params, FusedLion; the script's own
        SET(optimizers, OPTIMIZER_BIT(OPTIMIZER_ADAMW_FOREACH) | OPTIMIZER_BIT(OPTIMIZER_LION) |
                            OPTIMIZER_BIT(OPTIMIZER_ADAMW_FOREACH_2_0) | OPTIMIZER_BIT(OPTIMIZER_ADAMW_LOOP)),
        SET(runtime.relative_uncertainty, 0.13)),  // sim/SOURCES.md H8: 15 to 25 % unexplained for its
                                                   // eager runs
};

// Recorded in tests/frameworks/traces/deepspeed-0.19.8.
static const TargetVersion deepspeed_0_19_8 = {
    .version = "0.19.8",
    .extends = &deepspeed_0_19,
    .evidence = "unvalidated",
    .settings = SETTINGS(SET(axes, AXES_DP | AXES_SP | AXES_TP | AXES_PP),  // UlyssesSPAttentionHF (ulysses_sp.py)
                         // _prepare_fp32_grad_for_sub_group of a sub_group_size (runtime/zero/stage3.py, config.py)
                         SET(update_copies, 1000000000),
                         // TiledMLP and TiledFusedLogitsLoss (ulysses_sp.py), which the script calls; num_shards is 4
                         // in its tutorial (deepspeed.ai/tutorials/ulysses-alst-sequence-parallelism)
                         SET(tiles_mlp, true), SET(losses_by_call, LOSS_BIT(LOSS_CHUNKED)), SET(loss_chunks, 4),
                         SET(loss_collects_half, true),  // zeros_like(x)
                         SET(runtime.hooks_modules, true),
                         SET(runtime.reduce_buffer, 5e8),             // reduce_bucket_size (zero/config.py)
                         SET(runtime.scatters_by_all_reduce, true)),  // use_multi_rank_bucket_allreduce, on by default
};

// Sequence parallelism has its own groups, with data parallelism only (sequence_parallel/parallel_state_sp.py);
// accelerate's guide names stages 2 and 3. Keys and values that are repeated, where sp is a multiple of their heads,
// are not predicted.
static const char *refuse_sp(const Target *target, const TrainPlan *plan, Arena *arena) {
    const Mesh *mesh = &plan->mesh;
    const Axis other = mesh->size[AXIS_PP] > 1 ? AXIS_PP : AXIS_TP;
    REFUSE_IF(arena, mesh->size[other] > 1,
              "%s has sequence parallelism beside data parallelism alone, not sp=%d with %s=%d: use %s=1", target->name,
              mesh->size[AXIS_SP], axis_names[other], mesh->size[other], axis_names[other]);
    REFUSE_IF(arena, plan->zero < 2, "%s runs sp=%d with ZeRO stages 2 and 3, zero=%d: use zero 3", target->name,
              mesh->size[AXIS_SP], plan->zero);
    return NULL;
}

// PipelineEngine (runtime/pipe/engine.py) asserts that.
static const char *refuse(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    (void)model;
    REFUSE_IF(arena, plan_has_adapters(plan) && mesh_group_size(&plan->mesh, AXES_OWN & ~AXES_DATA_GROUP) > 1,
              "adapters of %s are predicted beside data parallelism alone: use tp=1, sp=1 and pp=1", target->name);
    REFUSE_IF(arena,
              strcmp(target->version, deepspeed_0_19.version) != 0 && plan->zero > 0 &&
                  plan->mesh.size[AXIS_DP_REPLICATE] > 1,
              "%s shards over all data-parallel ranks, not over %d of %d: use dp_replicate=1", target->name,
              plan->mesh.size[AXIS_DP_SHARD],
              plan->mesh.size[AXIS_DP_SHARD] *
                  plan->mesh.size[AXIS_DP_REPLICATE]);  // runtime/zero/config.py has no mics_shard_size any more
    if (plan->mesh.size[AXIS_SP] > 1) {
        return refuse_sp(target, plan, arena);
    }
    REFUSE_IF(arena, plan->mesh.size[AXIS_PP] > 1 && plan->zero > target->stages_max_zero,
              "%s asserts that ZeRO-2 and ZeRO-3 are incompatible with pipelines, zero=%d: use zero %d", target->name,
              plan->zero, target->stages_max_zero);
    return NULL;
}

static const FrameworkSynonym synonyms[] = {
    {"llama-factory", "LLaMA-Factory trains by it"},
    {"openrlhf", "OpenRLHF trains by it"},
    {NULL, NULL},
};

// Of 0.11 in 2023, none of them fitted on.
static const MeasuredChip measured[] = {
    {"A800-SXM4-80GB", 3, 8, 0.022, 0.022},
    {"H800-SXM5-80GB", 3, 16, 0.053, -0.053},
    {0},
};

const Framework framework_deepspeed = {
    .name = "deepspeed",
    .measured = measured,
    .versions = (const TargetVersion *const[]){&deepspeed_0_19_8, &deepspeed_0_19, NULL},
    .formats = (const ExportFormat *const[]){&export_deepspeed_json, &export_accelerate_deepspeed, NULL},
    .config = &import_deepspeed,
    .synonyms = synonyms,
    .refuse = refuse,
    .micro_batch = "train_micro_batch_size_per_gpu",
    .accumulation = "gradient_accumulation_steps",
    .has_pipelines = true,
};
