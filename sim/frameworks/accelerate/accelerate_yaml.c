// The config file of `accelerate launch` (accelerate 1.14, commands/config/config_args.py): FSDP2 with a
// parallelism_config, or MULTI_GPU where only replicas exist. The launcher takes parallelism_config beside FSDP only,
// so a mesh of tp without an FSDP group is for accelerate-python.

#include "sim/frameworks/accelerate/accelerate_files.h"

static const char *mixed_precision(const TrainPlan *plan) {
    return plan->precision == DTYPE_FP32 ? "no" : dtype_name(plan->precision);
}

static const char *accelerate_yaml_refuse(const ConfigJob *job) {
    if (export_axis(job, AXIS_TP) > 1 && !export_shards(job)) {
        return arena_format(job->arena,
                            "accelerate launch takes tp=%d beside FSDP only, and dp_shard x cp is 1: use --as "
                            "accelerate-python",
                            export_axis(job, AXIS_TP));
    }
    return accelerate_python_refuse(job);
}

void accelerate_notes(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    fprintf(out,
            "Your script: DataLoader batch size %d, Accelerator(gradient_accumulation_steps=%d), model loaded with ",
            plan->micro_batch, plan->grad_accum);
    fprintf(out, "attn_implementation=\"%s\".\n", export_attention(plan));
    if (export_axis(job, AXIS_TP) > 1) {
        fprintf(out,
                "  Its model: from_pretrained(..., tp_plan=\"auto\", device_mesh=accelerator.torch_device_mesh).\n");
    }
    if (export_axis(job, AXIS_CP) > 1) {
        fprintf(out,
                "  Its step: inside accelerator.maybe_context_parallel(...), with labels that are shifted already.\n");
    }
    if (plan->recompute == RECOMPUTE_FULL && !export_shards(job)) {
        fprintf(out, "  Its model: model.gradient_checkpointing_enable(), as there is no FSDP to do it.\n");
    }
}

static void write_fsdp(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    fprintf(out,
            "fsdp_config:\n"
            "  fsdp_version: 2\n"
            "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
            "  fsdp_transformer_layer_cls_to_wrap: %s\n"
            "  fsdp_reshard_after_forward: %s\n"
            "  fsdp_activation_checkpointing: %s\n"
            "  fsdp_offload_params: false\n"
            "  fsdp_cpu_ram_efficient_loading: %s\n"
            "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
            export_layer_class(job->model), export_bool(plan->reshard == RESHARD_ALWAYS),
            export_bool(plan->recompute == RECOMPUTE_FULL), export_bool(export_axis(job, AXIS_TP) == 1));
    fprintf(out,
            "parallelism_config:\n"
            "  parallelism_config_dp_replicate_size: %d\n"
            "  parallelism_config_dp_shard_size: %d\n"
            "  parallelism_config_cp_size: %d\n"
            "  parallelism_config_tp_size: %d\n",
            export_axis(job, AXIS_DP_REPLICATE), export_axis(job, AXIS_DP_SHARD), export_axis(job, AXIS_CP),
            export_axis(job, AXIS_TP));
    if (export_axis(job, AXIS_CP) > 1) {
        fprintf(out, "  parallelism_config_cp_comm_strategy: %s\n",
                plan->cp_rotate == CP_ROTATE_RING ? "alltoall" : "allgather");
    }
}

static void accelerate_yaml_write(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    const int world = mesh_world(&plan->mesh);
    fprintf(out,
            "compute_environment: LOCAL_MACHINE\n"
            "distributed_type: %s\n"
            "mixed_precision: \"%s\"\n"
            "num_machines: %d\n"
            "num_processes: %d\n"
            "machine_rank: 0\n"
            "rdzv_backend: static\n"
            "same_network: true\n"
            "main_training_function: main\n"
            "downcast_bf16: \"no\"\n"
            "use_cpu: false\n"
            "debug: false\n",
            export_shards(job) ? "FSDP"
            : world > 1        ? "MULTI_GPU"
                               : "\"NO\"",
            mixed_precision(plan), job->nodes, world);
    if (plan->fused == FUSED_COMPILED) {
        fprintf(out, "dynamo_config:\n  dynamo_backend: INDUCTOR\n");
    }
    if (export_shards(job)) {
        write_fsdp(job, out);
    }
}

static void launch_accelerate(const ConfigJob *job, const char *program, FILE *out) {
    fputs("accelerate launch", out);
    if (job->nodes > 1) {
        fputs(" --machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --main_process_port 29500", out);
    }
    fputs(" --config_file ", out);
    fputs(program, out);
}

const ExportFormat export_accelerate_yaml = {
    .name = "accelerate-yaml",
    .target = "accelerate@1.14",
    .also = "1.13",
    .file_name = "accelerate.yaml",
    .versions = "accelerate >= 1.12 (checked with 1.14); torch >= 2.6",
    .comment = "# ",
    .precisions = EXPORT_BF16 | EXPORT_FP16 | EXPORT_FP32,
    .recomputes = EXPORT_NONE | EXPORT_FULL,
    .attentions = EXPORT_OF_TRANSFORMERS,
    .fuseds = EXPORT_EAGER | EXPORT_COMPILED,
    .never_reshards = true,
    .refuse = accelerate_yaml_refuse,
    .notes = accelerate_notes,
    .write = accelerate_yaml_write,
    .launch = launch_accelerate,
    .program = "%s train.py",
};
