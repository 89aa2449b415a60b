// NVIDIA's NeMo Automodel: transformers' modules under FSDP2, sharded by its own DefaultModelParallelizer
// (components/distributed/parallelizer.py), trained by its own recipe (recipes/llm/train_ft.py). Recorded in
// tests/frameworks/traces/automodel-0.7. Its final norm is a unit of its own, here one with the head: a gather of a few
// KB, which nothing waits for long. Kernels and their times are those of accelerate, whose modules it shares.

#include "sim/base/text.h"
#include "sim/frameworks/accelerate/accelerate.h"
#include "sim/frameworks/automodel/automodel_files.h"
#include "sim/frameworks/framework.h"

static const TargetVersion automodel_0_7 = {
    .version = "0.7",
    .extends = &accelerate_1_15,
    .evidence = "unvalidated",
    .settings = SETTINGS(
        SET(reduce_dtype_bf16, DTYPE_FP32),              // FSDP2Config.mp_policy: bf16 compute, fp32 reduction
        SET(grad_syncs, GRAD_SYNC_BIT(GRAD_SYNC_EACH)),  // defer_fsdp_grad_sync: false; true by default
        SET_TEXT(grad_sync_note, "defer_fsdp_grad_sync: false reduces over shards and replicas alike"),
        SET(tp_splits_head, true), SET(tp_splits_embedding, true),  // _parallelize_llama (optimized_tp_plans.py)
        SET(vocab_uneven, true),                                    // DTensor: the last rank has fewer rows
        SET(axes, AXES_DP | AXES_TP | AXES_CP | AXES_EP),           // ep_size (mesh_utils.py)
        // BackendConfig.dispatcher: deepep where it is installed; torch sums by an all-reduce, which none here does
        SET(experts_apart, true),     // moe/parallelizer.py apply_fsdp
        SET(biases_by_expert, true),  // moe/experts.py _apply_bias
        SET(runtime.indexes_experts, false), SET(own_dispatch, DISPATCH_DEEPEP),
        SET(dispatchers, DISPATCH_BIT(DISPATCH_HYBRIDEP)),
        SET(cp_ring, false),  // context_parallel/sharder.py gathers keys and values
        // Liger's cross entropy in transformers' loss (loss/loss_utils.py: logits.float()), in a loop of one's own
        SET(losses_by_call, LOSS_BIT(LOSS_ONE_COPY)), SET(losses, 0),
        SET_TEXT(stages_note, "its pipelines (pp_size) are not modelled"), SET(axes_unmodelled, AXES_STAGE),
        SET_TEXT(loss_note, "its FusedLinearCrossEntropy makes logits again in backward, which no form here does"),
        SET(runtime.autocasts, false),             // its recipe, no Accelerator, calls the model
        SET(runtime.other_share, 0),               // nsys on 64 H100, 70B: products at 651 TFLOP/s, 4.23e15 in 6.5 s
        SET(adapters_cast, false),                 // its adapters have their layer's dtype (components/_peft/lora.py)
        SET(offloads, 1u << OFFLOAD_PARAMETERS)),  // offload_policy: CPUOffloadPolicy
};

// mesh_utils.py
const char *automodel_refuse_mesh(const Mesh *mesh, Arena *arena) {
    const int replicate = mesh->size[AXIS_DP_REPLICATE];
    REFUSE_IF(arena, replicate > 1 && mesh->size[AXIS_DP_SHARD] == 1,
              "nemo-automodel refuses dp_replicate=%d with dp_shard=1: use dp_shard=%d with dp_replicate=1", replicate,
              replicate);
    return NULL;
}

// Its own layers of experts, which inherit from MoEFSDPSyncMixin (components/models).
static bool spreads_experts_of(const ModelSpec *model) {
    static const char *const types[] = {"qwen3_moe", "deepseek_v3", "kimi_k2", "gpt_oss"};
    return model->type && text_index(types, sizeof types / sizeof types[0], model->type) >= 0;
}

// mesh_utils.py: ep divides all ranks but those of pp, and experts are sharded over what it leaves of them, replicas
// too; moe/parallelizer.py: apply_cp, and tp ranks that send the same tokens (_nemo_moe_tp_requires_replica_sync).
static const char *refuse_ranks(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int *size = plan->mesh.size, ep = size[AXIS_EP];
    REFUSE_IF(arena, !spreads_experts_of(model),
              "Expert parallelism (ep_size=%d) requires a MoE model, but that of %s does not inherit from "
              "MoEFSDPSyncMixin: use ep=1",
              ep, model->name);
    REFUSE_IF(arena, model->experts.count % ep != 0,
              "n_routed_experts %d must be divisible by expert_parallel_degree %d: use an ep that divides them",
              model->experts.count, ep);
    REFUSE_IF(arena, size[AXIS_TP] > 1,
              "ep=%d beside tp=%d: the ranks of tp send the same tokens to experts, which is not predicted: use tp=1 "
              "or ep=1",
              ep, size[AXIS_TP]);
    REFUSE_IF(arena, size[AXIS_CP] > 1,
              "ep=%d beside cp=%d takes Transformer Engine's attention (apply_cp), which is not predicted: use cp=1 or "
              "ep=1",
              ep, size[AXIS_CP]);
    REFUSE_IF(arena, size[AXIS_DP_REPLICATE] > 1,
              "ep=%d beside dp_replicate=%d: experts are sharded over the replicas too, which is not predicted: use "
              "dp_replicate=1",
              ep, size[AXIS_DP_REPLICATE]);
    return NULL;
}

static const char *refuse(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const char *mesh = automodel_refuse_mesh(&plan->mesh, arena);
    if (mesh) {
        return mesh;
    }
    REFUSE_IF(arena, plan->fused == FUSED_COMPILED && plan->recompute == RECOMPUTE_FULL,
              "%s checkpoints attention and MLP of compiled layers apart, which is not modelled: use --fused eager or "
              "--recompute none",
              target->name);  // parallelizer.py _apply
    return transformers_refuse(target, model, plan, arena);
}

static const FrameworkSynonym synonyms[] = {
    {"nemo-automodel", NULL},
    {"nemo", "Automodel is NeMo on PyTorch's own sharding"},
    {NULL, NULL},
};

static const SourceName sources[] = {
    {.name = "automodel"},
    {.name = "nemoautomodel"},
    {.name = NULL},
};

const Framework framework_automodel = {
    .name = "automodel",
    .versions = (const TargetVersion *const[]){&automodel_0_7, NULL},
    .refuse = refuse,
    .refuse_mesh = refuse_ranks,
    .formats = (const ExportFormat *const[]){&export_automodel_yaml, NULL},
    .config = &import_automodel,
    .synonyms = synonyms,
    .sources = sources,
    .micro_batch = "step_scheduler.local_batch_size",
    .accumulation = "step_scheduler.global_batch_size",
    .accumulation_is_batch = true,
    .compile = "distributed.enable_compile: true",
    .sync_each = "distributed.defer_fsdp_grad_sync: false",
};
