// Chrome's trace events ("Trace Event Format", Google; what Perfetto and chrome://tracing open): a process per rank, a
// thread per lane, a complete event per task, flow arrows where a task waits for another lane. Times are whole
// nanoseconds, so that what follows without a gap does not overlap after rounding.

#include "reports/trace.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "reports/open_time.h"
#include "sim/step/slots.h"

enum { STEP_PIDS = MESH_MAX_WORLD };  // processes of the second step begin here

const char *const trace_origin_names[2] = {[TIMELINE_SIMULATED] = "simulated", [TIMELINE_MEASURED] = "measured"};

typedef struct Writer {
    const TraceFile *file;
    const TraceStep *step;
    int index;  // of the step
    FILE *out;
    const char *comma;
    int64_t flows;  // arrows so far: their ids
    bool sampled;   // some micro-batches are left out
    int last_micro_step;
    OpenTime open;
    int64_t *recorders;         // per event and slot: the span that recorded it last, plus 1
    const int32_t *first_slot;  // of each event in recorders
} Writer;

static void begin_event(Writer *writer) {
    fprintf(writer->out, "%s\n", writer->comma);
    writer->comma = ",";
}

// Names of tasks and lanes are ours; JSON's escapes all the same.
static void put_text(FILE *out, const char *text) {
    json_t *value = json_string(text);
    char *escaped = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    fputs(escaped ? escaped : "\"?\"", out);
    free(escaped);
    json_decref(value);
}

static void put_microseconds(FILE *out, const char *key, int64_t ns) {
    fprintf(out, "\"%s\":%" PRId64 ".%03" PRId64, key, ns / 1000, ns % 1000);
}

static int pid_of(const Writer *writer, int rank) {
    return 1 + rank + writer->index * STEP_PIDS;
}

static void put_name(Writer *writer, const char *kind, int pid, int tid, const char *name) {
    begin_event(writer);
    fprintf(writer->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", kind, pid, tid);
    put_text(writer->out, name);
    fputs("}}", writer->out);
}

static void put_order(Writer *writer, const char *kind, int pid, int tid, int place) {
    begin_event(writer);
    fprintf(writer->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}}", kind, pid,
            tid, place);
}

// The process and its threads, named before anything happens on them.
static void put_rank(Writer *writer, int rank) {
    const StepProgram *program = writer->step->program;
    const MeshCoordinates at = mesh_coordinates(&program->plan.mesh, rank);
    const int pid = pid_of(writer, rank);
    char coordinates[MESH_TEXT_BYTES], name[64 + MESH_TEXT_BYTES];
    snprintf(name, sizeof name, "%s rank %d (%s)%s", trace_origin_names[writer->step->timeline->origin], rank,
             mesh_coordinates_text(&program->plan.mesh, &at, coordinates),
             writer->sampled ? ", middle micro-batches left out" : "");
    put_name(writer, "process_name", pid, 0, name);
    put_order(writer, "process_sort_index", pid, 0, 2 * rank + writer->index);  // both steps of a rank lie together
    for (int32_t lane = 0; lane < program->lane_count; lane++) {
        put_name(writer, "thread_name", pid, 1 + lane, program->lanes[lane].name);
        put_order(writer, "thread_sort_index", pid, 1 + lane, lane);
    }
}

static bool is_written(const Writer *writer, const Span *span) {
    return !writer->sampled || span->micro_step < 2 || span->micro_step == writer->last_micro_step;
}

static void put_arguments(Writer *writer, const Span *span) {
    const StepProgram *program = writer->step->program;
    const Task *task = &program->tasks[span->task];
    FILE *out = writer->out;
    fprintf(out, "\"args\":{\"kind\":\"%s\",\"layer\":%d,\"micro_batch\":%d", task_kind_name(task->kind),
            (int)span->layer, (int)span->micro_step);
    if (task->kind == TASK_GEMM) {
        fprintf(out, ",\"m\":%" PRId64 ",\"n\":%" PRId64 ",\"k\":%" PRId64, task->m, task->n, task->k);
    }
    if (task_is_collective(task)) {
        fputs(",\"group\":", out);
        put_text(out, program->groups[task->group].name);
        fprintf(out, ",\"ranks\":%d,\"bytes\":%" PRId64 ",", (int)program->groups[task->group].size,
                task->payload_bytes);
        put_microseconds(out, "exposed_us", open_time_ns(&writer->open, span));
    } else {
        fprintf(out, ",\"flops\":%.0f,\"bytes\":%" PRId64, task->flops, task->traffic_bytes);
    }
    fputs("}", out);
}

static void put_span(Writer *writer, const Span *span) {
    const Task *task = &writer->step->program->tasks[span->task];
    const int64_t start_ns = span_ns(span->start_s), end_ns = span_ns(span->end_s);
    begin_event(writer);
    fputs("{\"ph\":\"X\",\"name\":", writer->out);
    put_text(writer->out, task->name);
    fprintf(writer->out, ",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,", phase_name(task->phase), pid_of(writer, span->rank),
            1 + task->lane);
    put_microseconds(writer->out, "ts", start_ns);
    fputc(',', writer->out);
    put_microseconds(writer->out, "dur", end_ns - start_ns);
    fputc(',', writer->out);
    put_arguments(writer, span);
    fputc('}', writer->out);
}

static void put_arrow_end(Writer *writer, const Span *span, const char *phase, int64_t ns) {
    begin_event(writer);
    fprintf(writer->out, "{%s,\"name\":\"waits\",\"cat\":\"dependency\",\"id\":%" PRId64 ",\"pid\":%d,\"tid\":%d,",
            phase, writer->flows, pid_of(writer, span->rank), 1 + writer->step->program->tasks[span->task].lane);
    put_microseconds(writer->out, "ts", ns);
    fputc('}', writer->out);
}

// From inside the span that recorded to the beginning of the one that waits.
static void put_arrow(Writer *writer, const Span *from, const Span *to) {
    const int64_t start_ns = span_ns(from->start_s), last_ns = span_ns(from->end_s) - 1;
    writer->flows++;
    put_arrow_end(writer, from, "\"ph\":\"s\"", last_ns > start_ns ? last_ns : start_ns);
    put_arrow_end(writer, to, "\"ph\":\"f\",\"bp\":\"e\"", span_ns(to->start_s));
}

static int64_t *recorder(Writer *writer, const EventRef *ref, const Span *span) {
    const StepProgram *program = writer->step->program;
    const StepInstance instance = {.task = span->task, .layer = span->layer, .micro_step = span->micro_step};
    return &writer->recorders[step_event_slot(program, writer->first_slot, ref, &instance)];
}

static void put_arrows(Writer *writer, int64_t index) {
    const StepProgram *program = writer->step->program;
    const Span *spans = writer->step->timeline->spans, *span = &spans[index];
    const Task *task = &program->tasks[span->task];
    for (int32_t i = 0; i < task->wait_count && is_written(writer, span); i++) {
        const int64_t from = *recorder(writer, &program->event_refs[task->first_wait + i], span);
        if (from > 0 && program->tasks[spans[from - 1].task].lane != task->lane &&
            is_written(writer, &spans[from - 1])) {
            put_arrow(writer, &spans[from - 1], span);
        }
    }
    for (int32_t i = 0; i < task->record_count; i++) {
        *recorder(writer, &program->event_refs[task->first_record + i], span) = index + 1;
    }
}

// The spans [begin, end) of one rank.
static void put_spans(Writer *writer, int64_t begin, int64_t end) {
    const Span *spans = writer->step->timeline->spans;
    const StepProgram *program = writer->step->program;
    memset(writer->recorders, 0,
           (size_t)writer->first_slot[writer->step->program->event_count] * sizeof *writer->recorders);
    put_rank(writer, spans[begin].rank);
    open_time_begin(&writer->open, program, &spans[begin], end - begin);
    for (int64_t i = begin; i < end; i++) {
        if (is_written(writer, &spans[i])) {
            put_span(writer, &spans[i]);
        }
        put_arrows(writer, i);
    }
}

static void prepare_step(Writer *writer) {
    const StepProgram *program = writer->step->program;
    const Timeline *timeline = writer->step->timeline;
    Arena *arena = writer->file->arena;
    writer->first_slot = step_event_slots(program, arena);
    writer->recorders = ARENA_ARRAY(arena, int64_t, writer->first_slot[program->event_count]);
    writer->open = open_time_new(timeline->span_count, arena);
    writer->sampled = timeline->span_count > TRACE_MOST_SPANS && program->plan.grad_accum > 3;
    writer->last_micro_step = program->plan.grad_accum - 1;
}

static void put_step(Writer *writer) {
    const Timeline *timeline = writer->step->timeline;
    prepare_step(writer);
    for (int64_t begin = 0, end; begin < timeline->span_count; begin = end) {
        end = span_rank_end(timeline, begin);
        put_spans(writer, begin, end);
    }
}

static void put_about(Writer *writer) {
    const TraceFile *file = writer->file;
    fputs("\n],\"displayTimeUnit\":\"ms\",\"otherData\":{\"written_by\":", writer->out);
    put_text(writer->out, tune_engine_version());
    fputs(",\"command\":", writer->out);
    put_text(writer->out, file->command);
    fputs(",\"model\":", writer->out);
    put_text(writer->out, file->request->model.name);
    fputs(",\"cluster\":", writer->out);
    put_text(writer->out, file->request->cluster.name);
    fputs(",\"target\":", writer->out);
    put_text(writer->out, file->request->target->name);
    fputs(",\"plan\":", writer->out);
    put_text(writer->out, plan_text(&file->steps[0].program->plan, PLAN_BUFFER));
    for (int i = 0; i < file->step_count; i++) {
        fprintf(writer->out, ",\"%s_step_s\":\"%.9g\"", trace_origin_names[file->steps[i].timeline->origin],
                file->steps[i].timeline->step_s);
    }
    fputs("}}\n", writer->out);
}

Status trace_chrome(const void *trace, FILE *out, Error *error) {
    const TraceFile *file = trace;
    Writer writer = {.file = file, .out = out, .comma = ""};
    fputs("{\"traceEvents\":[", out);
    for (int i = 0; i < file->step_count; i++) {
        writer.step = &file->steps[i];
        writer.index = i;
        put_step(&writer);
    }
    put_about(&writer);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the trace could not be written") : STATUS_OK;
}
