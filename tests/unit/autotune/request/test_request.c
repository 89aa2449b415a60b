// What was asked as a TuneRequest: defaults are said, errors point at their part.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/request/named_log.h"
#include "autotune/request/request.h"

static const RequestDefaults searched = {.cluster = "dgx-h100", .gpu_cluster = "dgx-h100"};
static const RequestDefaults one_plan = {.cluster = "dgx-h100", .gpu_cluster = "dgx-h100", .single_plan = true};

static Arena arena;
static TuneRequest request;
static Error error;

static void begin(void) {
    arena = (Arena){0};
    error = (Error){0};
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(request, .init = begin, .fini = end);

static bool says(const char *sentence) {
    for (int i = 0; i < request.assumption_count; i++) {
        if (strstr(request.assumptions[i], sentence)) {
            return true;
        }
    }
    return false;
}

// The part that the error is about.
static int refused(Asked asked, const RequestDefaults *defaults) {
    cr_assert_eq(request_resolve(&asked, defaults, &arena, &request, &error), STATUS_USAGE, "%s", error.message);
    return asked.about;
}

Test(request, what_is_not_said_is_taken_and_said) {
    Asked asked = {.model = "7b", .world = 32};
    cr_assert_eq(request_resolve(&asked, &searched, &arena, &request, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(request.seq, TUNE_DEFAULT_SEQ);
    cr_assert(says("sequences of 4096 tokens; change it with --seq"));
    cr_assert(says("cluster dgx-h100"));
    cr_assert_eq(request.default_count, 4, "cluster, target, sequence, precision");
}

Test(request, what_is_said_is_no_default) {
    Asked asked = {.model = "7b", .world = 32, .seq = 8192, .cluster = "dgx-h100", .target = "torchtitan"};
    asked.choices[PLAN_PRECISION] = "bf16";
    cr_assert_eq(request_resolve(&asked, &searched, &arena, &request, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(request.seq, 8192);
    cr_assert_eq(request.default_count, 0);
}

Test(request, nodes_count_accelerators_of_the_cluster) {
    Asked asked = {.model = "7b", .nodes = 4};
    cr_assert_eq(request_resolve(&asked, &searched, &arena, &request, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(request.world, 32);
}

Test(request, racks_are_alike_unless_their_size_is_said) {
    Asked asked = {.model = "7b", .world = 256, .cluster = "gb200-nvl72"};
    cr_assert_eq(request_resolve(&asked, &searched, &arena, &request, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(request.cluster.node.accelerators, 64);
    cr_assert(says("64 accelerators of each rack's 72"));
    asked = (Asked){.model = "7b", .world = 256, .cluster = "gb200-nvl72", .node_size = 72};
    cr_assert_eq(request_resolve(&asked, &searched, &arena, &request, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(request.cluster.node.accelerators, 72);
    const char *const changes[] = {"node.gpus=72"};
    asked = (Asked){.model = "7b", .world = 256, .cluster = "gb200-nvl72", .changes = changes, .change_count = 1};
    cr_assert_eq(request_resolve(&asked, &searched, &arena, &request, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(request.cluster.node.accelerators, 72);
}

Test(request, an_error_is_about_the_part_that_it_names) {
    const char *const changes[] = {"node.gpus=4", "no.such=1"};
    cr_assert_eq(refused((Asked){.model = "no such model", .world = 8}, &searched), ASKED_MODEL);
    cr_assert_eq(refused((Asked){.model = "7b", .mesh = "dp_shard=x"}, &one_plan), ASKED_MESH);
    cr_assert_eq(refused((Asked){.model = "7b", .world = 8, .baseline = "dp_shard=4"}, &searched), ASKED_BASELINE);
    cr_assert_eq(refused((Asked){.model = "7b", .world = 8, .changes = changes, .change_count = 2}, &searched),
                 ASKED_CHANGE + 1);
}

Test(request, a_choice_that_goes_with_another_is_refused_alone) {
    Asked asked = {.model = "7b", .world = 8};
    asked.choices[PLAN_LORA_RANK] = "8";
    cr_assert_eq(refused(asked, &searched), ASKED_CHOICE + PLAN_LORA_RANK);
}

Test(request, the_accumulation_of_one_plan_makes_the_global_batch) {
    Asked asked = {.model = "7b", .mesh = "dp_shard=8", .global_batch = 64};
    TrainPlan plan;
    cr_assert_eq(request_resolve(&asked, &one_plan, &arena, &request, &error), STATUS_OK, "%s", error.message);
    request_plan(&request, &request.mesh, &plan);
    cr_assert_eq(plan.grad_accum, 8);
}

// "--pp-schedule": a value that the target's pipelines cannot have is refused, not replaced by its own.
static void expect_refused(const char *target, PlanFieldId id, const char *value, const char *sentence) {
    Asked asked = {.model = "8b", .world = 16, .target = target};
    asked.choices[id] = value;
    cr_expect_eq(refused(asked, &searched), ASKED_CHOICE + (int)id, "%s %s", target, value);
    cr_expect(strstr(error.message, sentence), "%s", error.message);
}

Test(request, a_pipeline_that_the_target_cannot_run_is_refused) {
    expect_refused("megatron", PLAN_PP_SCHEDULE, "zbv", "has no pipelines with the schedule zbv: it has 1f1b or inter");
    expect_refused("deepspeed", PLAN_PP_SCHEDULE, "gpipe", "it has 1f1b");
    expect_refused("accelerate", PLAN_PP_SCHEDULE, "gpipe", "accelerate@1.15 is not predicted with any: its");
    expect_refused("megatron@fsdp", PLAN_PP_SPLIT, "even", "Megatron-FSDP takes stages, which ndtune does not model");
    expect_refused("deepspeed", PLAN_PP_SPLIT, "ends", "use --pp-split target or even");
    expect_refused("deepspeed", PLAN_VIRTUAL_STAGES, "2", "one chunk of layers on each stage, not 2");
    expect_refused("deepspeed", PLAN_PP_GROUP, "8", "of the interleaved schedule, which deepspeed has not");
    expect_refused("megatron", PLAN_PP_ROUNDS, "2", "takes all micro-steps of a step through one schedule");
    expect_refused("torchtitan", PLAN_PP_GROUP, "5", "torchtitan has groups of micro-steps of its own size");
    expect_refused("torchtitan", PLAN_P2P_OVERLAP, "off", "torchtitan has no switch for messages between stages");
    Asked asked = {.model = "8b", .world = 16, .target = "torchtitan"};
    asked.choices[PLAN_PP_SCHEDULE] = "zbv";
    asked.choices[PLAN_FUSED] = "compiled";
    cr_expect_eq(refused(asked, &searched), ASKED_CHOICE + PLAN_PP_SCHEDULE);
    cr_expect(strstr(error.message, "PyTorch refuses zbv of compiled stages: use fused eager"), "%s", error.message);
}

Test(request, numbers_of_a_pipeline_without_what_they_count_are_refused) {
    expect_refused("megatron", PLAN_PP_FIRST, "7", "--pp-first goes with --pp-split weighted, ends or chunks");
    expect_refused("megatron", PLAN_PP_LAST, "7", "--pp-last goes with --pp-split");
    Asked asked = {.model = "8b", .mesh = "pp=4,dp_shard=4", .target = "megatron"};
    asked.choices[PLAN_PP_SPLIT] = "ends";
    cr_expect_eq(refused(asked, &one_plan), ASKED_CHOICE + PLAN_PP_SPLIT);
    cr_expect(strstr(error.message, "needs both numbers"), "%s", error.message);
    Asked chunks = {.model = "8b", .mesh = "pp=4,dp_shard=4", .target = "torchtitan"};
    chunks.choices[PLAN_VIRTUAL_STAGES] = "3";
    cr_expect_eq(refused(chunks, &one_plan), ASKED_CHOICE + PLAN_VIRTUAL_STAGES);
    cr_expect(strstr(error.message, "goes with --pp-schedule interleaved or zero-bubble"), "%s", error.message);
    Asked grouped = {.model = "8b", .mesh = "pp=4,dp_shard=4", .target = "megatron"};
    grouped.choices[PLAN_PP_GROUP] = "6";
    cr_expect_eq(refused(grouped, &one_plan), ASKED_CHOICE + PLAN_PP_GROUP);
    cr_expect(strstr(error.message, "--pp-group goes with --pp-schedule interleaved"), "%s", error.message);
    Asked waits = {.model = "8b", .mesh = "pp=4,dp_shard=4", .target = "megatron"};
    waits.choices[PLAN_P2P_OVERLAP] = "off";
    cr_expect_eq(refused(waits, &one_plan), ASKED_CHOICE + PLAN_P2P_OVERLAP);
    cr_expect(strstr(error.message, "--p2p-overlap goes with --pp-schedule interleaved"), "%s", error.message);
}

Test(request, deepspeed_shards_with_stages_as_its_pipelines_can) {
    Asked asked = {.model = "8b", .mesh = "pp=2,dp_shard=8", .target = "deepspeed"};
    TrainPlan plan;
    cr_assert_eq(request_resolve(&asked, &one_plan, &arena, &request, &error), STATUS_OK, "%s", error.message);
    request_plan(&request, &request.mesh, &plan);
    cr_expect_eq(plan.zero, 1);
    cr_expect(says("sharding stage of the target (1 where there is something to shard, beside stages)"));
}

Test(request, a_log_has_counts_and_a_mesh_of_its_own) {
    Asked asked = {.mesh = "dp_shard=2", .grad_accum = 3};
    const NamedLog log = named_log("a@b.log@dp_shard=4,micro_batch=2,tp=2,global_batch=64", &arena);
    cr_assert_eq(named_log_ask(&log, &asked, &arena, &error), STATUS_OK, "%s", error.message);
    cr_expect_str_eq(log.path, "a@b.log");
    cr_expect_str_eq(asked.mesh, "dp_shard=4,tp=2");
    cr_expect(asked.micro_batch == 2 && asked.global_batch == 64 && asked.grad_accum == 0 && asked.seq == 0);
    const NamedLog none = named_log("a.log@tp=2,global_batch=all", &arena);
    cr_expect_eq(named_log_ask(&none, &asked, &arena, &error), STATUS_USAGE);
    cr_expect_str_eq(error.message, "--log a.log: global_batch=all is no count");
}

// Liger is no part of the target, and of the user's choice.
Test(request, a_fused_loss_that_casts_its_sums_is_said_to_be_of_some_releases) {
    static const struct {
        const char *target, *loss;
        bool one, said;
    } cases[] = {{"accelerate@1.14", "fused", true, true},  {"accelerate@1.14", NULL, true, false},
                 {"accelerate@1.14", NULL, false, true},    {"accelerate@1.14", "whole", false, false},
                 {"accelerate@1.15", "fused", true, false}, {"axolotl", "fused", true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Asked asked = {.model = "8b", .target = cases[i].target};
        asked.mesh = cases[i].one ? "dp_shard=16" : NULL;
        asked.world = cases[i].one ? 0 : 16;
        asked.choices[PLAN_LOSS] = cases[i].loss;
        const Status status = request_resolve(&asked, cases[i].one ? &one_plan : &searched, &arena, &request, &error);
        cr_assert_eq(status, STATUS_OK, "case %zu: %s", i, error.message);
        cr_expect_eq(says("Liger 0.6.2 to 0.8.2"), cases[i].said, "case %zu", i);
    }
}
