// Scores and rows for spreadsheets.

#include "reports/accuracy.h"
#include "reports/csv_lines.h"

static void score_line(Csv *csv, const char *what, const ScoreRow *row, bool step) {
    const ErrorScore *score = &row->score;
    const bool any = score->n > 0, beside = step && any;
    csv_row(csv, "sssssdnnnnnnn.", what, row->target, row->cluster, row->source, row->kind, score->n,
            csv_known(any, score->median_abs), csv_known(any, score->p90_abs), csv_known(any, score->bias),
            csv_known(beside, score->in_interval), csv_known(beside, score->baseline_mfu),
            csv_known(beside, score->baseline_median_abs), csv_known(beside, score->baseline_p90_abs));
}

static void score_lines(Csv *csv, const char *what, const ScoreTable *table, bool step) {
    for (int i = 0; i < table->count; i++) {
        score_line(csv, what, &table->rows[i], step);
    }
}

Status csv_accuracy(const Accuracy *accuracy, FILE *out, Error *error) {
    Csv csv = {.out = out};
    csv_header(&csv, "what,target,cluster,source,kind,n,median_abs_error,p90_abs_error,median_bias,in_interval,"
                     "baseline_mfu,baseline_median_abs_error,baseline_p90_abs_error");
    const ScoreRow step = {.score = accuracy->step}, memory = {.score = accuracy->memory};
    score_line(&csv, "step_time", &step, true);
    score_lines(&csv, "step_time", &accuracy->step_by_target, true);
    score_lines(&csv, "step_time", &accuracy->step_by, true);
    score_lines(&csv, "step_time", &accuracy->step_by_source, true);
    score_line(&csv, "memory", &memory, false);
    score_lines(&csv, "memory", &accuracy->memory_by_kind, false);
    score_lines(&csv, "memory", &accuracy->memory_by, false);
    return csv_finish(&csv, error);
}

static const char row_header[] =
    "file,id,source,target,cluster,model,world,plan,skipped,measured_step_s,predicted_step_s,step_low_s,step_high_s,"
    "step_error,compute_s" AXES_EXPOSED_COLUMNS ",optimizer_s,overhead_s,"
    "measured_mfu,mem_kind,measured_bytes,predicted_bytes,memory_error,peak_bytes,reserved_bytes,limit_bytes,fits,"
    "peak_phase,top_buffer";

static void time_fields(Csv *csv, const RunCase *run) {
    const Prediction *prediction = &run->prediction;
    const bool both = accuracy_has_step(run), known = !run->skipped && prediction->step_s > 0;
    csv_row(csv, "nnnnnn", csv_known(run->measured_step_s > 0, run->measured_step_s),
            csv_known(known, prediction->step_s), csv_known(known, prediction->step_low_s),
            csv_known(known, prediction->step_high_s), both ? accuracy_step_error(run) : NAN,
            csv_known(known, prediction->compute_s));
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        csv_number(csv, known, prediction->exposed_s[axis]);
    }
    csv_row(csv, "nnn", csv_known(known, prediction->optimizer_s), csv_known(known, prediction->overhead_s),
            both ? accuracy_measured_mfu(run) : NAN);
}

static void memory_fields(Csv *csv, const RunCase *run) {
    const MemoryBreakdown *memory = &run->prediction.memory;
    MemoryKind kind = MEMORY_KIND_UNKNOWN;
    double measured = 0, predicted = 0;
    const bool both = accuracy_memory(run, &kind, &measured, &predicted);
    csv_row(csv, "snnnnnnsss", both ? memory_kind_names[kind] : NULL, csv_known(both, measured),
            csv_known(both, predicted), both ? predicted / measured - 1 : NAN,
            csv_known(!run->skipped, memory->peak_bytes), csv_known(!run->skipped, memory->reserved_bytes),
            csv_known(!run->skipped, run->request.memory_limit_bytes),
            run->skipped           ? NULL
            : run->prediction.fits ? "1"
                                   : "0",
            memory->peak_phase, memory->top_name);
}

static void row_line(Csv *csv, const char *file, const RunCase *run) {
    char plan[PLAN_TEXT_BYTES];
    csv_row(csv, "ssssssnss", file, run->row->id, run->row->source, run->row->target, run->row->cluster,
            run->row->model, csv_known(!run->skipped, run->request.world),
            run->skipped ? NULL : plan_text(&run->plan, plan), run->skipped);
    time_fields(csv, run);
    memory_fields(csv, run);
    csv_end_line(csv);
}

Status csv_accuracy_rows(const Accuracy *accuracy, FILE *out, Error *error) {
    Csv csv = {.out = out};
    csv_header(&csv, row_header);
    for (int i = 0; i < accuracy->runs.count; i++) {
        row_line(&csv, "runs", &accuracy->cases[i]);
    }
    for (int i = 0; i < accuracy->failures.count; i++) {
        row_line(&csv, "oom", &accuracy->failure_cases[i]);
    }
    return csv_finish(&csv, error);
}
