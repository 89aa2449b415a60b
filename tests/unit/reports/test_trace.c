// Chrome trace events, checked against the fields of the published format ("Trace Event Format": X, M, s and f events
// with ph, pid, tid, ts, dur, id, bp) and against the step they show.

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/predict/predict_timeline.h"
#include "reports/trace.h"
#include "tests/support/sizes.h"

typedef struct Case {
    Arena arena;
    TuneRequest request;
    StepProgram program;
    Timeline timeline;
    int rank;
    json_t *root;
} Case;

static json_t *written(const TraceFile *file) {
    char *text = NULL;
    size_t bytes = 0;
    Error error = {0};
    FILE *out = open_memstream(&text, &bytes);
    cr_assert_eq(trace_chrome(file, out, &error), STATUS_OK, "%s", error.message);
    fclose(out);
    json_error_t why;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    cr_assert_not_null(root, "%s at %d", why.text, why.position);
    free(text);
    return root;
}

// A hybrid plan of every axis on two nodes, simulated; steps: how often it is laid into the file.
static Case make(int steps) {
    Case made = {.request = {.command = "ndtune predict </script>"}};
    Error error = {0};
    made.request.world = 16;
    made.request.seq = 4096;
    cr_assert_eq(model_find("llama-3-8b", &made.arena, &made.request.model, &error), STATUS_OK, "%s", error.message);
    made.request.model.layers = 4;
    cr_assert_eq(cluster_find("dgx-h100", &made.arena, &made.request.cluster, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find("accelerate", &made.request.target, &error), STATUS_OK);
    TrainPlan plan = {.mesh = {.size = SIZES(2, 2, 2, 2)},
                      .seq = 4096,
                      .micro_batch = 1,
                      .grad_accum = 2,
                      .zero = 3,
                      .precision = DTYPE_BF16,
                      .fused = FUSED_EAGER};
    plan_canonical(&plan);
    cr_assert_eq(predict_timeline(&made.request, &plan, &made.arena, &made.program, &made.timeline, &made.rank, &error),
                 STATUS_OK, "%s", error.message);
    Timeline measured = made.timeline;
    measured.origin = TIMELINE_MEASURED;
    const TraceFile file = {.request = &made.request,
                            .command = made.request.command,
                            .steps = {{&made.program, &made.timeline}, {&made.program, &measured}},
                            .step_count = steps,
                            .arena = &made.arena};
    made.root = written(&file);
    return made;
}

static void drop(Case *made) {
    json_decref(made->root);
    arena_free(&made->arena);
}

static double number(const json_t *event, const char *key) {
    const json_t *value = json_object_get(event, key);
    cr_assert(json_is_number(value), "%s is no number", key);
    return json_number_value(value);
}

static bool is_phase(const json_t *event, const char *phase) {
    return strcmp(json_string_value(json_object_get(event, "ph")), phase) == 0;
}

Test(trace, every_event_has_the_fields_of_the_published_format) {
    Case made = make(2);
    const json_t *events = json_object_get(made.root, "traceEvents"), *event;
    size_t index;
    cr_assert(json_is_array(events));
    cr_expect_str_eq(json_string_value(json_object_get(made.root, "displayTimeUnit")), "ms");
    json_array_foreach(events, index, event) {
        cr_assert(json_is_string(json_object_get(event, "name")));
        cr_assert(json_is_integer(json_object_get(event, "pid")) && json_is_integer(json_object_get(event, "tid")));
        if (is_phase(event, "M")) {
            cr_assert_eq(json_object_size(json_object_get(event, "args")), 1);
        } else if (is_phase(event, "X")) {
            cr_assert_geq(number(event, "ts"), 0);
            cr_assert_geq(number(event, "dur"), 0);
            cr_assert(json_is_object(json_object_get(event, "args")));
        } else {
            cr_assert(is_phase(event, "s") || is_phase(event, "f"));
            cr_assert_gt(number(event, "id"), 0);
            cr_assert_eq(is_phase(event, "f"), json_object_get(event, "bp") != NULL);
        }
    }
    drop(&made);
}

Test(trace, every_task_of_the_step_is_there_with_its_time) {
    Case made = make(1);
    const json_t *events = json_object_get(made.root, "traceEvents"), *event;
    size_t index;
    int64_t spans = 0;
    double end_us = 0, busy_s = 0;
    json_array_foreach(events, index, event) {
        if (is_phase(event, "X")) {
            const Span *span = &made.timeline.spans[spans++];
            cr_expect_str_eq(json_string_value(json_object_get(event, "name")), made.program.tasks[span->task].name);
            cr_expect_float_eq(number(event, "ts"), 1e6 * span->start_s, 1e-3);
            end_us = fmax(end_us, number(event, "ts") + number(event, "dur"));
            busy_s += 1e-6 * number(event, "dur");
        }
    }
    cr_expect_eq(spans, made.timeline.span_count);
    cr_expect_leq(end_us, 1e6 * made.timeline.step_s + 1e-3);
    cr_expect_gt(busy_s, 0.5 * made.timeline.step_s);
    drop(&made);
}

Test(trace, tasks_of_a_lane_follow_each_other_without_overlap) {
    Case made = make(2);
    const json_t *events = json_object_get(made.root, "traceEvents"), *event;
    size_t index;
    enum { LANES = 64 };
    long long until_ns[2][LANES] = {{0}};  // of the two processes of the one rank
    json_array_foreach(events, index, event) {
        if (is_phase(event, "X")) {
            const int step = number(event, "pid") > MESH_MAX_WORLD, lane = (int)number(event, "tid");
            cr_assert_lt(lane, LANES);
            const long long start_ns = llround(1e3 * number(event, "ts"));
            cr_assert_geq(start_ns, until_ns[step][lane], "event %zu", index);
            until_ns[step][lane] = start_ns + llround(1e3 * number(event, "dur"));
        }
    }
    drop(&made);
}

// An arrow begins inside a task of one lane and ends where a task of another begins, not before.
Test(trace, an_arrow_joins_two_tasks_in_the_order_of_time) {
    Case made = make(1);
    const json_t *events = json_object_get(made.root, "traceEvents"), *event, *begin = NULL;
    size_t index;
    int arrows = 0;
    json_array_foreach(events, index, event) {
        if (is_phase(event, "s")) {
            begin = event;
        } else if (is_phase(event, "f")) {
            cr_assert_not_null(begin);
            cr_assert_eq(number(begin, "id"), number(event, "id"));
            cr_assert_neq(number(begin, "tid"), number(event, "tid"));
            cr_assert_leq(number(begin, "ts"), number(event, "ts"));
            begin = NULL;
            arrows++;
        }
    }
    cr_expect_gt(arrows, 10);
    drop(&made);
}

Test(trace, a_collective_says_its_bytes_and_how_much_of_it_is_in_the_open) {
    Case made = make(1);
    const json_t *events = json_object_get(made.root, "traceEvents"), *event;
    size_t index;
    int collectives = 0, hidden = 0, open = 0;
    json_array_foreach(events, index, event) {
        const json_t *args = json_object_get(event, "args");
        if (!is_phase(event, "X") || !json_object_get(args, "exposed_us")) {
            continue;
        }
        collectives++;
        const double exposed = number(args, "exposed_us"), dur = number(event, "dur");
        cr_assert_leq(exposed, dur + 1e-9);
        cr_assert_geq(exposed, 0);
        cr_assert_gt(number(args, "bytes"), 0);
        hidden += exposed < 0.001;
        open += exposed > 0.5 * dur;
    }
    cr_expect_gt(collectives, 10);
    cr_expect_gt(open, 0);
    cr_expect_gt(hidden, 0);
    drop(&made);
}

Test(trace, two_steps_lie_in_one_file_a_process_each) {
    Case made = make(2);
    const json_t *events = json_object_get(made.root, "traceEvents"), *event;
    size_t index;
    int simulated = 0, measured = 0;
    json_array_foreach(events, index, event) {
        if (is_phase(event, "M") && strcmp(json_string_value(json_object_get(event, "name")), "process_name") == 0) {
            const char *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
            simulated += strncmp(name, "simulated rank", 14) == 0;
            measured += strncmp(name, "measured rank", 13) == 0;
        }
    }
    cr_expect_eq(simulated, 1);
    cr_expect_eq(measured, 1);
    drop(&made);
}
