// ndtune run: one shape through the executor, measured beside predicted. The run is stored however it ends.

#include <stdio.h>
#include <sys/utsname.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/request.h"
#include "autotune/handicap.h"
#include "autotune/predict.h"
#include "exec/launch/launch.h"
#include "reports/reports.h"
#include "sim/engine/engine.h"

enum { RUN_SEQ = 128 };  // DESIGN section 9

#define EXECUTOR "ndtune"  // the target whose runtime costs are our own

typedef struct RunCommand {
    Cli *cli;
    TuneRequest request;
    RunRequest run;
    StepProgram program;
    RunResult result;
    RunRecord record;
} RunCommand;

static void fill_options(const Cli *cli, RunOptions *options) {
    *options = run_options_default();
    options->spans = true;
    options->device = "cpu";  // the only words that the options take
    options->transport = "shm";
    if (cli_given(cli, OPTION_STEPS)) {
        options->steps = (int)cli_value(cli, OPTION_STEPS)->integer;
    }
    if (cli_given(cli, OPTION_SEED)) {
        options->seed = (uint64_t)cli_value(cli, OPTION_SEED)->integer;
    }
    if (cli_given(cli, OPTION_LR)) {
        options->lr = cli_value(cli, OPTION_LR)->number;
    }
    if (cli_given(cli, OPTION_LANES)) {
        options->lanes = (LaneMode)cli_value(cli, OPTION_LANES)->integer;
    }
    if (cli_given(cli, OPTION_TIMEOUT)) {
        options->timeout_s = cli_value(cli, OPTION_TIMEOUT)->number;
    }
}

// Whatever target's program it is, our executor runs it: no Python, no caching allocator.
static Status predict_executor(RunCommand *command, Error *error) {
    const Target *executor;
    TRY(target_find(EXECUTOR, &executor, error));
    Target *mixed = ARENA_NEW(&command->cli->arena, Target);
    *mixed = target_run_by(command->request.target, executor);
    command->request.target = mixed;
    return STATUS_OK;
}

static Status prepare(RunCommand *command, Error *error) {
    static const RequestDefaults defaults = {
        .cluster = "local-cpu", .target = EXECUTOR, .seq = RUN_SEQ, .fp32 = true, .flash = true, .single_plan = true};
    Cli *cli = command->cli;
    TuneRequest *request = &command->request;
    TRY(request_build(cli, &defaults, request, error));
    Mesh mesh;
    TRY(request_mesh(cli, &mesh, error));
    command->run = (RunRequest){.model = request->model, .target = request->target};
    TRY(predict_executor(command, error));
    request_plan(cli, request, &mesh, &command->run.plan);
    fill_options(cli, &command->run.options);
    const char *reason = exec_check(&request->model, &command->run.plan, request->target, &cli->arena);
    if (reason) {
        return error_set(error, STATUS_INFEASIBLE, "the executor does not run this plan: %s", reason);
    }
    return step_lower(&request->model, &command->run.plan, request->target, &cli->arena, &command->program, error);
}

// Predicted seconds per template task: every instance of one step, on rank 0.
static Status predict_tasks(RunCommand *command, TaskTotal *totals, Error *error) {
    const CostModel cost = {.profile = &command->request.cluster, .target = command->request.target};
    const EngineOptions options = {.keep_spans = true,
                                   .unroll = true,
                                   .rank_slowdown = handicap_factors(&command->request, false, &command->cli->arena),
                                   .link_slowdown = handicap_factors(&command->request, true, &command->cli->arena)};
    EngineResult engine = {0};
    TRY(engine_run(&command->program, &cost, &options, &command->cli->arena, &engine, error));
    timeline_totals(&engine.timeline, &command->program, 0, totals);
    return STATUS_OK;
}

static Status predict(RunCommand *command, TaskTotal *totals, Error *error) {
    Predictor predictor;
    predictor_init(&predictor, &command->request, NULL);
    Status status =
        predict_plan(&predictor, &command->run.plan, false, &command->cli->arena, &command->record.prediction, error);
    predictor_free(&predictor);
    return status == STATUS_OK ? predict_tasks(command, totals, error) : status;
}

static void pair_tasks(RunCommand *command, const TaskTotal *predicted) {
    const StepProgram *program = &command->program;
    RunTask *tasks = ARENA_ARRAY(&command->cli->arena, RunTask, program->task_count);
    int count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const TaskTotal measured = command->result.totals[i];
        if (measured.count == 0 && predicted[i].count == 0) {
            continue;
        }
        const Task *task = &program->tasks[i];
        tasks[count++] = (RunTask){task->name,     task_kind_name(task->kind), program->lanes[task->lane].name,
                                   measured.count, measured.seconds,           predicted[i].seconds};
    }
    command->record.tasks = tasks;
    command->record.task_count = count;
}

static void fill_record(RunCommand *command) {
    RunRecord *record = &command->record;
    const RunResult *result = &command->result;
    record->steps = result->steps;
    record->losses = result->loss;
    record->grad_norms = result->grad_norm;
    record->step_times_s = result->step_time_s;
    record->peak_bytes = result->peak_bytes;
    record->planned_peak_bytes = result->planned_peak_bytes;
    record->state = result->state;
    record->timeline = result->timeline;
}

static Status print_record(const RunCommand *command, Error *error) {
    switch (cli_format(command->cli)) {
    case FORMAT_JSON:
        return json_run(&command->record, stdout, error);
    case FORMAT_CSV:
        return csv_run(&command->record, stdout, error);
    case FORMAT_TABLE:
        break;
    }
    return table_run(&command->record, stdout, error);
}

static Status execute(RunCommand *command, Error *error) {
    const Progress progress = cli_progress(command->cli);
    const ExecOptions options = {.progress = &progress};
    const Status status = exec_run(&command->run, &options, &command->cli->arena, &command->result, error);
    cli_progress_clear(command->cli);
    if (status == STATUS_OK) {
        fill_record(command);
    } else {
        command->record.state = "failed";
        command->record.failure = arena_text(&command->cli->arena, error->message);
    }
    return status;
}

static Status run_and_save(RunCommand *command, Store *store, Error *error) {
    TaskTotal *predicted = ARENA_ARRAY(&command->cli->arena, TaskTotal, command->program.task_count);
    TRY(predict(command, predicted, error));
    const Status status = execute(command, error);
    if (status == STATUS_OK) {
        pair_tasks(command, predicted);
        TRY(print_record(command, error));
    }
    Error store_error = {0};
    const Status saved = store_save_run(store, &command->record, NULL, &store_error);
    if (status == STATUS_OK && saved != STATUS_OK) {
        *error = store_error;
        return saved;
    }
    return status;
}

Status cmd_run(Cli *cli, Error *error) {
    RunCommand command = {.cli = cli};
    TRY(prepare(&command, error));
    struct utsname host = {0};
    uname(&host);
    const RunOptions *options = &command.run.options;
    command.record = (RunRecord){.request = &command.request,
                                 .host = host.nodename,
                                 .device = options->device,
                                 .transport = options->transport,
                                 .lanes = lane_mode_names[options->lanes],
                                 .seed = (int64_t)options->seed,
                                 .program = &command.program};
    Store *store = NULL;
    TRY(cli_open_store(cli, &store, error));
    const Status status = run_and_save(&command, store, error);
    store_close(store);
    return status;
}
