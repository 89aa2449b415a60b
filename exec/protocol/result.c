// Results and failures as files. Non-finite numbers become null (JSON cannot represent them) and NAN again on reading.

#include "exec/protocol/result.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "exec/protocol/chip_prices.h"
#include "sim/base/integer.h"
#include "sim/base/json.h"

static const char SCHEMA[] = "ndtune.run-result/2";

static json_t *numbers_json(const double *numbers, int64_t count) {
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_array_append_new(array, isfinite(numbers[i]) ? json_real(numbers[i]) : json_null());
    }
    return array;
}

static json_t *totals_json(const StageResult *stage) {
    json_t *array = json_array();
    for (int32_t i = 0; i < stage->task_count; i++) {
        json_array_append_new(array, json_pack("[I,f]", (json_int_t)stage->totals[i].count, stage->totals[i].seconds));
    }
    return array;
}

static json_t *stages_json(const RunResult *result) {
    json_t *array = json_array();
    for (int i = 0; i < result->stage_count; i++) {
        const StageResult *stage = &result->stages[i];
        json_array_append_new(array, json_pack("{s:I, s:I, s:o}", "peak_bytes", (json_int_t)stage->peak_bytes,
                                               "planned_peak_bytes", (json_int_t)stage->planned_peak_bytes, "totals",
                                               totals_json(stage)));
    }
    return array;
}

static json_t *chip_json(const RunResult *result) {
    return result->chip ? json_pack("{s:s, s:I, s:o}", "name", result->chip, "bytes", (json_int_t)result->device_bytes,
                                    "prices", chip_prices_json(result->prices, result->price_count))
                        : json_null();
}

static json_t *load_json(const ExpertLoad *load) {
    return load->measured ? json_pack("{s:f, s:f}", "over", load->over, "most", load->most) : json_null();
}

json_t *run_result_json(const WorkerRecord *record) {
    const RunResult *result = &record->result;
    const int64_t spans = record->span_step < 0 ? 0 : result->world * record->spans_per_rank;
    return json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:s?, s:o}", "schema", SCHEMA, "world",
                     result->world, "steps", result->steps, "loss", numbers_json(result->loss, result->steps),
                     "grad_norm", numbers_json(result->grad_norm, result->steps), "step_time_s",
                     numbers_json(result->step_time_s, result->steps), "stages", stages_json(result), "span_step",
                     record->span_step, "start_s", numbers_json(record->start_s, spans), "end_s",
                     numbers_json(record->end_s, spans), "chip", chip_json(result), "core_type", result->core_type,
                     "expert_load", load_json(&result->expert_load));
}

// ---------------------------------------------------------------------------------------------- reading

static double *read_numbers(const json_t *root, const char *key, int64_t count, Arena *arena) {
    const json_t *array = json_object_get(root, key);
    if (!json_is_array(array) || (int64_t)json_array_size(array) != count) {
        return NULL;
    }
    double *numbers = ARENA_ARRAY(arena, double, count);
    for (int64_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        numbers[i] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    return numbers;
}

static bool read_stage(const json_t *root, const StepProgram *program, Arena *arena, StageResult *stage) {
    const json_t *array = json_object_get(root, "totals");
    if (!json_is_array(array) || (int32_t)json_array_size(array) != program->task_count) {
        return false;
    }
    *stage = (StageResult){.task_count = program->task_count,
                           .totals = ARENA_ARRAY(arena, TaskTotal, program->task_count),
                           .timeline = {.origin = TIMELINE_MEASURED},
                           .peak_bytes = json_integer_value(json_object_get(root, "peak_bytes")),
                           .planned_peak_bytes = json_integer_value(json_object_get(root, "planned_peak_bytes"))};
    for (int32_t i = 0; i < program->task_count; i++) {
        const json_t *row = json_array_get(array, (size_t)i);
        stage->totals[i] = (TaskTotal){.count = json_integer_value(json_array_get(row, 0)),
                                       .seconds = json_number_value(json_array_get(row, 1))};
    }
    return true;
}

static bool read_stages(const json_t *root, const StepPrograms *programs, Arena *arena, RunResult *result) {
    const json_t *array = json_object_get(root, "stages");
    if (!json_is_array(array) || (int)json_array_size(array) != programs->count) {
        return false;
    }
    result->stage_count = programs->count;
    result->stages = ARENA_ARRAY(arena, StageResult, programs->count);
    for (int i = 0; i < programs->count; i++) {
        StageResult *stage = &result->stages[i];
        if (!read_stage(json_array_get(array, (size_t)i), &programs->of[i], arena, stage)) {
            return false;
        }
        result->peak_bytes = int_max(result->peak_bytes, stage->peak_bytes);
        result->planned_peak_bytes = int_max(result->planned_peak_bytes, stage->planned_peak_bytes);
    }
    return true;
}

// Spans of one rank, with these start and end times.
static void take_spans(const StepProgram *program, int rank, const double *start_s, const double *end_s,
                       Timeline *timeline) {
    StepCursor cursor = step_cursor_begin(program);
    StepInstance at;
    for (int64_t i = 0; step_cursor_next(&cursor, &at); i++) {
        timeline->spans[timeline->span_count++] = (Span){.rank = rank,
                                                         .task = at.task,
                                                         .layer = at.layer,
                                                         .micro_step = at.micro_step,
                                                         .start_s = start_s[i],
                                                         .end_s = end_s[i]};
    }
}

// Ranks of a stage all walk its program in the same order, so the file holds times only, for each rank as many as the
// longest program needs.
static bool read_timelines(const json_t *root, const StepPrograms *programs, Arena *arena, RunResult *result) {
    const Mesh *mesh = &programs->of[0].plan.mesh;
    const int step = (int)json_integer_value(json_object_get(root, "span_step"));
    int64_t per_rank = 0;
    for (int i = 0; i < programs->count; i++) {
        per_rank = int_max(per_rank, step_instance_count(&programs->of[i]));
    }
    if (step < 0) {
        return true;
    }
    const double *start_s = read_numbers(root, "start_s", result->world * per_rank, arena),
                 *end_s = read_numbers(root, "end_s", result->world * per_rank, arena);
    if (!start_s || !end_s || step >= result->steps) {
        return false;
    }
    for (int i = 0; i < programs->count; i++) {
        Timeline *timeline = &result->stages[i].timeline;
        const int64_t ranks = result->world / programs->count;
        timeline->spans = ARENA_ARRAY(arena, Span, ranks * step_instance_count(&programs->of[i]));
        timeline->complete = true;
        timeline->step_s = result->step_time_s[step];
    }
    for (int rank = 0; rank < result->world; rank++) {
        const int stage = mesh_stage_of(mesh, rank);
        take_spans(&programs->of[stage], rank, start_s + rank * per_rank, end_s + rank * per_rank,
                   &result->stages[stage].timeline);
    }
    return true;
}

static bool read_chip(const json_t *root, Arena *arena, RunResult *result) {
    const json_t *chip = json_object_get(root, "chip");
    const char *name = json_string_value(json_object_get(chip, "name"));
    if (!name) {
        return json_is_null(chip);
    }
    result->chip = arena_text(arena, name);
    result->device_bytes = json_integer_value(json_object_get(chip, "bytes"));
    return chip_prices_take(json_object_get(chip, "prices"), arena, &result->prices, &result->price_count, NULL) ==
           STATUS_OK;
}

static void read_load(const json_t *load, RunResult *result) {
    if (json_is_object(load)) {
        result->expert_load = (ExpertLoad){true, json_number_value(json_object_get(load, "over")),
                                           json_number_value(json_object_get(load, "most"))};
    }
}

static bool read_result(const json_t *root, const StepPrograms *programs, Arena *arena, RunResult *result) {
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!schema || strcmp(schema, SCHEMA) != 0) {
        return false;
    }
    *result = (RunResult){.world = (int)json_integer_value(json_object_get(root, "world")),
                          .steps = (int)json_integer_value(json_object_get(root, "steps")),
                          .state = "ok"};
    const char *core_type = json_string_value(json_object_get(root, "core_type"));
    result->core_type = core_type ? arena_text(arena, core_type) : NULL;
    read_load(json_object_get(root, "expert_load"), result);
    result->loss = read_numbers(root, "loss", result->steps, arena);
    result->grad_norm = read_numbers(root, "grad_norm", result->steps, arena);
    result->step_time_s = read_numbers(root, "step_time_s", result->steps, arena);
    if (!result->loss || !result->grad_norm || !result->step_time_s) {
        return false;
    }
    for (int i = 0; i < result->steps; i++) {
        if (!isfinite(result->loss[i]) || !isfinite(result->grad_norm[i])) {
            result->state = "diverged";
        }
    }
    if (!read_stages(root, programs, arena, result) || !read_timelines(root, programs, arena, result)) {
        return false;
    }
    result->totals = result->stages[0].totals;
    result->task_count = result->stages[0].task_count;
    result->timeline = result->stages[0].timeline;
    return read_chip(root, arena, result);
}

Status run_result_take(const json_t *root, const StepPrograms *programs, Arena *arena, RunResult *result,
                       Error *error) {
    return read_result(root, programs, arena, result)
               ? STATUS_OK
               : error_set(error, STATUS_INTERNAL, "what rank 0 brought is not a result of this run (%s)", SCHEMA);
}

// ---------------------------------------------------------------------------------------------- failures

static void to_ascii(char *text) {
    for (; *text; text++) {
        *text = (unsigned char)*text < 0x80 ? *text : '?';
    }
}

static json_t *failure_json(int rank, const Error *error) {
    return json_pack("{s:i, s:i, s:s, s:s}", "rank", rank, "status", (int)error->status, "message", error->message,
                     "hint", error->hint);
}

// Paths and host names may hold any bytes, a long message may be cut within a character, and JSON takes UTF-8 only: the
// failure must be reported all the same.
json_t *run_failure_json(int rank, const Error *error) {
    json_t *root = failure_json(rank, error);
    if (root) {
        return root;
    }
    Error plain = *error;
    to_ascii(plain.message);
    to_ascii(plain.hint);
    return failure_json(rank, &plain);
}

// link() puts a finished file in place and fails if one exists: a second failure can neither replace nor truncate the
// first.
void run_failure_save(const char *path, int rank, const Error *error) {
    json_t *root = run_failure_json(rank, error);
    char own_path[PATH_MAX];
    const int length = snprintf(own_path, sizeof own_path, "%s.rank-%d", path, rank);
    if (root && length < (int)sizeof own_path && json_file_save(own_path, root, NULL) == STATUS_OK) {
        const int there = link(own_path, path);
        (void)there;
        unlink(own_path);
    }
    json_decref(root);
}

static void failure_take(json_t *root, Error *error) {
    const char *message = json_string_value(json_object_get(root, "message"));
    const char *hint = json_string_value(json_object_get(root, "hint"));
    const int rank = (int)json_integer_value(json_object_get(root, "rank"));
    const int status = (int)json_integer_value(json_object_get(root, "status"));
    error_set(error, status > STATUS_OK && status <= STATUS_INTERNAL ? (Status)status : STATUS_INTERNAL, "rank %d: %s",
              rank, message ? message : "failed without a word");
    if (hint && *hint) {
        error_hint(error, "%s", hint);
    }
    json_decref(root);
}

bool run_failure_load(const char *path, Error *error) {
    json_t *root = NULL;
    if (access(path, F_OK) != 0 || json_file_load(path, &root, NULL) != STATUS_OK) {
        return false;
    }
    failure_take(root, error);
    return true;
}

Status run_failure_parse(const char *text, Error *error) {
    json_t *root = NULL;
    TRY(json_text_load(text, "a rank's failure", &root, error));
    failure_take(root, error);
    return error->status;
}
