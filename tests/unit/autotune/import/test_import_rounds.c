// Schedules that a step runs one after another, in config files.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"

static Import settled(const char *batch, const char *stages, int world, Arena *arena) {
    Import import;
    Error error = {0};
    ConfigNode *root = NULL;
    ImportChoices given = import_nothing_said();
    given.world = world;
    const char *text = arena_format(arena, "[training]\n%s[parallelism]\n%s", batch, stages);
    cr_assert_eq(config_parse(text, "file", SYNTAX_TOML, arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(import_tree(root, "file", "torchtitan", arena, &import, &error), STATUS_OK, "%s", error.message);
    import_settle(&import, &given);
    return import;
}

// gradient_accumulation_steps of torchtitan's train.py: each runs the schedule over a local batch's micro-batches.
Test(import_rounds, torchtitan_repeats_a_schedule_until_it_has_the_global_batch) {
    static const struct {
        const char *batch, *stages;
        int micro_batch, grad_accum, rounds;
    } cases[] = {
        {"local_batch_size = 8\nglobal_batch_size = 64\n", "", 1, 32, 4},
        {"local_batch_size = 8\nglobal_batch_size = 64\n", "pipeline_parallel_microbatch_size = 2\n", 2, 16, 4},
        {"local_batch_size = 8\nglobal_batch_size = 16\n", "", 1, 8, 1},
        {"local_batch_size = 1\nglobal_batch_size = 16\n", "", 1, 8, 8},
        {"local_batch_size = 8\n", "", 1, 8, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const char *stages = arena_format(&arena, "pipeline_parallel_degree = 4\n%s", cases[i].stages);
        const Import import = settled(cases[i].batch, stages, 8, &arena);
        const TrainPlan usual = {.seq = 4096, .precision = DTYPE_BF16};
        TrainPlan read;
        cr_expect_null(import.refusal, "case %zu: %s", i, import.refusal);
        import_plan(&import, &usual, &read);
        cr_expect(read.micro_batch == cases[i].micro_batch && read.grad_accum == cases[i].grad_accum &&
                      plan_rounds(&read) == cases[i].rounds,
                  "case %zu: micro-batch %d, accumulation %d in %d", i, read.micro_batch, read.grad_accum,
                  plan_rounds(&read));
        arena_free(&arena);
    }
}

Test(import_rounds, a_batch_that_does_not_add_up_is_refused_with_what_does) {
    static const struct {
        const char *batch, *stages, *refusal;
    } cases[] = {
        {"local_batch_size = 4\nglobal_batch_size = 20\n", "pipeline_parallel_degree = 2\n",
         "a global batch of 20 is no multiple of 8, the local batch of 4 (a schedule of 4 micro-batches of 1) on each "
         "of 2 data ranks: use a global batch of 16 or 24, or a local batch of 2"},
        {"local_batch_size = 4\nglobal_batch_size = 21\n",
         "pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 2\n",
         "a global batch of 21 is no multiple of 8, the local batch of 4 (a schedule of 2 micro-batches of 2) on each "
         "of 2 data ranks: use a global batch of 16 or 24"},
        {"local_batch_size = 4\nglobal_batch_size = 4\n", "pipeline_parallel_degree = 2\n",
         "a global batch of 4 is no multiple of 8, the local batch of 4 (a schedule of 4 micro-batches of 1) on each "
         "of 2 data ranks: use a global batch of 8, or a local batch of 2"},
        {"local_batch_size = 4\nglobal_batch_size = 20\n", "tensor_parallel_degree = 2\n",
         "micro-batch 4 x dp_replicate 1 x dp_shard 2 x accumulation 2 = 16 sequences, and the global batch is 20: use "
         "a global batch of 16 or 24"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        const Import import = settled(cases[i].batch, cases[i].stages, 4, &arena);
        cr_expect(import.refusal && strcmp(import.refusal, cases[i].refusal) == 0, "case %zu: %s", i, import.refusal);
        arena_free(&arena);
    }
}

// The limit of --pp-rounds.
Test(import_rounds, more_schedules_than_a_plan_holds_are_refused_and_as_many_are_not) {
    Arena arena = {0};
    Import import =
        settled("local_batch_size = 1\nglobal_batch_size = 4095\n", "pipeline_parallel_degree = 4\n", 4, &arena);
    cr_expect_null(import.refusal, "%s", import.refusal);
    cr_expect_eq(import.said.choice[PLAN_PP_ROUNDS], 4095);
    import = settled("local_batch_size = 1\nglobal_batch_size = 4096\n", "pipeline_parallel_degree = 4\n", 4, &arena);
    cr_expect(import.refusal && import.refusal_is_ours &&
                  strcmp(import.refusal, "a global batch of 4096 runs the schedule 4096 times a step, and a plan holds "
                                         "1 to 4095 of them: use a global batch of 4095 or less, or a larger local "
                                         "batch than 1") == 0,
              "%s", import.refusal);
    arena_free(&arena);
}

// 64 = 8 x 8 data ranks, of 4 stages each.
Test(import_rounds, ranks_that_nobody_says_are_those_of_one_schedule_and_that_is_said) {
    static const int worlds[] = {0, 32};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        const Import import = settled("local_batch_size = 8\nglobal_batch_size = 64\n",
                                      "pipeline_parallel_degree = 4\n", worlds[i], &arena);
        bool said = false;
        cr_expect_null(import.refusal, "%s", import.refusal);
        cr_expect_eq(import.said.world, 32);
        for (int j = 0; j < import.finding_count; j++) {
            said |= import.findings[j].kind == FINDING_ASSUMED &&
                    strcmp(import.findings[j].sentence,
                           "neither the file nor --world says how many ranks train: 32 are assumed, on which one "
                           "schedule of 8 micro-batches of 1 on each data rank is the global batch of 64; fewer ranks "
                           "run several schedules a step") == 0;
        }
        cr_expect_eq(said, worlds[i] == 0);
        arena_free(&arena);
    }
}
