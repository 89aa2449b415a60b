// Finding a format, and what all of them share: the checks of their columns, the header.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/export/export_header.h"
#include "sim/base/escape.h"
#include "sim/base/text.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/target_choices.h"
#include "sim/plan/plan_fields.h"

const ExportFormat *export_format_at(int index) {
    int count = 0, at = 0;
    const Framework *const *frameworks = framework_list(&count);
    for (int i = 0; i < count; i++) {
        for (const ExportFormat *const *format = frameworks[i]->formats; format && *format; format++) {
            if (at++ == index) {
                return *format;
            }
        }
    }
    return index == at ? &export_sbatch : NULL;
}

int export_format_count(void) {
    int count = 0;
    while (export_format_at(count)) {
        count++;
    }
    return count;
}

Status export_find(const char *name, const ExportFormat **format, Error *error) {
    enum { MOST = 64 };
    const char *names[MOST];
    char list[ERROR_HINT_BYTES] = "";
    size_t count = 0;
    for (const ExportFormat *row; count < MOST && (row = export_format_at((int)count)); count++) {
        names[count] = row->name;
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", count > 0 ? ", " : "", row->name);
        if (text_same_word(name, row->name)) {
            *format = row;
            return STATUS_OK;
        }
    }
    error_set(error, STATUS_USAGE, "unknown format \"%s\"; there are %s", name, list);
    const char *nearest = text_nearest(name, names, count);
    return nearest ? error_hint(error, "did you mean --as %s?", nearest) : STATUS_USAGE;
}

bool export_is_of(const ExportFormat *format, const Target *target) {
    const size_t length = format->target ? strcspn(format->target, "@") : 0;
    return !format->target || (strlen(target->name) == length && strncmp(target->name, format->target, length) == 0);
}

static bool has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0) {
            return true;
        }
    }
    return false;
}

// "name@version" of a row: the same name, and one of its versions where the row has any; or another framework's that
// it names whole.
static bool takes(const ExportFormat *format, const Target *target) {
    const char *version = format->target ? strchr(format->target, '@') : NULL;
    enum { WHOLE_NAME_BYTES = 64 };
    char whole[WHOLE_NAME_BYTES];
    snprintf(whole, sizeof whole, "%s@%s", target->name, target->version);
    return has_word(format->also, whole) ||
           (export_is_of(format, target) &&
            (!version || strcmp(version + 1, target->version) == 0 || has_word(format->also, target->version)));
}

void export_narrow(const ExportFormat *format, TuneRequest *request) {
    if (!format->never_reshards && request->asked[PLAN_RESHARD] == TUNE_ANY) {
        request->asked[PLAN_RESHARD] = RESHARD_ALWAYS;
    }
    if (!(format->fuseds & EXPORT_COMPILED) && request->asked[PLAN_FUSED] == TUNE_ANY &&
        target_has_choice(request->target, PLAN_FUSED)) {
        request->asked[PLAN_FUSED] = (int)request->target->default_fused;
    }
    if (!format->other_loss && request->asked[PLAN_LOSS] == TUNE_ANY) {
        request->asked[PLAN_LOSS] = LOSS_TARGET;
    }
    if (!format->cuda_graphs && request->asked[PLAN_CUDA_GRAPHS] == TUNE_ANY) {
        request->asked[PLAN_CUDA_GRAPHS] = CUDA_GRAPHS_TARGET;
    }
    if (!format->tp_overlap && request->asked[PLAN_TP_OVERLAP] == TUNE_ANY) {
        request->asked[PLAN_TP_OVERLAP] = false;
    }
    if (!format->reduce_bucket && request->asked[PLAN_REDUCE_BUCKET] == TUNE_ANY) {
        request->asked[PLAN_REDUCE_BUCKET] = 0;
    }
    if (!format->near_shards && request->asked[PLAN_RESHARD_RANKS] == TUNE_ANY) {
        request->asked[PLAN_RESHARD_RANKS] = 0;
    }
}

static bool has_file(const Framework *framework) {
    return framework->versions[0] && framework->formats;
}

Status export_usual(const Target *target, const ExportFormat **format, Error *error) {
    const ExportFormat *row;
    for (int i = 0; (row = export_format_at(i)); i++) {
        if (row->target && takes(row, target)) {
            *format = row;
            return STATUS_OK;
        }
    }
    char names[ERROR_HINT_BYTES];
    return error_set(error, STATUS_USAGE, "there is no config file of %s@%s to write: take --target %s", target->name,
                     target->version, framework_names(has_file, names, sizeof names));
}

// Are gradients to be reduced in another format than the target's own?
static bool other_reduction(const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    const bool own_fp32 = plan->precision == DTYPE_FP32 ||
                          (plan_activation_dtype(plan) == DTYPE_BF16 && job->target->reduce_dtype_bf16 == DTYPE_FP32);
    const ReduceDtype own = own_fp32 ? REDUCE_DTYPE_FP32 : REDUCE_DTYPE_BF16;
    return plan->reduce_dtype != REDUCE_DTYPE_TARGET && plan->reduce_dtype != own;
}

// Fields of a plan that formats write or refuse below; others have no place in any file.
static const bool says_field[PLAN_FIELD_COUNT] = {[PLAN_SEQ] = true,
                                                  [PLAN_MICRO_BATCH] = true,
                                                  [PLAN_GRAD_ACCUM] = true,
                                                  [PLAN_ZERO] = true,
                                                  [PLAN_RESHARD] = true,
                                                  [PLAN_RESHARD_RANKS] = true,
                                                  [PLAN_REDUCE_BUCKET] = true,
                                                  [PLAN_RECOMPUTE] = true,
                                                  [PLAN_CP_ROTATE] = true,
                                                  [PLAN_PRECISION] = true,
                                                  [PLAN_ATTENTION] = true,
                                                  [PLAN_FUSED] = true,
                                                  [PLAN_TP_OVERLAP] = true,
                                                  [PLAN_MASTER_WEIGHTS] = true,
                                                  [PLAN_FP8_RECIPE] = true,
                                                  [PLAN_REDUCE_DTYPE] = true,
                                                  [PLAN_GRAD_SYNC] = true,
                                                  [PLAN_RECOMPUTE_UNIT] = true,
                                                  [PLAN_RECOMPUTE_LAYERS] = true,
                                                  [PLAN_RECOMPUTE_EVERY] = true,
                                                  [PLAN_RECOMPUTE_MODULES] = true,
                                                  [PLAN_OFFLOAD] = true,
                                                  [PLAN_REDUCE_OVERLAP] = true,
                                                  [PLAN_LOSS] = true,
                                                  [PLAN_CUDA_GRAPHS] = true,
                                                  [PLAN_SEQUENCE_PARALLEL] = true,
                                                  [PLAN_FINETUNE] = true,
                                                  [PLAN_LORA_RANK] = true,
                                                  [PLAN_LORA_TARGETS] = true,
                                                  [PLAN_OPTIMIZER] = true,
                                                  [PLAN_PACK] = true,
                                                  [PLAN_IMBALANCE] = true,  // of the data, not of a file
                                                  [PLAN_DISPATCH] = true,
                                                  [PLAN_EP_OVERLAP] = true,
                                                  [PLAN_ETP] = true,
                                                  [PLAN_EXPERT_CAPACITY] = true,
                                                  [PLAN_PAD_EXPERTS] = true,
                                                  [PLAN_MTP] = true,
                                                  [PLAN_PP_SCHEDULE] = true,
                                                  [PLAN_VIRTUAL_STAGES] = true,
                                                  [PLAN_PP_SPLIT] = true,
                                                  [PLAN_PP_FIRST] = true,
                                                  [PLAN_PP_LAST] = true,
                                                  [PLAN_MLP_TILES] = true,
                                                  [PLAN_UPDATE_IN_BACKWARD] = true,
                                                  [PLAN_FP8_PARAMETERS] = true};

// The first thing of the plan that a column of the row excludes.
static const char *refuse_columns(const ExportFormat *format, const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    char layers[PLAN_VALUE_BYTES], every[PLAN_VALUE_BYTES], packed[PLAN_VALUE_BYTES], tiles[PLAN_VALUE_BYTES];
    char near[PLAN_VALUE_BYTES], bucket[PLAN_VALUE_BYTES];
    const struct {
        bool refused;
        const char *what, *value, *instead;
    } columns[] = {
        {!(format->precisions & EXPORT_BIT(plan->precision)), "precision", dtype_name(plan->precision), "bf16"},
        {!(format->recomputes & EXPORT_BIT(plan->recompute)), "recompute", recompute_names[plan->recompute],
         "full or none"},
        {!(format->attentions & EXPORT_BIT(plan->attention)), "attention", attention_names[plan->attention], "auto"},
        {!(format->fuseds & EXPORT_BIT(plan->fused)), "fused", fused_names[plan->fused], "auto"},
        {plan->reshard == RESHARD_NEVER && !format->never_reshards, "reshard", "never", "always"},
        {plan->bf16_master && !format->bf16_master, "master-weights", "bf16", "fp32"},
        {other_reduction(job) && !format->reduce_dtype, "reduce-dtype", reduce_dtype_names[plan->reduce_dtype], "auto"},
        {plan->tp_overlap && !format->tp_overlap, "tp-overlap", "on", "off"},
        {plan->recompute_unit != RECOMPUTE_UNIT_TARGET && !format->recompute_unit, "recompute-unit",
         recompute_unit_names[plan->recompute_unit], "auto"},
        {plan->offload != OFFLOAD_NONE && !format->offload, "offload", offload_names[plan->offload], "none"},
        {plan->loss != LOSS_TARGET && !format->other_loss, "loss", loss_form_names[plan->loss], "target"},
        {plan->cuda_graphs != CUDA_GRAPHS_TARGET && !format->cuda_graphs, "cuda-graphs",
         cuda_graphs_names[plan->cuda_graphs], "target"},
        {plan->finetune != FINETUNE_FULL && !format->adapters, "finetune", finetune_names[plan->finetune], "full"},
        {plan->optimizer != OPTIMIZER_TARGET && !format->optimizer, "optimizer", optimizer_names[plan->optimizer],
         "adamw"},
        {plan->dispatch != DISPATCH_TARGET && !format->dispatcher, "dispatcher", dispatch_names[plan->dispatch],
         "target"},
        {plan->ep_overlap && !format->ep_overlap, "ep-overlap", "on", "off"},
        {plan->pack > 0 && !format->packs, "pack", plan_value_text(PLAN_PACK, plan->pack, packed), "0"},
        {plan->update_in_backward && !format->update_in_backward, "update-in-backward", "on", "off"},
        {plan->fp8_parameters && !format->fp8_parameters, "fp8-parameters", "on", "off"},
        {plan->reshard_ranks > 1 && !format->near_shards, "reshard-ranks",
         plan_value_text(PLAN_RESHARD_RANKS, plan->reshard_ranks, near), "0"},
        {plan->reduce_bucket > 0 && !format->reduce_bucket, "reduce-bucket",
         plan_value_text(PLAN_REDUCE_BUCKET, plan->reduce_bucket, bucket), "0"},
        {plan->mlp_tiles > 0 && !format->tiles, "mlp-tiles", plan_value_text(PLAN_MLP_TILES, plan->mlp_tiles, tiles),
         "0"},
        {plan->recompute_layers > 0 && !format->recompute_layers, "recompute-layers",
         plan_value_text(PLAN_RECOMPUTE_LAYERS, plan->recompute_layers, layers), "0"},
        {plan->recompute_every > 1 && !format->recompute_every, "recompute-every",
         plan_value_text(PLAN_RECOMPUTE_EVERY, plan->recompute_every, every), "0"},
    };
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        REFUSE_IF(job->arena, columns[i].refused, "--%s %s has no place in a file of %s: use --%s %s", columns[i].what,
                  columns[i].value, format->name, columns[i].what, columns[i].instead);
    }
    return plan_refuse_others(plan, says_field, arena_format(job->arena, "a file of %s has no place for", format->name),
                              job->arena);
}

static const char *refuse_layout(const ExportFormat *format, const ConfigJob *job) {
    const Mesh *mesh = &job->plan->mesh;
    REFUSE_IF(job->arena, mesh_stages(mesh) > 1 && !format->stages,
              "pp=%d has no place in a file of %s, which holds no pipeline: use pp=1", mesh_stages(mesh), format->name);
    if (!mesh_has_default_order(mesh)) {
        char order[MESH_TEXT_BYTES];
        return arena_format(job->arena, "a file of %s cannot lay the ranks out by %s: use --rank-order default",
                            format->name, mesh_order_text(mesh, order));
    }
    REFUSE_IF(job->arena, job->nodes * job->ranks_per_node != mesh_world(mesh),
              "%d ranks do not fill whole nodes of %d, and launchers start equally many on each: use a multiple of %d, "
              "or --set node.gpus=N with the number that you use of each node",
              mesh_world(mesh), job->ranks_per_node, job->ranks_per_node);
    return NULL;
}

static const char *refuse_target(const ExportFormat *format, const ConfigJob *job) {
    const Target *target = job->target;
    return takes(format, target)
               ? NULL
               : arena_format(job->arena, "%s is a file for %s, the plan is one for %s@%s: use --target %s",
                              format->name, format->target, target->name, target->version, format->target);
}

static const char *refuse_text(const ConfigJob *job) {
    const char *path = job->model->path;
    return !path || text_is_utf8(path) ? NULL : "the path of the model is not UTF-8, which config files are";
}

static void place_on_nodes(ConfigJob *job, const ClusterProfile *cluster) {
    const int world = mesh_world(&job->plan->mesh), node = cluster->node.accelerators;
    job->ranks_per_node = world < node ? world : node;
    job->nodes = (world + job->ranks_per_node - 1) / job->ranks_per_node;
}

// Fills in what follows from the plan, then asks every rule.
static Status prepare(const ExportFormat *format, ExportJob *job, Error *error) {
    const TuneRequest *request = job->request;
    ConfigJob *config = &job->config;
    *config = (ConfigJob){.plan = &job->prediction->plan,
                          .model = &request->model,
                          .target = request->target,
                          .arena = job->arena,
                          .asked = job};
    place_on_nodes(config, &request->cluster);
    const char *reason = refuse_target(format, config);
    reason = reason ? reason : refuse_text(config);
    reason = reason ? reason : refuse_layout(format, config);
    reason = reason ? reason : refuse_columns(format, config);
    reason = reason || !format->refuse ? reason : format->refuse(config);
    return reason ? error_set(error, STATUS_USAGE, "%s", reason) : STATUS_OK;
}

Status export_check(const ExportFormat *format, const ExportJob *asked, Error *error) {
    ExportJob job = *asked;
    return prepare(format, &job, error);
}

Status export_write(const ExportFormat *format, const ExportJob *asked, FILE *out, Error *error) {
    ExportJob job = *asked;
    TRY(prepare(format, &job, error));
    char *header = export_header(format, &job);
    if (!header) {
        return error_set(error, STATUS_ENVIRONMENT, "no memory for the header of the file");
    }
    job.config.header = header;
    if (format->comment) {
        export_comment(header, format->comment, out);
    }
    format->write(&job.config, out);
    free(header);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the file could not be written") : STATUS_OK;
}

Status export_notes(const ExportFormat *format, const ExportJob *asked, char **notes, Error *error) {
    ExportJob job = *asked;
    *notes = NULL;
    TRY(prepare(format, &job, error));
    size_t bytes = 0;
    FILE *file = open_memstream(notes, &bytes);
    if (!file) {
        return error_set(error, STATUS_ENVIRONMENT, "no memory for the notes of the file");
    }
    if (format->notes) {
        format->notes(&job.config, file);
    }
    return fclose(file) == 0 ? STATUS_OK : error_set(error, STATUS_ENVIRONMENT, "no memory for the notes of the file");
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
