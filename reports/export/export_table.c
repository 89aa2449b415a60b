// Format lookup, and what all formats share: the checks of their columns, the header.

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

// Matches "name@version" against a row: the same name, and one of its versions where the row has any; or another
// framework's full name that the row lists.
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
    static const PlanFieldId searched[] = {PLAN_RESHARD,    PLAN_LOSS,          PLAN_CUDA_GRAPHS,
                                           PLAN_TP_OVERLAP, PLAN_REDUCE_BUCKET, PLAN_RESHARD_RANKS};
    for (size_t i = 0; i < sizeof searched / sizeof searched[0]; i++) {
        int *asked = &request->asked[searched[i]];
        *asked =
            !(format->takes & PLAN_BIT(searched[i])) && *asked == TUNE_ANY ? plan_fields[searched[i]].usual : *asked;
    }
    if (!(format->fuseds & EXPORT_COMPILED) && request->asked[PLAN_FUSED] == TUNE_ANY &&
        target_has_choice(request->target, PLAN_FUSED)) {
        request->asked[PLAN_FUSED] = (int)request->target->default_fused;
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

const ExportFormat *export_like(const char *name, const Target *target) {
    const ExportFormat *format = NULL;
    Error none = {0};
    if (name && export_find(name, &format, &none) == STATUS_OK && takes(format, target)) {
        return format;
    }
    return export_usual(target, &format, &none) == STATUS_OK ? format : NULL;
}

// Are gradients to be reduced in a format other than the target's default?
static bool other_reduction(const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    const bool own_fp32 = plan->precision == DTYPE_FP32 ||
                          (plan_activation_dtype(plan) == DTYPE_BF16 && job->target->reduce_dtype_bf16 == DTYPE_FP32);
    const ReduceDtype own = own_fp32 ? REDUCE_DTYPE_FP32 : REDUCE_DTYPE_BF16;
    return plan->reduce_dtype != REDUCE_DTYPE_TARGET && plan->reduce_dtype != own;
}

// Does the plan have the value that a format without the choice implies?
static bool is_usual(const ConfigJob *job, PlanFieldId id) {
    const TrainPlan *plan = job->plan;
    switch (id) {
    case PLAN_REDUCE_DTYPE:
        return !other_reduction(job);
    case PLAN_RESHARD_RANKS:
    case PLAN_RECOMPUTE_EVERY:
        return plan_get(plan, id) <= 1;
    default:
        return plan_get(plan, id) == plan_fields[id].usual;
    }
}

static const char *refuse_choice(const ConfigJob *job, const char *format, PlanFieldId id, const char *instead) {
    const char *option = plan_fields[id].option.name;
    return arena_format(job->arena, "--%s %s has no place in a file of %s: use --%s %s", option,
                        plan_value_text(id, plan_get(job->plan, id), VALUE_BUFFER), format, option, instead);
}

// Plan fields that formats write or refuse below, or that concern the data; others do not appear in any file.
static const uint64_t said =
    PLAN_BIT(PLAN_IMBALANCE) | PLAN_BIT(PLAN_SEQ) | PLAN_BIT(PLAN_MICRO_BATCH) | PLAN_BIT(PLAN_GRAD_ACCUM) |
    PLAN_BIT(PLAN_ZERO) | PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_RESHARD_RANKS) | PLAN_BIT(PLAN_REDUCE_BUCKET) |
    PLAN_BIT(PLAN_RECOMPUTE) | PLAN_BIT(PLAN_CP_ROTATE) | PLAN_BIT(PLAN_PRECISION) | PLAN_BIT(PLAN_ATTENTION) |
    PLAN_BIT(PLAN_FUSED) | PLAN_BIT(PLAN_TP_OVERLAP) | PLAN_BIT(PLAN_MASTER_WEIGHTS) | PLAN_BIT(PLAN_FP8_RECIPE) |
    PLAN_BIT(PLAN_REDUCE_DTYPE) | PLAN_BIT(PLAN_GRAD_SYNC) | PLAN_BIT(PLAN_RECOMPUTE_UNIT) |
    PLAN_BIT(PLAN_RECOMPUTE_LAYERS) | PLAN_BIT(PLAN_RECOMPUTE_EVERY) | PLAN_BIT(PLAN_RECOMPUTE_MODULES) |
    PLAN_BIT(PLAN_OFFLOAD) | PLAN_BIT(PLAN_OFFLOAD_LAYERS) | PLAN_BIT(PLAN_REDUCE_OVERLAP) | PLAN_BIT(PLAN_LOSS) |
    PLAN_BIT(PLAN_CUDA_GRAPHS) | PLAN_BIT(PLAN_SEQUENCE_PARALLEL) | PLAN_BIT(PLAN_FINETUNE) | PLAN_BIT(PLAN_LORA_RANK) |
    PLAN_BIT(PLAN_LORA_TARGETS) | PLAN_BIT(PLAN_OPTIMIZER) | PLAN_BIT(PLAN_PACK) | PLAN_BIT(PLAN_DISPATCH) |
    PLAN_BIT(PLAN_EP_OVERLAP) | PLAN_BIT(PLAN_ETP) | PLAN_BIT(PLAN_EXPERT_CAPACITY) | PLAN_BIT(PLAN_PAD_EXPERTS) |
    PLAN_BIT(PLAN_MTP) | PLAN_BIT(PLAN_PP_SCHEDULE) | PLAN_BIT(PLAN_VIRTUAL_STAGES) | PLAN_BIT(PLAN_PP_SPLIT) |
    PLAN_BIT(PLAN_PP_FIRST) | PLAN_BIT(PLAN_PP_LAST) | PLAN_BIT(PLAN_MLP_TILES) | PLAN_BIT(PLAN_UPDATE_IN_BACKWARD) |
    PLAN_BIT(PLAN_FP8_PARAMETERS) | PLAN_BIT(PLAN_PP_GROUP) | PLAN_BIT(PLAN_PP_ROUNDS) | PLAN_BIT(PLAN_P2P_OVERLAP) |
    PLAN_BIT(PLAN_FP8_ACTIVATION) | PLAN_BIT(PLAN_OP_FUSER) | PLAN_BIT(PLAN_QKV_ROPE);

// The first feature of the plan that a column of the row excludes.
static const char *refuse_columns(const ExportFormat *format, const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    const struct {
        unsigned has;
        PlanFieldId id;
        const char *instead;
    } columns[] = {{format->precisions, PLAN_PRECISION, "bf16"},
                   {format->recomputes, PLAN_RECOMPUTE, "full or none"},
                   {format->attentions, PLAN_ATTENTION, "auto"},
                   {format->fuseds, PLAN_FUSED, "auto"}};
    static const PlanFieldId choices[] = {
        PLAN_QKV_ROPE,        PLAN_RESHARD,        PLAN_MASTER_WEIGHTS, PLAN_REDUCE_DTYPE, PLAN_TP_OVERLAP,
        PLAN_RECOMPUTE_UNIT,  PLAN_OFFLOAD,        PLAN_LOSS,           PLAN_CUDA_GRAPHS,  PLAN_FINETUNE,
        PLAN_OPTIMIZER,       PLAN_DISPATCH,       PLAN_EP_OVERLAP,     PLAN_PACK,         PLAN_UPDATE_IN_BACKWARD,
        PLAN_FP8_PARAMETERS,  PLAN_RESHARD_RANKS,  PLAN_REDUCE_BUCKET,  PLAN_MLP_TILES,    PLAN_RECOMPUTE_LAYERS,
        PLAN_RECOMPUTE_EVERY, PLAN_OFFLOAD_LAYERS, PLAN_FP8_ACTIVATION, PLAN_OP_FUSER};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        if (!(columns[i].has & EXPORT_BIT(plan_get(plan, columns[i].id)))) {
            return refuse_choice(job, format->name, columns[i].id, columns[i].instead);
        }
    }
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        if (!(format->takes & PLAN_BIT(choices[i])) && !is_usual(job, choices[i])) {
            char usual[PLAN_VALUE_BYTES];
            return refuse_choice(job, format->name, choices[i],
                                 plan_value_text(choices[i], plan_fields[choices[i]].usual, usual));
        }
    }
    return plan_refuse_others(plan, said, arena_format(job->arena, "a file of %s has no place for", format->name),
                              job->arena);
}

static const char *refuse_layout(const ExportFormat *format, const ConfigJob *job) {
    const Mesh *mesh = &job->plan->mesh;
    REFUSE_IF(job->arena, mesh_has_stages(mesh) && !format->stages,
              "pp=%d has no place in a file of %s, which holds no pipeline: use pp=1", mesh_stages(mesh), format->name);
    REFUSE_IF(job->arena, !mesh_has_default_order(mesh),
              "a file of %s cannot lay the ranks out by %s: use --rank-order default", format->name,
              mesh_order_text(mesh, MESH_BUFFER));
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
    const int world = mesh_world(&job->plan->mesh), hosts = cluster->node.hosts > 1 ? cluster->node.hosts : 1;
    const int node = cluster->node.accelerators / hosts;
    job->ranks_per_node = world < node ? world : node;
    job->nodes = (world + job->ranks_per_node - 1) / job->ranks_per_node;
}

// Fills in what follows from the plan, then checks every rule.
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
    FAIL_IF(!header, error, STATUS_ENVIRONMENT, "no memory for the header of the file");
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
    FAIL_IF(!file, error, STATUS_ENVIRONMENT, "no memory for the notes of the file");
    if (format->notes) {
        format->notes(&job.config, file);
    }
    const char *of_sdpa = export_sdpa_note(&job.config);
    if (of_sdpa[0]) {
        fprintf(file, "Attention:%s\n", of_sdpa);
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
