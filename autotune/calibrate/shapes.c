// Runs of one plan are repeats: together they give the machine's noise and one log time per kind of observation. Means
// and spreads by Student's t with 4 degrees of freedom (Lange, Little and Taylor 1989): a run that something disturbed
// counts little. Not modelled: noise that differs between shapes.

#include "autotune/calibrate/calibrate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/statistics.h"
#include "autotune/calibrate/robust.h"
#include "sim/base/hash.h"
#include "sim/memory/memory_breakdown.h"

// Where nothing is repeated: repeats of published runs differ by 0.3 to 6.5 % (sim/SOURCES.md A8). Worth three repeats.
static const double USUAL_NOISE = 0.03, USUAL_WORTH = 3;

typedef struct Keyed {
    uint64_t key;
    int sample;
    double step_s;
    const char *id;
} Keyed;

static uint64_t case_key(const CalibrationCase *what) {
    Hash hash = hash_begin();
    model_hash(what->model, &hash);
    cluster_hash(what->cluster, &hash);
    target_hash(what->target, &hash);
    hash_text(&hash, what->runner->name);
    hash_text(&hash, what->runner->version);
    plan_hash(&what->plan, &hash);
    hash_int(&hash, what->serial_lanes);
    return hash_end(&hash);
}

static int by_key(const void *a, const void *b) {
    const Keyed *left = a, *right = b;
    if (left->key != right->key) {
        return left->key < right->key ? -1 : 1;
    }
    if (left->step_s < right->step_s || left->step_s > right->step_s) {
        return left->step_s < right->step_s ? -1 : 1;
    }
    return strcmp(left->id, right->id);
}

static double observed(const CalibrationSample *sample, int kind) {
    return kind == OBSERVE_STEP       ? sample->step_s
           : kind == OBSERVE_RESERVED ? sample->reserved_bytes
                                      : sample->span_s[kind - OBSERVE_SPANS];
}

static bool has_spans(const CalibrationSample *sample) {
    for (int kind = 0; kind < SPAN_KIND_COUNT; kind++) {
        if (sample->span_s[kind] > 0) {
            return true;
        }
    }
    return false;
}

static Status hold_on(const CalibrationCase *what, const ShapeData *shape, MemoryBreakdown *memory, Error *error) {
    LiveTraces traces = {0};
    const Status status = memory_hold(&shape->program, what->cluster->accelerator.memory_bytes, &traces, memory, error);
    live_traces_free(&traces);
    return status;
}

static Status lower_shape(ShapeData *shape, Arena *arena, Arena *scratch, Error *error) {
    const CalibrationCase *what = &shape->what;
    FAIL_WITH(step_lower(what->model, &what->plan, what->target, arena, &shape->program, error) != STATUS_OK,
              error_wrap(error, "plan %s", plan_text(&what->plan, PLAN_BUFFER)));
    if (shape->has[OBSERVE_RESERVED]) {
        MemoryBreakdown memory;
        arena_reset(scratch);
        TRY(memory_breakdown(&shape->program, scratch, &memory, error));
        TRY(hold_on(what, shape, &memory, error));
        shape->peak_bytes = memory.peak_bytes;
        shape->reserved_bytes = memory.reserved_bytes;
    }
    return STATUS_OK;
}

typedef struct Logs {
    double *value, *mean, *weight;  // per sample, in the order of the keys; mean of its shape
    int *shape;                     // -1 = this kind was not measured
    int count;
} Logs;

// Means by the weights, and the sum of the weights, of each shape.
static void shape_means(const Logs *logs, int shapes, double *means, double *weights) {
    memset(means, 0, (size_t)shapes * sizeof *means);
    memset(weights, 0, (size_t)shapes * sizeof *weights);
    for (int i = 0; i < logs->count; i++) {
        if (logs->shape[i] >= 0) {
            means[logs->shape[i]] += logs->weight[i] * logs->value[i];
            weights[logs->shape[i]] += logs->weight[i];
        }
    }
    for (int s = 0; s < shapes; s++) {
        means[s] = weights[s] > 0 ? means[s] / weights[s] : 0;
    }
}

// Starts at the median of each shape, so that one wild repeat of three is outvoted.
static void shape_medians(const Logs *logs, int shapes, double *means, Arena *arena) {
    double *values = ARENA_ARRAY(arena, double, logs->count + 1);
    for (int s = 0, at = 0; s < shapes; s++) {
        int count = 0;
        while (at < logs->count && (logs->shape[at] == s || logs->shape[at] < 0)) {
            if (logs->shape[at] == s) {
                values[count++] = logs->value[at];
            }
            at++;
        }
        means[s] = statistics_median(values, count);
    }
}

// Noise of repeats around their shapes, and the weight of each. A run's own share in the mean of its shape says nothing
// of noise: of a shape that ran once, all of it.
static double settle_noise(Logs *logs, int shapes, double *means, Arena *arena) {
    enum { ROUNDS = 20 };
    double noise = USUAL_NOISE, *weights = ARENA_ARRAY(arena, double, shapes);
    shape_medians(logs, shapes, means, arena);
    for (int round = 0; round < ROUNDS; round++) {
        double squares = USUAL_WORTH * USUAL_NOISE * USUAL_NOISE, worth = USUAL_WORTH;
        for (int i = 0; i < logs->count; i++) {
            if (logs->shape[i] >= 0) {
                const double residual = logs->value[i] - means[logs->shape[i]];
                logs->weight[i] = robust_weight(residual / noise);
                squares += logs->weight[i] * residual * residual / ROBUST_CONSISTENCY;
            }
        }
        shape_means(logs, shapes, means, weights);
        for (int i = 0; i < logs->count; i++) {
            worth += logs->shape[i] >= 0 ? logs->weight[i] * (1 - logs->weight[i] / weights[logs->shape[i]]) : 0;
        }
        noise = sqrt(squares / worth);
    }
    return noise;
}

static void observe(const CalibrationInput *input, const Keyed *keyed, int kind, ShapeSet *set, Arena *arena) {
    Logs logs = {.value = ARENA_ARRAY(arena, double, input->count),
                 .weight = ARENA_ARRAY(arena, double, input->count),
                 .shape = ARENA_ARRAY(arena, int, input->count),
                 .count = input->count};
    double *means = ARENA_ARRAY(arena, double, set->count), *worth = ARENA_ARRAY(arena, double, set->count);
    for (int i = 0; i < input->count; i++) {
        const double value = observed(&input->samples[keyed[i].sample], kind);
        logs.shape[i] = value > 0 ? set->shape_of[keyed[i].sample] : -1;
        logs.value[i] = value > 0 ? log(value) : 0;
        logs.weight[i] = 1;
    }
    const double noise = fmax(settle_noise(&logs, set->count, means, arena), input->noise_sd);
    for (int i = 0; i < input->count; i++) {
        if (logs.shape[i] >= 0) {
            worth[logs.shape[i]] += fmin(1, logs.weight[i]);
            if (kind == OBSERVE_STEP) {
                set->repeat_residual[keyed[i].sample] = (logs.value[i] - means[logs.shape[i]]) / noise;
            }
        }
    }
    for (int s = 0; s < set->count; s++) {
        ShapeData *shape = &set->rows[s];
        shape->has[kind] = worth[s] > 0;
        shape->mean[kind] = means[s];
        shape->variance[kind] = worth[s] > 0 ? noise * noise / worth[s] : 0;
    }
    set->noise_sd = kind == OBSERVE_STEP ? noise : set->noise_sd;
}

static void group(const CalibrationInput *input, const Keyed *keyed, ShapeSet *set) {
    for (int i = 0; i < input->count; i++) {
        const CalibrationSample *sample = &input->samples[keyed[i].sample];
        if (i == 0 || keyed[i].key != keyed[i - 1].key) {
            set->rows[set->count++] = (ShapeData){.what = sample->what, .set = sample->set};
        }
        set->rows[set->count - 1].runs++;
        set->shape_of[keyed[i].sample] = set->count - 1;
        set->span_runs += has_spans(sample);
    }
}

Status shapes_build(const CalibrationInput *input, Arena *arena, ShapeSet *set, Error *error) {
    const int count = input->count;
    *set = (ShapeSet){.rows = ARENA_ARRAY(arena, ShapeData, count + 1),
                      .shape_of = ARENA_ARRAY(arena, int, count + 1),
                      .repeat_residual = ARENA_ARRAY(arena, double, count + 1)};
    Keyed *keyed = ARENA_ARRAY(arena, Keyed, count + 1);
    for (int i = 0; i < count; i++) {
        keyed[i] = (Keyed){case_key(&input->samples[i].what), i, input->samples[i].step_s, input->samples[i].id};
    }
    qsort(keyed, (size_t)count, sizeof *keyed, by_key);
    group(input, keyed, set);
    for (int kind = 0; kind < OBSERVE_COUNT; kind++) {
        observe(input, keyed, kind, set, arena);
    }
    Arena scratch = {0};
    Status status = STATUS_OK;
    for (int s = 0; s < set->count && status == STATUS_OK; s++) {
        status = lower_shape(&set->rows[s], arena, &scratch, error);
    }
    arena_free(&scratch);
    return status;
}
