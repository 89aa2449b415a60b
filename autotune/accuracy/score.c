// Errors of step time and memory, and the baseline: a model that says "every run reaches the same MFU", the constant
// being the median of the very rows it is scored on. A predictor that does not beat it has no skill.

#include "autotune/accuracy/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/run_labels.h"
#include "autotune/accuracy/statistics.h"
#include "sim/base/text.h"

enum { JUDGED_ROWS = 5 };  // a constant fitted to fewer is those rows
static const double PERCENTILE = 0.9;
static const double GIB = 1024.0 * 1024.0 * 1024.0;

const char *const memory_kind_names[MEMORY_KIND_COUNT] = {"allocated", "reserved", "device", "unknown"};

bool accuracy_has_step(const RunCase *run) {
    return !run->skipped && run->measured_step_s > 0 && run->prediction.step_s > 0;
}

bool accuracy_is_measured(const RunCase *run) {
    return accuracy_has_step(run) && !run->computed;
}

const char *accuracy_class(const RunCase *run) {
    return plan_has_adapters(&run->plan)          ? "adapters"
           : run->request.model.experts.count > 0 ? "experts"
           : plan_has_stages(&run->plan)          ? "stages"
                                                  : "dense";
}

double accuracy_step_error(const RunCase *run) {
    return run->prediction.step_s / run->measured_step_s - 1;
}

double accuracy_measured_mfu(const RunCase *run) {
    return run->prediction.mfu * run->prediction.step_s / run->measured_step_s;
}

bool accuracy_is_judged(const ScoreRow *row) {
    return row->score.n >= JUDGED_ROWS && row->score.baseline_mfu > 0;
}

bool accuracy_is_beaten(const ScoreRow *row) {
    return accuracy_is_judged(row) && row->score.median_abs > row->score.baseline_median_abs;
}

bool accuracy_is_beaten_scaled(const ScoreRow *row) {
    return accuracy_is_judged(row) && row->score.scaled_median_abs > row->score.baseline_median_abs;
}

MemoryKind accuracy_memory_kind(const RunRow *row) {
    const int named = text_index(memory_kind_names, MEMORY_KIND_UNKNOWN, row->mem_kind);
    const bool live = named == MEMORY_KIND_RESERVED && row_prints_live(row);
    return live ? MEMORY_KIND_ALLOCATED : named >= 0 ? (MemoryKind)named : MEMORY_KIND_UNKNOWN;
}

// Where the device is full, the allocator waits for what is freed and gives it back.
static double with_recorded(const RunCase *run, double bytes, double outside_bytes) {
    const double room = run->request.memory_limit_bytes - outside_bytes - bytes;
    return bytes + fmin(run->recorded_bytes, fmax(room, 0));
}

// Reserved memory is what the allocator holds; device memory adds context and communicators.
bool accuracy_memory(const RunCase *run, MemoryKind *kind, double *measured_bytes, double *predicted_bytes) {
    if (run->skipped || run->row->peak_mem_gb <= 0) {
        return false;
    }
    *kind = accuracy_memory_kind(run->row);
    const MemoryBreakdown *memory = run->logged.peak_bytes > 0 ? &run->logged : &run->prediction.memory;
    const bool of_allocator = *kind == MEMORY_KIND_RESERVED || (*kind == MEMORY_KIND_UNKNOWN && run->logs_reserved);
    *measured_bytes = run->row->peak_mem_gb * GIB;
    const double outside = memory->reserved_bytes - memory->allocator_bytes;
    *predicted_bytes = *kind == MEMORY_KIND_DEVICE ? with_recorded(run, memory->reserved_bytes, 0)
                       : of_allocator              ? with_recorded(run, memory->allocator_bytes, outside)
                                                   : memory->peak_bytes;
    return true;
}

// Median and tail of count errors; reorders them.
static void score_errors(double *errors, int count, ErrorScore *score) {
    score->n = count;
    score->bias = statistics_median(errors, count);
    for (int i = 0; i < count; i++) {
        errors[i] = fabs(errors[i]);
    }
    score->median_abs = statistics_median(errors, count);
    score->p90_abs = statistics_quantile(errors, count, PERCENTILE);
}

static void score_baseline(const RunCase *const *runs, int count, double *values, ErrorScore *score) {
    int used = 0;
    for (int i = 0; i < count; i++) {
        if (accuracy_measured_mfu(runs[i]) > 0) {
            values[used++] = accuracy_measured_mfu(runs[i]);
        }
    }
    score->baseline_mfu = statistics_median(values, used);
    for (int i = 0; i < used; i++) {
        values[i] = fabs(values[i] / score->baseline_mfu - 1);  // predicted time / measured = measured MFU / constant
    }
    score->baseline_median_abs = statistics_median(values, used);
    score->baseline_p90_abs = statistics_quantile(values, used, PERCENTILE);
}

// What a factor of their own leaves of the errors, as the constant of the baseline is the rows' own.
static void score_scaled(const RunCase *const *runs, int count, double *values, ErrorScore *score) {
    for (int i = 0; i < count; i++) {
        values[i] = fabs((1 + accuracy_step_error(runs[i])) / (1 + score->bias) - 1);
    }
    score->scaled_median_abs = statistics_median(values, count);
}

ErrorScore score_step(const RunCase *const *runs, int count) {
    ErrorScore score = {0};
    double *values = malloc(((size_t)count + 1) * sizeof *values);
    ASSERT(values);
    int inside = 0;
    for (int i = 0; i < count; i++) {
        const Prediction *prediction = &runs[i]->prediction;
        values[i] = accuracy_step_error(runs[i]);
        inside +=
            prediction->step_low_s <= runs[i]->measured_step_s && runs[i]->measured_step_s <= prediction->step_high_s;
    }
    score_errors(values, count, &score);
    score.in_interval = count > 0 ? (double)inside / count : 0;
    score_scaled(runs, count, values, &score);
    score_baseline(runs, count, values, &score);
    free(values);
    return score;
}

ErrorScore score_memory(const RunCase *const *runs, int count) {
    ErrorScore score = {0};
    double *errors = malloc(((size_t)count + 1) * sizeof *errors);
    ASSERT(errors);
    int used = 0;
    for (int i = 0; i < count; i++) {
        MemoryKind kind;
        double measured = 0, predicted = 0;
        if (accuracy_memory(runs[i], &kind, &measured, &predicted)) {
            errors[used++] = predicted / measured - 1;
        }
    }
    score_errors(errors, used, &score);
    free(errors);
    return score;
}

static ScoreRow labels_of(const RunCase *run, ScoreSplit split) {
    MemoryKind kind = MEMORY_KIND_UNKNOWN;
    double measured, predicted;
    accuracy_memory(run, &kind, &measured, &predicted);
    return (ScoreRow){.target = split.target ? run->request.target->name : NULL,
                      .cluster = split.cluster ? run->request.cluster.name : NULL,
                      .source = split.source ? run->row->source : NULL,
                      .software = split.software ? run->row->software : NULL,
                      .kind = split.kind ? memory_kind_names[kind] : NULL,
                      .half = split.half ? run->row->half : NULL,
                      .class = split.class ? accuracy_class(run) : NULL};
}

static bool same_labels(const ScoreRow *a, const ScoreRow *b) {
    return text_same(a->target, b->target) && text_same(a->cluster, b->cluster) && text_same(a->source, b->source) &&
           text_same(a->software, b->software) && text_same(a->kind, b->kind) && text_same(a->half, b->half) &&
           text_same(a->class, b->class);
}

typedef struct Texts {
    const char *left, *right;
} Texts;

// The first of these that differ.
static int compare_texts(const Texts *pairs, int count) {
    int order = 0;
    for (int i = 0; i < count && order == 0; i++) {
        order = pairs[i].left && pairs[i].right ? strcmp(pairs[i].left, pairs[i].right) : 0;
    }
    return order;
}

static int compare_rows(const void *a, const void *b) {
    const ScoreRow *left = a, *right = b;
    const Texts before[] = {
        {left->class, right->class}, {left->target, right->target}, {left->software, right->software}};
    const Texts after[] = {{left->half, right->half},
                           {left->cluster, right->cluster},
                           {left->source, right->source},
                           {left->kind, right->kind}};
    const int by_before = compare_texts(before, 3), by_rows = right->score.n - left->score.n;
    return by_before != 0 ? by_before : by_rows != 0 ? by_rows : compare_texts(after, 4);
}

ScoreTable score_table(const RunCase *const *runs, int count, ScoreSplit split, bool memory, Arena *arena) {
    ScoreTable table = {ARENA_ARRAY(arena, ScoreRow, count), 0};
    int *row_of = ARENA_ARRAY(arena, int, count);
    const RunCase **members = ARENA_ARRAY(arena, const RunCase *, count);
    for (int i = 0; i < count; i++) {
        const ScoreRow labels = labels_of(runs[i], split);
        int row = 0;
        while (row < table.count && !same_labels(&labels, &table.rows[row])) {
            row++;
        }
        if (row == table.count) {
            table.rows[table.count++] = labels;
        }
        row_of[i] = row;
    }
    for (int row = 0; row < table.count; row++) {
        int member_count = 0;
        for (int i = 0; i < count; i++) {
            if (row_of[i] == row) {
                members[member_count++] = runs[i];
            }
        }
        table.rows[row].score = memory ? score_memory(members, member_count) : score_step(members, member_count);
    }
    qsort(table.rows, (size_t)table.count, sizeof *table.rows, compare_rows);
    return table;
}
