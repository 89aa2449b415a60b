// Frameworks that copy keys and values for every query head before attention (torchtitan until 0.2.2): what cp sends,
// what is copied, what is kept. And ranks of tp beyond the key-value heads (Megatron-core), which share one.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static const double MIB = 1024.0 * 1024.0;

// 32 heads and 8 of keys, of 128.
static LoweredRequest request_of(const char *target, const char *mesh) {
    return (LoweredRequest){.model = "llama-3-8b",
                            .target = target,
                            .mesh = mesh,
                            .seq = 8192,
                            .bf16 = true,
                            .cp_rotate = CP_ROTATE_ALLGATHER};
}

static double largest_payload(const StepProgram *program, TaskKind kind) {
    double most = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const Task *task = &program->tasks[i];
        const double bytes = (double)task->payload_bytes;
        most = task->kind == kind && task->group == program->cp_group && bytes > most ? bytes : most;
    }
    return most;
}

Test(repeated_keys, travel_over_cp_once_for_each_query_head) {
    Arena arena = {0};
    const StepProgram later = lowered(&arena, request_of("torchtitan@0.2", "dp_shard=2,cp=4"));
    const StepProgram repeats = lowered(&arena, request_of("torchtitan@0.2.1", "dp_shard=2,cp=4"));
    const double whole = 2 * 2 * 8192.0 * 32 * 128;  // bf16 keys and values of the sequence; back in fp32, of a rank
    cr_expect_float_eq(largest_payload(&later, TASK_ALL_GATHER), whole / 4, 1);
    cr_expect_float_eq(largest_payload(&repeats, TASK_ALL_GATHER), whole, 1);
    cr_expect_float_eq(largest_payload(&later, TASK_SEND_RECV), whole / 4 * 2 / 4, 1);
    cr_expect_float_eq(largest_payload(&repeats, TASK_SEND_RECV), whole * 2 / 4, 1);
    arena_free(&arena);
}

// Traffic of the copies and of the sums of their gradients, a token row at a time: k read, n written, or back.
static void check_copies(LoweredRequest request, double keys, double values) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, request);
    int seen = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        const bool of_keys = strcmp(task->name, "repeat keys") == 0 || strcmp(task->name, "sum keys") == 0;
        const bool of_values = strcmp(task->name, "repeat values") == 0 || strcmp(task->name, "sum values") == 0;
        seen += of_keys || of_values;
        if (of_keys || of_values) {
            cr_expect_float_eq((double)task->traffic_bytes / MIB, of_keys ? keys : values, 1e-9, "%s", task->name);
        }
    }
    cr_expect(keys > 0 ? seen >= 4 : seen == 0, "%d copies", seen);
    arena_free(&arena);
}

Test(repeated_keys, are_copied_and_their_gradients_summed) {
    LoweredRequest request = request_of("torchtitan@0.2.1", "dp_shard=8");
    request.eager = true;
    check_copies(request, 64 + 16, 64 + 16);
}

Test(repeated_keys, are_written_by_what_turns_them_where_layers_are_compiled) {
    check_copies(request_of("torchtitan@0.2.1", "dp_shard=8"), 64 - 16, 64 + 16);
}

Test(repeated_keys, are_none_where_the_kernel_takes_fewer_heads_or_the_model_has_as_many) {
    check_copies(request_of("torchtitan@0.2", "dp_shard=8"), 0, 0);
    LoweredRequest request = request_of("torchtitan@0.2.1", "dp_shard=8");
    request.model = "llama-2-7b";
    check_copies(request, 0, 0);
}

static const Task *task_of(const StepProgram *program, TaskKind kind, const char *name) {
    const Task *found = NULL;
    for (int32_t i = 0; i < program->task_count && !found; i++) {
        const Task *task = &program->tasks[i];
        found = task->kind == kind && strcmp(task->name, name) == 0 ? task : NULL;
    }
    return found;
}

Test(repeated_keys, are_shared_by_ranks_that_gather_what_their_products_made) {
    Arena arena = {0};
    const StepProgram apart = lowered(&arena, request_of("megatron", "tp=8"));
    cr_expect_null(task_of(&apart, TASK_ALL_GATHER, "gather qkv"));
    const StepProgram shared = lowered(&arena, request_of("megatron", "tp=16"));
    const Task *gather = task_of(&shared, TASK_ALL_GATHER, "gather qkv");
    const Task *scatter = task_of(&shared, TASK_REDUCE_SCATTER, "scatter dqkv");
    cr_assert(gather && scatter);
    const double whole = 2 * 8192.0 * (32 + 8 + 8) * 128;  // bf16, of all ranks
    cr_expect_float_eq((double)gather->payload_bytes, whole, 1);
    cr_expect_float_eq((double)scatter->payload_bytes, whole, 1);
    const Task *attention = task_of(&shared, TASK_ATTENTION, "attention");
    const Task *product = task_of(&shared, TASK_GEMM, "qkv");
    cr_assert(attention && product);
    cr_expect_eq(attention->heads, 2);
    cr_expect_eq(attention->kv_heads, 1);
    cr_expect_eq(product->n, (32 + 8 + 8) * 128 / 16);
    arena_free(&arena);
}
