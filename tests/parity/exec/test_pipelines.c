// Every mesh shape with a pipeline trains as one rank does: here each shape of up to 8 ranks once, in the 1f1b order;
// test_pipelines_product.c runs other orders, all choices and 16 ranks.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/step/schedules/order_file.h"
#include "tests/parity/exec/mesh_case.h"
#include "tests/parity/exec/pipeline_case.h"

enum { SHAPES = 64 };

static void world_trains(int world) {
    Mesh meshes[SHAPES];
    Deviation worst = {0};
    const int count = pipeline_shapes(world, meshes, SHAPES);
    for (int i = 0; i < count; i++) {
        const PipelineChoice choice = pipeline_spread(PP_1F1B, i + world);
        RunRequest request;
        char text[MESH_TEXT_BYTES];
        cr_assert(pipeline_request(&meshes[i], &choice, &request), "%s is refused", mesh_text(&meshes[i], text));
        pipeline_trains(&request, &worst);
    }
    cr_log_warn("%d shapes of %d ranks: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", count, world,
                worst.loss_first, worst.norm_first, worst.loss_last, worst.norm_last);
}

Test(pipelines, every_shape_of_up_to_5_ranks_trains_as_one_rank) {
    for (int world = 2; world <= 5; world++) {
        world_trains(world);
    }
}

Test(pipelines, every_shape_of_6_and_7_ranks_trains_as_one_rank) {
    world_trains(6);
    world_trains(7);
}

Test(pipelines, every_shape_of_8_ranks_trains_as_one_rank) {
    world_trains(8);
}

// By the costs of its blocks 3, 3 and 2 layers, then the head alone (sim/step/splits/cost.c).
Test(pipelines, a_stage_without_layers_trains_as_one_rank) {
    const PipelineChoice choice = {.schedule = PP_1F1B, .virtual_stages = 1};
    Mesh mesh;
    Error error = {0};
    RunRequest request;
    Deviation worst = {0};
    cr_assert(mesh_parse("pp=4", &mesh, &error) == STATUS_OK, "%s", error.message);
    cr_assert(pipeline_request(&mesh, &choice, &request));
    cr_assert(target_find("nanotron", &request.target, &error) == STATUS_OK, "%s", error.message);
    request.model.vocab = 1024;
    pipeline_trains(&request, &worst);
}

// Each of the tp ranks sends its slice of what all of them hold, and they gather what comes.
Test(pipelines, messages_in_slices_train_as_one_rank) {
    static const char *const meshes[] = {"pp=2,tp=2", "pp=2,dp_replicate=2,tp=2", "pp=4,tp=2"};
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        const PipelineChoice choice = {
            .schedule = i == 1 ? PP_INTERLEAVED : PP_1F1B, .virtual_stages = 2, .recompute = RECOMPUTE_FULL};
        Mesh mesh;
        Error error = {0};
        RunRequest request;
        cr_assert(mesh_parse(meshes[i], &mesh, &error) == STATUS_OK, "%s", error.message);
        cr_assert(pipeline_request(&mesh, &choice, &request), "%s is refused", meshes[i]);
        cr_assert(target_find("megatron@2022", &request.target, &error) == STATUS_OK, "%s", error.message);
        cr_assert(request.target->slices_messages);
        pipeline_trains(&request, &worst);
    }
}

// Of 8 layers: 2 3 2 1; 1 3 3 1; 3 and 5; 1 3, 3 1 in two chunks each; 0 4, 4 0, the first with the embedding alone.
Test(pipelines, uneven_splits_train_as_one_rank) {
    static const struct {
        const char *mesh;
        PipelineChoice choice;
    } cases[] = {
        {"pp=4", {.schedule = PP_1F1B, .virtual_stages = 1, .split = SPLIT_WEIGHTED, .first = 1, .last = 1}},
        {"pp=4,tp=2", {.schedule = PP_1F1B, .virtual_stages = 1, .split = SPLIT_ENDS, .first = 1, .last = 1}},
        {"pp=2,dp_shard=2",
         {.schedule = PP_1F1B, .virtual_stages = 1, .zero = 3, .split = SPLIT_ENDS, .first = 3, .last = 5}},
        {"pp=2,cp=2",
         {.schedule = PP_INTERLEAVED, .virtual_stages = 2, .zero = 1, .split = SPLIT_CHUNKS, .first = 1, .last = 1}},
        {"pp=2", {.schedule = PP_INTERLEAVED, .virtual_stages = 2, .split = SPLIT_CHUNKS, .first = 0, .last = 0}},
        {"pp=2", {.schedule = PP_ZBV, .virtual_stages = 2, .split = SPLIT_CHUNKS, .first = 3, .last = 1}},
        {"pp=2", {.schedule = PP_ZERO_BUBBLE, .virtual_stages = 2, .split = SPLIT_WEIGHTED, .first = 0, .last = 2}},
    };
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Mesh mesh;
        Error error = {0};
        RunRequest request;
        cr_assert(mesh_parse(cases[i].mesh, &mesh, &error) == STATUS_OK, "%s", error.message);
        cr_assert(pipeline_request(&mesh, &cases[i].choice, &request), "%s is refused", cases[i].mesh);
        pipeline_trains(&request, &worst);
    }
    cr_log_warn("uneven splits: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", worst.loss_first,
                worst.norm_first, worst.loss_last, worst.norm_last);
}

// Of 8 micro-steps groups of 3, 3 and 2, or of 5 and 3; of 4 micro-steps one.
Test(pipelines, groups_with_a_smaller_last_one_train_as_one_rank) {
    static const struct {
        const char *mesh;
        int group, zero;
    } cases[] = {{"pp=2", 3, 0}, {"pp=2", 5, 0}, {"pp=2,dp_shard=2", 4, 1}};
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const PipelineChoice choice = {.schedule = PP_INTERLEAVED, .virtual_stages = 2, .zero = cases[i].zero};
        Mesh mesh;
        Error error = {0};
        Arena arena = {0};
        RunRequest request;
        const char *reason = NULL;
        cr_assert(mesh_parse(cases[i].mesh, &mesh, &error) == STATUS_OK, "%s", error.message);
        cr_assert(pipeline_request(&mesh, &choice, &request), "%s is refused", cases[i].mesh);
        request.plan.pp_group = cases[i].group;
        target_check(request.target, &request.model, &request.plan, &arena, &reason);
        cr_assert_null(reason, "%s", reason);
        pipeline_trains(&request, &worst);
        arena_free(&arena);
    }
}

static const PipelineChoice every_schedule[] = {{.schedule = PP_1F1B, .virtual_stages = 1},
                                                {.schedule = PP_GPIPE, .virtual_stages = 1},
                                                {.schedule = PP_INTERLEAVED, .virtual_stages = 2},
                                                {.schedule = PP_ZERO_BUBBLE, .virtual_stages = 2},
                                                {.schedule = PP_ZBV, .virtual_stages = 2}};

static RunRequest two_stages(const PipelineChoice *choice) {
    Mesh mesh;
    Error error = {0};
    RunRequest request;
    cr_assert(mesh_parse("pp=2", &mesh, &error) == STATUS_OK, "%s", error.message);
    cr_assert(pipeline_request(&mesh, choice, &request));
    return request;
}

// Schedules one after another, each with its own fill and drain: of one micro-step, two or four; gradients reduced
// after each into whole ones, shards, and over replicas; as our own program and as torchtitan's.
Test(pipelines, rounds_train_as_one_rank) {
    static const struct {
        const char *mesh, *target;
        int rounds, zero;
        Reshard reshard;
    } cases[] = {{"pp=2", "ndtune", 4, 0, RESHARD_ALWAYS},
                 {"pp=2,dp_replicate=2", "ndtune", 2, 0, RESHARD_ALWAYS},
                 {"pp=2,dp_shard=2", "ndtune", 4, 1, RESHARD_ALWAYS},
                 {"pp=2,dp_shard=2", "ndtune", 2, 2, RESHARD_ALWAYS},
                 {"pp=2,dp_shard=2", "ndtune", 2, 3, RESHARD_NEVER},
                 {"pp=2,dp_replicate=2,dp_shard=2", "ndtune", 2, 3, RESHARD_ALWAYS},
                 {"pp=2,dp_shard=2", "torchtitan", 2, 3, RESHARD_ALWAYS},
                 {"pp=2,dp_replicate=2,dp_shard=2", "torchtitan", 2, 3, RESHARD_ALWAYS}};
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PipelineChoice of = every_schedule[i % (sizeof every_schedule / sizeof *every_schedule)];
        Mesh mesh;
        Error error = {0};
        Arena arena = {0};
        RunRequest request;
        const char *reason = NULL;
        of.zero = cases[i].zero;
        of.reshard = cases[i].reshard;
        cr_assert(mesh_parse(cases[i].mesh, &mesh, &error) == STATUS_OK, "%s", error.message);
        cr_assert(pipeline_request(&mesh, &of, &request), "%s is refused", cases[i].mesh);
        cr_assert(target_find(cases[i].target, &request.target, &error) == STATUS_OK, "%s", error.message);
        request.plan.pp_rounds = cases[i].rounds;
        target_check(request.target, &request.model, &request.plan, &arena, &reason);
        cr_assert_null(reason, "%s: %s", cases[i].mesh, reason);
        pipeline_trains(&request, &worst);
        arena_free(&arena);
    }
    cr_log_warn("rounds: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", worst.loss_first, worst.norm_first,
                worst.loss_last, worst.norm_last);
}

Test(pipelines, two_rounds_of_every_schedule_train_as_one_rank) {
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof every_schedule / sizeof *every_schedule; i++) {
        RunRequest request = two_stages(&every_schedule[i]);
        request.plan.pp_rounds = 2;
        pipeline_trains(&request, &worst);
    }
}

// What the one kept layer of a chunk left is in a slot that the recomputation of others writes too.
Test(pipelines, chunks_that_keep_one_layer_train_as_one_rank) {
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof every_schedule / sizeof *every_schedule; i++) {
        RunRequest request = two_stages(&every_schedule[i]);
        request.plan.recompute = RECOMPUTE_FULL;
        request.plan.recompute_layers = plan_chunks(&request.plan) > 1 ? 1 : 3;  // of each chunk
        pipeline_trains(&request, &worst);
    }
}

Test(pipelines, children_recomputed_one_by_one_train_as_one_rank) {
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof every_schedule / sizeof *every_schedule; i++) {
        RunRequest request = two_stages(&every_schedule[i]);
        request.plan.recompute = RECOMPUTE_FULL;
        request.plan.recompute_unit = RECOMPUTE_UNIT_CHILDREN;
        pipeline_trains(&request, &worst);
    }
}

// Their two halves pass the gradient of the stream on as a dense layer's do.
Test(pipelines, experts_train_as_one_rank_in_every_schedule) {
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof every_schedule / sizeof *every_schedule; i++) {
        RunRequest request = two_stages(&every_schedule[i]);
        cr_assert(model_set_family(&request.model, "mixtral"));
        request.model.experts = mesh_twos_experts.experts;
        pipeline_trains(&request, &worst);
    }
}

// Forwards further ahead than 1F1B's; backward of the latest first; micro-batches and kinds of backward in any order;
// weights in another order than inputs; two chunks, folded, with both gradients at once; two alternating, out of order.
Test(pipelines, orders_of_their_own_train_as_one_rank) {
    static const struct {
        const char *mesh;
        int chunks, zero;
        const char *text;
    } cases[] = {
        {"pp=2,dp_shard=2", 1, 0, "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n"},
        {"pp=2,dp_shard=2", 1, 1, "0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0\n1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0\n"},
        {"pp=2,dp_shard=2", 1, 3, "0F2,0F0,0F3,0B2,0I0,0F1,0B3,0W0,0B1\n1F2,1F0,1F3,1B2,1I0,1F1,1B3,1W0,1B1\n"},
        {"pp=2,dp_shard=2", 1, 2,
         "0F0,0F1,0F2,0F3,0I0,0I1,0I2,0I3,0W2,0W0,0W3,0W1\n1F0,1F1,1F2,1F3,1I0,1I1,1I2,1I3,1W3,1W2,1W1,1W0\n"},
        {"pp=2,dp_shard=2", 2, 0,
         "0F0,0F1,0F2,0F3,3F0,3F1,3F2,3F3,3B0,3B1,3B2,3B3,0B0,0B1,0B2,0B3\n"
         "1F0,1F1,1F2,1F3,2F0,2F1,2F2,2F3,2B0,2B1,2B2,2B3,1B0,1B1,1B2,1B3\n"},
        {"pp=2,dp_replicate=2", 2, 0,
         "0F1,0F0,2F1,2F0,0F3,0F2,2F3,2F2,2B3,2B2,2B1,2B0,0B3,0B2,0B1,0B0\n"
         "1F1,1F0,3F1,3F0,1F3,1F2,3F3,3F2,3B3,3B2,3B1,3B0,1B3,1B2,1B1,1B0\n"},
    };
    Arena arena = {0};
    Deviation worst = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Mesh mesh;
        Error error = {0};
        RunRequest request;
        PpOrder order;
        cr_assert(mesh_parse(cases[i].mesh, &mesh, &error) == STATUS_OK, "%s", error.message);
        cr_assert(order_text_read("order", cases[i].text, &arena, &order, &error) == STATUS_OK, "%zu: %s", i,
                  error.message);
        const PipelineChoice choice = {
            .schedule = PP_FILE, .virtual_stages = cases[i].chunks, .zero = cases[i].zero, .order = &order};
        cr_assert(pipeline_request(&mesh, &choice, &request), "%zu is refused", i);
        pipeline_trains(&request, &worst);
    }
    cr_log_warn("orders of their own: step 1 loss %.1e norm %.1e, last step loss %.1e norm %.1e", worst.loss_first,
                worst.norm_first, worst.loss_last, worst.norm_last);
    arena_free(&arena);
}

// ---------------------------------------------------------------------------------------------- how it is run

typedef struct Case {
    const char *mesh;
    PpSchedule schedule;
    int zero;
} Case;

static const Case cases[] = {
    {"pp=2", PP_GPIPE, 0},
    {"pp=3", PP_1F1B, 0},
    {"pp=2", PP_INTERLEAVED, 0},
    {"pp=2,dp_shard=2,tp=2", PP_1F1B, 3},
    {"pp=2,dp_replicate=2,cp=2", PP_INTERLEAVED, 1},
    {"pp=3", PP_ZERO_BUBBLE, 0},
    {"pp=2,dp_shard=2", PP_ZBV, 3},
};

static RunRequest request_of(const Case *one) {
    const PipelineChoice choice = {
        .schedule = one->schedule, .virtual_stages = 2, .zero = one->zero, .recompute = RECOMPUTE_FULL};
    Mesh mesh;
    Error error = {0};
    RunRequest request;
    cr_assert(mesh_parse(one->mesh, &mesh, &error) == STATUS_OK, "%s", error.message);
    cr_assert(pipeline_request(&mesh, &choice, &request), "%s", one->mesh);
    return request;
}

// Lanes in threads, held up at random; memory that is not a number before it is written.
Test(pipelines, races_and_poison_change_no_bit) {
    Arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const RunRequest serial = request_of(&cases[i]);
        RunRequest other = serial;
        other.options.lanes = LANES_ASYNC;
        other.options.jitter_seed = i + 1;
        other.options.poison = true;
        const RunResult a = case_run_request(&serial, &arena), b = case_run_request(&other, &arena);
        const size_t bytes = (size_t)a.steps * sizeof *a.loss;
        cr_expect(memcmp(a.loss, b.loss, bytes) == 0 && memcmp(a.grad_norm, b.grad_norm, bytes) == 0,
                  "%s: loss %.9g, in issue order %.9g", cases[i].mesh, b.loss[b.steps - 1], a.loss[a.steps - 1]);
    }
    arena_free(&arena);
}

// The weights of all layers after the last step: the same file as one rank writes, except for rounding.
Test(pipelines, weights_are_those_of_one_rank) {
    Arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RunRequest request = request_of(&cases[i]), one = pipeline_one_rank(&request);
        char *own, *reference;
        int64_t bytes, expected;
        case_run_keeping(&request, &request.options.weights_path, &arena, &own, &bytes);
        case_run_keeping(&one, &one.options.weights_path, &arena, &reference, &expected);
        cr_assert_eq(bytes, expected, "%s", cases[i].mesh);
        double worst = 0;
        for (int64_t k = 0; k < bytes / (int64_t)sizeof(float); k++) {
            float a, b;
            memcpy(&a, own + k * (int64_t)sizeof a, sizeof a);
            memcpy(&b, reference + k * (int64_t)sizeof b, sizeof b);
            const double off = a > b ? a - b : b - a;
            worst = off > worst ? off : worst;
        }
        cr_expect(worst <= 2e-5, "%s: off by %.1e", cases[i].mesh, worst);  // steps of lr 1e-3
    }
    arena_free(&arena);
}
