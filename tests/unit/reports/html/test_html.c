// The page as a whole: its sections, its data, its size, and that hostile names have no effect.

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/sizes.h"
#include "tests/unit/reports/html/page.h"

static Page page;

static void begin(void) {
    page_begin(&page);
}

static void end(void) {
    page_end(&page);
}

TestSuite(html, .init = begin, .fini = end);

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "%s", key);
    return json_number_value(value);
}

static const json_t *detail(const json_t *data, size_t place) {
    return json_array_get(json_object_get(data, "details"), place);
}

#define SAYS(words) cr_expect_not_null(strstr(page.text, words), "the page does not say: %s", words)

Test(html, has_every_section_in_the_order_in_which_people_ask) {
    static const char *const sections[] = {"answer",      "config",   "batch",       "cost",    "compare",
                                           "sensitivity", "time",     "timeline",    "memory",  "candidates",
                                           "rejected",    "measured", "assumptions", "sources", "provenance"};
    page_write(&page);
    const char *at = page.text;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        char open[64];
        snprintf(open, sizeof open, "<section id=\"%s\"", sections[i]);
        at = strstr(at, open);
        cr_assert_not_null(at, "%s is missing or out of order", sections[i]);
    }
}

Test(html, headings_are_one_h1_and_then_h2) {
    page_write(&page);
    const char *h1 = strstr(page.text, "<h1>");
    cr_assert_not_null(h1);
    cr_assert_null(strstr(h1 + 1, "<h1>"));
    cr_assert_gt(strstr(page.text, "<h2"), h1);
}

Test(html, leaves_no_place_of_the_template_open) {
    page_write(&page);
    char *body = page_between(&page, "<body>", "<script");
    cr_assert_null(strstr(body, "{{"), "%s", strstr(body, "{{"));
    free(body);
}

Test(html, the_numbers_are_those_of_the_answer) {
    page_write(&page);
    json_t *data = page_data(&page);
    const json_t *first = detail(data, 0);
    cr_expect_eq(number(data, "entry_count"), 2);
    cr_expect_eq(number(first, "step_time_s"), 1.0);
    cr_expect_eq(number(first, "tokens_per_s"), 1e6);
    cr_expect_eq(number(json_object_get(first, "memory"), "reserved_bytes"), 400);
    cr_expect_eq(number(json_object_get(first, "mesh"), "tp"), 2);
    json_decref(data);
    SAYS("<strong>1.00 M</strong>");
    SAYS("<strong>1.00 s</strong>");
    SAYS("80 % interval 800 ms to 1.45 s");
    SAYS("the next is dp_shard=8");
    SAYS("micro-batch 2 x 1 dp_replicate x 4 dp_shard x 4 accumulation");
    SAYS("does not fit by 1 GiB, &quot;really&quot;");
}

Test(html, shapes_that_are_close_are_counted_and_compared_with_the_interval) {
    page.fixture.entries[1].tokens_per_s = 0.97e6;
    page_write(&page);
    SAYS("1 other is within 5 %, too close to call: measure");
}

Test(html, the_lead_over_plain_fsdp_is_said_or_why_there_is_none) {
    page_write(&page);
    SAYS("The next shape is plain FSDP.");
    free(page.text);
    Prediction three[] = {page.fixture.entries[0], page.fixture.entries[0], page.fixture.entries[1]};
    three[1].plan.mesh = (Mesh){.size = SIZES(1, 2, 1, 4)};
    page.fixture.result.entries = three;
    page.fixture.result.entry_count = 3;
    page_write(&page);
    SAYS("Against plain FSDP (dp_shard=8) it is 25.0 % faster.");
    free(page.text);
    page.fixture.result.entry_count = 1;
    page.fixture.rejected[0].plan.mesh = page.fixture.entries[1].plan.mesh;
    page_write(&page);
    SAYS("Plain FSDP (dp_shard=8) cannot run.");
}

Test(html, other_frameworks_have_their_file_or_the_reason) {
    TuneRequest requests[] = {page.fixture.request, page.fixture.request};
    HtmlOther others[] = {{.name = "axolotl", .request = &requests[0], .prediction = page.fixture.entries[0]},
                          {.name = "megatron@core", .request = &requests[1], .reason = "there is no <stage 3>"}};
    Error error = {0};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(target_find(others[i].name, &requests[i].target, &error), STATUS_OK, "%s", error.message);
    }
    others[0].prediction.plan.fused = FUSED_EAGER;
    others[0].prediction.plan.bf16_master = true;  // axolotl has no others
    page.report.others = others;
    page.report.other_count = 2;
    page_write(&page);
    char *folded = page_between(&page, "<details id=\"other-frameworks\">", "<section");
    cr_expect_not_null(strstr(folded, "id=\"config-axolotl\" data-format=\"axolotl\">"), "%s", folded);
    cr_expect_not_null(strstr(folded, "Predicted step there: 1.00 s (800 ms .. 1.45 s)."), "%s", folded);
    cr_expect_not_null(strstr(folded, "dp_shard_size: 4"), "%s", folded);
    cr_expect_not_null(strstr(folded, "Not written: megatron: there is no &lt;stage 3&gt;."), "%s", folded);
    free(folded);
}

Test(html, an_interval_narrower_than_the_distance_is_not_called_wide) {
    page.fixture.entries[1].tokens_per_s = 0.97e6;
    page.fixture.entries[0].step_low_s = 0.99;
    page.fixture.entries[0].step_high_s = 1.01;
    page_write(&page);
    SAYS("1 other is within 5 %: measure");
}

Test(html, a_model_with_markup_for_a_name_does_nothing) {
    static const char name[] = "</script><img onerror=alert(1) src=x>";
    snprintf(page.fixture.request.model.name, sizeof page.fixture.request.model.name, "%s", name);
    page.fixture.request.model_asked = name;
    page.fixture.request.command = name;
    page.fixture.assumptions[0] = name;
    page.fixture.rejected[0].reason = name;
    page_write(&page);
    cr_assert_null(strstr(page.text, "<img"));
    SAYS("&lt;img onerror=alert(1) src=x&gt;");
    json_t *data = page_data(&page);
    cr_assert_str_eq(json_string_value(json_object_get(json_object_get(data, "request"), "model")), name);
    json_decref(data);
}

Test(html, asks_nothing_of_any_network_and_runs_only_what_its_policy_names) {
    page_write(&page);
    char *policy = page_between(&page, "Content-Security-Policy\" content=\"", "\"");
    cr_expect_not_null(strstr(policy, "default-src 'none'"), "%s", policy);
    cr_expect_not_null(strstr(policy, "script-src 'sha256-"), "%s", policy);
    cr_expect_null(strstr(policy, "unsafe"), "%s", policy);
    cr_expect_null(strstr(policy, "http"), "%s", policy);
    free(policy);
    char *markup = page_between(&page, "</style>", "<script");
    static const char *const outside[] = {" src=", "<link", "<iframe", "http:", "https:", " style=", " onclick="};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        cr_expect_null(strstr(markup, outside[i]), "%s", outside[i]);
    }
    free(markup);
}

Test(html, one_plan_alone_is_a_page) {
    page.fixture.result.entry_count = 1;
    page.fixture.result.rejected_count = 0;
    page_write(&page);
    SAYS("It is the only shape that can run.");
    SAYS("No shape was rejected.");
    json_decref(page_data(&page));
}

Test(html, a_plan_that_was_asked_about_alone_is_no_recommendation) {
    page.fixture.result.entry_count = 1;
    page.report.one_plan = true;
    page_write(&page);
    SAYS("One plan: <strong>dp_shard=4,tp=2</strong>");
    SAYS("This plan alone was asked about");
}

Test(html, no_plan_at_all_is_a_page_with_the_reasons) {
    page.fixture.result.entry_count = 0;
    page_write(&page);
    SAYS("No shape can run.");
    SAYS("does not fit by 1 GiB");
    json_decref(page_data(&page));
}

Test(html, without_measured_runs_says_how_to_get_them) {
    page_write(&page);
    SAYS("The store has no measured run of these plans");
    SAYS("ndtune validate --top 3");
}

Test(html, measured_runs_stand_beside_their_predictions) {
    static const double steps[] = {1.0, 1.25, 1.25};
    RunRecord run = {
        .source = "executor", .state = "ok", .steps = 3, .warm_up = 1, .step_times_s = steps, .measured_step_s = 1.25};
    ValidateRow row = {.prediction = &page.fixture.entries[0], .place = 1, .runs = &run, .run_count = 1, .state = "ok"};
    Validation validation = {.request = &page.fixture.request, .source = "executor", .rows = &row, .row_count = 1};
    validate_summarize(&validation, &page.arena);
    page.report.validation = &validation;
    page_write(&page);
    SAYS("<td class=\"number\">0.80</td><td>inside</td><td class=\"number\">1</td>");  // 1.00 predicted / 1.25 measured
    const char *tiles = strstr(page.text, "<dl class=\"cards\">");
    cr_assert_not_null(tiles);
    const char *ran = strstr(tiles, "<dt>Measured step</dt><dd><strong>1.25 s</strong>");
    const char *said = strstr(tiles, "<dt>Predicted step</dt><dd><strong>1.00 s</strong><span>-20.0 % off</span>");
    cr_expect(ran && said && ran < said, "the measured step does not lead");
    SAYS("<dt>Tokens per second, measured</dt><dd><strong>800 k</strong>");
    SAYS("Median error 20.0 %, bias -20.0 %; 1 of 1 within the predicted interval");
    json_t *data = page_data(&page);
    const json_t *shown = json_array_get(json_object_get(data, "validation"), 0);
    cr_expect_eq(number(shown, "measured_s"), 1.25);
    json_decref(data);
}

Test(html, a_step_far_from_its_prediction_says_what_that_most_often_is) {
    static const double steps[] = {4.0, 4.0};
    RunRecord run = {.source = "executor", .state = "ok", .steps = 2, .step_times_s = steps, .measured_step_s = 4.0};
    ValidateRow row = {.prediction = &page.fixture.entries[0], .place = 1, .runs = &run, .run_count = 1, .state = "ok"};
    Validation validation = {.request = &page.fixture.request, .source = "executor", .rows = &row, .row_count = 1};
    validate_summarize(&validation, &page.arena);
    page.report.validation = &validation;
    page_write(&page);
    SAYS("</dl>\n<p>4.0 times the prediction: this machine is not the one of profile ");
}

Test(html, a_faster_measured_plan_outranks_the_predicted_best) {
    static const double slow[] = {3.0, 3.0}, fast[] = {2.0, 2.0};
    RunRecord runs[] = {
        {.source = "executor", .state = "ok", .steps = 2, .step_times_s = slow, .measured_step_s = 3.0},
        {.source = "executor", .state = "ok", .steps = 2, .step_times_s = fast, .measured_step_s = 2.0}};
    page.fixture.entries[1].plan.mesh = (Mesh){.size = SIZES(1, 4, 2, 1)};  // as many tokens in a step as the first
    ValidateRow rows[] = {
        {.prediction = &page.fixture.entries[0], .place = 1, .runs = &runs[0], .run_count = 1, .state = "ok"},
        {.prediction = &page.fixture.entries[1], .place = 2, .runs = &runs[1], .run_count = 1, .state = "ok"}};
    Validation validation = {.request = &page.fixture.request, .source = "executor", .rows = rows, .row_count = 2};
    validate_summarize(&validation, &page.arena);
    page.report.validation = &validation;
    page_write(&page);
    SAYS("Measured fastest: <strong>dp_shard=4,cp=2</strong>");
    SAYS("Predicted best: <strong>dp_shard=4,tp=2</strong>");
    SAYS("what was predicted best of them took 50.0 % more time per token. No plan ran twice");
}

// The first ran at 2.0 and 2.2 s, the second at 2.2 s: medians of 2.1 and 2.2 are 4.8 % apart, the repeats 10 %.
Test(html, a_lead_that_repeats_do_not_settle_is_not_called_settled) {
    static const double early[] = {2.0, 2.0}, late[] = {2.2, 2.2};
    RunRecord runs[] = {
        {.source = "executor", .state = "ok", .steps = 2, .step_times_s = early, .measured_step_s = 2.0},
        {.source = "executor", .state = "ok", .steps = 2, .step_times_s = late, .measured_step_s = 2.2}};
    page.fixture.entries[1].plan.mesh = (Mesh){.size = SIZES(1, 4, 2, 1)};  // as many tokens in a step as the first
    ValidateRow rows[] = {
        {.prediction = &page.fixture.entries[0], .place = 1, .runs = runs, .run_count = 2, .state = "ok"},
        {.prediction = &page.fixture.entries[1], .place = 2, .runs = &runs[1], .run_count = 1, .state = "ok"}};
    Validation validation = {.request = &page.fixture.request, .source = "executor", .rows = rows, .row_count = 2};
    rows[1].noise = NAN;
    validate_summarize(&validation, &page.arena);
    page.report.validation = &validation;
    page_write(&page);
    SAYS("it was the fastest; the next took 4.8 % more time per token. Repeats of the same plan differ by 10.0 %: "
         "that is not settled");
}

Test(html, runs_that_failed_are_listed_with_their_diagnosis) {
    const StoredRun failed[] = {{.id = 7,
                                 .started_at = "2026-11-20",
                                 .plan = "dp_shard=2 seq=1",
                                 .host = "node<1>",
                                 .state = "failed",
                                 .failure = "rank 1 on node2 left gather weights"}};
    page.report.failed = failed;
    page.report.failed_count = 1;
    page_write(&page);
    SAYS("1 run of this model did not end well");
    SAYS("<td>2026-11-20</td><td>node&lt;1&gt;</td>");
    SAYS("<td>dp_shard=2 seq=1</td><td>failed: rank 1 on node2 left gather weights</td>");
}

Test(html, a_preflight_names_slow_links_and_says_where_it_was) {
    static const StoredFinding findings[] = {{true, "ranks 0 4 on node1, node2 are <slow>"}, {false, "clocks differ"}};
    static const StoredGroups groups[] = {{"tp", "all_reduce", 2, 1 << 20, 0.004, 0.002, 0},
                                          {"dp_shard", "all_gather", 4, 1 << 20, 0.001, 0, 3}};
    const StoredPreflight preflight = {.checked_at = "2026-11-20",
                                       .hosts = "node1, node2",
                                       .device = "cpu",
                                       .transport = "shm",
                                       .mesh = "dp_shard=4,tp=2",
                                       .world = 8,
                                       .findings = findings,
                                       .groups = groups,
                                       .finding_count = 2,
                                       .group_count = 2};
    page.report.preflight = &preflight;
    page_write(&page);
    SAYS("Preflight of 8 ranks: not ready");
    SAYS("dp_shard=4,tp=2 on node1, node2 over shm");
    SAYS("<strong>wrong:</strong> ranks 0 4 on node1, node2 are &lt;slow&gt;");
    SAYS("<td class=\"number\">2.00 ms</td><td class=\"number\">2.00</td><td class=\"number\">0</td>");
}

Test(html, the_lines_of_a_config_that_other_plans_do_not_have_lead_it) {
    page.fixture.entries[0].plan.fused = FUSED_EAGER;
    page.fixture.entries[1].plan = page.fixture.entries[0].plan;
    page.fixture.entries[1].plan.mesh = (Mesh){.size = SIZES(1, 8, 1, 1)};
    page_write(&page);
    char *lines = page_between(&page, "<pre class=\"lines\"><code>", "</code>");
    cr_expect_not_null(strstr(lines, "tp_size: 2"), "%s", lines);
    cr_expect_not_null(strstr(lines, "parallelism_config:"), "%s", lines);
    cr_expect_null(strstr(lines, "machine_rank"), "%s", lines);
    free(lines);
}

Test(html, compute_is_divided_by_kind_of_kernel_where_that_is_known) {
    const ComputeSplit splits[] = {{{0.5, 0.125, 0.0625, 0.03125}}, {{0.25, 0.125, 0.0625, 0.03125}}};
    page.report.splits = splits;
    page.report.split_count = 2;
    page_write(&page);
    json_t *data = page_data(&page);
    const json_t *by = json_object_get(detail(data, 0), "compute_by");
    cr_expect_eq(number(by, "gemm"), 0.5);
    cr_expect_eq(number(by, "head"), 0.03125);
    json_decref(data);
    SAYS("<th scope=\"col\" class=\"number\">memory-bound</th>");
    SAYS("<td class=\"number\">0.125</td>");
}

Test(html, communication_is_hidden_as_far_as_compute_works_beside_it) {
    Lane lanes[] = {{.name = "compute"}, {.name = "ag"}};
    Task tasks[] = {{.name = "gemm", .lane = 0}, {.name = "gather", .lane = 1}};
    const StepProgram program = {.lanes = lanes, .lane_count = 2, .tasks = tasks, .task_count = 2};
    Span spans[] = {{.task = 0, .start_s = 0, .end_s = 1},
                    {.task = 1, .start_s = 0.5, .end_s = 2.75},
                    {.task = 0, .start_s = 2, .end_s = 4},
                    {.task = 1, .start_s = 3, .end_s = 3.25}};
    const Timeline timeline = {.spans = spans, .span_count = 4, .complete = true, .step_s = 4};
    page.report.simulated = (HtmlTimeline){&program, &timeline, 0};
    page_write(&page);
    // busy 2.25 + 0.25; overlapping compute 0.5 to 1, 2 to 2.75, 3 to 3.25: 1.5
    SAYS("<th scope=\"row\">ag</th><td class=\"number\">2.50 s</td><td class=\"number\">62.5 %</td>"
         "<td class=\"number\">1.50 s</td><td class=\"number\">1.00 s</td>");
}

Test(html, groups_are_drawn_on_their_nodes_with_what_they_carry) {
    Lane lanes[] = {{.name = "compute"}, {.name = "tp"}, {.name = "ag"}};
    Group groups[] = {{"tp", AXIS_BIT(AXIS_TP), 2}, {"dp_shard", AXES_SHARD_GROUP, 4}, {"cp", AXIS_BIT(AXIS_CP), 1}};
    Task tasks[] = {{.kind = TASK_ALL_REDUCE, .lane = 1, .group = 0, .payload_bytes = 1 << 20},
                    {.kind = TASK_ALL_GATHER, .lane = 2, .group = 1, .payload_bytes = 3 << 20}};
    Segment segments[] = {{.kind = SEGMENT_MICRO_STEPS, .count = 2, .step = 1, .end = 2},
                          {.kind = SEGMENT_TASKS, .first_task = 0, .task_count = 1},
                          {.kind = SEGMENT_TASKS, .first_task = 1, .task_count = 1}};
    const StepProgram program = {.lanes = lanes,
                                 .lane_count = 3,
                                 .tasks = tasks,
                                 .task_count = 2,
                                 .groups = groups,
                                 .group_count = 3,
                                 .segments = segments,
                                 .segment_count = 3};
    const Timeline timeline = {.step_s = 2};
    page.fixture.request.cluster.fabric.nics = 1;  // nodes of 4: dp_shard=4,tp=2 takes two
    page.report.simulated = (HtmlTimeline){&program, &timeline, 0};
    page_write(&page);
    SAYS("between nodes: dp_shard 3.00 MiB per rank and step</text>");
    SAYS("inside a node: tp 2.00 MiB per rank and step</text>");
    SAYS("<th scope=\"row\">dp_shard</th><td class=\"number\">4</td><td class=\"number\">2</td>"
         "<td>crosses node borders</td><td class=\"number\">1</td><td class=\"number\">3.00 MiB</td>");
    char *drawing = page_between(&page, "<svg class=\"topology\"", "</svg>");
    int peers = 0;
    for (const char *at = drawing; (at = strstr(at, "class=\"peer\"")); at++) {
        peers++;
    }
    cr_expect_eq(peers, 5);  // rank 0, one by tp, three by dp_shard
    cr_expect_not_null(strstr(drawing, ">node 1<"), "%s", drawing);
    cr_expect_null(strstr(drawing, ">node 2<"), "%s", drawing);
    free(drawing);
}

Test(html, a_calibrated_profile_says_from_what_and_how_well) {
    const ClusterCalibrated parameter = {
        .name = "gemm_rate", .log_factor = 0, .sd = 0.1, .prior_sd = 0.3, .plans = 4, .verdict = "well known"};
    const ClusterCalibration calibration = {.parent = "local-cpu",
                                            .date = "2026-11-20",
                                            .run_count = 12,
                                            .shapes = 6,
                                            .held_out_shapes = 3,
                                            .held_out_before = 0.25,
                                            .held_out_after = 0.04,
                                            .parameters = &parameter,
                                            .count = 1};
    page.fixture.request.cluster.calibration = &calibration;
    page_write(&page);
    SAYS("Calibrated on 2026-11-20 from local-cpu with 12 runs of 6 shapes");
    SAYS("On 3 held-out shapes the median error went from 25.0 % to 4.0 %");
    SAYS("<td>0.880 .. 1.137</td>");  // exp(-+1.2816 * 0.1)
    SAYS("<span class=\"badge good\">calibrated</span>");
}

Test(html, a_profile_that_nobody_calibrated_says_so) {
    page_write(&page);
    SAYS("Nobody calibrated this profile");
}

Test(html, a_session_of_tune_says_what_it_came_to_believe) {
    TuneShape shapes[] = {{.prediction = &page.fixture.entries[0],
                           .place = 1,
                           .runs = 2,
                           .measured_s = 1.5,
                           .calibrated_s = 1.25,
                           .low_s = 1.375,
                           .high_s = 1.625,
                           .good = 0.25,
                           .best = 0.125},
                          {.prediction = &page.fixture.entries[1], .place = 2, .out = "tp=<1> fails"}};
    TuneStep steps[] = {{.run = {.shape = 0, .step_s = 1.5}, .winner = 1, .probability = 0.5},
                        {.run = {.shape = 0, .step_s = 1.5}, .winner = 0, .probability = 0.96}};
    const Tuning tuning = {.request = &page.fixture.request,
                           .options = {.tolerance = 0.01},
                           .shapes = shapes,
                           .shape_count = 2,
                           .steps = steps,
                           .step_count = 2,
                           .runs = 2,
                           .wall_s = 3};
    page.report.tuning = &tuning;
    page_write(&page);
    SAYS("dp_shard=4,tp=2 is within 1 % of the fastest with probability 0.96");
    SAYS(">1.49 s (1.38 s .. 1.62 s)</td>");
    SAYS("out: tp=&lt;1&gt; fails");
    json_t *data = page_data(&page);
    cr_expect_eq(json_array_size(json_object_get(data, "tuning")), 2);
    json_decref(data);
}

// Candidates as a large search leaves them: every reason another text.
static void fill_candidates(int count) {
    Candidate *candidates = ARENA_ARRAY(&page.arena, Candidate, count);
    for (int i = 0; i < count; i++) {
        const bool out = i % 3 == 0;
        candidates[i] = (Candidate){
            .plan = page.fixture.entries[0].plan,
            .state = out ? CANDIDATE_REJECTED : CANDIDATE_ESTIMATED,
            .rule = out ? "memory" : NULL,
            .reason = out ? arena_format(&page.arena, "needs %d.%03d GiB of 79.1 GiB, by much", i, i) : NULL,
            .step_s = 1.0 + i / 997.0,
            .tokens_per_s = 1e6 / (1.0 + i / 997.0),
            .reserved_bytes = 1e9 + i,
            .content_hash = (uint64_t)i + 100};
    }
    page.fixture.result.candidates = candidates;
    page.fixture.result.candidate_count = count;
}

Test(html, what_the_best_hangs_on_is_a_table_and_a_chart_with_the_same_numbers) {
    const Sensitivities all = {.rows = {{"gemm_rate", "rate of <products>", {0.8, 0.125, true}, {1.2, -0.0625, false}},
                                        {"sequence", "sequence length", {0, 0, false}, {1.25, 0.03, true}}},
                               .count = 2};
    const Explanation explanation = {
        .result = &page.fixture.result, .best = &page.fixture.entries[0], .sensitivities = all};
    page.report.explanation = &explanation;
    page_write(&page);
    char *table = page_between(&page, "<table id=\"table-tornado\">", "</table>");
    cr_expect_not_null(strstr(table, "rate of &lt;products&gt;"), "%s", table);
    cr_expect_not_null(strstr(table, "+12.5 % at 0.80 times"), "%s", table);
    cr_expect_not_null(strstr(table, "-6.2 % at 1.20 times, does not fit"), "%s", table);
    cr_expect_not_null(strstr(table, "no such plan"), "%s", table);
    free(table);
    json_t *data = page_data(&page);
    const json_t *rows = json_object_get(data, "sensitivities");
    cr_assert_eq(json_array_size(rows), 2);
    cr_expect_eq(number(json_object_get(json_array_get(rows, 0), "less"), "change"), 0.125);
    cr_expect(json_is_null(json_object_get(json_array_get(rows, 1), "less")));
    json_decref(data);
}

static size_t candidates_shown(void) {
    page_write(&page);
    json_t *data = page_data(&page);
    const size_t count = json_array_size(json_object_get(json_object_get(data, "candidates"), "tp"));
    json_decref(data);
    return count;
}

Test(html, five_thousand_candidates_stay_below_two_megabytes) {
    fill_candidates(5000);
    cr_assert_eq(candidates_shown(), 5000);
    cr_assert_lt(strlen(page.text), 2u << 20);
}

Test(html, more_candidates_than_fit_are_counted) {
    fill_candidates(3 * HTML_MOST_CANDIDATES);
    cr_assert_eq(candidates_shown(), (size_t)HTML_MOST_CANDIDATES);
    cr_assert_lt(strlen(page.text), 2u << 20);
    SAYS("The page holds 8000 of 24000 candidates");
}

Test(html, candidates_that_run_come_first_and_fastest) {
    fill_candidates(100);
    page_write(&page);
    json_t *data = page_data(&page);
    const json_t *columns = json_object_get(data, "candidates");
    const json_t *state = json_object_get(columns, "state"), *speed = json_object_get(columns, "tokens_per_s");
    for (size_t i = 1; i < json_array_size(state); i++) {
        const int before = (int)json_integer_value(json_array_get(state, i - 1));
        const int here = (int)json_integer_value(json_array_get(state, i));
        cr_assert(before != CANDIDATE_REJECTED || here == CANDIDATE_REJECTED);
        cr_assert(before != here ||
                  json_number_value(json_array_get(speed, i - 1)) >= json_number_value(json_array_get(speed, i)));
    }
    json_decref(data);
}

Test(html, charts_are_there_exactly_where_the_build_has_them) {
    page_write(&page);
    cr_assert_eq(html_has_charts(), strstr(page.text, "id=\"no-charts\"") == NULL);
    cr_assert_eq(html_has_charts(), strstr(page.text, "<html lang=\"en\" class=\"charts\">") != NULL);
}
