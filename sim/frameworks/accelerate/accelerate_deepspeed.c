// The launcher's file of distributed_type DEEPSPEED (accelerate 1.15: DeepSpeedPlugin, ParallelismConfig with sp_size,
// accelerator.py _prepare_deepspeed), with the plan in the file itself. It holds no batch. sp is Ulysses, on the ranks
// that ZeRO shards over; the launcher takes parallelism_config from a file here, and from its options for FSDP alone.

#include <string.h>

#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/deepspeed/deepspeed_files.h"

static const char *optimizer_device(const ConfigJob *job) {
    const Offload offload = job->plan->offload;
    return offload == OFFLOAD_OPTIMIZER || offload == OFFLOAD_PARAMETERS ? "cpu" : "none";
}

static const char *parameter_device(const ConfigJob *job) {
    return job->plan->offload == OFFLOAD_PARAMETERS ? "cpu" : "none";
}

static const char *in_shards(const ConfigJob *job) {
    return export_bool(job->plan->zero == 3);
}

static const char *kernels(const ConfigJob *job) {
    return export_attention(job);
}

static bool cuts_sequences(const ConfigJob *job) {
    return export_axis(job, AXIS_SP) > 1;
}

#define PLUGIN "deepspeed_config."
static const ConfigKey of_deepspeed[] = {
    {.path = PLUGIN "zero_stage", .means = KEY_NUMBER, .id = PLAN_ZERO},
    {.path = PLUGIN "gradient_accumulation_steps", .means = KEY_ACCUMULATION},
    {PLUGIN "gradient_clipping", .literal = "1.0"},
    {PLUGIN "offload_optimizer_device", .text = optimizer_device},
    {PLUGIN "offload_param_device", .text = parameter_device},
    {PLUGIN "zero3_init_flag", .text = in_shards},
    {PLUGIN "zero3_save_16bit_model", .text = in_shards},
    {NULL},
};

#define MESH "parallelism_config.parallelism_config_"
static const ConfigKey of_mesh[] = {
    {MESH "dp_replicate_size", KEY_AXIS, AXIS_DP_REPLICATE, .when = cuts_sequences},
    {MESH "dp_shard_size", KEY_AXIS, AXIS_DP_SHARD, .when = cuts_sequences},
    {MESH "sp_size", KEY_AXIS, AXIS_SP, .when = cuts_sequences},
    {MESH "sp_backend", .literal = "deepspeed", .when = cuts_sequences},
    {MESH "sp_seq_length_is_variable", .literal = "true", .when = cuts_sequences},
    {MESH "sp_attn_implementation", .text = kernels, .when = cuts_sequences},
    {NULL},
};

bool accelerate_by_deepspeed(const ConfigJob *job) {
    return strcmp(job->target->name, "deepspeed") == 0;
}

// ---- reading

// Shards lie over all data-parallel and sp ranks, whatever the file calls replicas.
static Status read_mesh(Import *import, Error *error) {
    TRY(accelerate_read_sizes(import, error));
    int *size = import->said.size;
    if (size[AXIS_SP] == 1) {
        import_find(import, FINDING_TRAP, "parallelism_config",
                    "without sp_size, parallelism_config changes nothing under DeepSpeed: all ranks are data parallel");
        size[AXIS_CP] = size[AXIS_TP] = size[AXIS_DP_REPLICATE] = size[AXIS_DP_SHARD] = 1;
        size[import->said.choice[PLAN_ZERO] > 0 ? AXIS_DP_SHARD : AXIS_DP_REPLICATE] = -1;
        return STATUS_OK;
    }
    IMPORT_REFUSE_IF(size[AXIS_CP] > 1 || size[AXIS_TP] > 1, import, MESH "sp_size",
                     "accelerate runs sp=%d beside data parallelism alone, not cp=%d and tp=%d", size[AXIS_SP],
                     size[AXIS_CP], size[AXIS_TP]);
    size[AXIS_DP_SHARD] *= size[AXIS_DP_REPLICATE];
    size[AXIS_DP_REPLICATE] = 1;
    return STATUS_OK;
}

Status accelerate_read_deepspeed(Import *import, Error *error) {
    static const char *const known[] = {
        "offload_optimizer_nvme_path offload_param_nvme_path deepspeed_moe_layer_cls_names",
        "deepspeed_multinode_launcher deepspeed_hostfile deepspeed_exclusion_filter deepspeed_inclusion_filter", NULL};
    static const char *const devices[] = {PLUGIN "offload_optimizer_device", PLUGIN "offload_param_device"};
    const char *file = NULL, *offload[2] = {"none", "none"};
    TRY(import_word(import, "deepspeed_config.deepspeed_config_file", &file, error));
    FAIL_IF(file, error, STATUS_USAGE, "%s:%d: the plan is in %s: give that file to --from, with --world", import->path,
            import_at(import, "deepspeed_config.deepspeed_config_file")->line, file);
    import->said.choice[PLAN_ZERO] = 2;  // accelerate's DeepSpeedPlugin
    TRY(config_read(import, of_deepspeed, error));
    for (int i = 0; i < 2; i++) {
        TRY(import_word(import, devices[i], &offload[i], error));
        if (!import_same_word(offload[i], "none")) {
            import_take_offload(import, devices[i], i == 0 ? OFFLOAD_OPTIMIZER : OFFLOAD_PARAMETERS, offload[i]);
        }
    }
    import_known_below(import, "deepspeed_config.", known);
    import_known(import, (const char *const[]){"fsdp_config", NULL});
    import->said.size[import->said.choice[PLAN_ZERO] > 0 ? AXIS_DP_SHARD : AXIS_DP_REPLICATE] = -1;
    if (import_is_on(import, "parallelism_config")) {
        TRY(read_mesh(import, error));
    }
    import->target = "deepspeed";
    import->flavour = "accelerate config, DeepSpeed";
    return STATUS_OK;
}

// ---- writing

static const char *refuse(const ConfigJob *job) {
    REFUSE_IF(job->arena, export_axis(job, AXIS_TP) > 1 || export_axis(job, AXIS_PP) > 1,
              "accelerate's file has no key for DeepSpeed's tp=%d or pp=%d: use --as deepspeed",
              export_axis(job, AXIS_TP), export_axis(job, AXIS_PP));
    REFUSE_IF(job->arena, target_reduce_overlap(job->target, job->plan) == REDUCE_OVERLAP_ON && job->plan->zero != 3,
              "accelerate's file has no key for DeepSpeed's overlap_comm: use --reduce-overlap off, or --as deepspeed");
    return deepspeed_refuse_replicas(job);
}

static void notes(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    fprintf(out,
            "Your script: DataLoader batch size %d, sequences of %d tokens, model loaded with "
            "attn_implementation=\"%s\".\n",
            plan->micro_batch, plan->seq, export_attention(job));
    PRINT_IF(plan->recompute == RECOMPUTE_FULL, out,
             "  Its model: model.gradient_checkpointing_enable(); the file cannot switch recomputation on.\n");
    deepspeed_call_notes(job, "  Its model", out);
    PRINT_IF(cuts_sequences(job), out,
             "  Its batches: position_ids and shift_labels, and the loss summed over the sp group "
             "(UlyssesSPDataLoaderAdapter of accelerate's prepare() cuts them).\n");
}

static void write(const ConfigJob *job, FILE *out) {
    config_write(job, accelerate_top, CONFIG_YAML, out);
    config_write(job, of_deepspeed, CONFIG_YAML, out);
    config_write(job, of_mesh, CONFIG_YAML, out);
}

const ExportFormat export_accelerate_deepspeed = {
    .name = "accelerate-deepspeed",
    .target = "deepspeed",
    .file_name = "accelerate.yaml",
    .versions = "accelerate >= 1.12 with DeepSpeed >= 0.18.2 (checked with 1.15 and 0.19.8)",
    .comment = "# ",
    EXPORT_HAS(EXPORT_BF16 | EXPORT_FP16 | EXPORT_FP32, EXPORT_NONE | EXPORT_FULL, EXPORT_OF_TRANSFORMERS,
               EXPORT_EAGER),
    .takes = PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_LOSS) | PLAN_BIT(PLAN_MLP_TILES),
    .refuse = refuse,
    .notes = notes,
    .write = write,
    .launch = accelerate_launch,
    .program = "%s train.py",
};
