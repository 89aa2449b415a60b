// Results as CSV, each with one header line. Unknown numbers are empty.

#include "reports/csv_lines.h"
#include "reports/reports.h"
#include "sim/frameworks/target_choices.h"

// Readers by position keep theirs: fields from this one on came when other columns followed those of a plan, so they
// are at the end.
enum { FIRST_LATER = PLAN_PP_GROUP };

// Column order from before the plan's fields had a table; those that came afterwards follow.
static void plan_columns(PlanFieldId order[PLAN_FIELD_COUNT]) {
    static const PlanFieldId first[] = {
        PLAN_SEQ,          PLAN_MICRO_BATCH, PLAN_GRAD_ACCUM, PLAN_ZERO,           PLAN_RECOMPUTE,
        PLAN_RESHARD,      PLAN_CP_ROTATE,   PLAN_PRECISION,  PLAN_MASTER_WEIGHTS, PLAN_FP8_RECIPE,
        PLAN_REDUCE_DTYPE, PLAN_ATTENTION,   PLAN_FUSED,      PLAN_TP_OVERLAP};
    plan_fields_from(first, sizeof first / sizeof first[0], order);
}

int csv_plan_names(const char *names[CSV_PLAN_COLUMNS]) {
    PlanFieldId order[PLAN_FIELD_COUNT];
    plan_columns(order);
    int count = 0;
    for (int i = 0; i < FIRST_LATER; i++) {
        names[count++] = plan_fields[order[i]].name;
        if (order[i] == PLAN_GRAD_ACCUM) {
            names[count++] = "global_batch";
        }
    }
    return count;
}

int csv_later_names(const char *names[CSV_PLAN_COLUMNS]) {
    for (int id = FIRST_LATER; id < PLAN_FIELD_COUNT; id++) {
        names[id - FIRST_LATER] = plan_fields[id].name;
    }
    return PLAN_FIELD_COUNT - FIRST_LATER;
}

static void put_names(Csv *csv, const char *const *names, int count) {
    for (int i = 0; i < count; i++) {
        fprintf(csv->out, ",%s", names[i]);
    }
}

static void put_header(Csv *csv) {
    const char *names[CSV_PLAN_COLUMNS];
    const int count = csv_plan_names(names);
    fputs("state,place" AXES_COLUMNS, csv->out);
    put_names(csv, names, count);
    fputs(",order,step_time_s,step_time_low_s,step_time_high_s,tokens_per_s,mfu,hfu,compute_s" AXES_EXPOSED_COLUMNS
          ",optimizer_s,overhead_s,peak_bytes,reserved_bytes,pareto,rule,reason,bubble_s,stage",
          csv->out);
    put_names(csv, names, csv_later_names(names));
    csv_end_line(csv);
}

static void put_field(Csv *csv, const Target *target, const TrainPlan *plan, PlanFieldId id) {
    const int told = target_told(target, plan, id);
    csv_text(csv, told != PLAN_ANY ? plan_value_text(id, told, VALUE_BUFFER) : NULL);
}

static void put_plan(Csv *csv, const Target *target, const TrainPlan *plan) {
    PlanFieldId order[PLAN_FIELD_COUNT];
    plan_columns(order);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        csv_integer(csv, plan->mesh.size[axis]);
    }
    for (int i = 0; i < FIRST_LATER; i++) {
        put_field(csv, target, plan, order[i]);
        if (order[i] == PLAN_GRAD_ACCUM) {
            csv_integer(csv, plan_global_batch(plan));
        }
    }
    csv_text(csv, mesh_order_text(&plan->mesh, MESH_BUFFER));
}

static void prediction_fields(Csv *csv, const Prediction *prediction) {
    const bool known = prediction->step_s > 0;
    const double numbers[] = {prediction->step_s,       prediction->step_low_s, prediction->step_high_s,
                              prediction->tokens_per_s, prediction->mfu,        prediction->hfu,
                              prediction->compute_s};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        csv_number(csv, known, numbers[i]);
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        csv_number(csv, known, prediction->exposed_s[axis]);
    }
    const double peak = prediction->memory.peak_bytes, reserved = prediction->memory.reserved_bytes;
    csv_row(csv, "nnnn", csv_known(known, prediction->optimizer_s), csv_known(known, prediction->overhead_s),
            csv_known(peak > 0, peak), csv_known(reserved > 0, reserved));
}

// The end of a line: columns that came after the first version of the table.
static void end_line(Csv *csv, const Target *target, const TrainPlan *plan, const Prediction *prediction) {
    csv_number(csv, prediction && prediction->step_s > 0, prediction ? prediction->bubble_s : 0);
    csv_number(csv, prediction && prediction->memory.stages > 0, prediction ? prediction->memory.stage : 0);
    for (int id = FIRST_LATER; id < PLAN_FIELD_COUNT; id++) {
        put_field(csv, target, plan, (PlanFieldId)id);
    }
    csv_end_line(csv);
}

// For a candidate that was only estimated: step time, tokens/s and memory.
static void estimate_fields(Csv *csv, const Candidate *candidate) {
    enum { BETWEEN_STEP_AND_TOKENS = 2, BETWEEN_TOKENS_AND_MEMORY = 5 + AXIS_COUNT };
    csv_number(csv, candidate->step_s > 0, candidate->step_s);
    for (int i = 0; i < BETWEEN_STEP_AND_TOKENS; i++) {
        csv_text(csv, NULL);
    }
    csv_number(csv, candidate->tokens_per_s > 0, candidate->tokens_per_s);
    for (int i = 0; i < BETWEEN_TOKENS_AND_MEMORY; i++) {
        csv_text(csv, NULL);
    }
    csv_number(csv, candidate->peak_bytes > 0, candidate->peak_bytes);
    csv_number(csv, candidate->reserved_bytes > 0, candidate->reserved_bytes);
}

Status csv_plan(const void *answer, FILE *out, Error *error) {
    const TuneResult *result = ((const PlanReport *)answer)->result;
    Csv csv = {.out = out};
    put_header(&csv);
    for (int i = 0; i < result->entry_count; i++) {
        csv_row(&csv, "sd", "ranked", i + 1);
        put_plan(&csv, result->request->target, &result->entries[i].plan);
        prediction_fields(&csv, &result->entries[i]);
        csv_row(&csv, "dss", result->entries[i].pareto, NULL, NULL);
        end_line(&csv, result->request->target, &result->entries[i].plan, &result->entries[i]);
    }
    for (int i = 0; i < result->rejected_count; i++) {
        const Prediction nothing = {0};
        csv_row(&csv, "ss", "rejected", NULL);
        put_plan(&csv, result->request->target, &result->rejected[i].plan);
        prediction_fields(&csv, &nothing);
        csv_row(&csv, "sss", NULL, result->rejected[i].rule, result->rejected[i].reason);
        end_line(&csv, result->request->target, &result->rejected[i].plan, NULL);
    }
    return csv_finish(&csv, error);
}

Status csv_candidates(const void *what, FILE *out, Error *error) {
    const TuneResult *result = what;
    static const char *const states[CANDIDATE_STATE_COUNT] = {"rejected", "estimated", "simulated"};
    Csv csv = {.out = out};
    put_header(&csv);
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        csv_row(&csv, "ss", states[candidate->state], NULL);
        put_plan(&csv, result->request->target, &candidate->plan);
        if (candidate->prediction) {
            prediction_fields(&csv, candidate->prediction);
        } else {
            estimate_fields(&csv, candidate);
        }
        csv_row(&csv, "sss", NULL, candidate->rule, candidate->reason);
        end_line(&csv, result->request->target, &candidate->plan, candidate->prediction);
    }
    return csv_finish(&csv, error);
}

Status csv_prediction(const void *answer, FILE *out, Error *error) {
    const PredictionReport *report = answer;
    Csv csv = {.out = out};
    put_header(&csv);
    csv_row(&csv, "ss", !report->legal ? "not legal" : report->prediction->fits ? "feasible" : "does not fit", NULL);
    put_plan(&csv, report->request->target, &report->prediction->plan);
    prediction_fields(&csv, report->prediction);
    csv_row(&csv, "sss", NULL, NULL, report->reason);
    end_line(&csv, report->request->target, &report->prediction->plan, report->prediction);
    return csv_finish(&csv, error);
}
