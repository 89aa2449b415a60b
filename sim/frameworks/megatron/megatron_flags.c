// A script with Megatron-LM's flags (main branch of 2026-08, megatron/training/arguments.py). The data-parallel size is
// what the other sizes leave; replicas of sharded groups are instances of its distributed optimizer. Stage 3 is its own
// FSDP, which asserts its checkpoints' format and that CUDA_DEVICE_MAX_CONNECTIONS is not 1.

#include <string.h>

#include "sim/frameworks/megatron/megatron_files.h"

// Its words are the plan's, with another stroke: core_attn.
void megatron_modules(const ConfigJob *job, const char *first, const char *next, FILE *out) {
    const unsigned modules = target_recompute_modules(job->target, job->plan);
    int written = 0;
    for (unsigned bit = 1; bit < RECOMPUTE_MODULE_SETS; bit <<= 1) {
        if (modules & bit) {
            char *word = arena_text(job->arena, recompute_module_names[bit]);
            for (char *at = word; (at = strchr(at, '-'));) {
                *at = '_';
            }
            fprintf(out, written++ == 0 ? first : next, word);
        }
    }
}

// The router's part has what orders tokens for their exchange in it, as in all recipes that capture it.
void megatron_graphed(const TrainPlan *plan, const char *first, const char *next, FILE *out) {
    static const struct {
        unsigned part;
        const char *word;
    } words[] = {{GRAPHED_ATTENTION, "attn"},
                 {GRAPHED_MLP, "mlp"},
                 {GRAPHED_ROUTER, "moe_router"},
                 {GRAPHED_ROUTER, "moe_preprocess"}};
    const unsigned parts = plan->cuda_graphs == CUDA_GRAPHS_LAYERS ? 0 : plan_graphed_parts(plan);
    int written = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (parts & words[i].part) {
            fprintf(out, written++ == 0 ? first : next, words[i].word);
        }
    }
}

static const char *megatron_refuse(const ConfigJob *job) {
    REFUSE_IF(job->arena, job->plan->loss == LOSS_IN_PLACE,
              "Megatron-LM stops at --cross-entropy-fusion-impl te since 2026-06 (its megatron/training/arguments.py): "
              "use --loss target, or --as megatron-bridge with --target megatron@bridge-0.6");
    return megatron_refuse_model(job);
}

// Else gradients are scaled by a pass of their own first, which no plan's time has. Its FSDP has none (fsdp/
// param_and_grad_buffer.py, gradient_reduce_div_fusion), and with this flag averages experts' over too few ranks.
static const char averages[] = "    --ddp-average-in-collective\n";

// Of experts, DistributedDataParallel asserts this equality of doubles where there is one instance
// (distributed/distributed_data_parallel.py, d98e8a64d): it fails for 6 of 78 ranks.
bool megatron_averages(const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    const int world = mesh_world(&plan->mesh) / mesh_stages(&plan->mesh);
    const double ranks = world / export_axis(job, AXIS_TP),
                 of_expert = world / (export_axis(job, AXIS_EP) * plan_expert_tp(plan));
    const bool instances = plan->zero > 0 && export_axis(job, AXIS_DP_REPLICATE) > 1;
    return job->model->experts.count == 0 || instances || of_expert / ranks / of_expert == 1 / ranks;
}

static void write_sharding(const ConfigJob *job, FILE *out) {
    const int replicate = export_axis(job, AXIS_DP_REPLICATE);
    const bool overlaps = target_reduce_overlap(job->target, job->plan) == REDUCE_OVERLAP_ON;
    if (job->plan->zero == 0) {
        const bool shards = megatron_shards_one(job->plan);
        if (overlaps && mesh_world(&job->plan->mesh) > export_axis(job, AXIS_TP)) {
            fprintf(out, "    --overlap-grad-reduce%s\n", shards ? " --overlap-param-gather" : "");
        }
        fputs(megatron_averages(job) ? averages : "", out);
        fputs(shards ? "    --use-distributed-optimizer\n" : "", out);
        return;
    }
    const char *reduced = job->plan->reduce_dtype == REDUCE_DTYPE_BF16 ? " --grad-reduce-in-bf16" : "";
    if (job->plan->zero == 3) {  // Transformer Engine adds gradients up by itself from 2.10 on only
        fprintf(out,
                "    --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params%s\n"
                "    --use-distributed-optimizer --ckpt-format fsdp_dtensor --no-gradient-accumulation-fusion\n",
                reduced);
    } else {
        fprintf(out, "    --use-distributed-optimizer%s%s\n",
                overlaps ? " --overlap-grad-reduce --overlap-param-gather" : "", reduced);
    }
    PRINT_IF(replicate > 1, out, "    --num-distributed-optimizer-instances %d\n", replicate);
    fputs(job->plan->zero == 3 || !megatron_averages(job) ? "" : averages, out);
}

static void write_parallelism(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const int tp = export_axis(job, AXIS_TP), cp = export_axis(job, AXIS_CP), sp = export_axis(job, AXIS_SP);
    fprintf(out,
            "PARALLELISM=(\n"
            "    --tensor-model-parallel-size %d --context-parallel-size %d --pipeline-model-parallel-size %d\n",
            tp, sp * cp, mesh_stages(&plan->mesh));
    PRINT_IF(export_axis(job, AXIS_EP) > 1, out,
             "    --expert-model-parallel-size %d --expert-tensor-parallel-size %d%s\n", export_axis(job, AXIS_EP),
             plan_expert_tp(plan), plan->ep_overlap ? " --overlap-moe-expert-parallel-comm" : "");
    if (plan_has_stages(plan)) {
        megatron_write_split(job, out);
    }
    PRINT_IF(tp > 1 && target_tp_flavour(job->target, plan) == TP_SP, out, "    --sequence-parallel%s\n",
             plan->tp_overlap ? " --tp-comm-overlap" : "");
    if (sp > 1 && cp > 1) {
        fprintf(out, "    --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes %d %d\n", sp, cp);
    } else if (sp > 1) {
        fputs("    --cp-comm-type a2a\n", out);
    } else if (cp > 1) {
        fprintf(out, "    --cp-comm-type %s\n", plan->cp_rotate == CP_ROTATE_RING ? "p2p" : "all_gather");
    }
    write_sharding(job, out);
    fputs(")\n", out);
}

// Causal kernels read no mask (megatron_read_batch.c has what it takes). The host waits for each look for NaN, at each
// loss and each bucket of gradients, and so does no recipe of Megatron-Bridge that is measured.
static void write_training(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    fprintf(out,
            "TRAINING=(\n"
            "    --micro-batch-size %d --global-batch-size %lld --train-iters 100  # and your learning rate\n"
            "    --attention-backend %s --no-create-attention-mask-in-dataloader\n"
            "    --no-check-for-nan-in-loss-and-grad  # as predicted: with a look the host waits for each loss\n",
            plan->micro_batch, (long long)plan_global_batch(plan),
            plan->attention == ATTENTION_FLASH ? "flash" : "fused");
    PRINT_IF(plan->precision != DTYPE_FP32, out, "    --%s\n", plan->precision == DTYPE_FP16 ? "fp16" : "bf16");
    if (plan->precision == DTYPE_FP8 && plan->fp8_recipe == FP8_NVFP4) {
        fprintf(out, "    --fp4-format e2m1 --fp4-recipe nvfp4%s\n", plan->fp8_parameters ? " --fp4-param-gather" : "");
    } else if (plan->precision == DTYPE_FP8) {
        fprintf(out, "    --fp8-format hybrid --fp8-recipe %s%s%s\n", fp8_recipe_names[plan->fp8_recipe],
                plan->fp8_parameters ? " --fp8-param-gather" : "",
                plan->fp8_parameters && plan->fp8_recipe == FP8_MX ? " --reuse-grad-buf-for-mxfp8-param-ag" : "");
    }
    if (plan_offloads_activations(plan)) {
        fprintf(out, "    --cpu-offloading-num-layers %d\n", plan_offload_layers(plan, job->model->layers));
    } else if (plan->offload != OFFLOAD_NONE) {  // which arguments.py takes with the precision-aware optimizer only
        fputs("    --optimizer-cpu-offload --optimizer-offload-fraction 1.0 --use-precision-aware-optimizer\n", out);
    }
    if (plan->optimizer == OPTIMIZER_MUON) {
        fputs("    --optimizer muon  # of the package emerging_optimizers\n", out);
    } else if (plan->optimizer == OPTIMIZER_SGD_MOMENTUM) {
        fputs("    --optimizer sgd --sgd-momentum 0.9\n", out);
    } else if (OPTIMIZER_BIT(plan->optimizer) & MEGATRON_AWARE) {
        const MegatronStates *states = megatron_states(plan->optimizer);
        fprintf(out, "    --use-precision-aware-optimizer --exp-avg-dtype %s --exp-avg-sq-dtype %s\n", states->average,
                states->square);
    }
    if (target_cuda_graphs(job->target, plan)) {  // which need Transformer Engine's generators and no look at losses
        fputs("    --cuda-graph-impl full_iteration --te-rng-tracker\n", out);
    } else if (plan_graphed_parts(plan)) {
        fputs("    --cuda-graph-impl transformer_engine --te-rng-tracker", out);
        megatron_graphed(plan, " --cuda-graph-modules %s", " %s", out);
        fputc('\n', out);
    }
    if (plan_keeps_layers(plan)) {
        fprintf(out, "    --recompute-granularity full --recompute-method block --recompute-num-layers %d\n",
                plan->recompute_layers);
    } else if (plan->recompute == RECOMPUTE_FULL) {
        fputs("    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1\n", out);
    } else if (plan->recompute == RECOMPUTE_SELECTIVE) {
        fputs("    --recompute-granularity selective --recompute-modules", out);
        megatron_modules(job, " %s", " %s", out);
        fputc('\n', out);
    }
    fputs(")\n", out);
}

static void megatron_write(const ConfigJob *job, FILE *out) {
    fputs("#!/bin/bash\n", out);
    export_comment(job->header, "# ", out);
    fprintf(out, "set -euo pipefail\n%s\n\n",
            job->plan->zero == 3 ? "unset CUDA_DEVICE_MAX_CONNECTIONS  # its FSDP refuses 1"
                                 : "export CUDA_DEVICE_MAX_CONNECTIONS=1  # the order of tp's collectives and GEMMs");
    // assert of initialize_ub (Transformer Engine 2.8, pytorch/module/base.py)
    fputs(job->plan->tp_overlap
              ? "# export UB_SKIPMC=1  # --tp-comm-overlap on links without multicast, before Hopper\n\n"
              : "",
          out);
    megatron_write_model(job, out);
    write_parallelism(job, out);
    write_training(job, out);
    fputs("DATA=(--data-path \"$DATA_PATH\" --tokenizer-type HuggingFaceTokenizer --tokenizer-model "
          "\"$TOKENIZER_MODEL\")\n\n",
          out);
    launch_torchrun(job, "pretrain_gpt.py", out);
    fputs(" \\\n    \"${MODEL[@]}\" \"${PARALLELISM[@]}\" \"${TRAINING[@]}\" \"${DATA[@]}\"\n", out);
}

const ExportFormat export_megatron_flags = {
    .name = "megatron",
    .target = "megatron@core",
    .also = "0.19 fsdp",
    .file_name = "megatron.sh",
    .versions = "Megatron-LM (its main branch of 2026-08)",
    EXPORT_HAS(EXPORT_BF16 | EXPORT_FP16 | EXPORT_FP32 | EXPORT_FP8, EXPORT_NONE | EXPORT_FULL | EXPORT_SELECTIVE,
               EXPORT_BIT(ATTENTION_CUDNN) | EXPORT_FLASH, EXPORT_FUSED),
    .takes = PLAN_BIT(PLAN_REDUCE_DTYPE) | PLAN_BIT(PLAN_TP_OVERLAP) | PLAN_BIT(PLAN_RECOMPUTE_LAYERS) |
             PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_OFFLOAD_LAYERS) | PLAN_BIT(PLAN_CUDA_GRAPHS) |
             PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_FP8_PARAMETERS) | PLAN_BIT(PLAN_DISPATCH) |
             PLAN_BIT(PLAN_EP_OVERLAP) | PLAN_BIT(PLAN_LOSS) | PLAN_BIT(PLAN_OP_FUSER),
    .stages = true,
    .refuse = megatron_refuse,
    .write = megatron_write,
    .launch = launch_script,
    .program = "bash %s  # in Megatron-LM, with DATA_PATH and TOKENIZER_MODEL set",
};
