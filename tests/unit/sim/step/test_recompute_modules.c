// Selective recompute by modules: what is recomputed, and what remains in memory.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/memory/memory_breakdown.h"
#include "tests/support/lowered.h"

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(recompute_modules, .fini = end);

static LoweredRequest request_of(int modules) {
    return (LoweredRequest){.layers = 4,
                            .target = "megatron@core",
                            .mesh = "dp_shard=2",
                            .seq = 256,
                            .bf16 = true,
                            .recompute = modules ? RECOMPUTE_SELECTIVE : RECOMPUTE_NONE,
                            .recompute_modules = modules};
}

// Names of a layer's operations that run again, in order, each once.
static const char *again(const LoweredRequest *request) {
    const StepProgram program = lowered(&arena, *request);
    char *text = arena_alloc(&arena, 2000);
    text[0] = '\0';
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (task->phase == PHASE_RECOMPUTE && !strstr(text, task->name)) {
            strcat(strcat(text, text[0] ? ", " : ""), task->name);
        }
    }
    return text;
}

static double activations_of(const LoweredRequest *request) {
    const StepProgram program = lowered(&arena, *request);
    Arena scratch = {0};
    Error error = {0};
    MemoryBreakdown breakdown;
    cr_assert_eq(memory_breakdown(&program, &scratch, &breakdown, &error), STATUS_OK, "%s", error.message);
    arena_free(&scratch);
    return breakdown.activations;
}

Test(recompute_modules, norms_run_again_and_nothing_else) {
    const LoweredRequest norms = request_of(RECOMPUTE_NORMS);
    cr_assert_str_eq(again(&norms), "norm");
}

Test(recompute_modules, an_mlp_runs_again_up_to_its_last_product) {
    const LoweredRequest mlp = request_of(RECOMPUTE_MLP);
    cr_assert_str_eq(again(&mlp), "gate up, swiglu");
}

// Two results of tokens x hidden in bf16 a layer: 256 x 256 x 2 bytes each; a layer's own come back in its backward.
Test(recompute_modules, norms_save_their_results_of_all_layers_but_one) {
    const LoweredRequest none = request_of(0), norms = request_of(RECOMPUTE_NORMS);
    const double saved = activations_of(&none) - activations_of(&norms);
    cr_assert_geq(saved, 3 * 2 * 256 * 256 * 2.0);
    cr_assert_leq(saved, 4 * (2 * 256 * 256 * 2.0 + 2 * 256 * 4));  // with their statistics, f32 a row
}

Test(recompute_modules, more_modules_keep_less) {
    static const int sets[] = {RECOMPUTE_CORE_ATTENTION, RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS,
                               RECOMPUTE_CORE_ATTENTION | RECOMPUTE_NORMS | RECOMPUTE_MLP};
    LoweredRequest request = request_of(0);
    double before = activations_of(&request);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        request = request_of(sets[i]);
        const double now = activations_of(&request);
        cr_expect_lt(now, before, "set %d", sets[i]);
        before = now;
    }
}

Test(recompute_modules, layers_of_experts_exchange_their_tokens_again) {
    LoweredRequest request = request_of(RECOMPUTE_EXPERTS);
    request.model = "tiny-moe";
    request.mesh = "dp_shard=2,ep=2";
    const char *text = again(&request);
    cr_expect(strstr(text, "tokens to experts"), "%s", text);
    cr_expect(strstr(text, "experts gate up"), "%s", text);
    cr_expect(!strstr(text, "norm"), "%s", text);
}

// Each layer's results have come back once more when the first of its gradients leaves.
static void results_come_again_first(LoweredRequest request) {
    request.model = "tiny-moe";
    request.mesh = "dp_shard=2,ep=2";
    const StepProgram program = lowered(&arena, request);
    int came = 0, left = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        came += task->phase == PHASE_RECOMPUTE && strcmp(task->name, "combine") == 0;
        if (strcmp(task->name, "combine backward") == 0) {
            cr_expect_eq(came, ++left);
        }
    }
    cr_expect_gt(left, 0);
}

Test(recompute_modules, what_is_checkpointed_of_experts_runs_again_whole_before_its_backward) {
    LoweredRequest layer = request_of(0);
    layer.recompute = RECOMPUTE_FULL;
    results_come_again_first(layer);
    results_come_again_first(request_of(RECOMPUTE_EXPERTS));
}

Test(recompute_modules, an_activation_of_experts_is_one_pass) {
    LoweredRequest request = request_of(RECOMPUTE_EXPERT_ACTIVATION);
    request.model = "tiny-moe";
    cr_assert_str_eq(again(&request), "experts swiglu");
}

// A checkpoint keeps its input in bf16, and what runs again stores it anew.
Test(recompute_modules, an_input_kept_in_fp8_is_cast_again_with_its_module) {
    LoweredRequest request = request_of(RECOMPUTE_EXPERT_ACTIVATION);
    request.model = "tiny-moe";
    request.fp8_activation = true;
    cr_expect_str_eq(again(&request), "experts swiglu, experts gate up to fp8");
    request = request_of(RECOMPUTE_MLP);
    request.fp8_activation = true;
    cr_expect(strstr(again(&request), "gate up to fp8"), "%s", again(&request));
}

// Index of the last task of that phase whose name begins so; -1 = none.
static int32_t place_of(const StepProgram *program, const char *name, Phase phase) {
    int32_t place = -1;
    for (int32_t i = 0; i < program->task_count; i++) {
        const bool is = program->tasks[i].phase == phase && strncmp(program->tasks[i].name, name, strlen(name)) == 0;
        place = is ? i : place;
    }
    return place;
}

// What was packed for the recomputed forward would let it leave beside all that is recomputed after it.
Test(recompute_modules, backward_packs_what_it_sends_behind_the_recomputation) {
    static const struct {
        const char *target;
        Recompute recompute;
        CpRotate rotate;
    } cases[] = {{"torchtitan", RECOMPUTE_SELECTIVE, CP_ROTATE_ALLGATHER},
                 {"megatron@core", RECOMPUTE_FULL, CP_ROTATE_RING}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const StepProgram program = lowered(&arena, (LoweredRequest){.layers = 4,
                                                                     .target = cases[i].target,
                                                                     .mesh = "cp=2",
                                                                     .seq = 256,
                                                                     .bf16 = true,
                                                                     .cp_rotate = cases[i].rotate,
                                                                     .recompute = cases[i].recompute});
        const char *send = cases[i].rotate == CP_ROTATE_RING ? "ring kv" : "gather kv";
        const int32_t packs = place_of(&program, "pack", PHASE_RECOMPUTE);
        cr_expect_gt(packs, place_of(&program, "norm", PHASE_RECOMPUTE), "%s", cases[i].target);
        cr_expect_lt(packs, place_of(&program, send, PHASE_BACKWARD), "%s", cases[i].target);
        cr_expect_gt(packs, place_of(&program, "attention out dgrad", PHASE_BACKWARD), "%s", cases[i].target);
    }
}
