// Stored runs as samples. A stored run keeps its command line and its plan; the command line is parsed again, so that
// model and overrides are the same, with the base profile in place of the run's own, and the framework version that ran
// where the command line relied on the default at that time.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/calibrate_samples.h"
#include "autotune/cli/executor_options.h"
#include "autotune/cli/request.h"
#include "autotune/predict/handicap.h"

enum { MOST_RUNS = 2000 };

// One command line of the store, read once for each framework that it ran.
typedef struct KnownLine {
    const char *line, *source, *target;
    TuneRequest *request;  // NULL: it cannot be built again
    const char *reason;
} KnownLine;

typedef struct Reader {
    SampleList *list;
    KnownLine *lines;
    int line_count;
    size_t capacity;
    const StoredMeasurement *like;  // runs of the executor are taken that are made like this one; NULL = there is none
} Reader;

// What is asked of the machine, not of one rank: a real rank was as slow as it was.
static void drop_handicaps(Options *options) {
    int kept = 0;
    for (int i = 0; i < options->set_count; i++) {
        if (!handicap_named(options->sets[i])) {
            options->sets[kept] = options->sets[i];
            options->set_argument[kept++] = -1;
        }
    }
    options->set_count = kept;
}

static Status rebuild(const SampleList *list, KnownLine *known, Error *error) {
    Cli *cli = list->cli;
    Cli *old = ARENA_NEW(&cli->arena, Cli);
    TuneRequest *request = ARENA_NEW(&cli->arena, TuneRequest);
    *old = (Cli){.blame = -1};
    Status status = last_request_read(old, known->line, &old->command, error);
    OptionValue *values = old->options.values;
    if (status == STATUS_OK) {
        drop_handicaps(&old->options);
        values[OPTION_CLUSTER] = (OptionValue){.given = true, .text = list->base_text, .argument = -1};
        values[OPTION_TARGET] = (OptionValue){.given = true, .text = known->target, .argument = -1};
        status = request_build(old, old->command == COMMAND_RUN ? &run_defaults : &validate_defaults, request, error);
    }
    if (status == STATUS_OK && strcmp(known->source, "executor") == 0) {
        const Target *executed;
        status = executor_takes(old, request, &executed, error);
    }
    cli_end_inner(cli, old);
    known->request = status == STATUS_OK ? request : NULL;
    return status;
}

static const KnownLine *line_of(Reader *reader, const StoredRun *run) {
    Arena *arena = &reader->list->cli->arena;
    for (int i = 0; i < reader->line_count; i++) {
        const KnownLine *known = &reader->lines[i];
        if (strcmp(known->line, run->command) == 0 && strcmp(known->source, run->source) == 0 &&
            strcmp(known->target, run->target) == 0) {
            return known;
        }
    }
    KnownLine *known = &ARENA_PUSH(arena, reader->lines, reader->line_count, &reader->capacity);
    *known = (KnownLine){.line = run->command, .source = run->source, .target = run->target};
    Error error = {0};
    if (rebuild(reader->list, known, &error) != STATUS_OK) {
        known->reason = arena_text(arena, error.message);
    }
    return known;
}

static Status read_spans(const Reader *reader, int64_t id, CalibrationSample *sample, Error *error) {
    const CalibrationCase *what = &sample->what;
    const TimelineQuery query = {.run_id = id};
    Arena scratch = {0};
    StepProgram program;
    Timeline timeline;
    bool found = false;
    Status status = step_lower(what->model, &what->plan, what->target, &scratch, &program, error);
    status = status == STATUS_OK
                 ? store_timeline(reader->list->cli->store, &query, &program, &scratch, &timeline, &found, error)
                 : status;
    if (status == STATUS_OK && found) {
        calibration_spans(what, &program, &timeline, &scratch, sample->span_s);
    }
    arena_free(&scratch);
    return status;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

// A profile has one set of costs: what goes by other links, or ran with other kernels, is no repeat of the same plan.
// Says why not; NULL = it is made like the others.
static const char *made_otherwise(const Reader *reader, const StoredMeasurement *stored) {
    const StoredMeasurement *like = reader->like;
    Arena *arena = &reader->list->cli->arena;
    if (!like) {
        return arena_format(arena, "over %s, which --transport does not ask for", stored->run.transport);
    }
    if (!same_text(stored->run.transport, like->run.transport)) {
        return arena_format(arena, "over %s, not %s (--transport %s takes these)", stored->run.transport,
                            like->run.transport, stored->run.transport);
    }
    if (!same_text(stored->executor, like->executor)) {
        return arena_format(arena, "by another version of the executor than run %lld", (long long)like->run.id);
    }
    return same_text(stored->core_type, like->core_type)
               ? NULL
               : arena_format(arena, "with OpenBLAS' kernels for another core than run %lld", (long long)like->run.id);
}

// The newest run of the executor on this machine, over the transport that is asked for.
static const StoredMeasurement *newest_of_executor(const SampleList *list, const StoredMeasurement *runs, int count) {
    const char *wanted = cli_text_or(list->cli, OPTION_TRANSPORT, NULL);
    for (int i = 0; i < count; i++) {
        const StoredRun *run = &runs[i].run;
        if (strcmp(run->source, "executor") == 0 && calibration_same_machine(run->cluster, list->base->name) &&
            (!wanted || strcmp(run->transport, wanted) == 0)) {
            return &runs[i];
        }
    }
    return NULL;
}

static Status add_run(Reader *reader, const StoredMeasurement *stored, Error *error) {
    SampleList *list = reader->list;
    const StoredRun *run = &stored->run;
    Arena *arena = &list->cli->arena;
    if (!calibration_same_machine(run->cluster, list->base->name)) {
        samples_leave_out(list, arena_format(arena, "cluster %s is not %s", run->cluster, list->base->name));
        return STATUS_OK;
    }
    const bool executor = strcmp(run->source, "executor") == 0;
    if (!executor && !samples_want(list, run->target)) {
        return STATUS_OK;
    }
    if (strstr(stored->lanes, "bitwise")) {
        samples_leave_out(list, "a bitwise run: its sums are a test's");
        return STATUS_OK;
    }
    if (strstr(stored->lanes, "deterministic")) {
        samples_leave_out(list, "a deterministic run: a fixed order of sums costs time that others do not spend");
        return STATUS_OK;
    }
    const char *otherwise = executor ? made_otherwise(reader, stored) : NULL;
    if (otherwise) {
        samples_leave_out(list, otherwise);
        return STATUS_OK;
    }
    const KnownLine *known = line_of(reader, run);
    Error why = {0};
    TrainPlan plan;
    CalibrationSample sample = {
        .id = arena_format(arena, "run %lld", (long long)run->id), .set = run->host, .step_s = run->measured_step_s};
    if (!known->request || plan_parse(run->plan, &plan, &why) != STATUS_OK) {
        samples_leave_out(list, known->request ? arena_text(arena, why.message) : known->reason);
        return STATUS_OK;
    }
    if (plan.pp_schedule == PP_FILE) {
        char text[PLAN_TEXT_BYTES];
        plan.pp_order = known->request->pp_order;
        if (strcmp(plan_text(&plan, text), run->plan) != 0) {
            samples_leave_out(list, "its file of actions has another order by now");
            return STATUS_OK;
        }
    }
    sample.what = calibration_case(known->request, &plan);
    if (executor) {
        TRY(read_spans(reader, run->id, &sample, error));
    }
    samples_add(list, &sample);
    return STATUS_OK;
}

// The cluster of the newest run, as its command line says it.
static Status cluster_of_newest(SampleList *list, const StoredRun *run, Error *error) {
    Cli *cli = list->cli;
    Cli *old = ARENA_NEW(&cli->arena, Cli);
    *old = (Cli){.blame = -1};
    const Status status = last_request_read(old, run->command, &old->command, error);
    cli_end_inner(cli, old);
    TRY(status);
    const OptionValue *cluster = &old->options.values[OPTION_CLUSTER];
    list->base_text = cluster->given ? cluster->text : run_defaults.cluster;
    fprintf(stderr, "ndtune: cluster %s, that of the newest run in the store; change it with --cluster\n",
            list->base_text);
    return STATUS_OK;
}

Status samples_of_store(SampleList *list, Error *error) {
    Cli *cli = list->cli;
    StoredMeasurement *runs = NULL;
    int count = 0;
    TRY(store_measured_runs(cli->store, MOST_RUNS + 1, &cli->arena, &runs, &count, error));
    if (count == 0) {
        error_set(error, STATUS_USAGE, "the store has no run with a step time to calibrate on");
        return error_hint(error, "ndtune validate --world 2 --model tiny --top 0 makes some; --runs FILE.csv and --log "
                                 "FILE take what was measured elsewhere");
    }
    if (cli_given(cli, OPTION_CLUSTER)) {
        list->base_text = cli_value(cli, OPTION_CLUSTER)->text;
    } else {
        TRY(cluster_of_newest(list, &runs[0].run, error));
    }
    TRY(samples_load_base(list, list->base_text, error));
    list->from = "the store";
    Reader reader = {.list = list, .like = newest_of_executor(list, runs, count)};
    if (count > MOST_RUNS) {
        fprintf(stderr, "ndtune: the store has more runs; the newest %d are read\n", MOST_RUNS);
        count = MOST_RUNS;
    }
    for (int i = 0; i < count; i++) {
        TRY(add_run(&reader, &runs[i], error));
    }
    return STATUS_OK;
}
