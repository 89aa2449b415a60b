// Schedules that a step runs one after another, in config files.

#include <criterion/criterion.h>

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

Test(import_rounds, a_global_batch_that_is_no_multiple_of_the_local_one_is_refused) {
    Arena arena = {0};
    const Import import =
        settled("local_batch_size = 4\nglobal_batch_size = 20\n", "pipeline_parallel_degree = 2\n", 4, &arena);
    cr_expect_str_eq(import.refusal,
                     "a step has 10 micro-batches on each data rank, and the schedule takes 4 of them each time it "
                     "runs: the global batch is no multiple of the local one");
    arena_free(&arena);
}
