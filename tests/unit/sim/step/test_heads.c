// Sequence parallelism by heads in the program: what is exchanged, what attention works on, what is kept.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(heads, .fini = clean);

static StepProgram with(const char *mesh) {
    return lowered(&arena,
                   (LoweredRequest){.target = "deepspeed", .mesh = mesh, .seq = 128, .micro_batch = 2, .bf16 = true});
}

// Forward q, k, v and the results; backward their gradients.
Test(heads, a_layer_exchanges_four_tensors_each_way) {
    const StepProgram program = with("sp=2");
    const int64_t tokens = 2 * 128 / 2, heads = program.model.heads, kv_heads = program.model.kv_heads,
                  head_dim = program.model.head_dim;
    int forward = 0, backward = 0;
    int64_t bytes = 0;
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        if (task->kind == TASK_ALL_TO_ALL) {
            cr_expect_eq(program.groups[task->group].axes, AXIS_BIT(AXIS_SP));
            forward += task->phase == PHASE_FORWARD;
            backward += task->phase == PHASE_BACKWARD;
            bytes += task->payload_bytes;
        }
    }
    cr_expect_eq(forward, 4);
    cr_expect_eq(backward, 4);
    cr_expect_eq(bytes, 2 * tokens * (2 * heads + 2 * kv_heads) * head_dim * 2);
}

Test(heads, attention_has_all_tokens_and_a_part_of_the_heads) {
    const StepProgram whole = with("dp_shard=1"), cut = with("sp=2");
    const Task *all = first_of_kind(&whole, TASK_ATTENTION), *part = first_of_kind(&cut, TASK_ATTENTION);
    cr_expect_eq(part->rows, all->rows);
    cr_expect_eq(part->cols, all->cols);
    cr_expect_eq(part->heads * 2, all->heads);
    cr_expect_eq(part->kv_heads * 2, all->kv_heads);
    cr_expect_float_eq(part->flops * 2, all->flops, 1);
}

static int64_t bytes_of(const StepProgram *program, BufferRole role) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        bytes += buffer->role == role ? buffer->slots * buffer->bytes : 0;
    }
    return bytes;
}

// For all tokens, half of the heads of q, k, v and the results, and the results once more as the input of the next
// layer.
Test(heads, a_rank_keeps_half_of_what_it_kept) {
    const StepProgram whole = with("dp_shard=1"), cut = with("sp=2");
    const double share = (double)bytes_of(&cut, ROLE_ACTIVATION) / (double)bytes_of(&whole, ROLE_ACTIVATION);
    cr_expect_gt(share, 0.5);
    cr_expect_lt(share, 0.6);
}

Test(heads, shards_lie_over_the_ranks_that_share_a_sequence_too) {
    const StepProgram program = with("dp_shard=2,sp=2");
    cr_expect_eq(program.units[0].shards, 4);
}

Test(heads, without_it_the_program_is_the_same_as_before_there_was_one) {
    const StepProgram program = with("dp_shard=2");
    for (int32_t i = 0; i < program.task_count; i++) {
        cr_expect_neq(program.tasks[i].kind, TASK_ALL_TO_ALL);
    }
    for (int32_t i = 0; i < program.group_count; i++) {
        cr_expect_neq(program.groups[i].axes, AXIS_BIT(AXIS_SP));
    }
}

// With three ranks on two zigzag chunks of cp=2 and 96 tokens the first has two thirds of the first chunk, the second
// the rest and as much of the other one.
Test(heads, tokens_of_ranks_are_those_of_the_cp_rank_in_equal_parts) {
    StepProgram program = {.plan = {.mesh = mesh_of_one(), .seq = 96}, .target = &(Target){.zigzag = true}};
    program.plan.mesh.size[AXIS_CP] = 2;
    program.plan.mesh.size[AXIS_SP] = 3;
    MeshCoordinates at = {{0}};
    at.at[AXIS_CP] = 1;  // tokens 24 to 47 and 48 to 71
    SequenceChunks chunks = step_token_chunks(&program, &at);
    cr_expect(chunks.count == 1 && chunks.length == 16 && chunks.start[0] == 24);
    at.at[AXIS_SP] = 1;
    chunks = step_token_chunks(&program, &at);
    cr_expect(chunks.count == 2 && chunks.length == 8 && chunks.start[0] == 40 && chunks.start[1] == 48);
    at.at[AXIS_SP] = 2;
    chunks = step_token_chunks(&program, &at);
    cr_expect(chunks.count == 1 && chunks.length == 16 && chunks.start[0] == 56);
}

static StepProgram in_fp8(bool attention, Fp8Recipe recipe) {
    const StepProgram bf16 = lowered(
        &arena,
        (LoweredRequest){
            .target = "megatron@0.19", .mesh = "sp=2", .seq = 128, .bf16 = true, .fp8 = true, .fp8_recipe = recipe});
    Target target = *bf16.target;
    target.fp8_attention = attention;
    StepProgram program;
    Error error = {0};
    cr_assert_eq(step_lower(&bf16.model, &bf16.plan, &target, &arena, &program, &error), STATUS_OK, "%s",
                 error.message);
    return program;
}

static int64_t exchanged_bytes(const StepProgram *program) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        bytes += program->tasks[i].kind == TASK_ALL_TO_ALL ? program->tasks[i].payload_bytes : 0;
    }
    return bytes;
}

// Of 4 heads with 2 of keys a layer sends q, k, v and the results, and as much back: 2 x (4 + 2 + 2 + 4) heads wide.
Test(heads, what_attention_multiplies_in_fp8_is_sent_so) {
    const StepProgram half = in_fp8(false, FP8_DELAYED), delayed = in_fp8(true, FP8_DELAYED);
    const StepProgram current = in_fp8(true, FP8_TENSORWISE);
    const ModelSpec *model = &half.model;
    const int64_t row = (int64_t)model->head_dim * plan_local_tokens(&half.plan);
    const int64_t each_way = row * (2 * model->heads + 2 * model->kv_heads);
    const int64_t multiplied = row * (2 * model->heads + 2 * model->kv_heads);  // q, k, v and the results' gradient
    cr_expect_eq(exchanged_bytes(&half), 2 * each_way * 2);
    cr_expect_eq(exchanged_bytes(&delayed), 2 * each_way);
    cr_expect_eq(exchanged_bytes(&current), 2 * each_way * 2 - multiplied);
}

// Beside the kernel's casts, which are priced with it, nothing reads or writes two bytes of what is sent in one but the
// copies that make results bf16 again: of one scale from earlier steps the results and three gradients of them.
Test(heads, what_is_sent_in_fp8_is_copied_so) {
    static const struct {
        Fp8Recipe recipe;
        int of_fp8, of_half;  // copies of a layer
    } cases[] = {{FP8_TENSORWISE, 8, 8}, {FP8_DELAYED, 12, 4}, {FP8_MX, 0, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const StepProgram program = in_fp8(true, cases[i].recipe);
        int of_fp8 = 0, copies = 0;
        for (int32_t k = 0; k < program.task_count; k++) {
            const Task *task = &program.tasks[k];
            const bool copy = strcmp(task->name, "parts of ranks") == 0 || strcmp(task->name, "parts together") == 0;
            copies += copy;
            of_fp8 += copy && task->dtype == DTYPE_FP8;
        }
        cr_expect_gt(copies, 0);
        cr_expect_eq(of_fp8 * (cases[i].of_fp8 + cases[i].of_half), copies * cases[i].of_fp8, "%zu: %d of %d", i,
                     of_fp8, copies);
    }
}

// The projection's input is there once its rows are: attention itself makes those of other ranks too.
Test(heads, in_fp8_the_projection_reads_what_the_exchange_brought) {
    const StepProgram program = in_fp8(false, FP8_DELAYED);
    for (int32_t i = 0; i < program.task_count; i++) {
        const Task *task = &program.tasks[i];
        for (int k = 0; k < task->operand_count; k++) {
            const Operand *operand = &program.operands[task->first_operand + k];
            const bool is_input =
                operand->ref.buffer >= 0 && strcmp(program.buffers[operand->ref.buffer].name, "attention_out_fp8") == 0;
            if (is_input && (operand->access & ACCESS_WRITE)) {
                cr_expect_eq(task->kind, TASK_UNPACK, "%s", task->name);
            }
        }
    }
}
