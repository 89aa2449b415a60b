// DeepSpeed's JSON (0.19: runtime/config.py, runtime/zero/config.py), read and written. It holds no sequence length and
// no model. Keys that it does not have are dropped at the top and refused inside zero_optimization (its models forbid
// extra fields). It shards over all data-parallel ranks: sharded groups with replicas were MiCS, which 0.19.8 removed;
// zero_hpz_partition_size is reshard_ranks (partition_parameters.py, _partition_param_sec: made where the first forward
// frees a parameter, gathered from until stage3.py invalidates it after the step). Tensor parallelism goes with
// every stage (0.19.8: runtime/engine.py, _configure_tensor_parallel_states). A key that DeepSpeed does not know
// carries the header, as JSON has no comments.

#include <stdlib.h>
#include <string.h>

#include "sim/base/escape.h"
#include "sim/frameworks/config_keys.h"
#include "sim/frameworks/deepspeed/deepspeed_files.h"

static const double DEFAULT_BUCKET = 5e8;  // runtime/zero/config.py, reduce_bucket_size

static const char *const of_no_matter[] = {
    "steps_per_print wall_clock_breakdown dump_state optimizer scheduler communication_data_type prescale_gradients",
    "gradient_predivide_factor sparse_gradients amp flops_profiler tensorboard wandb comet csv_monitor comms_logger",
    "checkpoint data_types aio monitor_config zero_allow_untested_optimizer zero_force_ds_cpu_optimizer",
    "memory_breakdown timers seq_parallel_communication_data_type autotuning elasticity fp16 bf16 torch_autocast",
    "disable_allgather graph_harvesting managed_gradient_accumulation gradient_allreduce_op disable_python_gc pipeline",
    "hybrid_engine use_data_before_expert_parallelism dataloader_drop_last log_level compile vocabulary_size",
    "curriculum_learning data_efficiency progressive_layer_drop eigenvalue nebula compression_training",
    "quantize_training",
    NULL};

static const char *const of_zero[] = {
    "contiguous_gradients reduce_scatter reduce_bucket_size use_multi_rank_bucket_allreduce allgather_partitions",
    "allgather_bucket_size load_from_fp32_weights elastic_checkpoint sub_group_size prefetch_bucket_size",
    "stage3_prefetch_bucket_size stage3_param_persistence_threshold stage3_model_persistence_threshold",
    "stage3_max_live_parameters stage3_max_reuse_distance stage3_gather_16bit_weights_on_model_save",
    "stage3_module_granularity_threshold stage3_use_all_reduce_for_fetch_params module_granularity_threshold",
    "use_all_reduce_for_fetch_params ignore_unused_parameters legacy_stage1 round_robin_gradients",
    "zero_hpz_partition_size zero_quantized_weights zero_quantized_nontrainable_weights zero_quantized_gradients",
    "mics_hierarchical_params_gather memory_efficient_linear pipeline_loading_checkpoint override_module_apply",
    "log_trace_cache_warnings allgather_sequential compute_grad_norm cpu_offload_use_pin_memory enable_sanity_checks",
    "gather_16bit_weights_on_model_save leaf_module max_live_parameters max_reuse_distance model_persistence_threshold",
    "param_persistence_threshold parameter_alignment save_muon_momentum_buffer_in_memory stage3_allgather_sequential",
    "stage3_gather_fp16_weights_on_model_save zenflow",
    NULL};

// What changes time or memory and is in no plan.
static const ImportLeftOut left_out[] = {
    {"communication_data_type", NULL, "gradients travel in another dtype: your run moves other bytes"},
    {"data_types.grad_accum_dtype", NULL, "gradients are accumulated in another dtype: memory and volume differ"},
    {"bf16.bf16_master_weights_and_grads", NULL,
     "weights and gradients without fp32 copies: your run needs less memory"},
    {"bf16.bf16_optimizer_states", NULL, "states of the optimizer in bf16: your run needs less memory"},
    {"bf16.immediate_grad_update", "true", "gradients are added up later"},
    {"torch_autocast.enabled", NULL, "torch's autocast: casts where the figures have bf16 weights"},
    {"compile.deepcompile", NULL,
     "DeepSpeed's compiler gathers and prefetches by profile: your run may need less time"},
    {"elasticity.enabled", NULL, "the batch follows the number of ranks: the figures are of the file's"},
    {"compression_training", NULL, "weights are compressed while training"},
    {"progressive_layer_drop.enabled", NULL, "layers are dropped now and then: your run computes less"},
    {"zero_optimization.allgather_bucket_size", NULL,
     "buckets of gathered parameters of this size: latency and memory differ"},
    {"zero_optimization.stage3_prefetch_bucket_size", NULL,
     "parameters are fetched ahead by this size: the prediction fetches one layer ahead"},
    {"zero_optimization.prefetch_bucket_size", NULL,
     "parameters are fetched ahead by this size: the prediction fetches one layer ahead"},
    {"zero_optimization.stage3_max_live_parameters", NULL,
     "so many parameters may be gathered at once: the prediction has a layer or two"},
    {"zero_optimization.max_live_parameters", NULL,
     "so many parameters may be gathered at once: the prediction has a layer or two"},
    {"zero_optimization.stage3_max_reuse_distance", NULL,
     "parameters that are used again this soon are kept: the prediction frees them"},
    {"zero_optimization.max_reuse_distance", NULL,
     "parameters that are used again this soon are kept: the prediction frees them"},
    {"zero_optimization.stage3_param_persistence_threshold", NULL,
     "parameters smaller than this are never sharded: a little more memory, fewer gathers"},
    {"zero_optimization.param_persistence_threshold", NULL,
     "parameters smaller than this are never sharded: a little more memory, fewer gathers"},
    {"zero_optimization.zero_quantized_weights", NULL,
     "parameters are gathered in int8: your run moves half the bytes"},
    {"zero_optimization.zero_quantized_gradients", NULL,
     "gradients are reduced in int4: your run moves a quarter of the bytes"},
    {"zero_optimization.zero_quantized_nontrainable_weights", NULL, "frozen parameters are kept in int8"},
    {"zero_optimization.allgather_sequential", NULL, "parameters are gathered one by one: less memory, more latency"},
    {"zero_optimization.stage3_allgather_sequential", NULL,
     "parameters are gathered one by one: less memory, more latency"},
    {"zero_optimization.round_robin_gradients", NULL, "gradients are copied to the host by all ranks at once"},
    {"zero_optimization.zenflow", NULL,
     "the CPU's part of the update runs beside later steps: your run needs less time"},
    {"disable_python_gc", NULL, "no stalls by Python's collector, which the figures do not have either"},
    {NULL, NULL, NULL}};

// ---- the keys

static const char *tensor_size(const ConfigJob *job) {
    return arena_format(job->arena, "%d", export_axis(job, AXIS_TP));
}

static bool splits_layers(const ConfigJob *job) {
    return export_axis(job, AXIS_TP) > 1;
}

static bool shards(const ConfigJob *job) {
    return job->plan->zero > 0;
}

static const char *overlaps(const ConfigJob *job) {
    return export_bool(target_reduce_overlap(job->target, job->plan) == REDUCE_OVERLAP_ON);
}

static const char *stages(const ConfigJob *job) {
    return arena_format(job->arena, "%d", export_axis(job, AXIS_PP));
}

static bool has_stages(const ConfigJob *job) {
    return export_axis(job, AXIS_PP) > 1;
}

static bool reshards_near(const ConfigJob *job) {
    return job->plan->reshard_ranks > 1;
}

static bool other_bucket(const ConfigJob *job) {
    return job->plan->reduce_bucket > 0 && job->plan->zero > 0;
}

static const char *bucket(const ConfigJob *job) {
    const int hidden = job->model->hidden, elements = job->plan->reduce_bucket;
    return elements == REDUCE_BUCKET_HIDDEN ? arena_format(job->arena, "%lld", (long long)hidden * hidden)
                                            : arena_format(job->arena, "%d", elements);
}

static bool offloads_param(const ConfigJob *job) {
    return job->plan->offload == OFFLOAD_PARAMETERS;
}

static const char *optimizer(const ConfigJob *job) {
    switch (job->plan->optimizer) {
    case OPTIMIZER_LION:
        return "{\"type\": \"Lion\", \"params\": {\"lr\": 0.0001}}";
    case OPTIMIZER_ADAMW_LOOP:
        return "{\"type\": \"AdamW\", \"params\": {\"lr\": 0.0001, \"torch_adam\": true, \"foreach\": false}}";
    default:
        return "{\"type\": \"AdamW\", \"params\": {\"lr\": 0.0001, \"torch_adam\": true}}";
    }
}

enum {
    BATCH,
    MICRO_BATCH,
    ACCUMULATION,
    CLIPPING,
    BF16,
    FP16,
    TENSOR,
    STAGE,
    OVERLAP,
    NEAR,
    BUCKET,
    OFFLOAD_STATE,
    OFFLOAD_PARAM,
    OPTIMIZER,
    STAGES,
    KEYS
};

static const ConfigKey keys[KEYS + 1] = {
    [BATCH] = {"train_batch_size", KEY_BATCH},
    [MICRO_BATCH] = {"train_micro_batch_size_per_gpu", KEY_MICRO_BATCH},
    [ACCUMULATION] = {"gradient_accumulation_steps", KEY_ACCUMULATION},
    [CLIPPING] = {"gradient_clipping", .literal = "1.0"},
    [BF16] = {"bf16.enabled", .text = export_in_bf16},
    [FP16] = {"fp16.enabled", .text = export_in_fp16},
    [TENSOR] = {"tensor_parallel.autotp_size", .text = tensor_size, .when = splits_layers},
    [STAGE] = {"zero_optimization.stage", KEY_NUMBER, PLAN_ZERO},
    [OVERLAP] = {"zero_optimization.overlap_comm", .text = overlaps, .when = shards},
    [NEAR] = {"zero_optimization.zero_hpz_partition_size", KEY_NUMBER, PLAN_RESHARD_RANKS, .when = reshards_near},
    [BUCKET] = {"zero_optimization.reduce_bucket_size", .text = bucket, .when = other_bucket},
    [OFFLOAD_STATE] = {"zero_optimization.offload_optimizer", .literal = "{\"device\": \"cpu\", \"pin_memory\": true}",
                       .when = export_offloads},
    [OFFLOAD_PARAM] = {"zero_optimization.offload_param", .literal = "{\"device\": \"cpu\", \"pin_memory\": true}",
                       .when = offloads_param},
    [OPTIMIZER] = {"optimizer", .text = optimizer, .when = export_other_optimizer},
    [STAGES] = {"pipeline.stages", .text = stages, .when = has_stages},
};

// ---- reading

static Status read_precision(Import *import, Error *error) {
    int bf16 = 0, fp16 = 0;
    TRY(import_bool(import, keys[BF16].path, &bf16, error));
    TRY(import_bool(import, keys[FP16].path, &fp16, error));
    const ConfigNode *nodes[] = {import_at(import, keys[BF16].path), import_at(import, keys[FP16].path)};
    const bool both_auto = nodes[0] && strcmp(nodes[0]->text, "auto") == 0;
    const bool fp16_auto = nodes[1] && strcmp(nodes[1]->text, "auto") == 0;
    FIND_IF(bf16 && fp16, import, FINDING_REFUSED, keys[FP16].path, "bf16 and fp16 are both on");
    if (bf16 || fp16 || !(both_auto || fp16_auto)) {  // "auto" is for transformers' Trainer to fill in
        import->said.choice[PLAN_PRECISION] = bf16 ? DTYPE_BF16 : fp16 ? DTYPE_FP16 : DTYPE_FP32;
    }
    return STATUS_OK;
}

// _configure_basic_optimizer of runtime/engine.py; without a type the script's own optimizer is taken.
static Status read_optimizer(Import *import, Error *error) {
    const char *type = "adamw";
    int in_torch = 0, foreach = 1;
    TRY(import_word(import, "optimizer.type", &type, error));
    TRY(import_bool(import, "optimizer.params.torch_adam", &in_torch, error));
    TRY(import_bool(import, "optimizer.params.foreach", &foreach, error));  // handed on to torch.optim.AdamW
    const bool adam = import_same_word(type, "adamw") || import_same_word(type, "adam");
    if (import_same_word(type, "lion")) {
        import->said.choice[PLAN_OPTIMIZER] = OPTIMIZER_LION;
    } else if (adam && in_torch) {
        import->said.choice[PLAN_OPTIMIZER] = foreach ? OPTIMIZER_ADAMW_FOREACH : OPTIMIZER_ADAMW_LOOP;
    } else if (!adam) {
        import_find(import, FINDING_UNMODELLED, "optimizer.type",
                    "optimizer %s: the prediction has fused AdamW with two states", type);
    }
    return STATUS_OK;
}

static Status read_offload(Import *import, Error *error) {
    static const char *const switches[] = {"zero_optimization.cpu_offload", "zero_optimization.cpu_offload_param"};
    static const char *const maps[] = {"zero_optimization.offload_optimizer", "zero_optimization.offload_param"};
    for (int i = 0; i < 2; i++) {
        const char *device = "none";
        if (import_has(import, maps[i])) {
            TRY(import_word(import, arena_format(import->arena, "%s.device", maps[i]), &device, error));
        }
        if (!import_same_word(device, "none")) {
            import_take_offload(import, maps[i], i == 0 ? OFFLOAD_OPTIMIZER : OFFLOAD_PARAMETERS, device);
        }
        import_known(import, (const char *const[]){maps[i], NULL});
        int old_way = 0;
        TRY(import_bool(import, switches[i], &old_way, error));
        import_switch_offload(import, old_way, switches[i], i == 0 ? OFFLOAD_OPTIMIZER : OFFLOAD_PARAMETERS);
    }
    return STATUS_OK;
}

static Status read_groups(Import *import, Error *error) {
    int hpz = 1, mics = -1;
    TRY(import_int(import, "zero_optimization.zero_hpz_partition_size", 1, MESH_MAX_WORLD, &hpz, error));
    TRY(import_int(import, "zero_optimization.mics_shard_size", -1, MESH_MAX_WORLD, &mics, error));
    import->said.choice[PLAN_RESHARD_RANKS] = hpz > 1 ? hpz : 0;
    FIND_IF(mics > 0, import, FINDING_REFUSED, "zero_optimization.mics_shard_size",
            "DeepSpeed 0.19.8 has no MiCS any more and refuses the key; predicted as shards over all ranks");
    return STATUS_OK;
}

// Python's int() of the number, which is often 5e8. transformers fills in "auto" (HfTrainerDeepSpeedConfig,
// trainer_config_finalize) at every stage.
static Status read_bucket(Import *import, int stage, Error *error) {
    const ConfigNode *node = import_at(import, keys[BUCKET].path);
    const bool said = node && node->kind == NODE_SCALAR && node->text[0] != 0;
    double elements = DEFAULT_BUCKET;
    char *end = NULL;
    if (said && import_same_word(node->text, "auto")) {
        elements = REDUCE_BUCKET_HIDDEN;
    } else if (said) {
        elements = strtod(node->text, &end);
        FAIL_IF(end == node->text || *end || !(elements >= 1 && elements <= plan_fields[PLAN_REDUCE_BUCKET].high),
                error, STATUS_USAGE, "%s:%d: %s: elements, from 1 to %d, not \"%s\"", import->path, node->line,
                keys[BUCKET].path, plan_fields[PLAN_REDUCE_BUCKET].high, node->text);
    }
    import->said.choice[PLAN_REDUCE_BUCKET] = stage == 0 || elements == DEFAULT_BUCKET ? 0 : (int)elements;
    int copies = 1;
    TRY(import_bool(import, "zero_optimization.contiguous_gradients", &copies, error));
    FIND_IF(stage > 0 && !copies, import, FINDING_UNMODELLED, "zero_optimization.contiguous_gradients",
            "gradients are reduced where they are: the prediction copies them into a buffer, so your run needs "
            "less memory");
    return STATUS_OK;
}

// Where it is not said: on at stage 3 only (runtime/zero/config.py of 0.19.8, overlap_comm_valid).
static Status read_overlap(Import *import, int stage, Error *error) {
    int on = stage == 3;
    TRY(import_bool(import, keys[OVERLAP].path, &on, error));
    if (stage == 3 && !on) {
        import_find(import, FINDING_UNMODELLED, keys[OVERLAP].path,
                    "at stage 3 gathers and reductions wait on the lane of the kernels: the prediction runs them "
                    "beside, as overlap_comm: true does");
    } else if (stage > 0) {
        import->said.choice[PLAN_REDUCE_OVERLAP] = on ? REDUCE_OVERLAP_ON : REDUCE_OVERLAP_OFF;
    }
    FIND_IF(stage > 0 && !on && !import_has(import, keys[OVERLAP].path), import, FINDING_TRAP, keys[OVERLAP].path,
            "kernels wait for every reduction, which is the default but for stage 3: overlap_comm: true runs "
            "them beside backward");
    return STATUS_OK;
}

static Status read_zero(Import *import, Error *error) {
    const int stage = import->said.choice[PLAN_ZERO];
    import->said.size[stage > 0 ? AXIS_DP_SHARD : AXIS_DP_REPLICATE] = -1;
    import_known_below(import, "zero_optimization.", of_zero);
    TRY(read_overlap(import, stage, error));
    TRY(read_groups(import, error));
    TRY(read_bucket(import, stage, error));
    TRY(read_offload(import, error));
    int tp = 1;
    TRY(import_int(import, keys[TENSOR].path, 0, MESH_MAX_WORLD, &tp, error));
    static const char *const known[] = {"tensor_parallel", NULL};
    import_known(import, known);
    import->said.size[AXIS_TP] = tp > 0 ? tp : 1;
    return STATUS_OK;
}

// PipelineModule has the stages (pipe/module.py). The section has a key for them that DeepSpeed keeps and does not read
// (get_pipeline_config of runtime/config.py); its engine looks at what is recomputed between stages.
static Status read_stages(Import *import, Error *error) {
    int layers = 0;
    if (!import_has(import, "pipeline")) {
        return STATUS_OK;
    }
    TRY(import_int(import, keys[STAGES].path, 1, MESH_MAX_WORLD, &import->said.size[AXIS_PP], error));
    TRY(import_int(import, "pipeline.activation_checkpoint_interval", 0, 1 << 16, &layers, error));
    if (layers > 0) {
        import->said.choice[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    }
    FIND_IF(layers > 1, import, FINDING_UNMODELLED, "pipeline.activation_checkpoint_interval",
            "%d layers between two kept inputs: predicted with one", layers);
    if (import->said.size[AXIS_PP] > 0) {
        import_find(import, FINDING_ASSUMED, keys[STAGES].path,
                    "DeepSpeed does not read it: PipelineModule(num_stages=%d) in your script makes the stages",
                    import->said.size[AXIS_PP]);
        return STATUS_OK;
    }
    import->stages_beside = "PipelineModule(num_stages=..) of your script";
    import_find(import, FINDING_ASSUMED, "pipeline",
                "the number of stages is PipelineModule(num_stages=..)'s in your script: predicted with as many as the "
                "batch leaves ranks for, else with one");
    return STATUS_OK;
}

static Status deepspeed_read(Import *import, Error *error) {
    import->unknown.kind = FINDING_UNKNOWN;
    import->unknown.words = "no key of DeepSpeed's, which drops it without a word";
    import->unknown_below.kind = FINDING_REFUSED;
    import->unknown_below.words = "no key of DeepSpeed's there, which refuses a section with such a key";
    import->target = "deepspeed";
    import->flavour = "DeepSpeed config";
    import->said.choice[PLAN_ZERO] = 0;
    import_leave_out(import, left_out);
    import_known(import, of_no_matter);
    TRY(config_read(import, keys, error));
    TRY(read_precision(import, error));
    TRY(read_optimizer(import, error));
    TRY(read_zero(import, error));
    TRY(read_stages(import, error));
    if (import_has(import, "activation_checkpointing")) {
        static const char *const known[] = {"activation_checkpointing", NULL};
        import_find(
            import, FINDING_TRAP, "activation_checkpointing",
            "the section recomputes nothing by itself: only a model that calls deepspeed.checkpointing reads it, "
            "others need gradient_checkpointing_enable()");
        import_known(import, known);
    }
    FIND_IF(import->said.choice[PLAN_RECOMPUTE] == IMPORT_UNSAID, import, FINDING_ASSUMED, NULL,
            "no activation is recomputed: the file cannot say it; --recompute full where your script calls "
            "gradient_checkpointing_enable()");
    return STATUS_OK;
}

const ImportFormat import_deepspeed = {
    .name = "deepspeed",
    // "bf16" and "gradient_accumulation_steps" alone are the Trainer's too
    .marks = "zero_optimization train_batch_size train_micro_batch_size_per_gpu bf16.enabled fp16.enabled",
    .keys = {.mesh = "tensor_parallel.autotp_size; stages: num_stages of PipelineModule in your script",
             .micro_batch = "train_micro_batch_size_per_gpu, gradient_accumulation_steps",
             .reshard = "zero_optimization.stage3_max_live_parameters",
             .recompute = "model.gradient_checkpointing_enable() in your script",
             .rotate = "no key of DeepSpeed's",
             .zero = "zero_optimization.stage",
             .overlap = "zero_optimization.overlap_comm"},
    .read = deepspeed_read,
};

// ---- writing

const char *deepspeed_refuse_replicas(const ConfigJob *job) {
    const int replicate = export_axis(job, AXIS_DP_REPLICATE), shard = export_axis(job, AXIS_DP_SHARD);
    REFUSE_IF(job->arena, replicate > 1 && job->plan->zero > 0,
              "DeepSpeed shards over all %d data-parallel ranks (MiCS is gone since 0.19.8, hpZ keeps the "
              "optimizer sharded over all): use dp_shard=%d with dp_replicate=1, or --zero 0",
              replicate * shard, replicate * shard);
    return NULL;
}

static const char *deepspeed_refuse(const ConfigJob *job) {
    REFUSE_IF(job->arena, export_axis(job, AXIS_SP) > 1,
              "DeepSpeed's file has no sp, it is UlyssesSPAttentionHF's in the script (sp=%d): use --as "
              "accelerate-deepspeed",
              export_axis(job, AXIS_SP));
    // AutoTP splits a model's modules, PipelineModule makes its own of layers and leaves them whole.
    REFUSE_IF(job->arena, plan_has_stages(job->plan) && export_axis(job, AXIS_TP) > 1,
              "DeepSpeed's file has no tp beside stages, tensor_parallel is AutoTP's, which does not see the layers of "
              "a PipelineModule (tp=%d): use tp=1 or pp=1",
              export_axis(job, AXIS_TP));
    return deepspeed_refuse_replicas(job);
}

// The file makes no stages: PipelineModule has them, and micro-steps are gradient_accumulation_steps (pipe/engine.py).
static void stage_notes(const ConfigJob *job, FILE *out) {
    const int stages = mesh_stages(&job->plan->mesh);
    if (stages == 1) {
        return;
    }
    const bool even = job->plan->pp_split == SPLIT_EVEN;  // 'type:REGEX' balances the layers of matching classes
    fprintf(out,
            "Your script: deepspeed.initialize(model=PipelineModule(layers=layers, num_stages=%d, "
            "partition_method=\"%s\"%s), ...)\n"
            "  of deepspeed.pipe, layers being your model's as a list of LayerSpec, the loss in loss_fn%s.\n"
            "Your script: engine.train_batch(data_iter) for a step: all %d micro-steps, schedule and update.\n",
            stages, even ? "type:decoder" : "parameters",
            job->plan->recompute == RECOMPUTE_FULL ? ", activation_checkpoint_interval=1" : "",
            even ? "; decoder: what the class of a layer is called" : "", job->plan->grad_accum);
}

void deepspeed_call_notes(const ConfigJob *job, const char *whose, FILE *out) {
    PRINT_IF(job->plan->mlp_tiles > 0, out,
             "%s: TiledMLP.apply with %d shards in the model's MLP (ulysses_sp of DeepSpeed).\n", whose,
             job->plan->mlp_tiles);
    PRINT_IF(job->plan->loss == LOSS_CHUNKED, out,
             "%s: head and loss by TiledFusedLogitsLoss.apply with %d shards (ulysses_sp of DeepSpeed).\n", whose,
             job->target->loss_chunks);
}

static void deepspeed_notes(const ConfigJob *job, FILE *out) {
    stage_notes(job, out);
    PRINT_IF(job->plan->recompute == RECOMPUTE_FULL && !plan_has_stages(job->plan), out,
             "Your script: model.gradient_checkpointing_enable(); the file cannot switch recomputation on.\n");
    PRINT_IF(job->plan->pack > 0, out,
             "Your script: packs documents of %d tokens in the mean, which see themselves only.\n", job->plan->pack);
    deepspeed_call_notes(job, "Your script", out);
    fprintf(out, "Your script: sequences of %d tokens, model loaded with attn_implementation=\"%s\".\n", job->plan->seq,
            export_attention(job));
}

static void write_header(const ConfigJob *job, FILE *out) {
    const char *comma = "";
    char *rest = NULL;
    fputs("{\n    \"_comment\": [", out);
    for (char *line = strtok_r(arena_text(job->arena, job->header), "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        fprintf(out, "%s\n        ", comma);
        escape_quoted(line, out);
        comma = ",";
    }
    fputs("\n    ],\n", out);
}

static void deepspeed_write(const ConfigJob *job, FILE *out) {
    write_header(job, out);
    config_write_json(job, keys, out);
    fputs("}\n", out);
}

const ExportFormat export_deepspeed_json = {
    .name = "deepspeed",
    .target = "deepspeed",
    .file_name = "deepspeed.json",
    .versions = "DeepSpeed >= 0.16.4 (checked with 0.19.8)",
    EXPORT_HAS(EXPORT_BF16 | EXPORT_FP16 | EXPORT_FP32, EXPORT_NONE | EXPORT_FULL, EXPORT_OF_TRANSFORMERS,
               EXPORT_EAGER),
    .takes = PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_RESHARD_RANKS) | PLAN_BIT(PLAN_REDUCE_BUCKET) |
             PLAN_BIT(PLAN_LOSS) | PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_PACK) | PLAN_BIT(PLAN_MLP_TILES),
    .stages = true,
    .refuse = deepspeed_refuse,
    .notes = deepspeed_notes,
    .write = deepspeed_write,
    .launch = launch_torchrun,
    .program = "train.py --deepspeed_config %s",
};
