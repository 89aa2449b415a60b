// From a plan to a RunRecord: checked, predicted task by task, run by the executor, paired.

#include "autotune/cli/measured_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "autotune/calibrate/calibrate.h"
#include "autotune/cli/request.h"
#include "autotune/predict/handicap.h"
#include "autotune/predict/predict.h"
#include "autotune/predict/predict_serial.h"
#include "autotune/predict/target_on_cluster.h"
#include "autotune/validate/exposure.h"
#include "autotune/validate/measurement.h"
#include "sim/base/open.h"
#include "sim/engine/engine.h"

static const char *measured_run_transport(const Cli *cli) {
    const bool hosts = cli_given(cli, OPTION_HOSTS) || cli_given(cli, OPTION_HOSTFILE);
    return cli_text_or(cli, OPTION_TRANSPORT, hosts ? "mpi" : "shm");
}

LaunchOptions measured_run_launch(const Cli *cli) {
    return (LaunchOptions){.launcher = cli_text_or(cli, OPTION_LAUNCHER, "auto"),
                           .hosts = cli_text_or(cli, OPTION_HOSTS, NULL),
                           .hostfile = cli_text_or(cli, OPTION_HOSTFILE, NULL)};
}

// Said where somebody else than ndtune starts the ranks.
static void launch_note(MeasuredRun *run, const LaunchOptions *launch) {
    const char *launcher, *because;
    if (!run->cli->launch_said && exec_check_backend(&run->run.options, NULL) == STATUS_OK &&
        exec_check_launch(launch, run->run.options.transport, &run->cli->arena, &launcher, &because, NULL) ==
            STATUS_OK &&
        strcmp(launcher, "local") != 0) {
        run->cli->launch_said = true;
        fprintf(stderr, "ranks are started by %s: %s\n", launcher, because);
    }
}

void measured_run_options(const Cli *cli, RunOptions *options) {
    *options = run_options_default();
    options->spans = true;
    options->device = cli_on_gpu(cli) ? "cuda" : "cpu";
    options->transport = measured_run_transport(cli);
    options->steps = cli_integer_or(cli, OPTION_STEPS, options->steps);
    options->seed = cli_given(cli, OPTION_SEED) ? (uint64_t)cli_value(cli, OPTION_SEED)->integer : options->seed;
    options->data_path = cli_text_or(cli, OPTION_DATA, options->data_path);
    options->lr = cli_number_or(cli, OPTION_LR, options->lr);
    options->lanes = (LaneMode)cli_integer_or(cli, OPTION_LANES, (int)options->lanes);
    options->bitwise = cli_given(cli, OPTION_BITWISE);
    options->deterministic = cli_given(cli, OPTION_DETERMINISTIC);
    options->timeout_s = cli_number_or(cli, OPTION_TIMEOUT, options->timeout_s);
}

Status measured_run_by_executor(MeasuredRun *run, TuneRequest *request, Error *error) {
    const Target *executor;
    TRY(target_find(run_defaults.target, &executor, error));
    executor = target_on_cluster(executor, &request->cluster, &run->cli->arena);
    Target *mixed = ARENA_NEW(&run->cli->arena, Target);
    *mixed = target_run_by(request->target, executor);
    run->request = request;
    run->target = request->target;
    request->target = mixed;
    request->runner = executor;
    request_serial(run->cli, request);
    return STATUS_OK;
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
    const LaunchOptions launch = measured_run_launch(run->cli);
    hash_text(&hash, launch.launcher);
    hash_text(&hash, launch.hosts ? launch.hosts : "");
    hash_hostfile(launch.hostfile, &hash);
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
    Arena *arena = &run->cli->arena;
    const TuneRequest *request = run->request;
    run->run = (RunRequest){.model = request->model, .plan = *plan, .target = run->target, .options = *options};
    const char *reason = exec_check(&request->model, plan, request->target, options->device, arena);
    if (!reason) {
        reason = exec_check_options(&request->model, plan, options);
    }
    if (reason) {
        return error_set(error, STATUS_INFEASIBLE, "the executor does not run this plan: %s", reason);
    }
    TRY(step_lower(&request->model, plan, request->target, arena, &run->program, error));
    run->predicted = ARENA_ARRAY(arena, TaskTotal, run->program.task_count);
    struct utsname host = {0};
    uname(&host);
    run->record = (RunRecord){.request = request,
                              .source = "executor",
                              .executor = executor_version(),
                              .host = arena_text(arena, host.nodename),
                              .device = options->device,
                              .transport = options->transport,
                              .lanes = arena_format(arena, "%s%s%s", lane_mode_names[options->lanes],
                                                    options->bitwise ? ", bitwise" : "",
                                                    options->deterministic ? ", deterministic" : ""),
                              .seed = (int64_t)options->seed,
                              .warm_up = options->steps > run->warm_up ? run->warm_up : 0,
                              .program = &run->program,
                              .prediction = {.plan = *plan}};
    run->record.measurement_hash = measurement_hash(run);
    return STATUS_OK;
}

// Predicted seconds per template task: every instance of one step, on rank 0.
static Status predict_tasks(MeasuredRun *run, Error *error) {
    const CostModel cost = {.profile = &run->request->cluster, .target = run->request->target};
    Arena *arena = &run->cli->arena;
    if (run->request->serial_lanes) {
        Prediction again;  // the totals are what is wanted
        predict_serial(&cost, &run->program, arena, &again, run->predicted);
        return STATUS_OK;
    }
    const EngineOptions options = {.keep_spans = true,
                                   .unroll = true,
                                   .rank_slowdown = handicap_factors(run->request, false, arena),
                                   .link_slowdown = handicap_factors(run->request, true, arena)};
    EngineResult engine = {0};
    TRY(engine_run(&run->program, &cost, &options, arena, &engine, error));
    timeline_totals(&engine.timeline, &run->program, 0, run->predicted);
    return STATUS_OK;
}

Status measured_run_predict(MeasuredRun *run, Error *error) {
    Prediction *prediction = &run->record.prediction;
    TRY(predict_once(run->request, NULL, &run->run.plan, &run->cli->arena, prediction, error));
    TRY(calibrated_intervals(run->request, prediction, 1, error));
    return predict_tasks(run, error);
}

Status measured_run_check_warm_up(const MeasuredSetup *setup, Error *error) {
    if (setup->warm_up < setup->steps) {
        return STATUS_OK;
    }
    return cli_refuse(setup->cli, cli_given(setup->cli, OPTION_WARM_UP) ? OPTION_WARM_UP : OPTION_STEPS, error,
                      "of %d steps, %d to warm up leave nothing to measure", setup->steps, setup->warm_up);
}

Status measured_run_make(const MeasuredSetup *setup, const TrainPlan *plan, MeasuredRun **run, Error *error) {
    *run = ARENA_NEW(&setup->cli->arena, MeasuredRun);
    **run =
        (MeasuredRun){.cli = setup->cli, .request = setup->request, .target = setup->target, .warm_up = setup->warm_up};
    RunOptions options;
    measured_run_options(setup->cli, &options);
    options.steps = setup->steps;
    TRY(measured_run_prepare(*run, plan, &options, error));
    return measured_run_predict(*run, error);
}

Status measured_run_prices(MeasuredRun *run, Error *error) {
    RunOptions *options = &run->run.options;
    return cli_on_gpu(run->cli)
               ? store_prices(run->cli->store, &run->cli->arena, &options->prices, &options->price_count, error)
               : STATUS_OK;
}

static void pair_tasks(MeasuredRun *run) {
    const StepProgram *program = &run->program;
    RunTask *tasks = ARENA_ARRAY(&run->cli->arena, RunTask, program->task_count);
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
    record->measured_step_s = measurement_median(result->step_time_s, result->steps, record->warm_up, &run->cli->arena);
    exposure_of(&run->program, &result->timeline, &run->cli->arena, &record->parts);
    pair_tasks(run);
}

Status measured_run_execute(MeasuredRun *run, Error *error) {
    const Progress progress = cli_progress(run->cli);
    const ExecOptions options = {.progress = &progress, .launch = measured_run_launch(run->cli)};
    launch_note(run, &options.launch);
    run->record.at_s = (double)time(NULL);
    const CoreClock begin = core_clock_now();
    const Status status = exec_run(&run->run, &options, &run->cli->arena, &run->result, error);
    cli_progress_clear(run->cli);
    if (!options.launch.hosts && !options.launch.hostfile && !cli_on_gpu(run->cli)) {
        run->record.core_use = core_clock_use(&begin, mesh_world(&run->run.plan.mesh));
    }
    if (status == STATUS_OK) {
        fill_record(run);
    } else {
        run->record.state = "failed";
        run->record.failure = arena_text(&run->cli->arena, error->message);
    }
    return status;
}
