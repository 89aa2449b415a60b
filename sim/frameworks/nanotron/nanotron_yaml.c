// nanotron's YAML (its main branch of 2026-04, src/nanotron/config). It has one data-parallel dimension and ZeRO stages
// 0 and 1: stage 1 shards over all of it, so replicas of sharded groups do not exist there.

#include <string.h>

#include "sim/base/escape.h"
#include "sim/frameworks/nanotron/nanotron_files.h"

static const char *nanotron_refuse(const ConfigJob *job) {
    const ModelSpec *model = job->model;
    const int replicate = export_axis(job, AXIS_DP_REPLICATE), shard = export_axis(job, AXIS_DP_SHARD);
    REFUSE_IF(job->arena, model->type && strcmp(model->type, "llama") != 0,
              "nanotron's config describes a llama, and %s is a %s: use a llama model", model->name, model->type);
    REFUSE_IF(job->arena, replicate > 1 && shard > 1 && job->plan->zero > 0,
              "nanotron's stage 1 shards over all %d data-parallel ranks: use dp_shard=%d with dp_replicate=1, or "
              "--zero 0",
              replicate * shard, replicate * shard);
    return NULL;
}

static void write_model(const ConfigJob *job, FILE *out) {
    const ModelSpec *model = job->model;
    fprintf(out,
            "model:\n"
            "  ddp_bucket_cap_mb: 25\n"
            "  dtype: %s\n"
            "  init_method:\n    std: 0.02\n"
            "  make_vocab_size_divisible_by: 1\n"
            "  model_config:\n"
            "    is_llama_config: true\n"
            "    hidden_act: silu\n"
            "    hidden_size: %d\n"
            "    intermediate_size: %d\n"
            "    num_hidden_layers: %d\n"
            "    num_attention_heads: %d\n"
            "    num_key_value_heads: %d\n"
            "    max_position_embeddings: %d\n"
            "    rms_norm_eps: %.8f\n"
            "    rope_theta: %.1f\n"
            "    tie_word_embeddings: %s\n"
            "    vocab_size: %d\n",
            job->plan->precision == DTYPE_FP32 ? "float32" : "bfloat16", model->hidden, model->ffn, model->layers,
            model->heads, model->kv_heads, job->plan->seq > model->max_seq ? job->plan->seq : model->max_seq,
            model->norm_eps, model->rope_theta, export_bool(model->tied_embeddings), model->vocab);
}

static void write_optimizer(const ConfigJob *job, FILE *out) {
    fprintf(out,
            "optimizer:  # its schedule is yours\n"
            "  zero_stage: %d\n"
            "  accumulate_grad_in_fp32: true\n"
            "  clip_grad: 1.0\n"
            "  weight_decay: 0.01\n"
            "  learning_rate_scheduler:\n"
            "    learning_rate: 0.0003\n    lr_decay_style: cosine\n    lr_decay_steps: 98\n"
            "    lr_warmup_steps: 2\n    lr_warmup_style: linear\n    min_decay_lr: 0.00001\n"
            "  optimizer_factory:\n"
            "    name: adamW\n    adam_beta1: 0.9\n    adam_beta2: 0.95\n    adam_eps: 0.00000001\n"
            "    torch_adam_is_fused: true\n",
            job->plan->zero);
}

static void nanotron_write(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    bool known = false;
    fprintf(out,
            "parallelism:\n"
            "  dp: %d\n"
            "  tp: %d\n"
            "  pp: %d\n"
            "  pp_engine: %s\n"
            "  expert_parallel_size: 1\n"
            "  tp_mode: REDUCE_SCATTER\n"
            "  tp_linear_async_communication: %s\n"
            "  tp_recompute_allgather: %s\n"  // true by default; as the prediction has it
            "  recompute_layer: %s\n",
            export_axis(job, AXIS_DP_REPLICATE) * export_axis(job, AXIS_DP_SHARD), export_axis(job, AXIS_TP),
            mesh_stages(&plan->mesh), plan->pp_schedule == PP_GPIPE ? "afab" : "1f1b",  // all forward, all backward
            export_bool(export_axis(job, AXIS_TP) > 1),
            export_bool(job->target->stages_regather && plan_has_stages(plan)),
            export_bool(plan->recompute == RECOMPUTE_FULL));
    fprintf(out,
            "tokens:\n"
            "  sequence_length: %d\n"
            "  micro_batch_size: %d\n"
            "  batch_accumulation_per_replica: %d\n"
            "  train_steps: 100\n"
            "  val_check_interval: -1\n",
            plan->seq, plan->micro_batch, plan->grad_accum);
    write_model(job, out);
    fputs("tokenizer:\n  tokenizer_name_or_path: ", out);
    escape_quoted(export_model_path(job, &known), out);
    fputc('\n', out);
    write_optimizer(job, out);
    fputs("general:\n  project: ndtune\n  run: plan\n  seed: 42\n"
          "data_stages:  # yours; without a dataset nanotron makes tokens up\n"
          "- name: training\n  start_training_step: 1\n  data:\n    dataset: null\n    num_loading_workers: 1\n"
          "    seed: 42\n"
          "checkpoints:\n  checkpoint_interval: 1000\n  checkpoints_path: checkpoints\n",
          out);
}

const ExportFormat export_nanotron_yaml = {
    .name = "nanotron",
    .target = "nanotron",
    .file_name = "nanotron.yaml",
    .versions = "nanotron after 0.4 (its main branch of 2026-04)",
    .comment = "# ",
    EXPORT_HAS(EXPORT_BF16 | EXPORT_FP32, EXPORT_NONE | EXPORT_FULL, EXPORT_FLASH, EXPORT_FUSED),
    .stages = true,
    .refuse = nanotron_refuse,
    .write = nanotron_write,
    .launch = launch_torchrun,
    .program = "run_train.py --config-file %s",
};
