// Random plans from a printed seed: the canonical form is reached in one step, texts and hashes are equal exactly when
// the canonical plans are, and batch arithmetic agrees with counting.

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "sim/frameworks/target.h"
#include "tests/support/hash_of.h"
#include "tests/support/orders.h"
#include "tests/support/sizes.h"

enum { CASES = 3000 };
static const uint64_t seed = 20261121;

static uint64_t state;

static void begin(void) {
    state = seed;
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
}

TestSuite(plan_property, .init = begin);

static uint64_t draw(void) {  // xorshift64*, Vigna 2016
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ull;
}

static int draw_int(int low, int high) {
    return low + (int)(draw() % (uint64_t)(high - low + 1));
}

// Few values for each choice, so that equal plans are common.
static TrainPlan draw_plan(void) {
    AxisOrder orders[FIRST_ORDERS];
    first_orders(orders);
    return (TrainPlan){.mesh = {.size = SIZES(draw_int(1, 2), draw_int(1, 2), draw_int(1, 2), draw_int(1, 2)),
                                .order = orders[draw_int(0, 2) ? 0 : draw_int(0, FIRST_ORDERS - 1)]},
                       .seq = 1024 * draw_int(1, 2),
                       .micro_batch = draw_int(1, 2),
                       .grad_accum = draw_int(1, 2),
                       .zero = draw_int(0, 3),
                       .reshard = (Reshard)draw_int(0, RESHARD_COUNT - 1),
                       .recompute = (Recompute)draw_int(0, RECOMPUTE_COUNT - 1),
                       .cp_rotate = (CpRotate)draw_int(0, CP_ROTATE_COUNT - 1),
                       .precision = draw_int(0, 1) ? DTYPE_BF16 : DTYPE_FP32};
}

static bool same_plan(const TrainPlan *a, const TrainPlan *b) {
    return memcmp(&a->mesh, &b->mesh, sizeof a->mesh) == 0 && a->seq == b->seq && a->micro_batch == b->micro_batch &&
           a->grad_accum == b->grad_accum && a->zero == b->zero && a->reshard == b->reshard &&
           a->recompute == b->recompute && a->cp_rotate == b->cp_rotate && a->precision == b->precision;
}

Test(plan_property, the_canonical_form_is_a_fixed_point) {
    for (int i = 0; i < CASES; i++) {
        TrainPlan once = draw_plan();
        plan_canonical(&once);
        TrainPlan twice = once;
        plan_canonical(&twice);
        cr_assert(same_plan(&once, &twice), "case %d", i);
    }
}

Test(plan_property, text_and_hash_are_equal_exactly_when_the_canonical_plans_are) {
    int equal = 0;
    for (int i = 0; i < CASES; i++) {
        TrainPlan a = draw_plan();
        TrainPlan b = draw_int(0, 1) ? draw_plan() : a;
        b.zero = draw_int(0, 3);
        char a_text[PLAN_TEXT_BYTES];
        char b_text[PLAN_TEXT_BYTES];
        const bool same_text = strcmp(plan_text(&a, a_text), plan_text(&b, b_text)) == 0;
        const bool same_hash = hash_of_plan(&a) == hash_of_plan(&b);
        plan_canonical(&a);
        plan_canonical(&b);
        const bool same = same_plan(&a, &b);
        cr_assert_eq(same_text, same, "case %d: %s | %s", i, a_text, b_text);
        cr_assert_eq(same_hash, same, "case %d: %s | %s", i, a_text, b_text);
        equal += same;
    }
    cr_assert(equal > CASES / 20 && equal < CASES, "%d of %d pairs equal: both sides must be exercised", equal, CASES);
}

Test(plan_property, canonical_plans_keep_mesh_and_batch) {
    for (int i = 0; i < CASES; i++) {
        const TrainPlan before = draw_plan();
        TrainPlan after = before;
        plan_canonical(&after);
        cr_assert_eq(plan_global_batch(&before), plan_global_batch(&after));
        cr_assert_eq(plan_local_tokens(&before), plan_local_tokens(&after));
        cr_assert_eq(mesh_world(&before.mesh), mesh_world(&after.mesh));
    }
}

// Every (dp_replicate, dp_shard) coordinate loads micro_batch sequences, its cp ranks share them; tp ranks see the same
// tokens.
Test(plan_property, the_tokens_of_all_ranks_make_up_the_step) {
    for (int i = 0; i < CASES; i++) {
        const TrainPlan plan = draw_plan();
        int64_t tokens = 0;
        for (int rank = 0; rank < mesh_world(&plan.mesh); rank++) {
            tokens += mesh_coordinates(&plan.mesh, rank).at[AXIS_TP] == 0 ? plan_local_tokens(&plan) : 0;
        }
        cr_assert_eq(tokens * plan.grad_accum, plan_tokens_per_step(&plan));
    }
}

Test(plan_property, a_reason_is_one_sentence_of_words_or_nothing) {
    Arena arena = {0};
    Error error = {0};
    ModelSpec model;
    const Target *target = NULL;
    cr_assert_eq(model_find("tiny", NULL, &model, &error), STATUS_OK);
    int refused = 0;
    for (int i = 0; i < CASES; i++) {
        cr_assert_eq(target_find(draw_int(0, 1) ? "accelerate" : "ndtune", &target, &error), STATUS_OK);
        TrainPlan plan = draw_plan();
        plan.mesh.size[AXIS_TP] = draw_int(1, 9);
        plan.mesh.order = draw_int(0, 7) ? (AxisOrder){{0}} : plan.mesh.order;
        plan.seq = draw_int(1, 4096);
        const char *reason = NULL;
        target_check(target, &model, &plan, &arena, &reason);
        if (reason) {
            refused++;
            cr_assert_null(strchr(reason, '\n'), "%s", reason);
            cr_assert_not_null(strstr(reason, "use "), "it must say what to change: %s", reason);
        }
        arena_reset(&arena);
    }
    cr_assert(refused > CASES / 20 && refused < CASES * 19 / 20, "%d of %d refused", refused, CASES);
    arena_free(&arena);
}
