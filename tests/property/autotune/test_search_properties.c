// Laws of the search over random requests. The seed is printed; NDTUNE_SEED repeats a failure.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/search.h"
#include "autotune/space.h"
#include "tests/unit/autotune/requests.h"

enum { ROUNDS = 6 };

// splitmix64 (Vigna): small, seedable, the same everywhere.
static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t seed_begin(void) {
    const char *text = getenv("NDTUNE_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 10) : 20240607;
    cr_log_info("NDTUNE_SEED=%llu", (unsigned long long)seed);
    return seed;
}

static TuneRequest random_request(Arena *arena, uint64_t *seed) {
    static const int worlds[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    static const char *const models[] = {"tiny", "7b", "llama-3-8b"};
    static const char *const targets[] = {"accelerate", "ndtune"};
    TuneRequest request =
        request_for(arena, worlds[next(seed) % 10], models[next(seed) % 3], "dgx-h100", targets[next(seed) % 2]);
    if (next(seed) % 2) {
        request.global_batch = (int64_t)(1 + next(seed) % 200);
    }
    if (next(seed) % 4 == 0) {
        request.micro_batch = (int)(1 + next(seed) % 6);
    }
    if (next(seed) % 3 == 0) {
        request.recompute = (int)(next(seed) % RECOMPUTE_COUNT);
    }
    return request;
}

Test(space_property, candidates_multiply_to_the_world_and_meet_the_batch_or_are_told_why) {
    uint64_t seed = seed_begin();
    for (int round = 0; round < 200; round++) {
        Arena arena = {0};
        const TuneRequest request = random_request(&arena, &seed);
        Space space;
        space_enumerate(&request, &arena, &space);
        for (int i = 0; i < space.candidate_count; i++) {
            const TrainPlan *plan = &space.candidates[i].plan;
            cr_assert_eq(mesh_world(&plan->mesh), request.world, "round %d", round);
            cr_assert_geq(plan->grad_accum, 1);
            cr_assert(request.micro_batch == 0 || plan->micro_batch == request.micro_batch);
        }
        arena_free(&arena);
    }
}

Test(search_property, every_shape_is_ranked_or_rejected_exactly_once, .timeout = 300) {
    uint64_t seed = seed_begin();
    for (int round = 0; round < ROUNDS; round++) {
        Arena arena = {0};
        Error error = {0};
        TuneResult result;
        const TuneRequest request = random_request(&arena, &seed);
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "round %d: %s", round,
                     error.message);
        const int shapes = mesh_enumerate(request.world, NULL, 0);
        Mesh *meshes = ARENA_ARRAY(&arena, Mesh, shapes);
        mesh_enumerate(request.world, meshes, shapes);
        for (int shape = 0; shape < shapes; shape++) {
            int times = 0;
            for (int i = 0; i < result.entry_count; i++) {
                times += memcmp(&result.entries[i].plan.mesh, &meshes[shape], sizeof(Mesh)) == 0;
            }
            for (int i = 0; i < result.rejected_count; i++) {
                times += memcmp(&result.rejected[i].plan.mesh, &meshes[shape], sizeof(Mesh)) == 0;
            }
            cr_assert_eq(times, 1, "round %d, shape %d: %d times", round, shape, times);
        }
        arena_free(&arena);
    }
}

Test(search_property, more_memory_never_loses_a_shape, .timeout = 300) {
    uint64_t seed = seed_begin() + 1;
    for (int round = 0; round < ROUNDS; round++) {
        Arena arena = {0};
        Error error = {0};
        TuneResult tight, roomy;
        TuneRequest request = random_request(&arena, &seed);
        request.memory_limit_bytes = 20e9;
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &tight, &error), STATUS_OK, "%s", error.message);
        request.memory_limit_bytes = 60e9;
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &roomy, &error), STATUS_OK, "%s", error.message);
        cr_assert_geq(roomy.entry_count, tight.entry_count, "round %d", round);
        if (tight.entry_count > 0) {
            cr_assert_geq(roomy.entries[0].tokens_per_s, tight.entries[0].tokens_per_s, "round %d", round);
        }
        arena_free(&arena);
    }
}

Test(search_property, a_given_batch_is_the_batch_of_every_entry, .timeout = 300) {
    uint64_t seed = seed_begin() + 2;
    for (int round = 0; round < ROUNDS; round++) {
        Arena arena = {0};
        Error error = {0};
        TuneResult result;
        TuneRequest request = random_request(&arena, &seed);
        request.global_batch = (int64_t)(1 + next(&seed) % 100);
        cr_assert_eq(search_run(&request, NULL, NULL, &arena, &result, &error), STATUS_OK, "%s", error.message);
        for (int i = 0; i < result.entry_count; i++) {
            cr_assert_eq(plan_global_batch(&result.entries[i].plan), request.global_batch, "round %d", round);
        }
        arena_free(&arena);
    }
}
