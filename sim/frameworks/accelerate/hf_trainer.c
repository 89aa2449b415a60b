// Arguments of transformers' Trainer. FSDP2 is switched on by the environment, as accelerate launch does it:
// transformers 4.57 reads fsdp_version nowhere (training_args.py), and Accelerator() builds its plugin from these
// variables.

#include "sim/base/escape.h"
#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/hf_optimizers.h"
#include "sim/frameworks/peft.h"

static void write_environment(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    if (!export_shards(job)) {
        return;
    }
    fprintf(out,
            "os.environ.update(\n"
            "    " BY_FSDP "=\"true\",\n"
            "    FSDP_VERSION=\"2\",\n"
            "    FSDP_AUTO_WRAP_POLICY=\"TRANSFORMER_BASED_WRAP\",\n"
            "    FSDP_TRANSFORMER_CLS_TO_WRAP=\"%s\",\n"
            "    FSDP_RESHARD_AFTER_FORWARD=\"%s\",\n"
            "    FSDP_ACTIVATION_CHECKPOINTING=\"%s\",\n"
            "    FSDP_STATE_DICT_TYPE=\"SHARDED_STATE_DICT\",\n"
            ")\n",
            export_layer_class(job->model), export_bool(plan->reshard == RESHARD_ALWAYS),
            export_bool(plan->recompute == RECOMPUTE_FULL));
}

static void write_liger(const ConfigJob *job, FILE *out) {
    PRINT_IF(export_fuses_loss(job), out,
             "        use_liger_kernel=True,\n"
             "        liger_kernel_config={  # the loss alone: the rest runs as predicted\n"
             "            \"fused_linear_cross_entropy\": True, \"cross_entropy\": False, \"rope\": False,\n"
             "            \"rms_norm\": False, \"swiglu\": False, \"geglu\": False,\n"
             "        },\n");
}

static void write_optimizer(const ConfigJob *job, FILE *out) {
    const char *name = hf_optimizer_name(job->plan->optimizer);
    PRINT_IF(job->plan->optimizer != OPTIMIZER_TARGET && name, out, "        optim=\"%s\",\n", name);
}

void kernel_arguments_write(const ConfigJob *job, FILE *out) {
    PRINT_IF(job->plan->fused == FUSED_COMPILED, out, "        torch_compile=True,\n");
    write_liger(job, out);
    write_optimizer(job, out);
}

void training_constants_write(const ConfigJob *job, FILE *out) {
    bool known = false;
    fputs("MODEL = ", out);
    escape_quoted(export_model_path(job, &known), out);
    fprintf(out, "\nSEQUENCE_LENGTH = %d\nGLOBAL_BATCH = %lld\n", job->plan->seq,
            (long long)plan_global_batch(job->plan));
}

void training_arguments_begin(const ConfigJob *job, const char *config, FILE *out) {
    const TrainPlan *plan = job->plan;
    fprintf(out,
            "\n\ndef training_arguments(**more):  # output_dir, learning_rate and so on\n"
            "    return %s(\n"
            "        per_device_train_batch_size=%d,\n"
            "        gradient_accumulation_steps=%d,\n",
            config, plan->micro_batch, plan->grad_accum);
    PRINT_IF(export_mixes(job), out, "        %s=True,\n", dtype_name(plan->precision));
    PRINT_IF(!export_mixes(job) && plan->bf16_master, out,
             "        bf16=False,  # in the numbers of the weights: mixed, FSDP would make fp32 of them\n");
}

void collator_comment_write(const ConfigJob *job, FILE *out) {
    PRINT_IF(job->plan->pack > 0, out,
             "        # your Trainer: data_collator=DataCollatorWithFlattening() of documents of %d tokens\n",
             job->plan->pack);
}

static void write_arguments(const ConfigJob *job, FILE *out) {
    const TrainPlan *plan = job->plan;
    training_arguments_begin(job, "TrainingArguments", out);
    PRINT_IF(plan->recompute == RECOMPUTE_FULL && !export_shards(job), out,
             "        gradient_checkpointing=True,  # no FSDP to do it\n");
    kernel_arguments_write(job, out);
    collator_comment_write(job, out);
    if (export_syncs_each(job)) {  // trainer.py of 5.8 looks at it, that of 4.57 and 5.0 does not
        fputs("        # transformers >= 5.8: reduces gradients on every micro-step, so that none is kept whole\n"
              "        accelerator_config={\"gradient_accumulation_kwargs\": {\"sync_each_batch\": True}},\n",
              out);
    }
    fputs("        parallelism_config=parallelism_config,\n"
          "        **more,\n"
          "    )\n",
          out);
}

static void hf_trainer_write(const ConfigJob *job, FILE *out) {
    fputs("\nimport os\n\n", out);
    write_environment(job, out);
    fputs("\nfrom accelerate.parallelism_config import ParallelismConfig  # noqa: E402\n"
          "from accelerate.utils import TorchContextParallelConfig  # noqa: E402\n"
          "from transformers import TrainingArguments  # noqa: E402\n\n",
          out);
    training_constants_write(job, out);
    parallelism_config_write(job, out);
    model_arguments_begin(job, "", out);
    PRINT_IF(export_axis(job, AXIS_TP) > 1, out,
             "    arguments.update(tp_plan=\"auto\", device_mesh=parallelism_config.get_device_mesh(\"cuda\"))\n");
    peft_write_bits(job, out);
    fputs("    return arguments\n", out);
    peft_write_python(job, out);
    write_arguments(job, out);
}

const ExportFormat export_hf_trainer = {
    .name = "hf-trainer",
    .target = "accelerate@1.15",
    .also = "1.14 1.13",
    EXPORT_OF_ACCELERATE,
    .file_name = "trainer_arguments.py",
    .versions = "transformers >= 4.56 (checked with 4.57), accelerate >= 1.12; torch >= 2.6",
    .takes = PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_LOSS) | PLAN_BIT(PLAN_FINETUNE) |
             PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_PACK),
    .refuse = accelerate_python_refuse,
    .write = hf_trainer_write,
    .launch = launch_torchrun,
    .program = "train.py  # which imports %s",
};
