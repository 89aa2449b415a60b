// Predictions of observed shapes under a theta: the profile and the runner are scaled, the program is priced again. The
// same cost model, engine and serial sum that predict uses; nothing is lowered twice.

#include "autotune/calibrate/calibrate_internal.h"

#include <math.h>

#include "autotune/parallel.h"
#include "autotune/predict/predict_serial.h"

static const double THETA_LIMIT = 7;  // factors of 1000 either way: a trial step of the fit may not overflow

SpanKind calibration_span_kind(const StepProgram *program, const ClusterProfile *cluster, const Task *task) {
    if (task_is_collective(task)) {
        const Mesh *mesh = &program->plan.mesh;
        const GroupPlacement group =
            mesh_group_placement(mesh, program->groups[task->group].axes, cost_ranks_per_node(cluster, mesh));
        return group.nodes > 1 ? SPAN_FABRIC : SPAN_LINKS;
    }
    const bool product = task->kind == TASK_GEMM || task->kind == TASK_GROUPED_GEMM;
    return product                                                                 ? SPAN_GEMM
           : task->kind == TASK_ATTENTION || task->kind == TASK_ATTENTION_BACKWARD ? SPAN_ATTENTION
                                                                                   : SPAN_MEMORY;
}

// Spans of collectives are counted from the last arrival on: without what the runner adds.
static void sum_spans(const StepProgram *program, const CostModel *cost, const TaskTotal *totals, double *logs) {
    double sums[SPAN_KIND_COUNT] = {0};
    for (int32_t i = 0; i < program->task_count; i++) {
        sums[calibration_span_kind(program, cost->profile, &program->tasks[i])] += totals[i].seconds;
    }
    sums[SPAN_LINKS] /= 1 + cost->target->runtime.collective_share;
    sums[SPAN_FABRIC] /= 1 + cost->target->runtime.collective_share;
    for (int kind = 0; kind < SPAN_KIND_COUNT; kind++) {
        logs[OBSERVE_SPANS + kind] = sums[kind] > 0 ? log(sums[kind]) : 0;
    }
}

Status theta_predict_shape(const CalibrationPosterior *coordinates, const ShapeData *shape, const double *theta,
                           Arena *scratch, double out[OBSERVE_COUNT], Error *error) {
    arena_reset(scratch);
    double limited[CALIBRATION_MAX];
    for (int i = 0; i < coordinates->count; i++) {
        limited[i] = fmin(fmax(theta[i], -THETA_LIMIT), THETA_LIMIT);
    }
    ClusterProfile cluster = *shape->what.cluster;
    Target target = *shape->what.target;
    calibration_apply(coordinates, limited, shape->what.runner, scratch, &cluster, &target.runtime);
    const CostModel cost = {.profile = &cluster, .target = &target};
    EngineResult engine = {0};
    if (shape->what.serial_lanes) {
        const StepProgram *same;
        TRY(predict_serial(&shape->program, 1, &cost, false, scratch, &same, &engine, error));
    } else {
        const EngineOptions options = {0};
        TRY(engine_run(&shape->program, &cost, &options, scratch, &engine, error));
    }
    out[OBSERVE_STEP] = log(engine.step_s);
    sum_spans(&shape->program, &cost, engine.totals, out);
    const double slack = target.runtime.allocator_slack - shape->what.target->runtime.allocator_slack;
    const double reserved = shape->reserved_bytes + shape->peak_bytes * slack;
    out[OBSERVE_RESERVED] = reserved > 0 ? log(reserved) : 0;
    return STATUS_OK;
}

typedef struct Context {
    const ThetaWork *work;
    const double *thetas;
    double *out;
    Arena scratch[PARALLEL_MAX_WORKERS];
} Context;

static Status predict_piece(void *opaque, int worker, int index, Error *error) {
    Context *context = opaque;
    const ThetaWork *work = context->work;
    const int theta = index / work->shape_count, place = index % work->shape_count;
    const ShapeData *shape = &work->shapes[work->chosen ? work->chosen[place] : place];
    return theta_predict_shape(work->coordinates, shape, context->thetas + (size_t)theta * CALIBRATION_MAX,
                               &context->scratch[worker], context->out + (size_t)index * OBSERVE_COUNT, error);
}

Status theta_predict(const ThetaWork *work, const double *thetas, int theta_count, double *out, Error *error) {
    Context context = {.work = work, .thetas = thetas, .out = out};
    const ParallelWork pieces = {.workers = parallel_workers(work->threads),
                                 .count = theta_count * work->shape_count,
                                 .piece = predict_piece,
                                 .context = &context,
                                 .progress = work->progress,
                                 .label = "predicting"};
    const Status status = parallel_run(&pieces, error);
    for (int i = 0; i < PARALLEL_MAX_WORKERS; i++) {
        arena_free(&context.scratch[i]);
    }
    return status;
}
