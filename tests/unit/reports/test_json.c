// The JSON that scripts rely on, of a hand-made answer.

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "tests/support/json_leaves.h"
#include "tests/unit/reports/fixture.h"

static Fixture fixture;

static Status print_plan(const Fixture *from, FILE *out, Error *error) {
    return answer_plan.json(&(PlanReport){.result = &from->result}, out, error);
}

static Status print_illegal(const Fixture *from, FILE *out, Error *error) {
    const Prediction nothing = {.plan = from->entries[0].plan};
    const PredictionReport report = {.request = &from->request, .prediction = &nothing, .reason = "because"};
    return answer_prediction.json(&report, out, error);
}

static Status print_run(const Fixture *from, FILE *out, Error *error) {
    static const double losses[] = {6.5, NAN};
    static const RunTask tasks[] = {{"qkv", "gemm", "compute", 4, 0.5, 0.25}};
    static const RunStage stages[] = {{0, 3, 0.25, 0.2, 7, 8}, {1, 1, NAN, 0.4, 6, 6}};
    const RunRecord run = {.request = &from->request,
                           .host = "h",
                           .device = "cpu",
                           .transport = "shm",
                           .lanes = "serial",
                           .seed = 7,
                           .steps = 2,
                           .losses = losses,
                           .grad_norms = losses,
                           .step_times_s = losses,
                           .peak_bytes = 5,
                           .planned_peak_bytes = 5,
                           .state = "diverged",
                           .prediction = from->entries[0],
                           .tasks = tasks,
                           .task_count = 1,
                           .stages = stages,
                           .stage_count = 2};
    return answer_run.json(&run, out, error);
}

static json_t *parsed(FixturePrint print) {
    fixture_fill(&fixture);
    char *text = fixture_printed(&fixture, print);
    json_error_t where;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    cr_assert_not_null(root, "%s at %d:%d of %s", where.text, where.line, where.column, text);
    free(text);
    return root;
}

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "%s", key);
    return json_number_value(value);
}

static json_t *first_entry(const json_t *plan) {
    return json_array_get(json_object_get(plan, "entries"), 0);
}

Test(json_plan, names_its_schema) {
    json_t *plan = parsed(print_plan);
    cr_assert_str_eq(json_string_value(json_object_get(plan, "schema")), "ndtune.plan/1");
    cr_assert_str_eq(json_string_value(json_object_get(first_entry(plan), "schema")), "ndtune.prediction/1");
    json_decref(plan);
}

Test(json_plan, entries_and_rejected_are_all_shapes) {
    json_t *plan = parsed(print_plan);
    cr_assert_eq(json_array_size(json_object_get(plan, "entries")), 2);
    cr_assert_eq(json_array_size(json_object_get(plan, "rejected")), 2);
    cr_assert_eq(number(json_object_get(plan, "search"), "shapes"), 4);
    json_decref(plan);
}

Test(json_plan, rejected_rows_have_mesh_and_reason) {
    json_t *plan = parsed(print_plan);
    json_t *row = json_array_get(json_object_get(plan, "rejected"), 0);
    cr_assert_eq(number(json_object_get(row, "mesh"), "dp_replicate"), 8);
    cr_assert_str_eq(json_string_value(json_object_get(row, "reason")), "does not fit by 1 GiB, \"really\"");
    json_decref(plan);
}

Test(json_prediction, memory_terms_sum_to_the_peak_exactly) {
    json_t *plan = parsed(print_plan);
    json_t *memory = json_object_get(first_entry(plan), "memory");
    static const char *const terms[] = {"parameters", "gradients",           "optimizer",     "activations",
                                        "logits",     "gathered_parameters", "communication", "runtime"};
    double sum = 0;
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        sum += number(memory, terms[i]);
    }
    cr_assert_eq(sum, number(memory, "peak_bytes"));
    cr_assert_eq(json_object_size(memory), 4 + 2 + sizeof terms / sizeof terms[0]);  // 2: by stage
    json_decref(plan);
}

Test(json_prediction, time_terms_nested_ones_included_sum_to_the_step) {
    json_t *plan = parsed(print_plan);
    json_t *entry = first_entry(plan);
    cr_assert_float_eq(json_leaves(json_object_get(entry, "time")), number(entry, "step_time_s"), 1e-12);
    json_decref(plan);
}

Test(json_prediction, has_every_number_of_the_contract) {
    json_t *plan = parsed(print_plan);
    json_t *entry = first_entry(plan);
    static const char *const keys[] = {"step_time_s",  "step_time_low_s",          "step_time_high_s",
                                       "tokens_per_s", "tokens_per_s_per_gpu",     "mfu",
                                       "hfu",          "model_flops_per_s_per_gpu"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        number(entry, keys[i]);
    }
    number(json_object_get(entry, "mesh"), "world");
    number(json_object_get(entry, "plan"), "global_batch");
    cr_assert(json_is_true(json_object_get(entry, "legal")));
    cr_assert(json_is_true(json_object_get(entry, "feasible")));
    cr_assert_str_eq(json_string_value(json_object_get(entry, "target")), "accelerate");
    cr_assert_str_eq(json_string_value(json_object_get(entry, "evidence")), "unvalidated");
    json_decref(plan);
}

Test(json_prediction, cost_is_the_price_of_the_world_and_of_the_tokens) {
    json_t *plan = parsed(print_plan);
    json_t *cost = json_object_get(first_entry(plan), "cost");
    cr_assert_eq(number(cost, "usd_per_hour"), 16);  // 8 x 2
    // 16 / 3600 dollars per second over 1e6 tokens per second = 4.444e-9 per token
    cr_assert_float_eq(number(cost, "usd_per_billion_tokens"), 16.0 / 3600 / 1e6 * 1e9, 1e-9);
    json_decref(plan);
}

Test(json_prediction, an_illegal_plan_has_null_numbers_and_its_reason) {
    json_t *root = parsed(print_illegal);
    cr_assert(json_is_false(json_object_get(root, "legal")));
    cr_assert(json_is_false(json_object_get(root, "feasible")));
    cr_assert(json_is_null(json_object_get(root, "step_time_s")));
    cr_assert(json_is_null(json_object_get(json_object_get(root, "memory"), "peak_bytes")));
    cr_assert_str_eq(json_string_value(json_array_get(json_object_get(root, "reasons"), 0)), "because");
    json_decref(root);
}

Test(json_run, keeps_the_contract_and_turns_nan_into_null) {
    json_t *root = parsed(print_run);
    cr_assert_str_eq(json_string_value(json_object_get(root, "schema")), "ndtune.run/1");
    cr_assert_eq(json_number_value(json_array_get(json_object_get(root, "loss"), 0)), 6.5);
    cr_assert(json_is_null(json_array_get(json_object_get(root, "loss"), 1)));
    cr_assert_eq(number(root, "peak_bytes"), number(root, "planned_peak_bytes"));
    cr_assert_str_eq(json_string_value(json_object_get(root, "state")), "diverged");
    json_t *task = json_array_get(json_object_get(root, "tasks"), 0);
    cr_assert_eq(number(task, "measured_s"), 0.5);
    cr_assert_eq(number(task, "predicted_s"), 0.25);
    const json_t *stages = json_object_get(root, "stages"), *first = json_array_get(stages, 0);
    cr_assert_eq(json_array_size(stages), 2);
    cr_assert_eq(number(first, "bubble_share"), 0.25);
    cr_assert_eq(number(first, "predicted_bubble_share"), 0.2);
    cr_assert_eq(number(first, "planned_peak_bytes"), 8);
    cr_assert(json_is_null(json_object_get(json_array_get(stages, 1), "bubble_share")));
    json_decref(root);
}
