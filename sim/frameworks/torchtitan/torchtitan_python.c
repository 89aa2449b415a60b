// A recipe for torchtitan after 0.2 (config/configs.py and models/llama3/config_registry.py of 0.3.0 and of its main
// branch of 2026-08): a function that returns Trainer.Config, found by --module and --config. It starts from the
// model's own recipe and sets what the plan decides; batches are sequences in 0.3, tokens on the main branch.

#include <string.h>

#include "sim/base/escape.h"
#include "sim/frameworks/torchtitan/torchtitan_files.h"
#include "sim/frameworks/torchtitan/torchtitan_models.h"

static bool is_head(const ConfigJob *job) {
    return strcmp(job->target->version, "head") == 0;
}

static void write_training(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const long long batch = plan_global_batch(plan);
    fputs("    config.training = replace(\n        config.training,\n", out);
    if (is_head(job)) {
        fprintf(out,
                "        num_tokens_per_microbatch_per_dp_rank=%d * %d,\n"
                "        num_tokens_per_train_step=%lld * %d,\n"
                "        max_context_length=%d,\n",
                plan->micro_batch, plan->seq, batch, plan->seq, plan->seq);
    } else {
        fprintf(out,
                "        local_batch_size=%s,\n"
                "        global_batch_size=%lld,\n"
                "        seq_len=%d,\n",
                torchtitan_local_batch(job), batch, plan->seq);
    }
    fprintf(out,
            "        dtype=\"%s\",\n"
            "        mixed_precision_param=\"%s\",\n"
            "        mixed_precision_reduce=\"float32\",\n"
            "%s    )\n",
            plan->bf16_master ? "bfloat16" : "float32", plan->precision == DTYPE_FP32 ? "float32" : "bfloat16",
            job->target->own_graphs && !target_cuda_graphs(job->target, plan) ? "        disable_cuda_graphs=True,\n"
                                                                              : "");
}

// @head's batch is of one micro-batch already, 0.3's is cut into them.
static void write_stages(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    fprintf(out,
            "        pipeline_parallel_degree=%d,\n"
            "        pipeline_parallel_schedule=\"%s\",\n"
            "        %s=%d,\n",
            mesh_stages(&plan->mesh), torchtitan_schedule_word(plan),
            is_head(job) ? "num_pp_microbatches" : "pipeline_parallel_microbatch_size",
            is_head(job) ? plan_round_steps(plan) : plan->micro_batch);
    if (torchtitan_has_order(job)) {
        fputs("        pipeline_parallel_schedule_csv=", out);
        escape_quoted(torchtitan_order(job), out);
        fputs(",\n", out);
    }
    if (torchtitan_names_modules(job)) {
        fprintf(out, "        module_fqns_per_model_part=%s,\n", torchtitan_modules(job));
        return;
    }
    fprintf(out,
            "        pipeline_parallel_first_stage_less_layers=%s,\n"
            "        pipeline_parallel_last_stage_less_layers=%s,\n",
            torchtitan_first_less(job), torchtitan_last_less(job));
    PRINT_IF(torchtitan_says_layers(job), out, "        pipeline_parallel_layers_per_stage=%s,\n",
             torchtitan_stage_layers(job));
}

static void write_parallelism(const ConfigJob *job, FILE *out) {
    fprintf(out,
            "    config.parallelism = ParallelismConfig(\n"
            "        data_parallel_replicate_degree=%d,\n"
            "        data_parallel_shard_degree=%d,\n"
            "        context_parallel_degree=%d,\n"
            "        tensor_parallel_degree=%d,\n",
            export_axis(job, AXIS_DP_REPLICATE), export_axis(job, AXIS_DP_SHARD), export_axis(job, AXIS_CP),
            export_axis(job, AXIS_TP));
    PRINT_IF(export_spreads_experts(job), out, "        expert_parallel_degree=%d,\n", export_axis(job, AXIS_EP));
    if (torchtitan_has_stages(job)) {
        write_stages(job, out);
    }
    PRINT_IF(plan_has_adapters(job->plan), out,
             "        spmd_backend=\"partial_dtensor\",  # 0.3's default trains what LoRAConverter has frozen\n");
    fprintf(out, "        fsdp_reshard_after_forward=\"%s\",\n    )\n", torchtitan_reshard(job));
}

static bool has_grouped_products(const ConfigJob *job) {
    return job->plan->fp8_recipe == FP8_MX && job->model->experts.count > 0;
}

// The layers' products, of experts too, not those of their router; the head stays as it is.
static void write_converter(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const char *compiled = plan->fused == FUSED_COMPILED ? "True" : "False";
    if (has_grouped_products(job)) {
        fprintf(out,
                "MXFP8LinearConverter.Config(\n"
                "                fqns=[\"attention\", \"feed_forward\", \"shared_experts\"], "
                "model_compile_enabled=%s\n            ),\n"
                "            MXFP8GroupedExpertsConverter.Config(model_compile_enabled=%s)",
                compiled, compiled);
        return;
    }
    if (plan->fp8_recipe == FP8_MX || plan->fp8_recipe == FP8_NVFP4) {
        fprintf(out, "%sLinearConverter.Config(fqns=[\"layers\"], model_compile_enabled=%s)",
                plan->fp8_recipe == FP8_MX ? "MXFP8" : "NVFP4", compiled);
        return;
    }
    fprintf(out,
            "Float8LinearConverter.Config(\n"
            "                recipe_name=\"%s\", filter_fqns=[\"lm_head\"], model_compile_enabled=%s\n            )",
            plan->fp8_recipe == FP8_ROWWISE_BF16 ? "rowwise_with_gw_hp" : "rowwise", compiled);
}

static const char *converter_name(const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    return has_grouped_products(job)       ? "MXFP8GroupedExpertsConverter, MXFP8LinearConverter"
           : plan->fp8_recipe == FP8_MX    ? "MXFP8LinearConverter"
           : plan->fp8_recipe == FP8_NVFP4 ? "NVFP4LinearConverter"
                                           : "Float8LinearConverter";
}

static void write_formats(const ConfigJob *job, FILE *out) {
    if (job->plan->precision == DTYPE_FP8) {
        fputs(",\n        converters=[\n            ", out);
        write_converter(job, out);
        fputs(",\n        ],\n    ", out);
    }
}

// Of fuse_qkv, as all of its llama3 and qwen3 flavours are: q, k and v have one adapter.
static void write_adapters(const ConfigJob *job, FILE *out) {
    static const char *const modules[LORA_TARGETS_COUNT] = {[LORA_ALL] = "\"wqkv\", \"wo\", \"w1\", \"w2\", \"w3\"",
                                                            [LORA_ATTENTION] = "\"wqkv\", \"wo\"",
                                                            [LORA_QUERY_VALUE] = "\"wqkv\""};
    const int rank = plan_lora_rank(job->plan);
    if (!plan_has_adapters(job->plan)) {
        return;
    }
    fprintf(out,
            ",\n        converters=[\n"
            "            LoRAConverter.Config(rank=%d, alpha=%d, target_modules=[%s])\n        ],\n    ",
            rank, LORA_SCALING * rank, modules[job->plan->lora_targets]);
}

static const char *import_of_adapters(const ConfigJob *job) {
    return plan_has_adapters(job->plan) ? "from torchtitan.components.lora import LoRAConverter\n" : "";
}

static const char *import_of_converter(const ConfigJob *job) {
    return job->plan->precision == DTYPE_FP8
               ? arena_format(job->arena, "from torchtitan.components.quantization import %s\n", converter_name(job))
               : "";
}

static void torchtitan_python_write(const ConfigJob *job, FILE *out) {
    static const char *const checkpoints[RECOMPUTE_COUNT] = {[RECOMPUTE_NONE] = "None",
                                                             [RECOMPUTE_FULL] = "FullAC.Config()",
                                                             [RECOMPUTE_SELECTIVE] = "SelectiveAC.Config()"};
    const TrainPlan *plan = job->plan;
    const TitanModel *known = torchtitan_model(job->model);
    const char *folder = known ? known->folder : "llama3";
    fprintf(out,
            "\nfrom dataclasses import replace\n\n"
            "%sfrom torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss\n%s"
            "from torchtitan.config import CompileConfig, ParallelismConfig\n"
            "from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC  # noqa: F401\n"
            "from torchtitan.models.common.config_utils import decoder_vocab_size\n"
            "from torchtitan.models.%s import model_registry\n"
            "from torchtitan.models.%s.config_registry import %s_debugmodel\n"
            "from torchtitan.trainer import Trainer\n\n\n"
            "def train() -> Trainer.Config:\n"
            "    config = %s_debugmodel()  # yours: data, optimizer, tokenizer\n"
            "    config.model_spec = model_registry(",
            import_of_adapters(job), import_of_converter(job), folder, folder, folder, folder);
    fputs(!plan_has_adapters(plan) && plan->precision != DTYPE_FP8 ? "" : "\n        ", out);
    escape_quoted(known ? known->flavor : job->model->name, out);
    PRINT_IF(torchtitan_other_dispatcher(job), out, ", moe_comm_backend=\"%s\"", dispatch_names[plan->dispatch]);
    write_adapters(job, out);
    write_formats(job, out);
    fputs(plan->loss == LOSS_WHOLE
              ? ")\n"
                "    config.loss = CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(config.model_spec))\n"
              : ")\n"
                "    config.loss = ChunkedLossWrapper.Config(\n"
                "        loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(config.model_spec))\n"
                "    )\n",
          out);
    write_training(job, out);
    write_parallelism(job, out);
    PRINT_IF(export_other_optimizer(job), out,
             "    config.optimizer = replace(config.optimizer, implementation=\"%s\")\n",
             plan->optimizer == OPTIMIZER_ADAMW_BF16 ? "fused_opt_states_bf16" : "foreach");
    fprintf(out, "    config.activation_checkpoint = %s\n", checkpoints[plan->recompute]);
    fprintf(out, "    config.compile = CompileConfig(enable=%s, enable_async_tensor_parallel=%s)\n    return config\n",
            plan->fused == FUSED_COMPILED ? "True" : "False", plan->tp_overlap ? "True" : "False");
}

// Float8LinearConverter scales by rows only (components/quantization/float8.py of 0.3.0 and of 2026-08).
static const char *python_refuse(const ConfigJob *job) {
    REFUSE_IF(job->arena, job->plan->precision == DTYPE_FP8 && job->plan->fp8_recipe == FP8_TENSORWISE,
              "torchtitan's recipes have no fp8_recipe %s any more: use --fp8-recipe rowwise",
              fp8_recipe_names[FP8_TENSORWISE]);
    return torchtitan_refuse(job);
}

const ExportFormat export_torchtitan_python = {
    .name = "torchtitan-python",
    .target = "torchtitan@0.3",
    .also = "head",
    .file_name = "ndtune_recipe.py",
    .versions = "torchtitan 0.3 (@head: its main branch of 2026-08)",
    .comment = "# ",
    EXPORT_HAS(EXPORT_BF16 | EXPORT_FP32 | EXPORT_FP8, EXPORT_NONE | EXPORT_FULL | EXPORT_SELECTIVE, EXPORT_FLASH,
               EXPORT_EAGER | EXPORT_COMPILED),
    .takes = PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_TP_OVERLAP) | PLAN_BIT(PLAN_LOSS) |
             PLAN_BIT(PLAN_CUDA_GRAPHS) | PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_DISPATCH) | PLAN_BIT(PLAN_FINETUNE) |
             PLAN_BIT(PLAN_PACK),
    .stages = true,
    .refuse = python_refuse,
    .notes = torchtitan_notes,
    .write = torchtitan_python_write,
    .launch = launch_torchrun,
    .program = "-m torchtitan.train --module ndtune_recipe --config train  # %s lies in this folder under that name",
};
