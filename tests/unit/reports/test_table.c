// The human-readable tables.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "reports/format.h"
#include "reports/grid.h"
#include "reports/wrap.h"
#include "tests/support/sizes.h"
#include "tests/unit/reports/fixture.h"

static Fixture fixture;

static Status print_short(const Fixture *from, FILE *out, Error *error) {
    return answer_plan.table(&(PlanReport){&from->result, true, 1}, out, error);
}

static Status print_all(const Fixture *from, FILE *out, Error *error) {
    return answer_plan.table(&(PlanReport){&from->result, true, 0}, out, error);
}

static Status print_none(const Fixture *from, FILE *out, Error *error) {
    TuneResult result = from->result;
    result.entry_count = 0;
    return answer_plan.table(&(PlanReport){&result, true, 10}, out, error);
}

static char *printed(FixturePrint print) {
    fixture_fill(&fixture);
    return fixture_printed(&fixture, print);
}

#define SAYS(text, words) cr_assert_not_null(strstr(text, words), "%s", text)

Test(table, writes_the_batch_arithmetic_out) {
    char *text = printed(print_short);
    SAYS(text,
         "global batch 32 sequences (131 k tokens) = micro-batch 2 x 1 dp_replicate x 4 dp_shard x 4 accumulation");
    SAYS(text, "the 2 ranks that share a (dp_replicate, dp_shard) coordinate (cp 1 x tp 2) work on the same sequences");
    free(text);
}

static Status print_options(const Fixture *from, FILE *out, Error *error) {
    (void)from, (void)error;
    wrap_line(out, 6, "Best: --mesh pp=2,dp_shard=16,cp=2,tp=2,ep=8 --tp-overlap on --pp-schedule interleaved --etp 2");
    return STATUS_OK;
}

Test(table, an_option_and_its_value_are_not_put_on_two_lines) {
    char *text = printed(print_options);
    SAYS(text, "--tp-overlap on\n      --pp-schedule interleaved --etp 2\n");
    free(text);
}

Test(table, accounts_for_every_shape) {
    char *text = printed(print_short);
    SAYS(text, "4 shapes: 2 ranked, 1 not fitting in 1000 B, 1 not legal for accelerate");
    SAYS(text, "9 choices: 3 rejected, 6 left; 6 estimates, 2 simulations and 0 known from the store");
    free(text);
}

Test(table, groups_rejected_shapes_with_an_example_each) {
    char *text = printed(print_short);
    SAYS(text, "such as dp_replicate=8: does not fit by 1 GiB");
    SAYS(text, "such as tp=8: tp=8 is refused");
    free(text);
}

Test(table, top_0_gives_every_entry_and_every_reason) {
    char *text = printed(print_all);
    SAYS(text, "dp_shard=8");
    SAYS(text, "  tp=8: tp=8 is refused\n");
    cr_assert_null(strstr(text, "such as"), "%s", text);
    free(text);
}

Test(table, says_how_many_rows_are_left_out) {
    char *text = printed(print_short);
    SAYS(text, "... and 1 more shape that fits");
    free(text);
}

Test(table, names_what_crosses_nodes) {
    char *text = printed(print_short);  // 4 per node: tp=2 inside, dp_shard of stride 2 over both nodes
    SAYS(text, "tp groups (2 ranks) stay inside a node");
    SAYS(text, "dp_shard groups (4 ranks) cross node borders: each touches 2 nodes");
    free(text);
}

Test(table, shows_step_interval_speed_and_memory_against_the_limit) {
    char *text = printed(print_short);
    SAYS(text, "1.00 s (800 ms .. 1.45 s)");
    SAYS(text, "40.0 %");
    SAYS(text, "400 B of 1000 B");
    SAYS(text, "  evidence: no measured run of accelerate");
    SAYS(text, "Best: --mesh dp_shard=4,tp=2, the fastest of the plans that fit");
    free(text);
}

Test(table, a_share_of_the_peak_in_fp8_is_said_to_be_that) {
    cr_expect_str_eq(format_peak(&(TrainPlan){.precision = DTYPE_FP8}), " of the peak in fp8");
    cr_expect_str_empty(format_peak(&(TrainPlan){.precision = DTYPE_BF16}));
}

Test(table, names_the_assumptions) {
    char *text = printed(print_short);
    SAYS(text, "Assumed\n  sequences of 4096 tokens\n");
    free(text);
}

Test(table, without_entries_says_so_and_keeps_the_reasons) {
    char *text = printed(print_none);
    SAYS(text, "No shape can run.");
    SAYS(text, "does not fit by 1 GiB");
    free(text);
}

Test(table, what_cp_and_tp_gain_and_who_leaves_a_margin_is_said) {
    fixture_fill(&fixture);
    fixture.entries[0].plan.mesh = (Mesh){.size = SIZES(1, 4, 1, 2)};
    fixture.entries[0].memory.reserved_bytes = 990;
    fixture.entries[1].plan.mesh = (Mesh){.size = SIZES(1, 8, 1, 1)};
    fixture.entries[1].memory.reserved_bytes = 500;
    char *text = fixture_printed(&fixture, print_all);
    SAYS(text, "without cp and tp: dp_shard=8, place 2, ");
    SAYS(text, "with a margin: dp_shard=8, place 2, ");
    SAYS(text, " in 50 % of the memory\n");
    SAYS(text, "in accelerate: DataLoader batch_size 2, gradient_accumulation_steps 4\n");
    free(text);
}

// ---- choices besides the mesh

static const TrainPlan *choosing(TrainPlan plan) {
    static TrainPlan kept;
    kept = plan;
    plan_canonical(&kept);
    return &kept;
}

static const Target *target_named(const char *name) {
    const Target *target = NULL;
    Error error = {0};
    cr_assert_eq(target_find(name, &target, &error), STATUS_OK);
    return target;
}

Test(choices, the_options_of_a_plan_are_all_that_the_search_chose) {
    const TrainPlan *plan = choosing((TrainPlan){.mesh = {.size = SIZES(1, 8, 1, 1)},
                                                 .seq = 4096,
                                                 .micro_batch = 1,
                                                 .grad_accum = 1,
                                                 .zero = 3,
                                                 .reshard = RESHARD_NEVER,
                                                 .recompute = RECOMPUTE_FULL,
                                                 .precision = DTYPE_BF16,
                                                 .recompute_layers = 4});
    const Target *target = target_named("ndtune");
    cr_expect_str_eq(format_choice_options(target, plan, FORMAT_BUFFER),
                     " --reshard never --recompute full --recompute-layers 4");
    cr_expect_str_eq(format_page_choices(target, plan, FORMAT_BUFFER), " --recompute-layers 4");
    cr_expect_str_eq(format_choices(target, plan, FORMAT_BUFFER), "");
}

Test(choices, a_split_by_both_ends_says_both_and_what_is_recomputed_is_named) {
    Mesh staged = {.size = SIZES(1, 1, 1, 1)};
    staged.size[AXIS_PP] = 4;
    const TrainPlan *plan = choosing((TrainPlan){.mesh = staged,
                                                 .seq = 4096,
                                                 .micro_batch = 1,
                                                 .grad_accum = 8,
                                                 .zero = 1,
                                                 .recompute = RECOMPUTE_SELECTIVE,
                                                 .precision = DTYPE_BF16,
                                                 .attention = ATTENTION_CUDNN,
                                                 .fused = FUSED_FUSED,
                                                 .recompute_modules = 1,
                                                 .pp_schedule = PP_1F1B,
                                                 .virtual_stages = 1,
                                                 .pp_split = SPLIT_CHUNKS,
                                                 .pp_first = 2});
    char text[FORMAT_BYTES];
    format_choices(target_named("megatron"), plan, text);
    SAYS(text, "recompute_modules core-attn");
    SAYS(text, "pp_split chunks, pp_first 2, pp_last 0");
}

Test(choices, what_is_faster_says_in_what_it_differs) {
    TrainPlan from = {.mesh = {.size = SIZES(1, 8, 1, 1)},
                      .seq = 4096,
                      .micro_batch = 8,
                      .grad_accum = 1,
                      .zero = 3,
                      .recompute = RECOMPUTE_FULL,
                      .precision = DTYPE_BF16};
    TrainPlan to = from;
    to.reshard = RESHARD_NEVER;
    cr_expect_str_eq(format_changes(target_named("accelerate"), &from, &to, FORMAT_BUFFER), "reshard never");
    to.mesh = (Mesh){.size = SIZES(1, 4, 1, 2)};
    to.micro_batch = 4;
    to.recompute = RECOMPUTE_NONE;
    cr_expect_str_eq(format_changes(target_named("accelerate"), &from, &to, FORMAT_BUFFER),
                     "dp_shard=4,tp=2, recompute none, micro-batch 4, reshard never");
}

Test(choices, nothing_is_too_close_to_call_where_the_least_memory_was_asked_for) {
    fixture_fill(&fixture);
    fixture.entries[1].tokens_per_s = 1.01 * fixture.entries[0].tokens_per_s;
    cr_expect_str_eq(format_close_shapes(&fixture.result, FORMAT_BUFFER), "1 other is within 5 %, too close to call");
    fixture.request.objective = OBJECTIVE_MEMORY;
    cr_expect_str_empty(format_close_shapes(&fixture.result, FORMAT_BUFFER));
    cr_expect_eq(tie_share(&fixture.result), 0);
}

static Status print_grid(int width, FILE *out, Error *error) {
    static const GridColumn columns[] = {{"mesh", false}, {"rotate", false}, {"memory", true}};
    Grid *grid = grid_new(columns, 3);
    grid_may_drop(grid, 1);
    grid_row(grid);
    grid_cell(grid, "dp_shard=16");
    grid_cell(grid, "allgather");
    grid_cell(grid, "70 GiB");
    return grid_print_within(grid, width, out, error);
}

static char *grid_text(int width) {
    char *text = NULL;
    size_t bytes = 0;
    Error error = {0};
    FILE *out = open_memstream(&text, &bytes);
    cr_assert_eq(print_grid(width, out, &error), STATUS_OK, "%s", error.message);
    fclose(out);
    return text;
}

Test(grid, a_narrow_terminal_leaves_out_what_may_be_missed_and_names_it) {
    char *wide = grid_text(0), *narrow = grid_text(24);
    SAYS(wide, "allgather");
    cr_assert_null(strstr(wide, "wider"));
    cr_assert_null(strstr(narrow, "allgather"), "%s", narrow);
    SAYS(narrow, "dp_shard=16  70 GiB\n(a wider terminal shows rotate too)\n");
    free(wide);
    free(narrow);
}

// ---- a step of more than twice its prediction

static char *far_off(double measured_s, CoreUse use) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    cr_assert_not_null(out);
    format_far_off(measured_s, 1, "local-cpu", &use, out);
    fclose(out);
    return text;
}

Test(far_off, others_on_the_cores_are_named_first) {
    char *text = far_off(5, (CoreUse){.cores = 2, .ranks = 4, .others = 0.5});
    SAYS(text, "5.0 times the prediction: others used 50 % of this machine's 2 cores");
    free(text);
}

Test(far_off, then_more_ranks_than_cores) {
    char *text = far_off(5, (CoreUse){.cores = 2, .ranks = 4, .others = 0.1});
    SAYS(text, "4 ranks share the 2 cores of this machine (ndtune probe --world 4 ");
    free(text);
}

Test(far_off, then_another_machine_than_the_profile) {
    char *text = far_off(5, (CoreUse){.cores = 2, .ranks = 2});
    SAYS(text, "this machine is not the one of profile local-cpu (ndtune probe --out here.json");
    free(text);
}

Test(far_off, within_twice_nothing_is_said) {
    char *text = far_off(2, (CoreUse){.cores = 2, .ranks = 4, .others = 0.5});
    cr_expect_str_empty(text);
    free(text);
}
