// The table of formats, and what all of them share: finding one, the checks of its columns, the header. Keys and traps
// of every target: parallelism.md section 5 of our notes, and the packages that tests/frameworks/check_exports.py
// loads.

#include <stdlib.h>
#include <string.h>

#include "reports/export/export_text.h"
#include "reports/export/formats.h"
#include "sim/base/escape.h"
#include "sim/base/text.h"

#define BIT(value) (1u << (value))
#define BF16 BIT(DTYPE_BF16)
#define FP16 BIT(DTYPE_FP16)
#define FP32 BIT(DTYPE_FP32)
#define FP8 BIT(DTYPE_FP8)
#define NONE BIT(RECOMPUTE_NONE)
#define FULL BIT(RECOMPUTE_FULL)
#define SELECTIVE BIT(RECOMPUTE_SELECTIVE)
#define EAGER BIT(FUSED_EAGER)
#define COMPILED BIT(FUSED_COMPILED)
#define FUSED BIT(FUSED_FUSED)
#define OF_TRANSFORMERS (BIT(ATTENTION_FLASH) | BIT(ATTENTION_FLASH3) | BIT(ATTENTION_EAGER))

static const ExportFormat formats[] = {
    {.name = "accelerate-yaml",
     .target = "accelerate@1.14",
     .also = "1.13",
     .file_name = "accelerate.yaml",
     .versions = "accelerate >= 1.12 (checked with 1.14); torch >= 2.6",
     .comment = "# ",
     .precisions = BF16 | FP16 | FP32,
     .recomputes = NONE | FULL,
     .attentions = OF_TRANSFORMERS,
     .fuseds = EAGER | COMPILED,
     .never_reshards = true,
     .refuse = accelerate_yaml_refuse,
     .notes = accelerate_notes,
     .write = accelerate_yaml_write,
     .launch = launch_accelerate,
     .program = "%s train.py"},
    {.name = "accelerate-python",
     .target = "accelerate@1.14",
     .also = "1.13",
     .file_name = "parallel_accelerate.py",
     .versions = "accelerate >= 1.12 (checked with 1.14); torch >= 2.6",
     .comment = "# ",
     .precisions = BF16 | FP16 | FP32,
     .recomputes = NONE | FULL,
     .attentions = OF_TRANSFORMERS,
     .fuseds = EAGER,
     .never_reshards = true,
     .reduce_dtype = true,
     .refuse = accelerate_python_refuse,
     .notes = accelerate_notes,
     .write = accelerate_python_write,
     .launch = launch_torchrun,
     .program = "train.py  # which imports %s"},
    {.name = "hf-trainer",
     .target = "accelerate@1.14",
     .also = "1.13",
     .file_name = "trainer_arguments.py",
     .versions = "transformers >= 4.56 (checked with 4.57), accelerate >= 1.12; torch >= 2.6",
     .comment = "# ",
     .precisions = BF16 | FP16 | FP32,
     .recomputes = NONE | FULL,
     .attentions = OF_TRANSFORMERS,
     .fuseds = EAGER | COMPILED,
     .never_reshards = true,
     .refuse = accelerate_python_refuse,
     .write = hf_trainer_write,
     .launch = launch_torchrun,
     .program = "train.py  # which imports %s"},
    {.name = "axolotl",
     .target = "axolotl",
     .file_name = "axolotl.yaml",
     .versions = "axolotl 0.19",
     .comment = "# ",
     .precisions = BF16 | FP16 | FP32,
     .recomputes = NONE | FULL,
     .attentions = BIT(ATTENTION_FLASH) | BIT(ATTENTION_EAGER),
     .fuseds = EAGER | COMPILED,
     .refuse = axolotl_refuse,
     .write = axolotl_write,
     .launch = launch_torchrun,
     .program = "-m axolotl.cli.train %s"},
    {.name = "torchtitan-toml",
     .target = "torchtitan@0.2",
     .file_name = "torchtitan.toml",
     .versions = "torchtitan 0.2 (checked with 0.2.2)",
     .comment = "# ",
     .precisions = BF16 | FP32 | FP8,
     .recomputes = NONE | FULL | SELECTIVE,
     .attentions = BIT(ATTENTION_FLASH),
     .fuseds = EAGER | COMPILED,
     .never_reshards = true,
     .bf16_master = true,
     .tp_overlap = true,
     .refuse = torchtitan_refuse,
     .notes = torchtitan_notes,
     .write = torchtitan_toml_write,
     .launch = launch_torchrun,
     .program = "-m torchtitan.train --job.config_file %s"},
    {.name = "torchtitan-python",
     .target = "torchtitan@head",
     .file_name = "ndtune_recipe.py",
     .versions = "torchtitan after 0.2 (its main branch of 2026-08)",
     .comment = "# ",
     .precisions = BF16 | FP32,
     .recomputes = NONE | FULL | SELECTIVE,
     .attentions = BIT(ATTENTION_FLASH),
     .fuseds = EAGER | COMPILED,
     .never_reshards = true,
     .bf16_master = true,
     .tp_overlap = true,
     .refuse = torchtitan_refuse,
     .notes = torchtitan_notes,
     .write = torchtitan_python_write,
     .launch = launch_torchrun,
     .program = "-m torchtitan.train --module ndtune_recipe --config train  # %s lies in this folder under that name"},
    {.name = "megatron",
     .target = "megatron@core",
     .file_name = "megatron.sh",
     .versions = "Megatron-LM (its main branch of 2026-08)",
     .precisions = BF16 | FP16 | FP32 | FP8,
     .recomputes = NONE | FULL | SELECTIVE,
     .attentions = BIT(ATTENTION_CUDNN) | BIT(ATTENTION_FLASH),
     .fuseds = FUSED,
     .reduce_dtype = true,
     .tp_overlap = true,
     .refuse = megatron_refuse,
     .write = megatron_write,
     .launch = launch_script,
     .program = "bash %s  # in Megatron-LM, with DATA_PATH and TOKENIZER_MODEL set"},
    {.name = "automodel",
     .target = "accelerate@1.14",
     .also = "1.13",
     .file_name = "automodel.yaml",
     .versions = "nemo-automodel 0.7",
     .comment = "# ",
     .precisions = BF16,
     .recomputes = NONE | FULL,
     .attentions = BIT(ATTENTION_FLASH),
     .fuseds = EAGER,
     .reduce_dtype = true,
     .refuse = automodel_refuse,
     .notes = automodel_notes,
     .write = automodel_write,
     .launch = launch_torchrun,
     .program = "-m nemo_automodel.recipes.llm.train_ft -c %s"},
    {.name = "nanotron",
     .target = "nanotron",
     .file_name = "nanotron.yaml",
     .versions = "nanotron after 0.4 (its main branch of 2026-04)",
     .comment = "# ",
     .precisions = BF16 | FP32,
     .recomputes = NONE | FULL,
     .attentions = BIT(ATTENTION_FLASH),
     .fuseds = FUSED,
     .refuse = nanotron_refuse,
     .write = nanotron_write,
     .launch = launch_torchrun,
     .program = "run_train.py --config-file %s"},
    {.name = "deepspeed",
     .target = "deepspeed",
     .file_name = "deepspeed.json",
     .versions = "DeepSpeed >= 0.16.4 (checked with 0.19.8)",
     .precisions = BF16 | FP16 | FP32,
     .recomputes = NONE | FULL,
     .attentions = OF_TRANSFORMERS,
     .fuseds = EAGER,
     .refuse = deepspeed_refuse,
     .notes = deepspeed_notes,
     .write = deepspeed_write,
     .launch = launch_torchrun,
     .program = "train.py --deepspeed_config %s"},
    // What it holds is for the format inside it to say.
    {.name = "sbatch",
     .file_name = "train.sbatch",
     .versions = "Slurm",
     .precisions = ~0u,
     .recomputes = ~0u,
     .attentions = ~0u,
     .fuseds = ~0u,
     .never_reshards = true,
     .bf16_master = true,
     .reduce_dtype = true,
     .tp_overlap = true,
     .refuse = sbatch_refuse,
     .write = sbatch_write,
     .launch = launch_script,
     .program = "sbatch %s"},
};

enum { FORMATS = sizeof formats / sizeof formats[0] };

const ExportFormat *export_formats(int *count) {
    *count = FORMATS;
    return formats;
}

Status export_find(const char *name, const ExportFormat **format, Error *error) {
    const char *names[FORMATS];
    char list[ERROR_HINT_BYTES] = "";
    for (int i = 0; i < FORMATS; i++) {
        names[i] = formats[i].name;
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
        if (text_same_word(name, names[i])) {
            *format = &formats[i];
            return STATUS_OK;
        }
    }
    error_set(error, STATUS_USAGE, "unknown format \"%s\"; there are %s", name, list);
    const char *nearest = text_nearest(name, names, FORMATS);
    return nearest ? error_hint(error, "did you mean --as %s?", nearest) : STATUS_USAGE;
}

bool export_is_of(const ExportFormat *format, const Target *target) {
    const size_t length = format->target ? strcspn(format->target, "@") : 0;
    return !format->target || (strlen(target->name) == length && strncmp(target->name, format->target, length) == 0);
}

// "accelerate@1.14" of a row: the same name, and one of its versions where the row has any.
static bool takes(const ExportFormat *format, const Target *target) {
    const char *version = format->target ? strchr(format->target, '@') : NULL;
    return export_is_of(format, target) && (!version || strcmp(version + 1, target->version) == 0 ||
                                            (format->also && strcmp(format->also, target->version) == 0));
}

void export_narrow(const ExportFormat *format, TuneRequest *request) {
    if (!format->never_reshards && request->reshard == TUNE_ANY) {
        request->reshard = RESHARD_ALWAYS;
    }
}

Status export_usual(const Target *target, const ExportFormat **format, Error *error) {
    for (int i = 0; i < FORMATS; i++) {
        if (formats[i].target && takes(&formats[i], target)) {
            *format = &formats[i];
            return STATUS_OK;
        }
    }
    return error_set(
        error, STATUS_USAGE,
        "there is no config file of %s@%s to write: take --target accelerate, axolotl, torchtitan, megatron, "
        "nanotron or deepspeed",
        target->name, target->version);
}

// Are gradients to be reduced in another format than the target's own?
static bool other_reduction(const ExportJob *job) {
    const TrainPlan *plan = job->plan;
    const bool own_fp32 = plan->precision == DTYPE_FP32 || (plan_activation_dtype(plan) == DTYPE_BF16 &&
                                                            job->request->target->reduce_dtype_bf16 == DTYPE_FP32);
    const ReduceDtype own = own_fp32 ? REDUCE_DTYPE_FP32 : REDUCE_DTYPE_BF16;
    return plan->reduce_dtype != REDUCE_DTYPE_TARGET && plan->reduce_dtype != own;
}

// The first thing of the plan that a column of the row excludes.
static const char *refuse_columns(const ExportFormat *format, const ExportJob *job) {
    const TrainPlan *plan = job->plan;
    const struct {
        bool refused;
        const char *what, *value, *instead;
    } columns[] = {
        {!(format->precisions & BIT(plan->precision)), "precision", dtype_name(plan->precision), "bf16"},
        {!(format->recomputes & BIT(plan->recompute)), "recompute", recompute_names[plan->recompute], "full or none"},
        {!(format->attentions & BIT(plan->attention)), "attention", attention_names[plan->attention], "auto"},
        {!(format->fuseds & BIT(plan->fused)), "fused", fused_names[plan->fused], "auto"},
        {plan->reshard == RESHARD_NEVER && !format->never_reshards, "reshard", "never", "always"},
        {plan->bf16_master && !format->bf16_master, "master-weights", "bf16", "fp32"},
        {other_reduction(job) && !format->reduce_dtype, "reduce-dtype", reduce_dtype_names[plan->reduce_dtype], "auto"},
        {plan->tp_overlap && !format->tp_overlap, "tp-overlap", "on", "off"},
    };
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        if (columns[i].refused) {
            return arena_format(job->arena, "--%s %s has no place in a file of %s: use --%s %s", columns[i].what,
                                columns[i].value, format->name, columns[i].what, columns[i].instead);
        }
    }
    return NULL;
}

static const char *refuse_layout(const ExportFormat *format, const ExportJob *job) {
    const Mesh *mesh = &job->plan->mesh;
    if (!mesh_has_default_order(mesh)) {
        char order[MESH_TEXT_BYTES];
        return arena_format(job->arena, "a file of %s cannot lay the ranks out by %s: use --rank-order default",
                            format->name, mesh_order_text(mesh, order));
    }
    if (job->nodes * job->ranks_per_node != mesh_world(mesh)) {
        return arena_format(job->arena,
                            "%d ranks do not fill whole nodes of %d, and launchers start equally many on each: use a "
                            "multiple of %d, or --set node.gpus=N with the number that you use of each node",
                            mesh_world(mesh), job->ranks_per_node, job->ranks_per_node);
    }
    return NULL;
}

static const char *refuse_target(const ExportFormat *format, const ExportJob *job) {
    const Target *target = job->request->target;
    return takes(format, target)
               ? NULL
               : arena_format(job->arena, "%s is a file for %s, the plan is one for %s@%s: use --target %s",
                              format->name, format->target, target->name, target->version, format->target);
}

static const char *refuse_text(const ExportJob *job) {
    return text_is_utf8(job->request->model_asked) ? NULL
                                                   : "the path of the model is not UTF-8, which config files are";
}

static void place_on_nodes(ExportJob *job) {
    const int world = mesh_world(&job->plan->mesh), node = job->request->cluster.node.accelerators;
    job->ranks_per_node = world < node ? world : node;
    job->nodes = (world + job->ranks_per_node - 1) / job->ranks_per_node;
}

// Fills in what follows from the plan, then asks every rule.
static Status prepare(const ExportFormat *format, ExportJob *job, Error *error) {
    job->plan = &job->prediction->plan;
    place_on_nodes(job);
    const char *reason = refuse_target(format, job);
    reason = reason ? reason : refuse_text(job);
    reason = reason ? reason : refuse_layout(format, job);
    reason = reason ? reason : refuse_columns(format, job);
    reason = reason || !format->refuse ? reason : format->refuse(job);
    return reason ? error_set(error, STATUS_USAGE, "%s", reason) : STATUS_OK;
}

Status export_check(const ExportFormat *format, const ExportJob *asked, Error *error) {
    ExportJob job = *asked;
    return prepare(format, &job, error);
}

Status export_write(const ExportFormat *format, const ExportJob *asked, FILE *out, Error *error) {
    ExportJob job = *asked;
    TRY(prepare(format, &job, error));
    if (format->comment) {
        char *header = export_header(format, &job);
        if (!header) {
            return error_set(error, STATUS_ENVIRONMENT, "no memory for the header of the file");
        }
        export_comment(header, format->comment, out);
        free(header);
    }
    format->write(&job, out);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the file could not be written") : STATUS_OK;
}

Status export_text(const ExportFormat *format, const ExportJob *job, char **text, Error *error) {
    size_t bytes = 0;
    FILE *file = open_memstream(text, &bytes);
    if (!file) {
        *text = NULL;
        return error_set(error, STATUS_ENVIRONMENT, "no memory for the file");
    }
    const Status status = export_write(format, job, file, error);
    fclose(file);
    if (status != STATUS_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}
