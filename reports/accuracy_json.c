// The object ndtune.accuracy/1. Scores of nothing are null.

#include "reports/accuracy.h"
#include "reports/json_objects.h"
#include "reports/schemas.h"

static json_t *table_array(const ScoreTable *table, const RecordSchema *schema) {
    return record_array(schema, table->rows, table->count);
}

static json_t *step_object(const Accuracy *accuracy) {
    const RecordSchema *schema = &schema_step_scores;
    json_t *object = record_object(schema, &(ScoreRow){.score = accuracy->step});
    json_object_del(object, "baseline_constant_mfu");  // stands for itself
    json_object_set_new(object, "by", table_array(&accuracy->step_by, schema));
    json_object_set_new(object, "by_target", table_array(&accuracy->step_by_target, schema));
    json_object_set_new(object, "by_source", table_array(&accuracy->step_by_source, schema));
    json_object_set_new(object, "by_class", table_array(&accuracy->step_by_class, schema));
    json_object_set_new(object, "by_software", table_array(&accuracy->step_by_software, schema));
    json_object_set_new(object, "by_half", table_array(&accuracy->step_by_half, schema));
    return object;
}

static json_t *memory_object(const Accuracy *accuracy) {
    const RecordSchema *schema = &schema_memory_scores;
    json_t *object = record_object(schema, &(ScoreRow){.score = accuracy->memory});
    json_object_set_new(object, "by", table_array(&accuracy->memory_by, schema));
    json_object_set_new(object, "by_kind", table_array(&accuracy->memory_by_kind, schema));
    return object;
}

static json_t *oom_object(const OomScore *oom) {
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "n", oom->n, "called_infeasible", oom->called_infeasible,
                     "certain", oom->certain, "certain_called_infeasible", oom->certain_called_infeasible,
                     "feasible_rows", oom->feasible_rows, "called_feasible", oom->called_feasible);
}

static json_t *ranking_object(const RankingScore *ranking) {
    const bool known = ranking->groups > 0;
    return json_pack("{s:i, s:i, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, s:i}", "groups", ranking->groups, "not_scored",
                     ranking->not_scored, "median_regret", json_known(known, ranking->median_regret), "p90_regret",
                     json_known(known, ranking->p90_regret), "worst_regret", json_known(known, ranking->worst_regret),
                     "worst_group", ranking->worst_group, "median_kendall_tau",
                     json_known(known, ranking->median_kendall_tau), "baseline_median_regret",
                     json_known(known, ranking->baseline_median_regret), "baseline_p90_regret",
                     json_known(known, ranking->baseline_p90_regret), "unknown_ids", ranking->unknown_ids);
}

static json_t *skipped_array(const RunCase *cases, int count) {
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        if (cases[i].skipped) {
            json_array_append_new(array, json_pack("{s:s, s:s}", "id", cases[i].row->id, "reason", cases[i].skipped));
        }
    }
    return array;
}

static json_t *losses_array(const Accuracy *accuracy) {
    int count = 0;
    const RunLoss *losses = run_case_losses(&count);
    json_t *array = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(array, json_pack("{s:s, s:s, s:i}", "column", losses[i].column, "what", losses[i].what,
                                               "rows", accuracy->loss_rows[i]));
    }
    return array;
}

static json_t *missing_array(const RunFile *file) {
    json_t *array = json_array();
    for (int i = 0; i < file->missing_count; i++) {
        json_array_append_new(array, json_string(file->missing[i]));
    }
    return array;
}

Status json_accuracy(const Accuracy *accuracy, FILE *out, Error *error) {
    static const char *const efforts[EFFORT_COUNT] = {"simulate", "estimate", "exhaustive"};
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", "ndtune.accuracy/1", "engine_version",
        tune_engine_version(), "effort", efforts[accuracy->options.effort], "rows", accuracy->runs.count, "scored",
        accuracy->scored, "skipped", skipped_array(accuracy->cases, accuracy->runs.count), "failures_skipped",
        skipped_array(accuracy->failure_cases, accuracy->failures.count), "missing_columns",
        missing_array(&accuracy->runs), "not_expressed", losses_array(accuracy), "step_time", step_object(accuracy),
        "memory", memory_object(accuracy), "baseline_constant_mfu", json_baseline(&accuracy->step));
    if (root) {
        json_object_set_new(root, "oom", oom_object(&accuracy->oom));
        json_object_set_new(root, "ranking", ranking_object(&accuracy->ranking));
        if (accuracy->options.leave_out) {
            json_object_set_new(root, "left_out", json_left_out(&accuracy->left_out));
        }
    }
    return json_print(root, out, error);
}
