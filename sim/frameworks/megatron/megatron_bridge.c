// A script for Megatron-Bridge (wheel of 0.6.2): what its own recipes set on recipes/common.py's configurations, of
// pretraining or of adapters. It converts the model from Hugging Face's. The data-parallel size is what the other sizes
// leave. data, learning rate and checkpoints stay the configuration's.

#include <string.h>

#include "sim/base/escape.h"
#include "sim/frameworks/megatron/megatron_files.h"

static bool has_adapters(const ConfigJob *job) {
    return plan_has_adapters(job->plan);
}

static const char *bridge_refuse(const ConfigJob *job) {
    bool known;
    export_model_path(job, &known);
    REFUSE_IF(job->arena, !known,
              "Megatron-Bridge converts models of Hugging Face, and %s is none: give the folder of its config.json "
              "with --model",
              job->model->name);
    REFUSE_IF(job->arena, plan_offloads_states(job->plan),
              "a file of megatron-bridge does not say offload=%s yet: use --offload none",
              offload_names[job->plan->offload]);
    REFUSE_IF(job->arena, job->plan->optimizer != OPTIMIZER_TARGET && !megatron_states(job->plan->optimizer),
              "a file of megatron-bridge does not say optimizer=%s yet: use --optimizer adamw",
              optimizer_names[job->plan->optimizer]);
    return megatron_refuse_kernel(job);
}

// Of training/mixed_precision.py; their parameters in fp8 are said below.
static const char *precision_recipe(const ConfigJob *job) {
    static const char *const recipes[FP8_RECIPE_COUNT] = {[FP8_TENSORWISE] = "bf16_with_fp8_current_scaling_mixed",
                                                          [FP8_DELAYED] = "bf16_with_fp8_delayed_scaling_mixed",
                                                          [FP8_MX] = "bf16_with_mxfp8_mixed",
                                                          [FP8_BLOCK] = "bf16_with_fp8_subchannel_scaling_mixed",
                                                          [FP8_NVFP4] = "bf16_with_nvfp4_mixed"};
    return job->plan->precision == DTYPE_FP8 ? recipes[job->plan->fp8_recipe] : "bf16_mixed";
}

static void write_imports(const ConfigJob *job, FILE *out) {
    const char *common = has_adapters(job) ? "_peft_common" : "_pretrain_common";
    const char *train = has_adapters(job) ? "finetune" : "pretrain";
    fprintf(out,
            "\nimport torch\n"
            "from megatron.bridge import AutoBridge\n"
            "%s"
            "from megatron.bridge.recipes.common import %s\n"
            "from megatron.bridge.training.comm_overlap import CommOverlapConfig\n"
            "from megatron.bridge.training.%s import %s\n"
            "from megatron.bridge.training.gpt_step import forward_step\n"
            "from megatron.bridge.training.mixed_precision import %s\n"
            "from megatron.core.transformer.enums import AttnBackend\n\nMODEL = ",
            has_adapters(job) ? "from megatron.bridge.peft.lora import LoRA\n" : "", common, train, train,
            precision_recipe(job));
    bool known;
    escape_quoted(export_model_path(job, &known), out);
    fprintf(out,
            "\n\n\ndef config():\n"
            "    cfg = %s()  # yours: data, learning rate, checkpoints\n"
            "    cfg.model = AutoBridge.from_hf_pretrained(MODEL).to_megatron_provider(load_weights=False)\n"
            "    cfg.tokenizer.tokenizer_model = MODEL\n"
            "    cfg.model.seq_length = cfg.dataset.seq_length = %d\n",
            common, job->plan->seq);
}

// Of the four linear layers that it has by block, q, k and v being one, gate and up another.
static void write_adapters(const ConfigJob *job, FILE *out) {
    static const char *const modules[LORA_TARGETS_COUNT] = {
        [LORA_ALL] = "\"linear_qkv\", \"linear_proj\", \"linear_fc1\", \"linear_fc2\"",
        [LORA_ATTENTION] = "\"linear_qkv\", \"linear_proj\"",
        [LORA_QUERY_VALUE] = "\"linear_qkv\""};
    const TrainPlan *plan = job->plan;
    const int rank = plan_lora_rank(plan), cp = export_axis(job, AXIS_SP) * export_axis(job, AXIS_CP);
    if (!has_adapters(job)) {
        return;
    }
    fprintf(out, "    cfg.peft = LoRA(dim=%d, alpha=%d, target_modules=[%s])\n", rank, LORA_SCALING * rank,
            modules[plan->lora_targets]);
    if (plan->pack == 0) {
        fputs("    cfg.dataset.offline_packing_specs = None\n", out);
        return;
    }
    fprintf(out, "    cfg.dataset.offline_packing_specs.packed_sequence_size = %d\n", plan->seq);
    PRINT_IF(cp > 1, out, "    cfg.dataset.offline_packing_specs.pad_seq_to_mult = %d\n", 2 * cp);
}

static void write_capacity(const TrainPlan *plan, FILE *out) {
    static const double PER_CENT = 100;
    if (plan->expert_capacity > 0) {
        fprintf(out, "    cfg.model.moe_expert_capacity_factor = %g\n", plan->expert_capacity / PER_CENT);
        fputs(plan->pad_experts ? "    cfg.model.moe_pad_expert_input_to_capacity = True\n" : "", out);
    }
}

// Its default cuts experts as tp cuts the rest.
static void write_experts(const ConfigJob *job, FILE *out) {
    static const char *const types[DISPATCH_COUNT] = {[DISPATCH_ALLTOALL] = "alltoall",
                                                      [DISPATCH_ALLGATHER] = "allgather",
                                                      [DISPATCH_DEEPEP] = "flex",
                                                      [DISPATCH_HYBRIDEP] = "flex"};
    const Dispatch dispatch = target_dispatch(job->target, job->plan);
    write_capacity(job->plan, out);
    fputs("    cfg.model.moe_grouped_gemm = cfg.model.moe_permute_fusion = cfg.model.moe_router_fusion = True\n", out);
    if (export_axis(job, AXIS_EP) == 1) {
        return;
    }
    fprintf(out,
            "    cfg.model.expert_model_parallel_size = %d\n"
            "    cfg.model.expert_tensor_parallel_size = %d\n"
            "    cfg.model.moe_token_dispatcher_type = \"%s\"\n",
            export_axis(job, AXIS_EP), plan_expert_tp(job->plan), types[dispatch]);
    PRINT_IF(dispatch >= DISPATCH_DEEPEP, out,
             "    cfg.model.moe_flex_dispatcher_backend = \"%s\"\n"
             "    cfg.model.moe_router_dtype = \"fp32\"\n",
             dispatch_names[dispatch]);
}

static void write_stages(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const MegatronSplit split = megatron_split(job);
    fputs("    cfg.model.pipeline_dtype = torch.bfloat16\n", out);
    PRINT_IF(plan_chunks(plan) > 1, out, "    cfg.model.virtual_pipeline_model_parallel_size = %d\n",
             plan_chunks(plan));
    PRINT_IF(megatron_group(job) > 0, out, "    cfg.model.microbatch_group_size_per_vp_stage = %d\n",
             megatron_group(job));
    PRINT_IF(split.layout, out, "    cfg.model.pipeline_model_parallel_layout = \"%s\"\n", megatron_layout(job));
    PRINT_IF(split.first, out,
             "    cfg.model.num_layers_in_first_pipeline_stage = %d\n"
             "    cfg.model.num_layers_in_last_pipeline_stage = %d\n",
             split.first, split.last);
    fputs(split.embedding ? "    cfg.model.account_for_embedding_in_pipeline_split = True\n" : "", out);
    fputs(split.loss ? "    cfg.model.account_for_loss_in_pipeline_split = True\n" : "", out);
}

// As scripts/performance/utils/overrides.py of v0.6.0 sets them.
static void write_graphs(const ConfigJob *job, FILE *out) {
    const bool whole = target_cuda_graphs(job->target, job->plan);
    if (!whole && !plan_graphed_parts(job->plan)) {
        return;
    }
    fprintf(out,
            "    cfg.model.cuda_graph_impl = \"%s\"\n"
            "    cfg.model.cuda_graph_modules = [",
            whole ? "full_iteration" : "transformer_engine");
    megatron_graphed(job->plan, "\"%s\"", ", \"%s\"", out);
    fputs("]\n"
          "    cfg.model.use_te_rng_tracker = cfg.rng.te_rng_tracker = True\n",
          out);
}

static void write_axes(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const int tp = export_axis(job, AXIS_TP), sp = export_axis(job, AXIS_SP);
    const int cp = export_axis(job, AXIS_CP), pp = mesh_stages(&plan->mesh);
    fprintf(out,
            "    cfg.model.tensor_model_parallel_size = %d\n"
            "    cfg.model.sequence_parallel = %s\n"
            "    cfg.model.context_parallel_size = %d\n"
            "    cfg.model.pipeline_model_parallel_size = %d\n",
            tp, tp > 1 && target_tp_flavour(job->target, plan) == TP_SP ? "True" : "False", sp * cp, pp);
    if (pp > 1) {
        write_stages(job, out);
    }
    PRINT_IF(sp * cp > 1, out, "    cfg.model.cp_comm_type = \"%s\"\n",
             sp > 1 && cp > 1                    ? "a2a+p2p"
             : sp > 1                            ? "a2a"
             : plan->cp_rotate == CP_ROTATE_RING ? "p2p"
                                                 : "all_gather");
    PRINT_IF(sp > 1 && cp > 1, out, "    cfg.model.hierarchical_context_parallel_sizes = [%d, %d]\n", sp, cp);
    if (job->model->experts.count > 0) {
        write_experts(job, out);
    }
}

// As its benchmarks have it, which are what is measured (perf_recipes/_common.py; of latent attention
// deepseek/common.py, where the kernel takes yarn's positions only: transformer_config.py). GPT-OSS has none
// (gpt_oss/common.py).
static void write_positions(const ModelSpec *model, FILE *out) {
    const bool latent = model->latent.kv_rank > 0, stretched = model->yarn.factor > 0;
    PRINT_IF(latent && stretched, out, "    cfg.dist.enable_megatron_core_experimental = True\n");
    PRINT_IF(model->position == POSITION_ROTARY && latent == stretched, out,
             "    cfg.model.apply_rope_fusion = True\n");
}

// Off unless a provider says otherwise, as Llama's does and Qwen's does not (transformer_config.py of Megatron-core;
// bridges of v0.6.0): act(gate) would be kept, its product another kernel. GPT-OSS's says it of its own.
static void write_activation(const ModelSpec *model, FILE *out) {
    PRINT_IF(model->mlp == MLP_GATED && model->activation == ACTIVATION_SILU && !model->sinks, out,
             "    cfg.model.bias_activation_fusion = True\n");
}

static void write_kernels(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const bool own = job->model->type && strcmp(job->model->type, "deepseek_v3") == 0;  // num_nextn_predict_layers
    if (plan->mtp > 0) {
        fprintf(out, "    cfg.model.mtp_num_layers = %d\n", plan->mtp);
    } else if (own) {
        fputs("    cfg.model.mtp_num_layers = None\n", out);
    }
    fprintf(out, "    cfg.model.attention_backend = AttnBackend.%s\n",
            plan->attention == ATTENTION_FLASH ? "flash" : "fused");
    fprintf(out, "    cfg.model.cross_entropy_fusion_impl = \"%s\"\n", plan->loss == LOSS_IN_PLACE ? "te" : "native");
    write_positions(job->model, out);
    write_activation(job->model, out);
    PRINT_IF(plan->loss == LOSS_ONE_COPY, out, "    cfg.model.cross_entropy_loss_fusion = False\n");
    PRINT_IF(plan->fp8_activation, out, "    cfg.model.activation_func_fp8_input_store = True\n");
    PRINT_IF(plan->op_fuser, out, "    cfg.model.use_transformer_engine_op_fuser = True\n");
    PRINT_IF(plan->qkv_rope, out, "    cfg.model.fused_single_qkv_rope = True\n");
}

// What is not kept on the device for backward.
static void write_kept(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    if (plan_offloads_activations(plan)) {
        fprintf(out,
                "    cfg.model.cpu_offloading = True\n"
                "    cfg.model.cpu_offloading_num_layers = %d\n",
                plan_offload_layers(plan, job->model->layers));
    }
    write_graphs(job, out);
    if (plan->recompute == RECOMPUTE_FULL) {
        fprintf(out,
                "    cfg.model.recompute_granularity = \"full\"\n"
                "    cfg.model.recompute_method = \"%s\"\n"
                "    cfg.model.recompute_num_layers = %d\n",
                plan_keeps_layers(plan) ? "block" : "uniform", plan_keeps_layers(plan) ? plan->recompute_layers : 1);
    } else if (plan->recompute == RECOMPUTE_SELECTIVE) {
        fputs("    cfg.model.recompute_granularity = \"selective\"\n"
              "    cfg.model.recompute_modules = [",
              out);
        megatron_modules(job, "\"%s\"", ", \"%s\"", out);
        fputs("]\n", out);
    }
}

static void write_model(const ConfigJob *job, FILE *out) {
    write_axes(job, out);
    write_kernels(job, out);
    write_kept(job, out);
}

// What its precisions set differs by recipe, so it is always said.
static void write_fp8_parameters(const TrainPlan *plan, FILE *out) {
    const char *on = plan->fp8_parameters ? "True" : "False";
    if (plan->fp8_recipe == FP8_NVFP4) {
        fprintf(out, "    cfg.mixed_precision.fp4_param_gather = %s\n", on);
    } else if (plan->fp8_parameters && plan->fp8_recipe != FP8_MX) {
        fputs("    cfg.mixed_precision.fp8_param_gather = True\n", out);
    } else {  // MX gathers into the buffer of gradients
        fprintf(out,
                "    cfg.mixed_precision.fp8_param_gather = cfg.mixed_precision.reuse_grad_buf_for_mxfp8_param_ag = "
                "%s\n",
                on);
    }
}

// As perf_recipes/deepseek/common.py sets them: attributes of Megatron-core's OptimizerConfig, which is its own.
static void write_states(const TrainPlan *plan, FILE *out) {
    const MegatronStates *states = megatron_states(plan->optimizer);
    if (states) {
        fprintf(out,
                "    cfg.optimizer.use_precision_aware_optimizer = True\n"
                "    cfg.optimizer.exp_avg_dtype = torch.%s\n"
                "    cfg.optimizer.exp_avg_sq_dtype = torch.%s\n",
                megatron_state_type(states->average), megatron_state_type(states->square));
    }
}

static void write_training(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const int replicate = export_axis(job, AXIS_DP_REPLICATE);
    const bool cut = export_axis(job, AXIS_SP) * export_axis(job, AXIS_CP) > 1;
    const bool sharded = plan->zero > 0 || megatron_shards_one(plan);
    const bool overlaps = target_reduce_overlap(job->target, plan) == REDUCE_OVERLAP_ON;
    fprintf(out,
            "    cfg.train.micro_batch_size = %d\n"
            "    cfg.train.global_batch_size = %lld\n"
            "    cfg.mixed_precision = %s()\n",
            plan->micro_batch, (long long)plan_global_batch(plan), precision_recipe(job));
    if (plan->precision == DTYPE_FP8) {
        write_fp8_parameters(plan, out);
    }
    PRINT_IF(plan->reduce_dtype == REDUCE_DTYPE_BF16, out,
             "    cfg.mixed_precision.grad_reduce_in_fp32 = cfg.ddp.grad_reduce_in_fp32 = False\n");
    fprintf(out,
            "    cfg.ddp.use_distributed_optimizer = cfg.optimizer.use_distributed_optimizer = %s\n"
            "    cfg.ddp.overlap_grad_reduce = %s\n"
            "    cfg.ddp.overlap_param_gather = %s\n",
            sharded ? "True" : "False", overlaps ? "True" : "False", sharded && overlaps ? "True" : "False");
    write_states(plan, out);
    // False beside adapters of cut sequences (training/config.py asserts it)
    fprintf(
        out,
        "    cfg.ddp.average_in_collective = %s\n"
        "    cfg.rerun_state_machine.check_for_nan_in_loss = cfg.ddp.check_for_nan_in_grad = False  # as predicted\n",
        megatron_averages(job) && !(has_adapters(job) && cut) ? "True" : "False");
    PRINT_IF(sharded && replicate > 1, out, "    cfg.ddp.num_distributed_optimizer_instances = %d\n", replicate);
    fprintf(out, "    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=%s%s%s%s)\n",
            plan->tp_overlap ? "True" : "False", plan->ep_overlap ? ", overlap_moe_expert_parallel_comm=True" : "",
            megatron_waits(job) ? ", overlap_p2p_comm=False, batch_p2p_comm=True" : "",
            // which it sets in cfg.ddp before training (training/comm_overlap.py)
            sharded && !overlaps ? ", overlap_grad_reduce=False, overlap_param_gather=False" : "");
}

static void bridge_write(const ConfigJob *job, FILE *out) {
    write_imports(job, out);
    write_adapters(job, out);
    write_model(job, out);
    write_training(job, out);
    fprintf(out,
            "    return cfg\n\n\n"
            "if __name__ == \"__main__\":\n"
            "    %s(config(), forward_step)\n",
            has_adapters(job) ? "finetune" : "pretrain");
}

static void bridge_notes(const ConfigJob *job, FILE *out) {
    PRINT_IF(has_adapters(job), out,
             "Base: set cfg.checkpoint.pretrained_checkpoint to the converted weights that are not trained.\n");
}

const ExportFormat export_megatron_bridge = {
    .name = "megatron-bridge",
    .target = "megatron@bridge-0.6",
    .file_name = "ndtune_bridge.py",
    .versions = "Megatron-Bridge 0.6",
    .comment = "# ",
    EXPORT_HAS(EXPORT_BF16 | EXPORT_FP8, EXPORT_NONE | EXPORT_FULL | EXPORT_SELECTIVE,
               EXPORT_BIT(ATTENTION_CUDNN) | EXPORT_FLASH, EXPORT_FUSED),
    .takes = PLAN_BIT(PLAN_REDUCE_DTYPE) | PLAN_BIT(PLAN_TP_OVERLAP) | PLAN_BIT(PLAN_RECOMPUTE_LAYERS) |
             PLAN_BIT(PLAN_FINETUNE) | PLAN_BIT(PLAN_PACK) | PLAN_BIT(PLAN_FP8_PARAMETERS) | PLAN_BIT(PLAN_DISPATCH) |
             PLAN_BIT(PLAN_EP_OVERLAP) | PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_OFFLOAD_LAYERS) | PLAN_BIT(PLAN_LOSS) |
             PLAN_BIT(PLAN_CUDA_GRAPHS) | PLAN_BIT(PLAN_FP8_ACTIVATION) | PLAN_BIT(PLAN_OP_FUSER) |
             PLAN_BIT(PLAN_QKV_ROPE) | PLAN_BIT(PLAN_OPTIMIZER),
    .stages = true,
    .refuse = bridge_refuse,
    .notes = bridge_notes,
    .write = bridge_write,
    .launch = launch_torchrun,
    .program = "%s",
};
