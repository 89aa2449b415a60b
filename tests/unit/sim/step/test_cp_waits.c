// Context parallelism whose kernels wait for transfers where these are issued: traced code, forms that gather first.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(cp_waits, .fini = clean);

static StepProgram of(const char *target, CpRotate rotate, bool eager) {
    return lowered(&arena, (LoweredRequest){.target = target,
                                            .mesh = "dp_shard=1,cp=4",
                                            .seq = 1024,
                                            .bf16 = true,
                                            .eager = eager,
                                            .cp_rotate = rotate});
}

// Whether the attention of a hop reads the buffer, and so waits for the transfer that writes it.
static bool reads(const StepProgram *program, TaskKind kind, int hop, const char *name) {
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        for (int k = 0; task->kind == kind && task->ring_step == hop && k < task->operand_count; k++) {
            const Operand *operand = task_operand(program, task, k);
            if (operand->access == ACCESS_READ && operand->ref.buffer >= 0 &&
                strcmp(program->buffers[operand->ref.buffer].name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}

Test(cp_waits, traced_code_runs_no_block_beside_a_gather) {
    const StepProgram traced = of("torchtitan@0.2", CP_ROTATE_ALLGATHER, false);
    const StepProgram eager = of("torchtitan@0.2", CP_ROTATE_ALLGATHER, true);
    const TaskKind kinds[] = {TASK_ATTENTION, TASK_ATTENTION_BACKWARD};
    for (int k = 0; k < 2; k++) {
        cr_expect(reads(&traced, kinds[k], 0, "kv gathered"));
        cr_expect_not(reads(&eager, kinds[k], 0, "kv gathered"));
        cr_expect(reads(&eager, kinds[k], 1, "kv gathered"));
    }
}

Test(cp_waits, traced_code_runs_no_block_beside_gradients_that_travel) {
    const StepProgram traced = of("torchtitan@0.2", CP_ROTATE_ALLGATHER, false);
    const StepProgram eager = of("torchtitan@0.2", CP_ROTATE_ALLGATHER, true);
    for (int hop = 1; hop < 4; hop++) {
        const char *travelling = hop % 2 ? "dkv ring odd" : "dkv ring even";
        cr_expect(reads(&traced, TASK_ATTENTION_BACKWARD, hop, travelling), "%d", hop);
        cr_expect_not(reads(&eager, TASK_ATTENTION_BACKWARD, hop, travelling), "%d", hop);
    }
}

Test(cp_waits, transformer_engine_gathers_before_its_blocks_and_overlaps_its_ring) {
    const StepProgram gathers = of("megatron", CP_ROTATE_ALLGATHER, false);
    cr_expect(reads(&gathers, TASK_ATTENTION, 0, "kv gathered"));
    const StepProgram ring = of("megatron", CP_ROTATE_RING, false);
    cr_expect_not(reads(&ring, TASK_ATTENTION, 0, "kv ring odd"));
}
