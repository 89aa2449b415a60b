// MoE layers train as on one rank: with every axis, every choice and every type of router that runs; with expert
// parallelism (ep), whose tokens cross in parts of different sizes. Ties in a router go to the lower expert, on every
// mesh. test_meshes_product.c has world 8, tests/parity/pytorch compares gradients with transformers'.

#define _GNU_SOURCE  // setenv

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/parity/exec/mesh_case.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(experts, .fini = clean);

Test(experts, every_pair_of_axis_size_and_choice_of_worlds_2_and_4_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_experts, (const int[]){2, 4, 0}, AXES_FIRST | AXIS_BIT(AXIS_SP), AXIS_COUNT);
}

Test(experts, every_pair_with_experts_spread_of_worlds_2_and_4_trains_as_one_rank) {
    mesh_pairs_train_with(&mesh_twos_experts, (const int[]){2, 4, 0}, AXES_FIRST | AXIS_BIT(AXIS_EP), AXIS_EP);
}

static double balance;  // of the loss that spreads tokens, in the requests of a test
static bool whole;      // replicas, in the requests of a test

static Mesh mesh_of(int pp, int dp_shard, int ep) {
    Mesh mesh = mesh_of_one();
    mesh.size[AXIS_PP] = pp;
    mesh.size[AXIS_DP_SHARD] = dp_shard;
    mesh.size[AXIS_EP] = ep;
    return mesh;
}

static Mesh mesh_named(const char *text) {
    Mesh mesh;
    Error error = {0};
    cr_assert_eq(mesh_parse(text, &mesh, &error), STATUS_OK, "%s", error.message);
    return mesh;
}

// Partially rotated heads, values of a different width, scores in groups of experts. No product is 24 columns wide:
// there OpenBLAS 0.3.21 allocates (SkylakeX), which one of the tests below would detect.
static void make_latent(ModelSpec *model) {
    model->latent = (LatentAttention){.q_rank = 32, .kv_rank = 64, .rope = 8, .value = 16};
    model->head_dim = 24;
    model->rotary_dims = model->latent.rope;
    model->heads = model->kv_heads = 4;
    model->experts.shared_ffn = 160;
    model->experts.sigmoid = (SigmoidRouter){.groups = 4, .active_groups = 2, .factor = 2.5};
}

static RunRequest request_of(const char *type, const Mesh *mesh, int grad_accum, int capacity) {
    TrainPlan plan;
    cr_assert(mesh_plan(&mesh_twos_experts, mesh, grad_accum, &plan));
    plan.zero = whole ? 0 : mesh->size[AXIS_PP] > 1 ? 1 : 3;
    plan.capacity = capacity;
    plan_canonical(&plan);
    RunRequest request = mesh_request(&mesh_twos_experts, &plan);
    cr_assert(model_set_family(&request.model, type));
    request.model.experts.shared_gate = strcmp(type, "qwen2_moe") == 0;
    request.model.experts.shared_ffn = request.model.experts.shared_gate ? 160 : 0;
    request.model.experts.unscaled = request.model.experts.shared_gate || strcmp(type, "olmoe") == 0;
    request.model.experts.bias = request.model.experts.router_bias = request.model.sinks;
    request.model.experts.balance = balance;
    request.model.window = request.model.sinks ? 7 : 0;
    request.model.window_every = request.model.sinks ? 2 : 0;
    if (strcmp(type, "deepseek_v3") == 0) {
        make_latent(&request.model);
    }
    return request;
}

// A row of the table that tests/parity/table prints.
static void log_worst(const char *type, const char *const *meshes, const Deviation *worst) {
    const char *all = "";
    for (int i = 0; meshes[i]; i++) {
        all = arena_format(&arena, "%s%s%s", all, i > 0 ? " " : "", meshes[i]);
    }
    cr_log_warn("%s on %s: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", type, all, worst->loss_first,
                worst->norm_first, worst->loss_last, worst->norm_last);
}

// On each of the meshes, listed to a NULL.
static void expect_same(const char *type, const char *const *meshes) {
    const Mesh one = mesh_of_one();
    Deviation worst = {0};
    const RunRequest alone = request_of(type, &one, 1, 0);
    const RunResult reference = case_run_request(&alone, &arena);
    for (int i = 0; meshes[i]; i++) {
        const Mesh mesh = mesh_named(meshes[i]);
        const int parts = mesh_group_size(&mesh, AXES_BATCH);
        const RunRequest request = request_of(type, &mesh, mesh_stages(&mesh) > 1 ? 8 / parts : 1 + i % 2, 400);
        const RunResult run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
    }
    log_worst(type, meshes, &worst);
    cr_expect_lt(reference.loss[EXPERTS_STEPS - 1], reference.loss[0]);
}

Test(experts, every_type_of_router_trains_as_one_rank) {
    const char *const types[] = {"mixtral", "qwen3_moe", "olmoe"}, *const meshes[] = {"dp_shard=2,ep=2", NULL};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        expect_same(types[i], meshes);
    }
}

// Experts are whole then, and a rank of tp routes the tokens that it has between blocks; sp lends no ranks.
Test(experts, spread_with_tp_and_with_sp_they_train_as_one_rank) {
    expect_same("mixtral", (const char *[]){"dp_shard=2,tp=2,ep=2", "dp_shard=2,tp=2,ep=4", "sp=2,dp_shard=2,ep=2",
                                            "pp=2,dp_shard=2,tp=2,ep=4", NULL});
    expect_same("gpt_oss", (const char *[]){"cp=2,tp=2,ep=4", NULL});
    expect_same("deepseek_v3", (const char *[]){"dp_shard=2,tp=2,ep=4", NULL});
}

// Gradients of experts are summed over the ranks with the same ones, and so are their squares apart.
Test(experts, spread_in_whole_replicas_they_train_as_one_rank) {
    whole = true;
    expect_same("mixtral", (const char *[]){"dp_shard=4,ep=2", "dp_replicate=2,dp_shard=2,tp=2,ep=4",
                                            "pp=2,dp_shard=2,ep=2", NULL});
}

Test(experts, stages_train_as_one_rank) {
    expect_same("mixtral", (const char *[]){"pp=2,dp_shard=2,ep=2", "pp=2,cp=2,ep=2", "pp=2,dp_shard=4,ep=4", NULL});
}

// pp combined with each other axis, and sp with each.
Test(experts, stages_of_16_ranks_train_as_one_rank) {
    expect_same("mixtral", (const char *[]){"pp=2,dp_shard=2,cp=2,tp=2,ep=4", "pp=2,dp_shard=2,sp=2,tp=2,ep=2",
                                            "pp=2,dp_shard=2,cp=2,sp=2,ep=4", NULL});
    expect_same("deepseek_v3",
                (const char *[]){"pp=2,dp_shard=2,cp=2,tp=2,ep=4", "pp=2,dp_shard=2,sp=2,tp=2,ep=2", NULL});
}

Test(experts, a_shared_expert_through_a_gate_trains_as_one_rank) {
    expect_same("qwen2_moe",
                (const char *[]){"cp=2,tp=2", "sp=2,tp=2", "dp_shard=2,cp=2,ep=4", "pp=2,dp_shard=2,ep=2", NULL});
}

// The second bias is added by one rank of tp, the sinks by each rank for its heads, when its last keys have come.
Test(experts, biases_clamps_sinks_and_windows_train_as_one_rank) {
    expect_same("gpt_oss", (const char *[]){"tp=2", "cp=2,tp=2", "cp=4", "dp_shard=2,cp=2,ep=4", "pp=2,tp=2", NULL});
}

// Every rank of tp makes the latents of all tokens, and a part of their gradients.
Test(experts, latent_attention_and_routers_of_sigmoids_train_as_one_rank) {
    expect_same("deepseek_v3", (const char *[]){"tp=2", "tp=4", "dp_shard=2,ep=2", "dp_shard=4,ep=4",
                                                "pp=2,dp_shard=2,ep=2", "pp=2,tp=2", NULL});
}

// Values of a different width than keys travel after them, or with their heads.
Test(experts, latent_attention_of_cut_sequences_trains_as_one_rank) {
    expect_same("deepseek_v3", (const char *[]){"cp=4", "sp=4", "cp=2,sp=2", "cp=2,tp=2", "dp_shard=2,cp=2,ep=4",
                                                "sp=2,dp_shard=2,ep=2", "pp=2,cp=2,ep=2", NULL});
}

// Its gradient is that of whole sequences, whatever ranks and micro-steps share the batch.
Test(experts, the_loss_that_spreads_tokens_trains_as_on_one_rank) {
    balance = 0.5;
    const Mesh one = mesh_of_one();
    const RunRequest alone = request_of("mixtral", &one, 1, 0);
    RunRequest without = alone;
    without.model.experts.balance = 0;
    const RunResult with = case_run_request(&alone, &arena), plain = case_run_request(&without, &arena);
    cr_expect_gt(fabs(with.grad_norm[0] / plain.grad_norm[0] - 1), 1e-4);
    expect_same("mixtral",
                (const char *[]){"cp=2", "sp=2", "cp=2,sp=2", "dp_shard=2,cp=2,ep=4", "tp=2", "pp=2,cp=2,ep=2", NULL});
    balance = 0;
}

// DeepSeek's first layers, Llama-4 Maverick's alternating ones; also on a stage that has only these.
static const LayerRun by_turns[] = {{LAYER_DENSE, 0, 1},
                                    {LAYER_EXPERTS, 1, 1},
                                    {LAYER_DENSE, 2, 1},
                                    {LAYER_EXPERTS, 3, 1}},
                      first_dense[] = {{LAYER_DENSE, 0, 2}, {LAYER_EXPERTS, 2, 2}};

static RunRequest request_of_two_kinds(const char *type, const Mesh *mesh, int grad_accum, const LayerRun *runs) {
    RunRequest request = request_of(type, mesh, grad_accum, 400);
    request.model.layers = 4;
    request.model.runs = runs;
    request.model.run_count = runs == by_turns ? 4 : 2;
    return request;
}

static void expect_same_of_two_kinds(const char *type, const LayerRun *runs, Recompute recompute,
                                     const char *const *meshes) {
    const Mesh one = mesh_of_one();
    Deviation worst = {0};
    const RunRequest alone = request_of_two_kinds(type, &one, 1, runs);
    RunRequest poisoned = alone;
    poisoned.options.poison = true;
    const RunResult reference = case_run_request(&alone, &arena), same = case_run_request(&poisoned, &arena);
    cr_expect_float_eq(same.loss[same.steps - 1], reference.loss[same.steps - 1], 0);
    for (int i = 0; meshes[i]; i++) {
        const Mesh mesh = mesh_named(meshes[i]);
        const int stages = mesh_stages(&mesh);
        RunRequest request =
            request_of_two_kinds(type, &mesh, stages > 1 ? 8 / mesh_group_size(&mesh, AXES_BATCH) : 2, runs);
        request.plan.recompute = recompute;
        request.options.lanes = i % 2 == 0 ? LANES_SERIAL : LANES_ASYNC;
        request.options.jitter_seed = i % 2 == 0 ? 0 : 5;
        const RunResult run = case_run_request(&request, &arena);
        case_expect_same(&request, &run, &reference, &worst);
        cr_expect_eq(run.peak_bytes, run.planned_peak_bytes);
    }
    log_worst(type, meshes, &worst);
}

Test(experts, dense_layers_among_them_train_as_one_rank) {
    expect_same_of_two_kinds("mixtral", by_turns, RECOMPUTE_NONE,
                             (const char *[]){"dp_shard=2,ep=2", "cp=2,tp=2", "pp=2,dp_shard=2,ep=2", NULL});
    expect_same_of_two_kinds("deepseek_v3", first_dense, RECOMPUTE_FULL,
                             (const char *[]){"dp_shard=2,tp=2,ep=4", "pp=2,dp_shard=2,ep=2", NULL});
}

// Their programs tell no task how many rows there are.
Test(experts, those_of_other_targets_are_refused_in_a_sentence) {
    const Mesh spread = mesh_of(1, 2, 2);
    RunRequest request = request_of("mixtral", &spread, 1, 0);
    Error error = {0};
    cr_assert_eq(target_find("torchtitan", &request.target, &error), STATUS_OK);
    const char *reason = exec_check(&request.model, &request.plan, request.target, "cpu", &arena);
    cr_expect(reason && strstr(reason, "torchtitan") && strstr(reason, "use target ndtune"), "%s", reason);
}

static Status try_capacity(const Mesh *mesh, int capacity, Error *error) {
    const RunRequest request = request_of("mixtral", mesh, 1, capacity);
    const ExecOptions built = {.worker_path = NDTUNE_BIN_DIR "/ndtune-worker"};
    RunResult result;
    return exec_run(&request, &built, &arena, &result, error);
}

// Half of all tokens' visits are the mean of two ranks: more than the mean comes to one of them, unless both have
// exactly that; more than all cannot. Of 8 experts a rank of 2 has 4.
Test(experts, a_run_whose_tokens_have_no_room_ends_and_names_rank_layer_and_expert) {
    const Mesh spread = mesh_of(1, 2, 2);
    Error error = {0};
    int rank = -1, first = -1, last = -1, busiest = -1;
    long long rows = 0, of_busiest = 0, room = 0;
    cr_assert_neq(try_capacity(&spread, 100, &error), STATUS_OK);
    const char *of_rank = strstr(error.message, "rank "), *came = strstr(error.message, "layer 0, ");
    cr_assert(of_rank && came && strstr(error.message, "--capacity"), "%s", error.message);
    cr_assert_eq(sscanf(of_rank, "rank %d", &rank), 1);
    cr_assert_eq(sscanf(came,
                        "layer 0, %lld rows came to experts %d to %d, most of them (%lld) to expert %d, and there is "
                        "room for %lld",
                        &rows, &first, &last, &of_busiest, &busiest, &room),
                 6, "%s", error.message);
    cr_expect(first == 4 * rank && last == first + 3 && busiest >= first && busiest <= last, "%s", error.message);
    cr_expect(rows > room && of_busiest <= rows && 4 * of_busiest >= rows, "%s", error.message);
}

// Which is the room that the run itself measured.
Test(experts, room_for_the_busiest_layer_is_enough_and_one_per_cent_less_is_not) {
    const Mesh spread = mesh_of(1, 4, 4);
    const RunRequest request = request_of("mixtral", &spread, 1, 400);
    const double most = case_run_request(&request, &arena).expert_load.most;
    const int enough = (int)ceil(100 + most - 1e-3);
    Error error = {0};
    cr_expect_eq(try_capacity(&spread, enough, &error), STATUS_OK, "%s", error.message);
    cr_expect_neq(try_capacity(&spread, enough - 1, &error), STATUS_OK, "%d was enough", enough - 1);
    cr_expect(strstr(error.message, "rows came to experts"), "%s", error.message);
}

Test(experts, more_room_is_planned_and_touched_as_planned) {
    const Mesh spread = mesh_of(1, 4, 4);
    const RunRequest usual = request_of("mixtral", &spread, 1, 300), more = request_of("mixtral", &spread, 1, 400);
    const RunResult three_times = case_run_request(&usual, &arena), four_times = case_run_request(&more, &arena);
    cr_expect_eq(three_times.peak_bytes, three_times.planned_peak_bytes);
    cr_expect_eq(four_times.peak_bytes, four_times.planned_peak_bytes);
    cr_expect_gt(four_times.planned_peak_bytes, three_times.planned_peak_bytes);
}

// The mean number of rows per rank is what each rank sends, so some rank gets at least that.
Test(experts, a_run_tells_how_unevenly_tokens_came) {
    const Mesh spread = mesh_of(1, 4, 4), alone = mesh_of(1, 2, 1);
    const RunRequest request = request_of("mixtral", &spread, 1, 400), without = request_of("mixtral", &alone, 1, 0);
    const ExpertLoad load = case_run_request(&request, &arena).expert_load;
    cr_expect(load.measured && load.over > 0 && load.most >= load.over && load.most <= 300, "%g %g", load.over,
              load.most);
    cr_expect_not(case_run_request(&without, &arena).expert_load.measured);
}

Test(experts, room_for_all_tokens_is_enough_for_any) {
    Error error = {0};
    const Mesh spread = mesh_of(1, 2, 2);
    cr_assert_eq(try_capacity(&spread, 200, &error), STATUS_OK, "%s", error.message);
}

// ---------------------------------------------------------------------------------------------- how it is run

static RunRequest spread_request(const char *type) {
    const bool latent = strcmp(type, "deepseek_v3") == 0;
    const Mesh mesh = mesh_named(latent ? "cp=2,tp=2,ep=2" : "dp_shard=2,cp=2,ep=4");
    RunRequest request = request_of(type, &mesh, 2, 400);
    request.model.experts.balance = latent ? 0 : 0.1;
    request.options.steps = 4;
    return request;
}

static bool same_bits(const RunResult *a, const RunResult *b) {
    const size_t bytes = (size_t)a->steps * sizeof(double);
    return memcmp(a->loss, b->loss, bytes) == 0 && memcmp(a->grad_norm, b->grad_norm, bytes) == 0;
}

static const char *const run_types[] = {"qwen2_moe", "gpt_oss",
                                        "deepseek_v3"};  // every task that layers of experts have
enum { RUN_TYPES = sizeof run_types / sizeof *run_types };

static void same_as_serial(LaneMode lanes, uint64_t jitter_seed, bool poison) {
    for (int i = 0; i < RUN_TYPES; i++) {
        const RunRequest usual = spread_request(run_types[i]);
        RunRequest otherwise = usual;
        otherwise.options.lanes = lanes;
        otherwise.options.jitter_seed = jitter_seed;
        otherwise.options.poison = poison;
        const RunResult serial = case_run_request(&usual, &arena), run = case_run_request(&otherwise, &arena);
        cr_expect(same_bits(&serial, &run), "%s: loss %.9g, serial %.9g", run_types[i], run.loss[run.steps - 1],
                  serial.loss[run.steps - 1]);
    }
}

Test(experts, lanes_in_threads_with_injected_waits_give_the_bits_of_issue_order) {
    same_as_serial(LANES_ASYNC, 5, false);
}

Test(experts, nothing_is_read_before_it_was_written) {
    same_as_serial(LANES_SERIAL, 0, true);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
Test(experts, nothing_is_allocated_inside_a_step) {
    cr_skip_test("a sanitizer has the allocator already");
}
#else
Test(experts, nothing_is_allocated_inside_a_step) {
    setenv("LD_PRELOAD", ALLOCATION_GUARD, 1);
    for (int i = 0; i < RUN_TYPES; i++) {
        const RunRequest request = spread_request(run_types[i]);
        case_run_request(&request, &arena);
    }
    unsetenv("LD_PRELOAD");
}
#endif
