// The space of candidates: which exist, that none is duplicated, and the batch arithmetic.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/search/prune.h"
#include "autotune/search/space.h"
#include "tests/support/search_all.h"
#include "tests/support/sizes.h"
#include "tests/unit/autotune/requests.h"

static Arena arena;
static Space space;
static TuneRequest request;

static void begin(void) {
    arena = (Arena){0};
    request = request_for(&arena, 32, "7b", "dgx-h100", "accelerate");
    request.global_batch = 1024;
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(space, .init = begin, .fini = end);

Test(space, world_32_has_56_shapes) {
    // 32 = 2^5: ways to deal five factors of two to four axes, C(5 + 3, 3) = 56.
    space_enumerate(&request, &arena, &space);
    cr_assert_eq(space.mesh_count, 56);
}

Test(space, every_shape_has_a_candidate) {
    request.global_batch = 7;  // no shape with 2 data ranks or more can make it
    space_enumerate(&request, &arena, &space);
    bool seen[56] = {false};
    for (int i = 0; i < space.candidate_count; i++) {
        seen[space.candidates[i].shape] = true;
    }
    for (int i = 0; i < 56; i++) {
        cr_assert(seen[i], "shape %d has none", i);
    }
}

static bool is_near(const Mesh *mesh) {
    const int cp = mesh->size[AXIS_CP], tp = mesh->size[AXIS_TP];
    return (cp == 2 && tp <= 4) || (tp == 2 && cp <= 4);
}

Test(space, near_a_mesh_one_inner_axis_at_most_is_twice_or_half_as_long) {
    const Mesh mesh = {.size = SIZES(2, 4, 2, 2)};
    int shapes = 0;
    space_enumerate(&request, &arena, &space);
    for (int i = 0; i < space.mesh_count; i++) {
        shapes += is_near(&space.meshes[i]);
    }
    space_enumerate_near(&request, &mesh, &arena, &space);
    cr_assert_eq(space.mesh_count, shapes);
    for (int i = 0; i < space.candidate_count; i++) {
        cr_assert(is_near(&space.candidates[i].plan.mesh), "candidate %d", i);
    }
}

static int by_value(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

// Equal plans have equal hashes; all hashes differ.
Test(space, no_plan_comes_twice) {
    space_enumerate(&request, &arena, &space);
    uint64_t *hashes = ARENA_ARRAY(&arena, uint64_t, space.candidate_count);
    for (int i = 0; i < space.candidate_count; i++) {
        Hash hash = hash_begin();
        plan_hash(&space.candidates[i].plan, &hash);
        hashes[i] = hash_end(&hash);
    }
    qsort(hashes, (size_t)space.candidate_count, sizeof hashes[0], by_value);
    for (int i = 1; i < space.candidate_count; i++) {
        cr_assert_neq(hashes[i - 1], hashes[i], "a plan comes twice");
    }
}

Test(space, plans_are_canonical) {
    space_enumerate(&request, &arena, &space);
    for (int i = 0; i < space.candidate_count; i++) {
        TrainPlan canonical = space.candidates[i].plan;
        plan_canonical(&canonical);
        cr_assert(plans_equal(&canonical, &space.candidates[i].plan), "candidate %d", i);
    }
}

static int next_of(const Space *in, int shape, int micro_batch, int from) {
    while (from < in->candidate_count &&
           (in->candidates[from].shape != shape || in->candidates[from].plan.micro_batch != micro_batch)) {
        from++;
    }
    return from;
}

// Its choices are not found anew for each micro-batch; shapes that have none of it are another test's.
Test(space, a_micro_batch_has_the_candidates_that_it_has_alone) {
    static const char *const targets[] = {"accelerate", "torchtitan", "megatron", "deepspeed"};
    for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
        request = request_for(&arena, 32, "7b", "dgx-h100", targets[t]);
        request.global_batch = 96;
        space_enumerate(&request, &arena, &space);
        int compared = 0;
        for (int micro_batch = 1; micro_batch <= 12; micro_batch++) {
            TuneRequest of_one = request;
            Space alone;
            of_one.micro_batch = micro_batch;
            space_enumerate(&of_one, &arena, &alone);
            for (int shape = 0; shape < space.mesh_count; shape++) {
                int at = next_of(&space, shape, micro_batch, 0), same = next_of(&alone, shape, micro_batch, 0);
                for (; at < space.candidate_count; compared++) {
                    cr_assert_lt(same, alone.candidate_count, "%s: too many with %d", targets[t], micro_batch);
                    cr_assert(plans_equal(&space.candidates[at].plan, &alone.candidates[same].plan), "%s", targets[t]);
                    at = next_of(&space, shape, micro_batch, at + 1);
                    same = next_of(&alone, shape, micro_batch, same + 1);
                    cr_assert(at < space.candidate_count || same == alone.candidate_count, "%s: too few", targets[t]);
                }
            }
        }
        cr_assert_gt(compared, 100);
    }
}

Test(space, a_given_batch_is_met_exactly_where_it_can_be) {
    request.global_batch = 96;  // 3 * 32: every number of data ranks divides it
    space_enumerate(&request, &arena, &space);
    for (int i = 0; i < space.candidate_count; i++) {
        cr_assert_eq(plan_global_batch(&space.candidates[i].plan), 96, "candidate %d", i);
    }
}

Test(space, a_given_batch_brings_divisors_that_are_no_powers_of_two) {
    request.global_batch = 96;
    space_enumerate(&request, &arena, &space);
    bool three = false;
    for (int i = 0; i < space.candidate_count; i++) {
        three = three || space.candidates[i].plan.micro_batch == 3;
    }
    cr_assert(three);
}

Test(space, an_asked_choice_is_the_only_one) {
    request.asked[PLAN_RECOMPUTE] = RECOMPUTE_FULL;
    request.micro_batch = 4;
    space_enumerate(&request, &arena, &space);
    for (int i = 0; i < space.candidate_count; i++) {
        cr_assert_eq(space.candidates[i].plan.recompute, RECOMPUTE_FULL);
        cr_assert_eq(space.candidates[i].plan.micro_batch, 4);
    }
}

Test(space, a_target_without_all_gather_is_offered_the_ring_only) {
    Error error = {0};
    target_find("ndtune", &request.target, &error);
    space_enumerate(&request, &arena, &space);
    for (int i = 0; i < space.candidate_count; i++) {
        cr_assert_eq(space.candidates[i].plan.cp_rotate, CP_ROTATE_RING);
    }
}

// Whether the candidates without stages, with tp inside and beyond a node of 8, may overlap its collectives with
// products: a bit for each of off and on.
static void overlaps(const char *model, const char *cluster, const char *target, unsigned seen[2]) {
    enum { ON_A_NODE = 8 };
    seen[0] = seen[1] = 0;
    request = request_for(&arena, 32, model, cluster, target);
    request.global_batch = 64;
    request.micro_batch = 1;
    space_enumerate(&request, &arena, &space);
    for (int i = 0; i < space.candidate_count; i++) {
        const Mesh *mesh = &space.candidates[i].plan.mesh;
        const int tp = mesh->size[AXIS_TP];
        if (tp > 1 && mesh_stages(mesh) == 1) {
            seen[tp > ON_A_NODE] |= 1u << space.candidates[i].plan.tp_overlap;
        }
    }
}

// Off only where on may not fit: Transformer Engine's buffers are large, PyTorch's are not.
Test(space, tp_collectives_overlap_products_where_target_and_links_can) {
    static const unsigned OFF = 1u << false, ON = 1u << true;
    static const struct {
        const char *model, *cluster, *target;
        unsigned on_a_node;
    } cases[] = {{"llama-3-8b", "dgx-h100", "torchtitan", ON},      {"llama-3-8b", "dgx-h100", "megatron", OFF | ON},
                 {"llama-3-8b", "pcie-4090-8x", "torchtitan", OFF}, {"mixtral-8x7b", "dgx-h100", "torchtitan", OFF},
                 {"llama-3-8b", "dgx-h100", "torchtitan@0.0", OFF}, {"llama-3-8b", "dgx-h100", "accelerate", OFF}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned seen[2];
        overlaps(cases[i].model, cases[i].cluster, cases[i].target, seen);
        cr_expect_eq(seen[0], cases[i].on_a_node, "%s %s %s: %u", cases[i].model, cases[i].cluster, cases[i].target,
                     seen[0]);
        cr_expect_eq(seen[1], OFF, "%s %s %s, beyond a node: %u", cases[i].model, cases[i].cluster, cases[i].target,
                     seen[1]);
    }
}

Test(space, chunks_that_lack_a_layer_at_each_end_are_even) {
    request = request_for(&arena, 512, "405b", "dgx-h100", "torchtitan");  // 126 layers
    TrainPlan plan = {.mesh = mesh_of_one()};
    plan.mesh.size[AXIS_PP] = 8;
    cr_expect(space_cuts_evenly(&request, &plan, 2), "16 chunks: embedding and head are with the last two");
    cr_expect_not(space_cuts_evenly(&request, &plan, 3), "24 chunks");
}

// 61 layers of 16 stages are 4 on most of them, cut into one chunk or into two.
Test(space, chunks_leave_the_fullest_stage_of_layers_that_do_not_divide_as_it_is) {
    static const struct {
        int stages, chunks;
        bool tried;
    } cases[] = {{16, 2, true}, {16, 4, false}, {8, 2, true}, {8, 3, false}, {8, 4, true}, {8, 5, false}};
    request = request_for(&arena, 1024, "deepseek-v3", "dgx-b200", "megatron");
    TrainPlan plan = {.mesh = mesh_of_one()};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plan.mesh.size[AXIS_PP] = cases[i].stages;
        cr_expect_eq(space_cuts_evenly(&request, &plan, cases[i].chunks), cases[i].tried, "%d stages of %d chunks",
                     cases[i].stages, cases[i].chunks);
    }
}

// As the pipelines that the stage makes illegal: a rule must have it to say why.
Test(space, an_asked_stage_is_that_of_shapes_without_a_choice_too) {
    Error error = {0};
    target_find("deepspeed", &request.target, &error);
    request.asked[PLAN_ZERO] = 3;
    space_enumerate(&request, &arena, &space);
    for (int i = 0; i < space.candidate_count; i++) {
        cr_assert_eq(space.candidates[i].plan.zero, plan_shard_count(&space.candidates[i].plan) > 1 ? 3 : 0);
    }
}

static Mesh asked_for;  // what they are compared with

// Meshes of a target at stage 0, of which some have ranks that shard.
static int meshes_at_stage_0(const char *model, const char *target, int *sharding) {
    request = request_for(&arena, 8, model, "dgx-h100", target);
    request.baseline = asked_for;
    request.asked[PLAN_ZERO] = 0;
    space_meshes(&request, &arena, &space);
    *sharding = 0;
    for (int i = 0; i < space.mesh_count; i++) {
        *sharding += space.meshes[i].size[AXIS_DP_SHARD] > 1;
    }
    return space.mesh_count;
}

// 8 = 2^3 ranks over replicas and tp, and over cp and stages where the target has them.
Test(space, ranks_that_shard_nothing_are_replicas) {
    int sharding = 0;
    cr_expect_eq(meshes_at_stage_0("llama-3.2-1b", "megatron", &sharding), 20);
    cr_expect_eq(sharding, 0);
}

Test(space, a_shape_that_was_asked_for_is_listed_beside_its_twin) {
    int sharding = 0;
    mesh_parse("dp_shard=8", &asked_for, &(Error){0});
    cr_expect_eq(meshes_at_stage_0("llama-3.2-1b", "megatron", &sharding), 21);
    cr_expect_eq(sharding, 1);
}

// Ranks of experts are not taken from replicas.
Test(space, ranks_that_shard_nothing_are_listed_where_replicas_would_be_refused) {
    int sharding = 0;
    meshes_at_stage_0("qwen3-30b-a3b", "megatron", &sharding);
    cr_expect_gt(sharding, 0);
}

Test(space, meshes_that_the_stage_forbids_are_listed_for_the_reason) {
    int sharding = 0;
    meshes_at_stage_0("llama-3.2-1b", "torchtitan", &sharding);
    cr_expect_gt(sharding, 0);
}

// How many candidates of pipelines split backward.
static int splitting(int64_t batch) {
    int count = 0;
    request = request_for(&arena, 8, "llama-3-8b", "dgx-h100", "torchtitan");
    request.micro_batch = 1;
    request.global_batch = batch;
    space_enumerate(&request, &arena, &space);
    for (int i = 0; i < space.candidate_count; i++) {
        const TrainPlan *plan = &space.candidates[i].plan;
        const bool splits = plan->pp_schedule == PP_ZERO_BUBBLE || plan->pp_schedule == PP_ZBV;
        cr_expect(!splits || plan->fused == FUSED_EAGER, "PyTorch refuses to split compiled stages");
        count += splits;
    }
    return count;
}

Test(space, backward_is_split_where_the_bubble_is_large) {
    const int few = splitting(8), many = splitting(1024);
    cr_expect(few > 0, "8 stages, 8 micro-steps");
    cr_expect(many == 0, "at least 128 micro-steps of one sequence");
}

static int *count_plans(const Space *of) {
    int *plans = ARENA_ARRAY(&arena, int, of->mesh_count);
    for (int i = 0; i < of->candidate_count; i++) {
        plans[of->candidates[i].shape]++;
    }
    return plans;
}

// 384 ranks: tp with a factor of three divides tokens only with micro-batches that have it too.
Test(space, of_many_shapes_those_that_every_choice_is_thrown_out_of_have_one_plan) {
    static const char *const targets[] = {"megatron", "torchtitan"};
    for (int i = 0; i < 2; i++) {
        Space all;
        int thrown_out = 0;
        const char *reason;
        request = request_for(&arena, 384, "gpt3-175b", "dgx-a100-80g", targets[i]);
        request.global_batch = 384;
        space_enumerate(&request, &arena, &space);
        request.without = 1u << SHORTCUT_STAGES;
        space_enumerate(&request, &arena, &all);
        request.without = 0;
        const int *left = count_plans(&space), *plans = count_plans(&all);
        for (int at = 0; at < all.candidate_count; at++) {
            const Candidate *candidate = &all.candidates[at];
            if (mesh_stages(&candidate->plan.mesh) == 1 && left[candidate->shape] < plans[candidate->shape]) {
                thrown_out++;
                cr_assert(prune(&request, &candidate->plan, NULL, &arena, &reason), "%s: a plan of shape %d is lost",
                          targets[i], candidate->shape);
            }
        }
        cr_expect_gt(thrown_out, 100, "%s", targets[i]);
    }
}

Test(space, what_was_asked_of_pipelines_is_in_every_candidate_that_has_stages) {
    static const struct {
        const char *target;
        PpSchedule schedule;
    } asked[] = {{"deepspeed", PP_GPIPE}, {"megatron", PP_ZBV}, {"torchtitan", PP_ZBV}};
    for (size_t row = 0; row < sizeof asked / sizeof asked[0]; row++) {
        request = request_for(&arena, 16, "7b", "dgx-h100", asked[row].target);
        request.global_batch = 128;
        request.asked[PLAN_PP_SCHEDULE] = (int)asked[row].schedule;
        space_enumerate(&request, &arena, &space);
        int with_stages = 0;
        for (int i = 0; i < space.candidate_count; i++) {
            const TrainPlan *plan = &space.candidates[i].plan;
            with_stages += mesh_stages(&plan->mesh) > 1;
            cr_expect(mesh_stages(&plan->mesh) == 1 || plan->pp_schedule == asked[row].schedule, "%s: candidate %d",
                      asked[row].target, i);
        }
        cr_expect_gt(with_stages, 0, "%s", asked[row].target);
    }
}

Test(space, chunks_that_were_asked_for_are_in_every_pipeline_that_may_run) {
    request = request_for(&arena, 16, "7b", "dgx-h100", "torchtitan");
    request.global_batch = 128;
    request.asked[PLAN_VIRTUAL_STAGES] = 2;
    space_enumerate(&request, &arena, &space);
    int pipelines = 0;
    for (int i = 0; i < space.candidate_count; i++) {
        const TrainPlan *plan = &space.candidates[i].plan;
        const char *reason = NULL;
        const bool runs = mesh_stages(&plan->mesh) > 1 && !prune(&request, plan, NULL, &arena, &reason);
        pipelines += runs;
        cr_expect(!runs || plan_chunks(plan) == 2, "candidate %d", i);
    }
    cr_expect_gt(pipelines, 0);
}
