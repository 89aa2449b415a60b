// See the header.

#include "tests/property/sim/engine/random_request.h"
#include "tests/support/orders.h"

static int one_of(Random *random, const int *values, int count) {
    return values[random_below(random, (uint32_t)count)];
}
#define ONE_OF(random, ...)                                                                                            \
    one_of(random, (const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

static ModelSpec random_model(Random *random) {
    const int head_dim = ONE_OF(random, 64, 128);
    const int heads = ONE_OF(random, 16, 32, 32, 40, 64);
    ModelSpec model = {.name = "random",
                       .layers = 2 + (int)random_below(random, 60),
                       .heads = heads,
                       .kv_heads = random_below(random, 2) ? heads : 8,
                       .head_dim = head_dim,
                       .hidden = heads * head_dim,
                       .vocab = ONE_OF(random, 32000, 50304, 128256),
                       .max_seq = 131072,
                       .rope_theta = 10000,
                       .norm_eps = 1e-5,
                       .source = "drawn"};
    model.ffn = model.hidden * ONE_OF(random, 8, 11, 14) / 4 / 256 * 256;
    return model;
}

RandomRequest random_request(Random *random, Arena *arena) {
    static const char *const clusters[] = {"dgx-h100", "dgx-a100-80g"};
    static const char *const targets[] = {"accelerate", "ndtune",   "accelerate", "ndtune",
                                          "torchtitan", "megatron", "nanotron"};
    RandomRequest request = {.model = random_model(random),
                             .world = ONE_OF(random, 2, 4, 8, 8, 16, 24, 32, 32, 64, 128, 256, 512),
                             .seq = ONE_OF(random, 1024, 2048, 4096, 4096, 8192, 16384)};
    Error error = {0};
    ASSERT(cluster_find(clusters[random_below(random, 2)], arena, &request.profile, &error) == STATUS_OK);
    ASSERT(target_find(targets[random_below(random, 7)], &request.target, &error) == STATUS_OK);
    return request;
}

bool random_plan(Random *random, const RandomRequest *request, Arena *arena, TrainPlan *plan) {
    const int count = mesh_enumerate(request->world, AXES_FIRST, NULL, 0);
    Mesh *meshes = ARENA_ARRAY(arena, Mesh, count);
    mesh_enumerate(request->world, AXES_FIRST, meshes, count);
    *plan = (TrainPlan){.mesh = meshes[random_below(random, (uint32_t)count)],
                        .seq = request->seq,
                        .micro_batch = ONE_OF(random, 1, 1, 2, 4, 8),
                        .grad_accum = ONE_OF(random, 1, 1, 2, 3, 4, 8, 16),
                        .reshard = random_below(random, 4) ? RESHARD_ALWAYS : RESHARD_NEVER,
                        .recompute = (Recompute)random_below(random, RECOMPUTE_COUNT),
                        .attention = random_below(random, 3) ? ATTENTION_FLASH : ATTENTION_EAGER,
                        .fused = (Fused)random_below(random, FUSED_COUNT),
                        .tp_overlap = random_below(random, 3) == 0,
                        .cp_rotate = random_below(random, 2) ? CP_ROTATE_RING : CP_ROTATE_ALLGATHER,
                        .precision = DTYPE_BF16};
    plan->zero = random_below(random, 3) ? 3 : (int)random_below(random, 3);
    if (request->target->shard_needs_fsdp) {
        plan->zero = 3;
    }
    plan->zero = plan->zero < request->target->max_zero ? plan->zero : request->target->max_zero;
    AxisOrder orders[FIRST_ORDERS];
    first_orders(orders);
    plan->mesh.order = orders[random_below(random, 2) ? random_below(random, FIRST_ORDERS) : 0];
    plan_canonical(plan);
    plan->mesh.order = target_takes_order(request->target, &plan->mesh) ? plan->mesh.order : orders[0];
    const char *reason;
    target_check(request->target, &request->model, plan, arena, &reason);
    return reason == NULL && plan->mesh.size[AXIS_TP] <= request->profile.node.accelerators;
}

bool random_is_legal(const RandomRequest *request, const TrainPlan *plan, Arena *arena) {
    const char *reason = NULL;
    target_check(request->target, &request->model, plan, arena, &reason);
    return !reason;
}
