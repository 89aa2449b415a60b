// CSV as RFC 4180 has it: one header line, fields with comma, quote or line break in quotes, CRLF. Unknown numbers
// are empty.

#include <inttypes.h>
#include <string.h>

#include "reports/reports.h"

typedef struct Csv {
    FILE *out;
    bool inside;  // a field of this line is written
} Csv;

static void separate(Csv *csv) {
    if (csv->inside) {
        fputc(',', csv->out);
    }
    csv->inside = true;
}

static void text(Csv *csv, const char *value) {
    separate(csv);
    if (!value) {
        return;
    }
    if (!strpbrk(value, ",\"\r\n")) {
        fputs(value, csv->out);
        return;
    }
    fputc('"', csv->out);
    for (const char *p = value; *p; p++) {
        fputs(*p == '"' ? "\"\"" : (char[]){*p, '\0'}, csv->out);
    }
    fputc('"', csv->out);
}

static void integer(Csv *csv, int64_t value) {
    separate(csv);
    fprintf(csv->out, "%" PRId64, value);
}

static void number(Csv *csv, bool known, double value) {
    separate(csv);
    if (known) {
        fprintf(csv->out, "%.10g", value);
    }
}

static void end_line(Csv *csv) {
    fputs("\r\n", csv->out);
    csv->inside = false;
}

static void header(Csv *csv, const char *names) {
    fputs(names, csv->out);
    end_line(csv);
}

static Status finish(const Csv *csv, Error *error) {
    return ferror(csv->out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}

static const char plan_header[] =
    "state,place,dp_replicate,dp_shard,cp,tp,seq,micro_batch,grad_accum,global_batch,zero,recompute,reshard,cp_rotate,"
    "precision,"
    "step_time_s,step_time_low_s,step_time_high_s,tokens_per_s,mfu,hfu,compute_s,exposed_dp_replicate_s,exposed_dp_"
    "shard_s,"
    "exposed_cp_s,exposed_tp_s,optimizer_s,overhead_s,peak_bytes,reserved_bytes,rule,reason";

static void plan_fields(Csv *csv, const TrainPlan *plan) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        integer(csv, plan->mesh.size[axis]);
    }
    const int64_t numbers[] = {plan->seq, plan->micro_batch, plan->grad_accum, plan_global_batch(plan), plan->zero};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        integer(csv, numbers[i]);
    }
    text(csv, recompute_names[plan->recompute]);
    text(csv, reshard_names[plan->reshard]);
    text(csv, cp_rotate_names[plan->cp_rotate]);
    text(csv, dtype_name(plan->precision));
}

static void prediction_fields(Csv *csv, const Prediction *prediction) {
    const bool known = prediction->step_s > 0;
    const double numbers[] = {prediction->step_s,
                              prediction->step_low_s,
                              prediction->step_high_s,
                              prediction->tokens_per_s,
                              prediction->mfu,
                              prediction->hfu,
                              prediction->compute_s,
                              prediction->exposed_s[AXIS_DP_REPLICATE],
                              prediction->exposed_s[AXIS_DP_SHARD],
                              prediction->exposed_s[AXIS_CP],
                              prediction->exposed_s[AXIS_TP],
                              prediction->optimizer_s,
                              prediction->overhead_s};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        number(csv, known, numbers[i]);
    }
    number(csv, prediction->memory.peak_bytes > 0, prediction->memory.peak_bytes);
    number(csv, prediction->memory.reserved_bytes > 0, prediction->memory.reserved_bytes);
}

Status csv_plan(const TuneResult *result, FILE *out, Error *error) {
    Csv csv = {.out = out};
    header(&csv, plan_header);
    for (int i = 0; i < result->entry_count; i++) {
        text(&csv, "ranked");
        integer(&csv, i + 1);
        plan_fields(&csv, &result->entries[i].plan);
        prediction_fields(&csv, &result->entries[i]);
        text(&csv, NULL);
        text(&csv, NULL);
        end_line(&csv);
    }
    for (int i = 0; i < result->rejected_count; i++) {
        const Prediction nothing = {0};
        text(&csv, "rejected");
        text(&csv, NULL);
        plan_fields(&csv, &result->rejected[i].plan);
        prediction_fields(&csv, &nothing);
        text(&csv, result->rejected[i].rule);
        text(&csv, result->rejected[i].reason);
        end_line(&csv);
    }
    return finish(&csv, error);
}

Status csv_prediction(const PredictionReport *report, FILE *out, Error *error) {
    Csv csv = {.out = out};
    header(&csv, plan_header);
    text(&csv, !report->legal ? "not legal" : report->prediction->fits ? "feasible" : "does not fit");
    text(&csv, NULL);
    plan_fields(&csv, &report->prediction->plan);
    prediction_fields(&csv, report->prediction);
    text(&csv, NULL);
    text(&csv, report->reason);
    end_line(&csv);
    return finish(&csv, error);
}

Status csv_run(const RunRecord *run, FILE *out, Error *error) {
    Csv csv = {.out = out};
    header(&csv, "step,loss,grad_norm,step_time_s");
    for (int i = 0; i < run->steps; i++) {
        integer(&csv, i + 1);
        number(&csv, true, run->losses[i]);
        number(&csv, true, run->grad_norms[i]);
        number(&csv, true, run->step_times_s[i]);
        end_line(&csv);
    }
    return finish(&csv, error);
}

Status csv_models(FILE *out, Error *error) {
    Csv csv = {.out = out};
    header(&csv, "name,alias,parameters,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,max_seq,source");
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    for (int i = 0; i < count; i++) {
        const ModelSpec *model = &presets[i].spec;
        text(&csv, model->name);
        text(&csv, presets[i].alias);
        const int64_t numbers[] = {model_parameters(model), model->layers,   model->hidden, model->heads,
                                   model->kv_heads,         model->head_dim, model->ffn,    model->vocab,
                                   model->max_seq};
        for (size_t j = 0; j < sizeof numbers / sizeof numbers[0]; j++) {
            integer(&csv, numbers[j]);
        }
        text(&csv, model->source);
        end_line(&csv);
    }
    return finish(&csv, error);
}

Status csv_clusters(const ClusterProfile *profiles, int count, FILE *out, Error *error) {
    Csv csv = {.out = out};
    header(&csv, "name,accelerator,accelerators_per_node,memory_bytes,description,date");
    for (int i = 0; i < count; i++) {
        text(&csv, profiles[i].name);
        text(&csv, profiles[i].accelerator.name);
        integer(&csv, profiles[i].node.accelerators);
        number(&csv, true, profiles[i].accelerator.memory_bytes);
        text(&csv, profiles[i].description);
        text(&csv, profiles[i].date);
        end_line(&csv);
    }
    return finish(&csv, error);
}

Status csv_cluster(const ClusterProfile *profile, FILE *out, Error *error) {
    Csv csv = {.out = out};
    header(&csv, "field,value,grade,source");
    for (int i = 0; i < profile->provenance_count; i++) {
        text(&csv, profile->provenance[i].path);
        number(&csv, true, profile->provenance[i].value);
        text(&csv, grade_name(profile->provenance[i].grade));
        text(&csv, profile->provenance[i].source);
        end_line(&csv);
    }
    return finish(&csv, error);
}
