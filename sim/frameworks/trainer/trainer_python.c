// Arguments of transformers 5's Trainer, in a module that a training script imports. Without tensor parallelism and
// ranks of experts the mesh is accelerate's ParallelismConfig and FSDP2 is asked for by fsdp_config; with them the
// model is sharded as it is loaded, by DistributedConfig, which knows neither cp nor a choice of resharding.

#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/peft.h"
#include "sim/frameworks/trainer/trainer_files.h"

static bool shards_itself(const ConfigJob *job) {
    return target_shards_itself(job->target, job->plan);
}

static const char *python_bool(bool value) {
    return value ? "True" : "False";
}

static bool recomputes(const ConfigJob *job) {
    return job->plan->recompute == RECOMPUTE_FULL;
}

// By the layers of the model themselves: where there is no FSDP plugin, only every n-th is to be recomputed, or their
// inputs wait on the host, which fsdp_config has no words for.
bool trainer_recomputes_by_model(const ConfigJob *job) {
    return recomputes(job) &&
           (shards_itself(job) || !export_shards(job) || job->plan->recompute_every > 1 || export_offloads_inputs(job));
}

static void write_model(const ConfigJob *job, FILE *out) {
    model_arguments_begin(job, "", out);
    if (shards_itself(job)) {
        fprintf(out,
                "    arguments.update(distributed_config=DistributedConfig(\n"
                "        tp_size=%d,\n"
                "        fsdp_size=%d,\n"
                "        dp_replicate_size=%d,\n"
                "        fsdp_mixed_precision=%s,\n"
                "        fsdp_cpu_offload=%s,\n",
                export_axis(job, AXIS_TP), export_axis(job, AXIS_DP_SHARD), export_axis(job, AXIS_DP_REPLICATE),
                python_bool(job->plan->precision == DTYPE_BF16 && export_shards(job)),
                python_bool(job->plan->offload == OFFLOAD_PARAMETERS));
        if (export_axis(job, AXIS_EP) > 1) {  // of the ranks of fsdp_size x tp_size
            fprintf(out, "        ep_size=%d,\n        ep_implementation=\"all_to_all\",\n", export_axis(job, AXIS_EP));
        }
        fputs("    ))\n", out);
    }
    peft_write_bits(job, out);
    fputs("    return arguments\n", out);
}

static void write_fsdp(const ConfigJob *job, FILE *out) {
    if (shards_itself(job) || !export_shards(job)) {
        return;
    }
    fprintf(out,
            "        fsdp=True,\n"
            "        fsdp_config={\n"
            "            \"transformer_layer_cls_to_wrap\": [\"%s\"],\n"
            "            \"reshard_after_forward\": %s,\n"
            "            \"activation_checkpointing\": %s,\n"
            "            \"cpu_offload\": %s,\n"
            "        },\n",
            export_layer_class(job->model), python_bool(job->plan->reshard == RESHARD_ALWAYS),
            python_bool(recomputes(job) && !trainer_recomputes_by_model(job)),
            python_bool(job->plan->offload == OFFLOAD_PARAMETERS));
}

// The arguments are popped from the kwargs before torch sees them (trainer.py of transformers 5.23).
static void write_recompute(const ConfigJob *job, FILE *out) {
    if (!trainer_recomputes_by_model(job)) {
        return;
    }
    const int every = job->plan->recompute_every;
    const bool offloads = export_offloads_inputs(job);
    fputs("        activation_checkpointing=True,\n", out);
    if (every > 1 && offloads) {
        fprintf(out, "        activation_checkpointing_kwargs={\"every_n_layers\": %d, \"offload\": True},\n", every);
    } else if (every > 1) {
        fprintf(out, "        activation_checkpointing_kwargs={\"every_n_layers\": %d},\n", every);
    } else if (offloads) {
        fputs("        activation_checkpointing_kwargs={\"offload\": True},\n", out);
    }
}

static void write_choices(const ConfigJob *job, FILE *out) {
    write_recompute(job, out);
    kernel_arguments_write(job, out);
    PRINT_IF(export_syncs_each(job), out,
             "        # reduces gradients on every micro-step, so that none is kept whole\n"
             "        accelerator_config={\"gradient_accumulation_kwargs\": {\"sync_each_batch\": True}},\n");
}

void trainer_write(const ConfigJob *job, const char *package, const char *config,
                   void (*write_more)(const ConfigJob *job, FILE *out), FILE *out) {
    const bool own_mesh = !shards_itself(job);
    fputs(own_mesh ? "\nfrom accelerate.parallelism_config import ParallelismConfig\n"
                     "from accelerate.utils import TorchContextParallelConfig\n"
                   : "\nfrom transformers.distributed import DistributedConfig\n",
          out);
    fprintf(out, "from %s import %s\n\n", package, config);
    training_constants_write(job, out);
    if (own_mesh) {
        parallelism_config_write(job, out);
    }
    write_model(job, out);
    peft_write_python(job, out);
    training_arguments_begin(job, config, out);
    write_choices(job, out);
    if (write_more) {
        write_more(job, out);
    }
    write_fsdp(job, out);
    fputs(own_mesh ? "        parallelism_config=parallelism_config,\n" : "", out);
    fputs("        **more,\n    )\n", out);
}

static void transformers_write(const ConfigJob *job, FILE *out) {
    trainer_write(job, "transformers", "TrainingArguments", collator_comment_write, out);
}

const ExportFormat export_trainer = {
    .name = "trainer",
    .target = "trainer@5.23",
    .file_name = "training_arguments.py",
    .versions = "transformers 5.23, accelerate 1.15; torch >= 2.8",
    EXPORT_OF_ACCELERATE,
    .takes = PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_RECOMPUTE_EVERY) |
             PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_LOSS) | PLAN_BIT(PLAN_FINETUNE) | PLAN_BIT(PLAN_OPTIMIZER) |
             PLAN_BIT(PLAN_PACK),
    .refuse = accelerate_python_refuse,
    .write = transformers_write,
    .launch = launch_torchrun,
    .program = "train.py  # which imports %s",
};
