// The object ndtune.accuracy/1. Scores of nothing are null.

#include "reports/accuracy.h"
#include "reports/json_objects.h"

static json_t *number_or_null(bool known, double value) {
    return known ? json_real(value) : json_null();
}

static void set_labels(json_t *object, const ScoreRow *row) {
    const struct {
        const char *name, *value;
    } labels[] = {{"target", row->target}, {"cluster", row->cluster}, {"source", row->source},
                  {"kind", row->kind},     {"half", row->half},       {"class", row->class}};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        if (labels[i].value) {
            json_object_set_new(object, labels[i].name, json_string(labels[i].value));
        }
    }
}

static json_t *score_object(const ErrorScore *score, bool step) {
    const bool known = score->n > 0;
    json_t *object = json_pack(
        "{s:i, s:o, s:o, s:o}", "n", score->n, "median_abs_error", number_or_null(known, score->median_abs),
        "p90_abs_error", number_or_null(known, score->p90_abs), "median_bias", number_or_null(known, score->bias));
    if (step) {
        json_object_set_new(object, "in_interval", number_or_null(known, score->in_interval));
    }
    return object;
}

static json_t *baseline_object(const ErrorScore *score) {
    const bool known = score->n > 0;
    return json_pack("{s:o, s:o, s:o}", "mfu", number_or_null(known, score->baseline_mfu), "median_abs_error",
                     number_or_null(known, score->baseline_median_abs), "p90_abs_error",
                     number_or_null(known, score->baseline_p90_abs));
}

static json_t *table_array(const ScoreTable *table, bool step) {
    json_t *array = json_array();
    for (int i = 0; i < table->count; i++) {
        json_t *object = score_object(&table->rows[i].score, step);
        set_labels(object, &table->rows[i]);
        if (step) {
            json_object_set_new(object, "baseline_constant_mfu", baseline_object(&table->rows[i].score));
        }
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *step_object(const Accuracy *accuracy) {
    json_t *object = score_object(&accuracy->step, true);
    json_object_set_new(object, "by", table_array(&accuracy->step_by, true));
    json_object_set_new(object, "by_target", table_array(&accuracy->step_by_target, true));
    json_object_set_new(object, "by_source", table_array(&accuracy->step_by_source, true));
    json_object_set_new(object, "by_class", table_array(&accuracy->step_by_class, true));
    json_object_set_new(object, "by_half", table_array(&accuracy->step_by_half, true));
    return object;
}

static json_t *memory_object(const Accuracy *accuracy) {
    json_t *object = score_object(&accuracy->memory, false);
    json_object_set_new(object, "by", table_array(&accuracy->memory_by, false));
    json_object_set_new(object, "by_kind", table_array(&accuracy->memory_by_kind, false));
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
                     ranking->not_scored, "median_regret", number_or_null(known, ranking->median_regret), "p90_regret",
                     number_or_null(known, ranking->p90_regret), "worst_regret",
                     number_or_null(known, ranking->worst_regret), "worst_group", ranking->worst_group,
                     "median_kendall_tau", number_or_null(known, ranking->median_kendall_tau), "baseline_median_regret",
                     number_or_null(known, ranking->baseline_median_regret), "baseline_p90_regret",
                     number_or_null(known, ranking->baseline_p90_regret), "unknown_ids", ranking->unknown_ids);
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
        "memory", memory_object(accuracy), "baseline_constant_mfu", baseline_object(&accuracy->step));
    if (root) {
        json_object_set_new(root, "oom", oom_object(&accuracy->oom));
        json_object_set_new(root, "ranking", ranking_object(&accuracy->ranking));
    }
    return json_print(root, out, error);
}
