// From files to scores: rows whose measured times are known multiples of the prediction.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "autotune/predict/predict.h"
#include "tests/support/run_program.h"
#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;
static char *folder;

static void begin(void) {
    folder = temp_dir_make();
}

static void forget(void) {
    temp_dir_remove(folder);
    arena_free(&arena);
}

TestSuite(accuracy, .init = begin, .fini = forget);

static Accuracy accuracy_of(AccuracyOptions options) {
    Accuracy accuracy;
    Error error = {0};
    cr_assert_eq(accuracy_run(&options, NULL, &arena, &accuracy, &error), STATUS_OK, "%s", error.message);
    return accuracy;
}

static Accuracy accuracy_of_text(const char *text, Effort effort) {
    return accuracy_of((AccuracyOptions){
        .runs_paths = (const char *const[]){run_text_file(&arena, folder, "runs.csv", text), NULL}, .effort = effort});
}

// What this version predicts for a row of one micro-batch.
static double predicted_s(int micro_batch, Effort effort) {
    const char *text = arena_format(&arena, "%s%s", RUNS_HEADER,
                                    run_line(&arena, (RunLine){.micro_batch = micro_batch, .step_time_s = 1}));
    const Accuracy accuracy = accuracy_of_text(text, effort);
    cr_assert_eq(accuracy.scored, 1, "%s", accuracy.cases[0].skipped);
    return accuracy.cases[0].prediction.step_s;
}

Test(accuracy, a_step_of_0_s_leaves_its_row_out_unless_the_run_failed) {
    const char *line = run_line(&arena, (RunLine){.id = "a", .step_time_s = 5}), *at = strstr(line, ",5,,");
    cr_assert_not_null(at, "%s", line);
    const char *none = arena_format(&arena, "%.*s,0,,%s", (int)(at - line), line, at + strlen(",5,,"));
    const char *runs = arena_format(&arena, "%s%s%s", RUNS_HEADER, none, run_line(&arena, (RunLine){.id = "b"}));
    const char *failures = arena_format(&arena, "%s%s", RUNS_HEADER, none);
    const Accuracy accuracy = accuracy_of(
        (AccuracyOptions){.runs_paths = (const char *const[]){run_text_file(&arena, folder, "runs.csv", runs), NULL},
                          .oom_paths = (const char *const[]){run_text_file(&arena, folder, "oom.csv", failures), NULL},
                          .effort = EFFORT_ESTIMATE});
    cr_assert_str_eq(accuracy.cases[0].skipped, "step_time_s is 0");
    cr_expect_null(accuracy.cases[1].skipped, "an empty one is unknown");
    cr_expect_eq(accuracy.oom.n, 1);
}

// Measured at predicted / (1 + error) for errors +25, -20, +10, -5 and 0 %.
static const char *golden_rows(Effort effort) {
    static const double errors[] = {0.25, -0.20, 0.10, -0.05, 0.0};
    const char *text = RUNS_HEADER;
    for (int i = 0; i < 5; i++) {
        const double measured = predicted_s(i + 1, effort) / (1 + errors[i]);
        text = arena_format(&arena, "%s%s", text,
                            run_line(&arena, (RunLine){.id = arena_format(&arena, "r%d", i),
                                                       .source = i < 2 ? "one" : "two",
                                                       .micro_batch = i + 1,
                                                       .step_time_s = measured}));
    }
    return arena_format(&arena, "%s%s", text, run_line(&arena, (RunLine){.id = "off", .unusable = true}));
}

Test(accuracy, errors_are_scored_as_worked_out) {
    for (int effort = 0; effort < EFFORT_COUNT; effort++) {
        const Accuracy accuracy = accuracy_of_text(golden_rows((Effort)effort), (Effort)effort);
        cr_expect_eq(accuracy.scored, 5);
        cr_expect_eq(accuracy.step.n, 5);
        cr_expect_float_eq(accuracy.step.median_abs, 0.10, 1e-9);  // of 0, .05, .10, .20, .25
        cr_expect_float_eq(accuracy.step.p90_abs, 0.23, 1e-9);     // place 3.6: .20 + .6 * .05
        cr_expect_float_eq(accuracy.step.bias, 0.0, 1e-9);         // of -.20, -.05, 0, .10, .25
        cr_expect_eq(accuracy.skip_count, 1);
        cr_expect_str_eq(accuracy.skips[0].reason, "marked as not usable");
    }
}

Test(accuracy, predictions_are_those_of_predict) {
    const char *text = arena_format(&arena, "%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.step_time_s = 1}));
    const Accuracy accuracy = accuracy_of_text(text, EFFORT_SIMULATE);
    const RunCase *run = &accuracy.cases[0];
    Predictor predictor;
    Prediction direct;
    Error error = {0};
    predictor_init(&predictor, &run->request, NULL);
    cr_assert_eq(predict_plan(&predictor, &run->plan, false, &arena, &direct, &error), STATUS_OK);
    cr_assert_eq(run->prediction.step_s, direct.step_s);
    cr_assert_eq(run->prediction.memory.reserved_bytes, direct.memory.reserved_bytes);
    cr_assert_eq(run->prediction.content_hash, direct.content_hash);
    predictor_free(&predictor);
}

Test(accuracy, rows_of_one_class_are_scored_together) {
    const Accuracy accuracy = accuracy_of_text(golden_rows(EFFORT_ESTIMATE), EFFORT_ESTIMATE);
    cr_assert_eq(accuracy.step_by_class.count, 1);
    cr_assert_str_eq(accuracy.step_by_class.rows[0].class, "dense");
    cr_assert_eq(accuracy.step_by_class.rows[0].score.n, accuracy.step.n);
    RunCase run = accuracy.cases[0];
    run.plan.mesh.size[AXIS_PP] = 2;
    cr_expect_str_eq(accuracy_class(&run), "stages");
    run.request.model.experts.count = 8;
    cr_expect_str_eq(accuracy_class(&run), "experts");
    run.plan.finetune = FINETUNE_LORA;
    cr_expect_str_eq(accuracy_class(&run), "adapters");
}

Test(accuracy, rows_of_one_source_are_scored_together) {
    const Accuracy accuracy = accuracy_of_text(golden_rows(EFFORT_ESTIMATE), EFFORT_ESTIMATE);
    cr_assert_eq(accuracy.step_by_source.count, 2);
    cr_assert_str_eq(accuracy.step_by_source.rows[0].source, "two");  // the larger first
    cr_assert_float_eq(accuracy.step_by_source.rows[0].score.median_abs, 0.05, 1e-9);
    cr_assert_float_eq(accuracy.step_by_source.rows[1].score.median_abs, 0.225, 1e-9);
}

// Of one plan a fitted MFU is the plan's own; four rows are too few to say.
Test(accuracy, a_constant_mfu_beats_five_rows_of_one_plan_that_are_all_predicted_too_slow) {
    const char *text = RUNS_HEADER;
    for (int i = 0; i < 5; i++) {
        const Accuracy few = accuracy_of_text(i > 0 ? text : golden_rows(EFFORT_ESTIMATE), EFFORT_ESTIMATE);
        cr_expect(!accuracy_is_judged(&few.step_by_machine.rows[0]), "%d rows", i);
        text = arena_format(&arena, "%s%s", text,
                            run_line(&arena, (RunLine){.id = arena_format(&arena, "r%d", i),
                                                       .source = "one",
                                                       .micro_batch = 1,
                                                       .step_time_s = predicted_s(1, EFFORT_ESTIMATE) / 1.25}));
    }
    const Accuracy accuracy = accuracy_of_text(text, EFFORT_ESTIMATE);
    cr_assert_eq(accuracy.step_by_machine.count, 1);
    cr_expect(accuracy_is_judged(&accuracy.step_by_machine.rows[0]));
    cr_expect(accuracy_is_beaten(&accuracy.step_by_machine.rows[0]));
}

static double step_on(const char *cluster) {
    const char *text =
        arena_format(&arena, "%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.cluster = cluster, .step_time_s = 1}));
    return accuracy_of_text(text, EFFORT_SIMULATE).cases[0].prediction.step_s;
}

// Both sources are predicted without error, and nothing but its own run tells of a chip.
Test(accuracy, a_number_that_one_source_determines_falls_back_to_what_one_would_take_without_runs) {
    static const char *const clusters[] = {"dgx-h100", "mi300x-8x"};
    const char *text = RUNS_HEADER;
    for (int i = 0; i < 2; i++) {
        text = arena_format(&arena, "%s%s", text,
                            run_line(&arena, (RunLine){.id = clusters[i],
                                                       .source = clusters[i],
                                                       .cluster = clusters[i],
                                                       .step_time_s = step_on(clusters[i])}));
    }
    const Accuracy accuracy = accuracy_of((AccuracyOptions){
        .runs_paths = (const char *const[]){run_text_file(&arena, folder, "runs.csv", text), NULL}, .leave_out = true});
    const LeftOut *left = &accuracy.left_out;
    cr_assert_eq(left->source_count, 2);
    cr_expect_lt(left->sources[1].median_abs, 1e-9);
    cr_expect_gt(left->sources[1].left_median_abs, 1e-3);
    int found = 0;
    for (int i = 0; i < left->parameter_count; i++) {
        if (strcmp(left->parameters[i].name, "attention's gradients on MI300X") == 0) {
            found++;
            cr_expect_str_eq(left->parameters[i].rests_on, "mi300x-8x");
            cr_expect_float_eq(left->parameters[i].left, left->parameters[i].without, 1e-9);
            cr_expect_eq(left->parameters[i].n, 1);
        }
    }
    cr_expect_eq(found, 1);
}

Test(accuracy, a_failure_is_judged_by_memory_and_a_run_too) {
    const char *rows = arena_format(
        &arena, "%s%s%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.id = "fits", .gpu_mem_gb = 80, .step_time_s = 1}),
        run_line(&arena, (RunLine){.id = "cannot", .gpu_mem_gb = 80, .dp_shard = 1, .step_time_s = 1}),
        run_line(&arena, (RunLine){.id = "unknown memory", .step_time_s = 1}));
    const Accuracy accuracy = accuracy_of(
        (AccuracyOptions){.runs_paths = (const char *const[]){run_text_file(&arena, folder, "r.csv", rows), NULL},
                          .oom_paths = (const char *const[]){run_text_file(&arena, folder, "o.csv", rows), NULL},
                          .effort = EFFORT_ESTIMATE});
    cr_assert_eq(accuracy.oom.n, 3);
    cr_assert_eq(accuracy.oom.called_infeasible, 1, "fp32 masters and Adam of 8 billion parameters need 96 GB");
    cr_assert_eq(accuracy.oom.feasible_rows, 2);
    cr_assert_eq(accuracy.oom.called_feasible, 1);
}

// With a step that was printed before it did.
Test(accuracy, a_row_that_ran_out_of_memory_is_a_failure_in_whichever_file) {
    const char *ran = run_line(&arena, (RunLine){.id = "ran", .gpu_mem_gb = 80, .step_time_s = 1}),
               *failed = run_line(&arena, (RunLine){.id = "failed", .gpu_mem_gb = 80, .dp_shard = 1, .step_time_s = 1});
    const char *rows = arena_format(&arena, "%.*s,oom\n%.*s,0\n%.*s,1\n", (int)strlen(RUNS_HEADER) - 1, RUNS_HEADER,
                                    (int)strlen(ran) - 1, ran, (int)strlen(failed) - 1, failed);
    const Accuracy accuracy = accuracy_of_text(rows, EFFORT_ESTIMATE);
    cr_expect_eq(accuracy.scored, 1);
    cr_expect_eq(accuracy.oom.feasible_rows, 1);
    cr_expect_eq(accuracy.oom.n, 1);
    cr_expect_eq(accuracy.oom.called_infeasible, 1);
}

static uint64_t next_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

// The lines after the header, in another order.
static const char *shuffled(const char *text, uint64_t *seed) {
    enum { MAX_LINES = 256 };
    char *copy = arena_text(&arena, text), *lines[MAX_LINES], *rest = NULL;
    int count = 0;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        cr_assert_lt(count, MAX_LINES);
        lines[count++] = line;
    }
    for (int i = count - 1; i > 1; i--) {
        const int j = 1 + (int)(next_random(seed) % (uint64_t)i);
        char *line = lines[i];
        lines[i] = lines[j];
        lines[j] = line;
    }
    const char *result = "";
    for (int i = 0; i < count; i++) {
        result = arena_format(&arena, "%s%s\n", result, lines[i]);
    }
    return result;
}

static void expect_same(const ErrorScore *a, const ErrorScore *b) {
    cr_expect_eq(a->n, b->n);
    cr_expect_eq(a->median_abs, b->median_abs);
    cr_expect_eq(a->p90_abs, b->p90_abs);
    cr_expect_eq(a->bias, b->bias);
    cr_expect_eq(a->in_interval, b->in_interval);
    cr_expect_eq(a->baseline_mfu, b->baseline_mfu);
}

Test(accuracy, the_order_of_rows_changes_no_score) {
    uint64_t seed = (uint64_t)time(NULL) | 1;
    cr_log_info("seed %llu", (unsigned long long)seed);
    const char *text = golden_rows(EFFORT_ESTIMATE);
    const Accuracy first = accuracy_of_text(text, EFFORT_ESTIMATE);
    for (int i = 0; i < 5; i++) {
        const Accuracy other = accuracy_of_text(shuffled(text, &seed), EFFORT_ESTIMATE);
        expect_same(&first.step, &other.step);
        cr_assert_eq(first.step_by_source.count, other.step_by_source.count);
        for (int row = 0; row < first.step_by_source.count; row++) {
            cr_expect_str_eq(first.step_by_source.rows[row].source, other.step_by_source.rows[row].source);
            expect_same(&first.step_by_source.rows[row].score, &other.step_by_source.rows[row].score);
        }
    }
}

Test(accuracy, a_row_whose_label_adds_a_switch_is_scored_after_one_without_it) {
    const Accuracy accuracy = accuracy_of_text("id,model,cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,"
                                               "micro_batch,zero,cuda_graph,step_time_s\n"
                                               "a,llama-3-8b,dgx-h100,megatron,1,8,1,1,4096,1,1,,1\n"
                                               "b,llama-3-8b,dgx-h100,megatron,1,8,1,1,4096,1,1,mlp,1\n",
                                               EFFORT_ESTIMATE);
    cr_expect_eq(accuracy.scored, 2, "%s", accuracy.cases[1].skipped);
}

Test(accuracy, a_group_is_ranked_by_its_rows) {
    const double fast = predicted_s(2, EFFORT_ESTIMATE), slow = predicted_s(1, EFFORT_ESTIMATE);
    // By time per token micro-batch 2 is predicted best; measured, it takes 1.5 times the tokens' time of the other.
    const double measured_slow = slow, measured_fast = 2 * 1.5 * slow;
    cr_assert_lt(fast / 2, slow);
    const char *rows = arena_format(
        &arena, "%s%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.id = "a", .step_time_s = measured_slow}),
        run_line(&arena, (RunLine){.id = "b", .micro_batch = 2, .step_time_s = measured_fast}));
    const Accuracy accuracy = accuracy_of((AccuracyOptions){
        .runs_paths = (const char *const[]){run_text_file(&arena, folder, "r.csv", rows), NULL},
        .groups_paths = (const char *const[]){run_text_file(&arena, folder, "g.csv", "group,ids\ng,a b\n"), NULL},
        .effort = EFFORT_ESTIMATE});
    cr_assert_eq(accuracy.ranking.groups, 1);
    cr_assert_float_eq(accuracy.ranking.median_regret, 1.5, 1e-9);
    cr_assert_float_eq(accuracy.ranking.median_kendall_tau, -1, 1e-12);
}

static bool stop_at_once(void *context, const char *label, int64_t done, int64_t total) {
    (void)context, (void)label, (void)total;
    return done < 2;
}

Test(accuracy, an_interrupted_call_says_how_far_it_came) {
    const char *path = run_text_file(&arena, folder, "runs.csv", golden_rows(EFFORT_ESTIMATE));
    const Progress progress = {.update = stop_at_once};
    Accuracy accuracy;
    Error error = {0};
    cr_assert_eq(accuracy_run(&(AccuracyOptions){.runs_paths = (const char *const[]){path, NULL}}, &progress, &arena,
                              &accuracy, &error),
                 STATUS_ENVIRONMENT);
    cr_assert_str_eq(error.message, "interrupted after 2 of 6 rows");
}

// Two stages that do not need the same memory.
static RunLine staged(void) {
    return (RunLine){.target = "nanotron", .pp = 2, .dp_shard = 1, .tp = 4, .micro_batch = 8, .step_time_s = 1};
}

// With what its framework logged.
static const char *logged_row(void) {
    RunLine line = staged();
    line.recompute = "full";
    line.peak_mem_gb = 60;
    return run_line(&arena, line);
}

// Nanotron's last stage holds logits; its log is of the first, and of the allocator.
Test(accuracy, memory_of_a_pipeline_is_that_of_the_stage_and_kind_that_its_framework_logs) {
    const Accuracy accuracy =
        accuracy_of_text(arena_format(&arena, "%s%s", RUNS_HEADER, logged_row()), EFFORT_SIMULATE);
    const RunCase *run = &accuracy.cases[0];
    Predictor predictor;
    MemoryBreakdown first;
    MemoryKind kind;
    Error error = {0};
    double measured, predicted;
    cr_assert_eq(accuracy.scored, 1, "%s", run->skipped);
    predictor_init(&predictor, &run->request, NULL);
    cr_assert_eq(predict_memory_of_stage(&predictor, &run->plan, 0, &arena, &first, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert(accuracy_memory(run, &kind, &measured, &predicted));
    cr_expect_eq(run->prediction.memory.stage, 1, "the fullest stage decides whether it fits");
    cr_expect_float_eq(predicted, first.allocator_bytes, 1);
    predictor_free(&predictor);
}

// The same log, of a source that prints the largest of all ranks.
Test(accuracy, memory_that_is_the_largest_of_all_ranks_is_that_of_the_fullest_stage) {
    const char *header = RUNS_HEADER, *row = logged_row();
    const Accuracy accuracy =
        accuracy_of_text(arena_format(&arena, "%.*s,mem_fullest\n%.*s,1\n", (int)strcspn(header, "\n"), header,
                                      (int)strcspn(row, "\n"), row),
                         EFFORT_SIMULATE);
    const RunCase *run = &accuracy.cases[0];
    MemoryKind kind;
    double measured, predicted;
    cr_assert_eq(accuracy.scored, 1, "%s", run->skipped);
    cr_assert(accuracy_memory(run, &kind, &measured, &predicted));
    cr_expect_float_eq(predicted, run->prediction.memory.allocator_bytes, 1);
}

Test(accuracy, failures_are_judged_by_the_fullest_stage_as_runs_are) {
    RunLine line = staged();
    line.recompute = "none";
    line.gpu_mem_gb = 80;
    const char *text = arena_format(&arena, "%s%s", RUNS_HEADER, run_line(&arena, line));
    const Accuracy accuracy = accuracy_of(
        (AccuracyOptions){.runs_paths = (const char *const[]){run_text_file(&arena, folder, "runs.csv", text), NULL},
                          .oom_paths = (const char *const[]){run_text_file(&arena, folder, "oom.csv", text), NULL},
                          .effort = EFFORT_ESTIMATE});
    cr_assert_eq(accuracy.oom.n, 1);
    cr_expect_eq(accuracy.failure_cases[0].prediction.memory.stage, accuracy.cases[0].prediction.memory.stage);
    cr_expect_eq(accuracy.failure_cases[0].prediction.fits, accuracy.cases[0].prediction.fits);
}
