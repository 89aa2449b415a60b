// Walking a program and resolving ranks.

#include <criterion/criterion.h>
#include <string.h>

#include "sim/step/timeline.h"
#include "tests/support/lowered.h"

Test(step, the_walk_visits_as_many_instances_as_are_counted) {
    Arena arena = {0};
    uint64_t seed = 20261120;
    for (int i = 0; i < 300; i++) {
        const StepProgram program = lowered(&arena, lowered_random(&arena, &seed, 16));
        StepCursor cursor = step_cursor_begin(&program);
        StepInstance instance;
        int64_t walked = 0;
        while (step_cursor_next(&cursor, &instance)) {
            walked++;
        }
        cr_assert_eq(walked, step_instance_count(&program), "case %d after seed 20261120", i);
        arena_reset(&arena);
    }
    arena_free(&arena);
}

Test(step, backward_layers_run_in_descending_order) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.layers = 3});
    StepCursor cursor = step_cursor_begin(&program);
    StepInstance instance;
    int expected = 2;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program.tasks[instance.task];
        if (strcmp(task->name, "swiglu backward") == 0) {
            cr_assert_eq(instance.layer, expected--);
        }
    }
    cr_assert_eq(expected, -1);
    arena_free(&arena);
}

Test(step, zigzag_chunks_of_all_ranks_tile_the_sequence) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.mesh = "cp=4", .seq = 64});
    bool seen[64] = {0};
    for (int c = 0; c < 4; c++) {
        const SequenceChunks chunks = step_chunks(&program, c);
        for (int i = 0; i < chunks.count; i++) {
            for (int p = 0; p < chunks.length; p++) {
                cr_assert_not(seen[chunks.start[i] + p]);
                seen[chunks.start[i] + p] = true;
            }
        }
    }
    for (int p = 0; p < 64; p++) {
        cr_assert(seen[p]);
    }
    arena_free(&arena);
}

// Visible (query, key) pairs of a ring step, counted one by one.
static int64_t visible_pairs(const StepProgram *program, int rank, int hop) {
    const MeshCoordinates at = {.at = {[AXIS_CP] = rank}};
    const SequenceChunks q = step_chunks(program, rank);
    const SequenceChunks k = step_chunks(program, step_ring_owner(program, hop, &at));
    int64_t pairs = 0;
    for (int a = 0; a < q.count; a++) {
        for (int b = 0; b < k.count; b++) {
            for (int i = 0; i < q.length; i++) {
                for (int j = 0; j < k.length; j++) {
                    pairs += q.start[a] + i >= k.start[b] + j;
                }
            }
        }
    }
    return pairs;
}

Test(step, every_zigzag_ring_step_sees_half_of_its_square_on_every_rank) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.mesh = "cp=4", .seq = 64});
    for (int rank = 0; rank < 4; rank++) {
        for (int hop = 0; hop < 4; hop++) {
            // local sequence 16: 128 of 256 pairs, and on the diagonal half of 16 more.
            cr_assert_eq(visible_pairs(&program, rank, hop), hop == 0 ? 136 : 128, "rank %d hop %d", rank, hop);
        }
    }
    arena_free(&arena);
}

Test(step, shards_of_a_unit_tile_its_elements) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.mesh = "dp_shard=3,cp=2,tp=2", .seq = 48});
    for (int u = 0; u < program.unit_count; u++) {
        int64_t covered = 0;
        for (int s = 0; s < 3; s++) {
            for (int c = 0; c < 2; c++) {
                const MeshCoordinates at = {.at = {[AXIS_DP_SHARD] = s, [AXIS_CP] = c}};
                int64_t first, count;
                step_shard_range(&program, &program.units[u], &at, &first, &count);
                cr_assert(count == 0 || first == covered);
                covered += count;
            }
        }
        cr_assert_eq(covered, program.units[u].elements);
    }
    arena_free(&arena);
}

Test(step, parameter_slices_of_all_tp_ranks_are_the_whole_model) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.model = "llama-3-8b", .mesh = "tp=4", .seq = 64});
    int64_t parameters = 0;
    for (int u = 0; u < program.unit_count; u++) {
        for (int i = 0; i < program.units[u].slice_count; i++) {
            const ParamSlice *slice = &program.slices[program.units[u].first_slice + i];
            parameters += slice->global_rows * slice->global_cols * program.units[u].instances;
        }
    }
    cr_assert_eq(parameters, model_parameters(&program.model));
    arena_free(&arena);
}

Test(step, a_gathered_slice_belongs_to_the_owner_of_the_ring_step) {
    Arena arena = {0};
    const StepProgram program = lowered(
        &arena, (LoweredRequest){
                    .target = "accelerate", .mesh = "dp_shard=1,cp=4", .seq = 64, .cp_rotate = CP_ROTATE_ALLGATHER});
    for (int32_t t = 0; t < program.task_count; t++) {
        const Task *task = &program.tasks[t];
        if (task->kind != TASK_ATTENTION || task->ring_step == 0) {
            continue;
        }
        const BufferRef *keys = &task_operand(&program, task, AT_ATTENTION_K)->ref;
        for (int c = 0; c < 4; c++) {
            const MeshCoordinates at = {.at = {[AXIS_CP] = c}};
            cr_assert_eq(step_ref_offset(&program, keys, &(StepInstance){0}, &at),
                         step_ring_owner(&program, task->ring_step, &at) * keys->rank_stride_bytes);
        }
    }
    arena_free(&arena);
}

Test(timeline, totals_count_only_the_asked_rank) {
    Arena arena = {0};
    const StepProgram program = lowered(&arena, (LoweredRequest){.layers = 1});
    Span spans[] = {{.rank = 0, .task = 1, .start_s = 0, .end_s = 2},
                    {.rank = 1, .task = 1, .start_s = 0, .end_s = 8},
                    {.rank = 0, .task = 1, .start_s = 3, .end_s = 4}};
    const Timeline timeline = {.spans = spans, .span_count = 3};
    TaskTotal *totals = ARENA_ARRAY(&arena, TaskTotal, program.task_count);
    timeline_totals(&timeline, &program, 0, totals);
    cr_assert_eq(totals[1].count, 2);
    cr_assert_float_eq(totals[1].seconds, 3, 1e-12);
    arena_free(&arena);
}
