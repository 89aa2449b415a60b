// A second copy of the parameters among neighbours (reshard_ranks), as in DeepSpeed's hpZ: partition_parameters.py
// creates it where the first forward frees a parameter, stage3.py invalidates it after the step.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static LoweredRequest request_of(int ranks) {
    return (LoweredRequest){
        .target = "deepspeed", .mesh = "dp_shard=8", .bf16 = true, .grad_accum = 3, .reshard_ranks = ranks};
}

static int64_t gathers(const StepProgram *program, int micro_step, Phase phase, int size) {
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    int64_t count = 0;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        count += instance.micro_step == micro_step && task->kind == TASK_ALL_GATHER && task->phase == phase &&
                 program->groups[task->group].size == size;
    }
    return count;
}

Test(near_shards, all_but_the_first_forward_gathers_from_neighbours) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, request_of(4));
    cr_expect_gt(gathers(&program, 0, PHASE_FORWARD, 8), 0);
    cr_expect_eq(gathers(&program, 0, PHASE_FORWARD, 4), 0);
    for (int micro_step = 0; micro_step < 3; micro_step++) {
        cr_expect_gt(gathers(&program, micro_step, PHASE_BACKWARD, 4), 0);
        cr_expect_eq(gathers(&program, micro_step, PHASE_BACKWARD, 8), 0);
        cr_expect_eq(gathers(&program, micro_step, PHASE_FORWARD, 8) > 0, micro_step == 0);
    }
    arena_free(&arena);
}

static int64_t bytes_of(const StepProgram *program, const char *name) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        bytes += strcmp(program->buffers[i].name, name) == 0 ? program->buffers[i].bytes : 0;
    }
    return bytes;
}

Test(near_shards, each_rank_holds_its_part_of_every_layer) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, request_of(4)), without = lowered(&arena, request_of(0));
    cr_expect_eq(4 * bytes_of(&program, "layer near shard"), bytes_of(&program, "layer weights"));
    cr_expect_eq(bytes_of(&without, "layer near shard"), 0);
    arena_free(&arena);
}

Test(near_shards, their_number_divides_the_ranks_that_shard) {
    Arena arena = {0};
    const LoweredRequest good = request_of(4), bad = request_of(3);
    LoweredRequest other = request_of(4);
    other.target = "accelerate";  // whose FSDP2 refuses a number
    cr_expect(lowered_is_legal(&good, &arena));
    cr_expect_not(lowered_is_legal(&bad, &arena));
    cr_expect_not(lowered_is_legal(&other, &arena));
    arena_free(&arena);
}
