// Every wait of lowered programs, left out one at a time: the checker finds a race exactly when brute force does, so it
// misses no wait that the lowering inserts.

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/property/sim/memory/oracle.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"

typedef struct DropCount {
    int waits, needed;
} DropCount;

// The task without its index-th wait.
static bool race_without(StepProgram *program, Task *task, int index, Oracle *oracle) {
    EventRef *waits = &program->event_refs[task->first_wait];
    const EventRef dropped = waits[index];
    const int last = --task->wait_count;
    waits[index] = waits[last];
    Arena arena = {0};
    Error error = {0};
    cr_assert(oracle_build(oracle, program));
    const bool race = oracle_finds_race(oracle);
    const Status status = hazard_check(program, NULL, &arena, NULL, &error);
    cr_assert_eq(status, race ? STATUS_INTERNAL : STATUS_OK, "wait %d of '%s': brute force says %s, the check says: %s",
                 index, task->name, race ? "race" : "none", error.message);
    arena_free(&arena);
    waits[last] = waits[index];
    waits[index] = dropped;
    task->wait_count++;
    return race;
}

static DropCount drop_each_wait(LoweredRequest request) {
    Arena arena = {0};
    Oracle *oracle = malloc(sizeof *oracle);
    StepProgram program = lowered(&arena, request);
    DropCount count = {0};
    for (int32_t t = 0; t < program.task_count; t++) {
        for (int i = 0; i < program.tasks[t].wait_count; i++) {
            count.waits++;
            count.needed += race_without(&program, &program.tasks[t], i, oracle);
        }
    }
    fprintf(stderr, "%s: %d waits, %d needed\n", request.mesh, count.waits, count.needed);
    free(oracle);
    arena_free(&arena);
    return count;
}

Test(dropped_waits, sharded_layers) {
    cr_assert_gt(drop_each_wait((LoweredRequest){.mesh = "dp_shard=2", .layers = 4, .zero = 3}).needed, 10);
}

Test(dropped_waits, tensor_parallel_layers) {
    cr_assert_gt(drop_each_wait((LoweredRequest){.mesh = "tp=2", .layers = 2}).needed, 10);
}

Test(dropped_waits, ring_of_four) {
    cr_assert_gt(drop_each_wait((LoweredRequest){.mesh = "cp=4", .layers = 2, .zero = 0}).needed, 10);
}

Test(dropped_waits, hybrid_with_accumulation_and_recompute) {
    const LoweredRequest request = {.mesh = "dp_replicate=2,dp_shard=2,tp=2",
                                    .layers = 3,
                                    .zero = 3,
                                    .grad_accum = 2,
                                    .recompute = RECOMPUTE_FULL,
                                    .target = "accelerate"};
    cr_assert_gt(drop_each_wait(request).needed, 10);
}
