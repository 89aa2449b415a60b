// Stored runs as samples. A run keeps its command line and its plan; what its request was is asked of the command line,
// once for each framework that it ran.

#include "autotune/measure/stored_samples.h"

#include <string.h>

#include "sim/base/text.h"

typedef struct KnownLine {
    const char *line, *source, *target;
    TuneRequest *request;  // NULL: it cannot be built again
    const char *reason;
} KnownLine;

typedef struct Reader {
    SampleList *list;
    Store *store;
    const StoredLines *asks;
    KnownLine *lines;
    int line_count;
    size_t capacity;
    const StoredMeasurement *like;  // runs of the executor are taken that are made like this one; NULL = there is none
} Reader;

static const KnownLine *line_of(Reader *reader, const StoredRun *run) {
    Arena *arena = reader->list->arena;
    for (int i = 0; i < reader->line_count; i++) {
        const KnownLine *known = &reader->lines[i];
        if (strcmp(known->line, run->command) == 0 && strcmp(known->source, run->source) == 0 &&
            strcmp(known->target, run->target) == 0) {
            return known;
        }
    }
    KnownLine *known = &ARENA_PUSH(arena, reader->lines, reader->line_count, &reader->capacity);
    *known = (KnownLine){.line = run->command, .source = run->source, .target = run->target};
    TuneRequest *request = ARENA_NEW(arena, TuneRequest);
    Error error = {0};
    if (reader->asks->request(reader->asks->context, run, reader->list->base_text, request, &error) == STATUS_OK) {
        known->request = request;
    } else {
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
    status = status == STATUS_OK ? store_timeline(reader->store, &query, &program, &scratch, &timeline, &found, error)
                                 : status;
    if (status == STATUS_OK && found) {
        calibration_spans(what, &program, &timeline, &scratch, sample->span_s);
    }
    arena_free(&scratch);
    return status;
}

// A profile has one set of costs: what goes by other links, or ran with other kernels, is no repeat of the same plan.
// Says why not; NULL = it is made like the others.
static const char *made_otherwise(const Reader *reader, const StoredMeasurement *stored) {
    const StoredMeasurement *like = reader->like;
    Arena *arena = reader->list->arena;
    if (!like) {
        return arena_format(arena, "over %s, which --transport does not ask for", stored->run.transport);
    }
    if (!text_same(stored->run.transport, like->run.transport)) {
        return arena_format(arena, "over %s, not %s (--transport %s takes these)", stored->run.transport,
                            like->run.transport, stored->run.transport);
    }
    if (!text_same(stored->executor, like->executor)) {
        return arena_format(arena, "by another version of the executor than run %lld", (long long)like->run.id);
    }
    return text_same(stored->core_type, like->core_type)
               ? NULL
               : arena_format(arena, "with OpenBLAS' kernels for another core than run %lld", (long long)like->run.id);
}

// The newest run of the executor on this machine, over the transport that is asked for.
static const StoredMeasurement *newest_of_executor(const SampleList *list, const StoredMeasurement *runs, int count,
                                                   const char *transport) {
    for (int i = 0; i < count; i++) {
        const StoredRun *run = &runs[i].run;
        if (strcmp(run->source, "executor") == 0 && calibration_same_machine(run->cluster, list->base->name) &&
            (!transport || strcmp(run->transport, transport) == 0)) {
            return &runs[i];
        }
    }
    return NULL;
}

static Status add_run(Reader *reader, const StoredMeasurement *stored, Error *error) {
    SampleList *list = reader->list;
    const StoredRun *run = &stored->run;
    Arena *arena = list->arena;
    const bool executor = strcmp(run->source, "executor") == 0;
    if (!samples_want_cluster(list, run->cluster, list->base->name) ||
        (!executor && !samples_want(list, run->target))) {
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
        plan.pp_order = known->request->pp_order;
        if (strcmp(plan_text(&plan, PLAN_BUFFER), run->plan) != 0) {
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

Status samples_of_store(SampleList *list, Store *store, const StoredMeasurement *runs, int count, const char *transport,
                        const StoredLines *asks, Error *error) {
    Reader reader = {
        .list = list, .store = store, .asks = asks, .like = newest_of_executor(list, runs, count, transport)};
    list->from = "the store";
    for (int i = 0; i < count; i++) {
        TRY(add_run(&reader, &runs[i], error));
    }
    return STATUS_OK;
}
