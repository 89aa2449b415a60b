// From a plan to a RunRecord: checked, predicted task by task, run by the executor, paired.

#include "autotune/measure/measured_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "autotune/calibrate/calibrate.h"
#include "autotune/measure/core_clock.h"
#include "autotune/predict/predict.h"
#include "autotune/predict/simulate.h"
#include "autotune/validate/exposure.h"
#include "autotune/validate/measurement.h"
#include "sim/base/open.h"

const char *measured_host(Arena *arena) {
    struct utsname host = {0};
    uname(&host);
    return arena_text(arena, host.nodename);
}

bool measured_here(const LaunchOptions *launch, const RunOptions *options) {
    return !launch->hosts && !launch->hostfile && strcmp(options->device, "cpu") == 0;
}

// Which hosts: the lines of a file, wherever it lies; another cluster may come to have the same path.
static void hash_hostfile(const char *path, Hash *hash) {
    const char *why = NULL;
    FILE *file = path ? open_to_read(path, &why) : NULL;
    char line[4096];
    while (line_next(file, line, sizeof line)) {
        hash_text(hash, line);
    }
}

// What another run of the same measurement would have to be equal in.
static uint64_t measurement_hash(const MeasuredRun *run) {
    Hash hash = hash_begin();
    const RunOptions *options = &run->run.options;
    const char *const words[] = {run->record.host, options->device, options->transport, run->record.lanes};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash_text(&hash, words[i]);
    }
    hash_text(&hash, run->launch.launcher);
    hash_text(&hash, run->launch.hosts ? run->launch.hosts : "");
    hash_hostfile(run->launch.hostfile, &hash);
    model_hash(&run->run.model, &hash);
    target_hash(run->run.target, &hash);
    plan_hash(&run->run.plan, &hash);
    hash_int(&hash, (int64_t)step_template_hash(&run->program));
    hash_int(&hash, options->steps);
    hash_int(&hash, run->record.warm_up);
    hash_text(&hash, executor_version());
    if (getenv("NDTUNE_CORE_TYPE")) {  // other kernels than this processor's own
        hash_text(&hash, getenv("NDTUNE_CORE_TYPE"));
    }
    return hash_end(&hash);
}

Status measured_run_prepare(MeasuredRun *run, const TrainPlan *plan, const RunOptions *options, Error *error) {
    Arena *arena = run->arena;
    const TuneRequest *request = run->request;
    run->run = (RunRequest){.model = request->model, .plan = *plan, .target = run->target, .options = *options};
    const char *reason = exec_check(&request->model, plan, request->target, options->device, arena);
    if (!reason) {
        reason = exec_check_options(&request->model, plan, options);
    }
    FAIL_IF(reason, error, STATUS_INFEASIBLE, "the executor does not run this plan: %s", reason);
    TRY(step_lower(&request->model, plan, request->target, arena, &run->program, error));
    run->predicted = ARENA_ARRAY(arena, TaskTotal, run->program.task_count);
    run->record = (RunRecord){.request = request,
                              .source = "executor",
                              .executor = executor_version(),
                              .host = measured_host(arena),
                              .device = options->device,
                              .transport = options->transport,
                              .lanes = arena_format(arena, "%s%s%s", lane_mode_names[options->lanes],
                                                    options->bitwise ? ", bitwise" : "",
                                                    options->deterministic ? ", deterministic" : ""),
                              .seed = (int64_t)options->seed,
                              .warm_up = options->steps > run->warm_up ? run->warm_up : 0,
                              .program = &run->program,
                              .state = "failed",  // until it has ended well
                              .prediction = {.plan = *plan}};
    run->record.measurement_hash = measurement_hash(run);
    return STATUS_OK;
}

// Predicted seconds per template task: every instance of one step, on rank 0.
static Status predict_tasks(MeasuredRun *run, Error *error) {
    const CostModel cost = {.profile = &run->request->cluster, .target = run->request->target};
    Arena *arena = run->arena;
    EngineOptions options = simulate_options(run->request, arena);
    options.unroll = true;
    const StepPrograms alone = {.of = &run->program, .count = 1};
    const StepProgram *same;
    EngineResult engine = {0};
    TRY(simulate_stages(run->request, &alone, &cost, &options, arena, &same, &engine, error));
    timeline_totals(&engine.timeline, &run->program, 0, run->predicted);
    return STATUS_OK;
}

Status measured_run_predict(MeasuredRun *run, Error *error) {
    Prediction *prediction = &run->record.prediction;
    TRY(predict_once(run->request, NULL, &run->run.plan, run->arena, prediction, error));
    TRY(calibrated_intervals(run->request, prediction, 1, error));
    return predict_tasks(run, error);
}

Status measured_run_make(const MeasuredRun *like, const TrainPlan *plan, const RunOptions *options, MeasuredRun **run,
                         Error *error) {
    *run = ARENA_NEW(like->arena, MeasuredRun);
    **run = *like;
    TRY(measured_run_prepare(*run, plan, options, error));
    return measured_run_predict(*run, error);
}

static void pair_tasks(MeasuredRun *run) {
    const StepProgram *program = &run->program;
    RunTask *tasks = ARENA_ARRAY(run->arena, RunTask, program->task_count);
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const TaskTotal measured = run->result.totals[i], predicted = run->predicted[i];
        if (measured.count == 0 && predicted.count == 0) {
            continue;
        }
        const Task *task = &program->tasks[i];
        tasks[count++] = (RunTask){task->name,     task_kind_name(task->kind), program->lanes[task->lane].name,
                                   measured.count, measured.seconds,           predicted.seconds};
    }
    run->record.tasks = tasks;
    run->record.task_count = count;
}

static void fill_record(MeasuredRun *run) {
    RunRecord *record = &run->record;
    const RunResult *result = &run->result;
    record->steps = result->steps;
    record->losses = result->loss;
    record->grad_norms = result->grad_norm;
    record->step_times_s = result->step_time_s;
    record->peak_bytes = result->peak_bytes;
    record->planned_peak_bytes = result->planned_peak_bytes;
    record->state = result->state;
    record->timeline = result->timeline;
    record->core_type = result->core_type;
    record->chip = result->chip;
    record->device_bytes = result->device_bytes;
    record->prices = result->prices;
    record->price_count = result->price_count;
    record->expert_load = result->expert_load;
    record->measured_step_s = measurement_median(result->step_time_s, result->steps, record->warm_up, run->arena);
    exposure_of(&run->program, &result->timeline, run->arena, &record->parts);
    pair_tasks(run);
}

Status measured_run_execute(MeasuredRun *run, const Progress *progress, Error *error) {
    const ExecOptions options = {.progress = progress, .launch = run->launch};
    run->record.at_s = (double)time(NULL);
    const CoreClock begin = core_clock_now();
    const Status status = exec_run(&run->run, &options, run->arena, &run->result, error);
    if (measured_here(&run->launch, &run->run.options)) {
        run->record.core_use = core_clock_use(&begin, mesh_world(&run->run.plan.mesh));
    }
    if (status == STATUS_OK) {
        fill_record(run);
    } else {
        run->record.failure = arena_text(run->arena, error->message);
    }
    return status;
}
