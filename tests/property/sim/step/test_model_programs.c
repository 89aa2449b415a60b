// Random legal plans of every family from a printed seed: no race, every memory plan proved, every parameter's gradient
// complete before it is reduced, and the FLOPs of all ranks add up to the model's.

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/memory/memory.h"
#include "tests/support/hazard_check.h"
#include "tests/support/lowered.h"
#include "tests/support/model_counts.h"

static const uint64_t first_seed = 20261120;
enum { PLANS = 60 };

static const char *const models[] = {
    "llama-3.2-1b",  "mistral-7b",  "qwen2.5-7b",        "qwen3-8b",         "gemma-2b",   "phi-3-mini",
    "gpt2",          "gpt3-125m",   "pythia-1.4b",       "gpt-neox-20b",     "mpt-7b",     "olmo2-7b",
    "qwen3-30b-a3b", "gpt-oss-20b", "qwen1.5-moe-a2.7b", "deepseek-v2-lite", "deepseek-v3"};
enum { MODELS = sizeof models / sizeof models[0] };

typedef void Check(const StepProgram *program, const char *label);

static void each_program(Check *check) {
    for (size_t m = 0; m < MODELS; m++) {
        uint64_t seed = first_seed + m;
        int checked = 0;
        fprintf(stderr, "%s: seed %llu\n", models[m], (unsigned long long)seed);
        while (checked < PLANS) {
            Arena arena = {0};
            LoweredRequest request = lowered_random(&arena, &seed, 8);
            request.model = models[m];
            if (lowered_is_legal(&request, &arena)) {
                const StepProgram program = lowered(&arena, request);
                char text[PLAN_TEXT_BYTES];
                check(&program,
                      arena_format(&arena, "%s %s %s", models[m], request.target, plan_text(&program.plan, text)));
                checked++;
            }
            arena_free(&arena);
        }
    }
}

static void check_memory(const StepProgram *program, const char *label) {
    Arena arena = {0};
    Error error = {0};
    MemoryPlan plan;
    cr_assert_eq(hazard_check(program, NULL, &arena, NULL, &error), STATUS_OK, "%s: %s", label, error.message);
    cr_assert_eq(memory_plan(program, &arena, &plan, &error), STATUS_OK, "%s: %s", label, error.message);
    cr_assert_eq(hazard_check(program, &plan, &arena, NULL, &error), STATUS_OK, "%s: planned: %s", label,
                 error.message);
    arena_free(&arena);
}

Test(model_programs, no_family_has_a_race_and_every_memory_plan_is_proved) {
    each_program(check_memory);
}

static double gemm_flops(const StepProgram *program) {
    double flops = 0;
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        flops += (task->kind == TASK_GEMM || task->kind == TASK_GROUPED_GEMM) && task->phase != PHASE_RECOMPUTE
                     ? task->flops
                     : 0;
    }
    return flops;
}

// Matrices of a layer that every tp rank works with alike: routers, latents.
static double replicated_matrices(const StepProgram *program) {
    const Unit *layer = &program->units[UNIT_LAYER];
    double count = 0;
    for (int i = 0; i < layer->slice_count; i++) {
        const ParamSlice *slice = &program->slices[layer->first_slice + i];
        count += slice->split == SPLIT_NONE && slice->decay
                     ? (double)slice->global_rows * (double)slice->global_cols * layer->instances
                     : 0;
    }
    return count;
}

// Where transformers' tensor parallelism leaves the head whole on every tp rank its share counts tp times.
static void check_flops(const StepProgram *program, const char *label) {
    const ModelSpec *model = &program->model;
    const int tp = program->plan.mesh.size[AXIS_TP];
    const double head = (double)model->vocab * model->hidden;
    const double extra = program->target->tp_flavour == TP_HF && !program->target->tp_splits_head ? (tp - 1) * head : 0;
    const double replicated = (tp - 1) * replicated_matrices(program);
    const double expected =
        6.0 * ((double)matrix_parameters(model) + extra + replicated) * (double)plan_tokens_per_step(&program->plan);
    cr_assert_lt(fabs(gemm_flops(program) * mesh_world(&program->plan.mesh) / expected - 1), 1e-12, "%s", label);
}

Test(model_programs, gemm_flops_of_all_ranks_are_six_per_matrix_parameter_and_token) {
    each_program(check_flops);
}

// Whether one compute task of backward writes the whole slice of the unit's gradient.
static bool is_written(const StepProgram *program, int32_t buffer, const ParamSlice *slice) {
    const int element = dtype_bytes(program->buffers[buffer].dtype);
    const int64_t first = slice->offset_elements * element;
    const int64_t last = first + slice->local_rows * slice->local_cols * element;
    for (int32_t t = 0; t < program->task_count; t++) {
        const Task *task = &program->tasks[t];
        for (int i = 0; i < task->operand_count && task->phase == PHASE_BACKWARD; i++) {
            const Operand *operand = task_operand(program, task, i);
            if (operand->ref.buffer == buffer && (operand->access & ACCESS_WRITE) &&
                operand->ref.offset_bytes <= first && operand->ref.offset_bytes + operand->ref.bytes >= last) {
                return true;
            }
        }
    }
    return false;
}

// What backward writes: the whole gradient, or the one in half precision that is added to it.
static int32_t written_gradient(const StepProgram *program, const Unit *unit) {
    for (int32_t b = 0; b < program->buffer_count; b++) {
        const char *name = program->buffers[b].name;
        if (strncmp(name, unit->name, strlen(unit->name)) == 0 && strstr(name, "half gradients")) {
            return b;
        }
    }
    return unit->gradient_full;
}

static void check_gradients(const StepProgram *program, const char *label) {
    for (int u = 0; u < program->unit_count; u++) {
        const Unit *unit = &program->units[u];
        const int32_t buffer = written_gradient(program, unit);
        for (int i = 0; i < unit->slice_count; i++) {
            const ParamSlice *slice = &program->slices[unit->first_slice + i];
            cr_assert(is_written(program, buffer, slice), "%s: no gradient of %s", label, slice->name);
        }
    }
}

Test(model_programs, every_parameter_gets_a_gradient) {
    each_program(check_gradients);
}

// A repeated operation that updates a buffer in place must find it as forward did: rewritten by another repeated one.
static void check_repeats(const StepProgram *program, const char *label) {
    Arena arena = {0};
    bool *written = ARENA_ARRAY(&arena, bool, program->buffer_count);
    for (int32_t s = 0; s < program->segment_count; s++) {
        const Segment *segment = &program->segments[s];
        for (int32_t b = 0; b < program->buffer_count; b++) {
            written[b] = false;
        }
        for (int32_t t = segment->first_task; t < segment->first_task + segment->task_count; t++) {
            const Task *task = &program->tasks[t];
            for (int k = 0; k < task->operand_count && task->phase == PHASE_RECOMPUTE; k++) {
                const Operand *operand = task_operand(program, task, k);
                cr_assert(operand->access != ACCESS_UPDATE || written[operand->ref.buffer], "%s: %s updates %s again",
                          label, task->name, program->buffers[operand->ref.buffer].name);
            }
            for (int k = 0; k < task->operand_count && task->phase == PHASE_RECOMPUTE; k++) {
                const Operand *operand = task_operand(program, task, k);
                if (operand->ref.buffer >= 0 && operand->access == ACCESS_WRITE) {
                    written[operand->ref.buffer] = true;
                }
            }
        }
    }
    arena_free(&arena);
}

Test(model_programs, what_runs_again_in_place_finds_its_buffer_as_forward_did) {
    each_program(check_repeats);
}
