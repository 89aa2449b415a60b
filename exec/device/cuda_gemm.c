// The products of a program: one plan per shape. Shapes without a matching stored choice are timed before the first
// step, on the operands' own arena addresses, filled with normal numbers; initial parameters are written afterwards.
// Ranks that share a GPU time nothing: each would wait for the others thousands of times, and learn nothing about the
// chip.

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "exec/device/beside.h"
#include "exec/device/cuda.h"
#include "kernels/philox.h"
#include "sim/base/bf16.h"

// ---------------------------------------------------------------------------------------------- shapes

static GemmType type_of(const Device *cuda, const Task *task, int operand) {
    const Dtype dtype =
        cuda->setup.program->buffers[task_operand(cuda->setup.program, task, operand)->ref.buffer].dtype;
    return dtype == DTYPE_BF16 ? GEMM_BF16 : GEMM_FP32;
}

static bool is_product(const Task *task) {
    return task->kind == TASK_GEMM || task->kind == TASK_GROUPED_GEMM;
}

static bool is_grouped(const Task *task) {
    return task->kind == TASK_GROUPED_GEMM;
}

static int bias_operand(const Task *task) {
    return is_grouped(task) ? AT_GROUPED_BIAS : AT_GEMM_BIAS;
}

// A bias that all tp ranks hold is added by the first one.
static bool has_bias(const Device *cuda, const Task *task) {
    const int bias = bias_operand(task);
    const bool anothers = is_grouped(task) && task->replicated > 0 && cuda->setup.at.at[AXIS_TP] > 0;
    return task->operand_count > bias && !anothers && task_operand(cuda->setup.program, task, bias)->ref.buffer >= 0;
}

// Mean rows per group: the plan's shape, from which the rows of each call differ.
static int64_t mean_rows(int64_t rows, int groups) {
    return rows > groups ? rows / groups : 1;
}

static GemmShape shape_of(const Device *cuda, const Task *task, bool beside) {
    const int sms = cuda->properties.multiProcessorCount - cuda->setup.collective_sms;
    const bool rows = is_grouped(task);
    return (GemmShape){.m = rows && !task->trans_a ? mean_rows(task->m, task->groups) : task->m,
                       .n = task->n,
                       .k = rows && task->trans_a ? mean_rows(task->k, task->groups) : task->k,
                       .trans_a = task->trans_a,
                       .trans_b = task->trans_b,
                       .input = type_of(cuda, task, AT_GEMM_A),
                       .output = type_of(cuda, task, AT_GEMM_C),
                       .accumulate = task->accumulate,
                       .bias = has_bias(cuda, task),
                       .alignment = gemm_alignment(0),
                       .sms = beside && cuda->setup.collective_sms > 0 && sms > 0 ? sms : 0};
}

// Elements from one row to the next, or from one group to the next for a per-group matrix.
typedef struct Strides {
    int64_t a, b, c, bias;
} Strides;

static Strides strides_of(const Task *task) {
    return task->trans_a ? (Strides){task->m, task->n, task->m * task->n, 0}
                         : (Strides){task->k, task->n * task->k, task->n, task->n};
}

static int least(int a, int b) {
    return a < b ? a : b;
}

// For a group that starts after any number of rows.
static int grouped_alignment(const Device *cuda, const Task *task) {
    const Strides strides = strides_of(task);
    const int input = type_of(cuda, task, AT_GEMM_A) == GEMM_BF16 ? 2 : 4;
    const int output = type_of(cuda, task, AT_GEMM_C) == GEMM_BF16 ? 2 : 4;
    const int a = gemm_alignment((uint64_t)(strides.a * input)), b = gemm_alignment((uint64_t)(strides.b * input));
    return least(least(a, b), gemm_alignment((uint64_t)((strides.c | strides.bias) * output)));
}

// The weakest alignment over all instances' addresses.
static void align(Device *cuda, GemmShape *shape_of_task) {
    const StepProgram *program = cuda->setup.program;
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        if (!is_product(&program->tasks[instance.task])) {
            continue;
        }
        const TaskCall call = placement_call(&cuda->placement, &instance);
        int *weakest = &shape_of_task[instance.task].alignment;
        for (int i = 0; i < call.task->operand_count; i++) {
            *weakest = least(*weakest, gemm_alignment((uint64_t)(uintptr_t)call.operand[i]));
        }
        *weakest = is_grouped(call.task) ? least(*weakest, grouped_alignment(cuda, call.task)) : *weakest;
    }
}

// ---------------------------------------------------------------------------------------------- data to time on

enum { PATTERN = 1 << 18 };  // numbers, repeated over an operand

typedef struct Pattern {
    float fp32[PATTERN];
    uint16_t bf16[PATTERN];
} Pattern;

static void pattern_begin(Pattern *pattern) {
    enum { STREAM = 0x67656D6D };  // not used by any parameter
    for (int i = 0; i < PATTERN; i++) {
        pattern->fp32[i] = (float)(philox_normal(1, STREAM, (uint64_t)i) / 65536.0);
        pattern->bf16[i] = bf16_of(pattern->fp32[i]);
    }
}

static Status fill(Device *cuda, const Pattern *pattern, const TaskCall *call, int operand, Error *error) {
    const bool half = call_dtype(call, operand) == DTYPE_BF16;
    const int64_t bytes = task_operand(call->program, call->task, operand)->ref.bytes;
    const int64_t most = PATTERN * (half ? 2 : 4);
    for (int64_t at = 0; at < bytes; at += most) {
        CUDA_TRY(cudaMemcpyAsync(
                     call->operand[operand] + at, half ? (const void *)pattern->bf16 : (const void *)pattern->fp32,
                     (size_t)(bytes - at < most ? bytes - at : most), cudaMemcpyHostToDevice, cuda->gemms.shop.stream),
                 "numbers to time products on");
    }
    return STATUS_OK;
}

static GemmData data_of(const TaskCall *call) {
    return (GemmData){call->operand[AT_GEMM_A], call->operand[AT_GEMM_B], call->operand[AT_GEMM_C],
                      call_optional(call, bias_operand(call->task)), call->task->factor};
}

static Status plan_time(Device *cuda, const Pattern *pattern, const StepInstance *instance, GemmPlan *plan,
                        Error *error) {
    const TaskCall call = placement_call(&cuda->placement, instance);
    char why[GEMM_WHY_BYTES];
    for (int i = 0; i < call.task->operand_count; i++) {
        if (call.operand[i] && !cuda->gemms.shop.untimed) {
            TRY(fill(cuda, pattern, &call, i, error));
        }
    }
    const GemmData data = data_of(&call);
    FAIL_IF(!gemm_plan_time(&cuda->gemms.shop, &data, plan, why), error, STATUS_ENVIRONMENT, "task '%s': %s",
            call.task->name, why);
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- plans

static Status plan_make(Device *cuda, const GemmShape *shape, int32_t *index, Error *error) {
    CudaGemms *gemms = &cuda->gemms;
    char why[GEMM_WHY_BYTES];
    for (*index = 0; *index < gemms->count; (*index)++) {
        if (gemm_shape_equal(&gemms->plans[*index].choice.shape, shape)) {
            return STATUS_OK;
        }
    }
    FAIL_IF(!gemm_plan_begin(&gemms->shop, shape, &gemms->plans[gemms->count], why), error, STATUS_ENVIRONMENT, "%s",
            why);
    gemms->count++;
    return STATUS_OK;
}

static Status plans_make(Device *cuda, Arena *arena, Error *error) {
    const StepProgram *program = cuda->setup.program;
    GemmShape *shapes = ARENA_ARRAY(arena, GemmShape, program->task_count);
    bool *beside = ARENA_ARRAY(arena, bool, program->task_count);
    cuda->gemms.plans = ARENA_ARRAY(arena, GemmPlan, program->task_count);
    cuda->gemms.of_task = ARENA_ARRAY(arena, int32_t, program->task_count);
    beside_collectives(program, arena, beside);
    for (int32_t t = 0; t < program->task_count; t++) {
        if (is_product(&program->tasks[t])) {
            shapes[t] = shape_of(cuda, &program->tasks[t], beside[t]);
        }
    }
    align(cuda, shapes);
    for (int32_t t = 0; t < program->task_count; t++) {
        cuda->gemms.of_task[t] = -1;
        if (is_product(&program->tasks[t])) {
            TRY(plan_make(cuda, &shapes[t], &cuda->gemms.of_task[t], error));
        }
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- kept choices

enum { WORD_DIGITS = 16 };

static const char *choice_text(const GemmChoice *choice, Arena *arena) {
    char text[GEMM_ALGORITHM_WORDS * WORD_DIGITS + 1];
    for (int i = 0; i < GEMM_ALGORITHM_WORDS; i++) {
        snprintf(text + (ptrdiff_t)i * WORD_DIGITS, WORD_DIGITS + 1, "%016" PRIx64, choice->algorithm[i]);
    }
    return arena_text(arena, text);
}

static bool choice_parse(const ChipPrice *price, GemmChoice *choice) {
    if (!gemm_shape_parse(price->what, &choice->shape) ||
        strlen(price->choice) != (size_t)GEMM_ALGORITHM_WORDS * WORD_DIGITS) {
        return false;
    }
    for (int i = 0; i < GEMM_ALGORITHM_WORDS; i++) {
        if (sscanf(price->choice + (ptrdiff_t)i * WORD_DIGITS, "%16" SCNx64, &choice->algorithm[i]) != 1) {
            return false;
        }
    }
    choice->seconds = price->seconds;
    return true;
}

// Algorithms are valid for one chip, driver and library version.
static void choices_take(Device *cuda, Arena *arena) {
    CudaGemms *gemms = &cuda->gemms;
    const DeviceSetup *setup = &cuda->setup;
    int driver = 0;
    cudaDriverGetVersion(&driver);
    snprintf(gemms->chip, sizeof gemms->chip, "%s, driver %d, cuBLASLt %zu", cuda->properties.name, driver,
             gemms->library.version());
    gemms->kept = ARENA_ARRAY(arena, GemmChoice, setup->price_count + 1);
    for (int i = 0; i < setup->price_count && !setup->deterministic; i++) {  // having stored ones or not changes bits
        if (strcmp(setup->prices[i].chip, gemms->chip) == 0 &&
            choice_parse(&setup->prices[i], &gemms->kept[gemms->kept_count])) {
            gemms->kept_count++;
        }
    }
}

static void prices_make(CudaGemms *gemms, Arena *arena) {
    char text[GEMM_SHAPE_TEXT_BYTES];
    gemms->prices = ARENA_ARRAY(arena, ChipPrice, gemms->count + 1);
    for (int i = 0; i < gemms->count; i++) {
        const GemmChoice *choice = &gemms->plans[i].choice;
        gemms->prices[i] = (ChipPrice){gemms->chip, arena_text(arena, gemm_shape_text(&choice->shape, text)),
                                       choice_text(choice, arena), choice->seconds};
    }
}

// Stored choices first; the rest is timed, at the first instance of a task with that shape.
static Status plans_choose(Device *cuda, Arena *arena, Error *error) {
    const StepProgram *program = cuda->setup.program;
    CudaGemms *gemms = &cuda->gemms;
    bool *chosen = ARENA_ARRAY(arena, bool, gemms->count + 1);
    Pattern *pattern = NULL;
    for (int i = 0; i < gemms->count; i++) {
        const GemmChoice *kept = gemm_choice_find(gemms->kept, gemms->kept_count, &gemms->plans[i].choice.shape);
        chosen[i] = kept && gemm_plan_take(&gemms->shop, kept, &gemms->plans[i]);
    }
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const int32_t plan = gemms->of_task[instance.task];
        if (plan < 0 || chosen[plan]) {
            continue;
        }
        if (!pattern && !gemms->shop.untimed) {  // what is not timed is not multiplied
            pattern = ARENA_NEW(arena, Pattern);
            pattern_begin(pattern);
        }
        TRY(plan_time(cuda, pattern, &instance, &gemms->plans[plan], error));
        chosen[plan] = true;
    }
    return STATUS_OK;
}

Status cuda_gemms_open(Device *cuda, Arena *arena, Error *error) {
    CudaGemms *gemms = &cuda->gemms;
    char why[GEMM_WHY_BYTES];
    FAIL_IF(!gemm_library_open(&gemms->library, why), error, STATUS_ENVIRONMENT,
            "device cuda multiplies with cuBLASLt: %s", why);
    gemms->shop.library = &gemms->library;
    gemms->shop.stream = cuda->lanes.streams[0];
    gemms->shop.untimed = cuda->shared || cuda->setup.deterministic;
    const cublasStatus_t status = gemms->library.create(&gemms->shop.handle);
    FAIL_IF(status != CUBLAS_STATUS_SUCCESS, error, STATUS_ENVIRONMENT, "cuBLASLt does not start: %s",
            gemms->library.status_words(status));
    TRY(cuda_take(cuda, GEMM_WORKSPACE_BYTES, "the workspace of products", &gemms->shop.workspace, error));
    CUDA_TRY(cudaEventCreate(&gemms->shop.begin), "an event");
    CUDA_TRY(cudaEventCreate(&gemms->shop.end), "an event");
    choices_take(cuda, arena);
    TRY(plans_make(cuda, arena, error));
    TRY(plans_choose(cuda, arena, error));
    prices_make(gemms, arena);
    return STATUS_OK;
}

void cuda_gemms_close(Device *cuda) {
    CudaGemms *gemms = &cuda->gemms;
    for (int i = 0; i < gemms->count; i++) {
        gemm_plan_end(&gemms->shop, &gemms->plans[i]);
    }
    if (gemms->shop.begin) {
        cudaEventDestroy(gemms->shop.begin);
    }
    if (gemms->shop.end) {
        cudaEventDestroy(gemms->shop.end);
    }
    if (gemms->shop.handle) {
        gemms->library.destroy(gemms->shop.handle);
    }
    if (gemms->library.file) {
        gemm_library_close(&gemms->library);
    }
}

// ---------------------------------------------------------------------------------------------- running

int cuda_gemm(const TaskCall *call, const KernelCuda *at) {
    Device *cuda = call->device;
    const GemmData data = data_of(call);
    const GemmPlan *plan = &cuda->gemms.plans[cuda->gemms.of_task[call->instance->task]];
    const char *why = gemm_run(&cuda->gemms.shop, plan, &data, at->stream);
    if (why) {
        cuda_note_failure(cuda, call->task, why);
    }
    return 0;
}

static void *behind(void *at, const TaskCall *call, int operand, int64_t elements) {
    return at ? (char *)at + elements * dtype_bytes(call_dtype(call, operand)) : NULL;
}

// For one group, whose rows start after `before` others.
static GemmData group_data(const TaskCall *call, int group, int64_t before) {
    const Task *task = call->task;
    const Strides strides = strides_of(task);
    GemmData data = data_of(call);
    data.a = behind(call->operand[AT_GEMM_A], call, AT_GEMM_A, before * strides.a);
    data.b = behind(call->operand[AT_GEMM_B], call, AT_GEMM_B, (task->trans_a ? before : group) * strides.b);
    data.c = behind(call->operand[AT_GEMM_C], call, AT_GEMM_C, (task->trans_a ? group : before) * strides.c);
    data.bias = data.bias ? behind(call->operand[AT_GROUPED_BIAS], call, AT_GROUPED_BIAS, group * strides.bias) : NULL;
    return data;
}

// The group received no rows: no result rows, or a zero gradient.
static int empty_group(const TaskCall *call, const GemmData *data, const KernelCuda *at) {
    const Task *task = call->task;
    return task->trans_a && !task->accumulate
               ? kernel_cuda_zero(at, task->m * task->n * dtype_bytes(call_dtype(call, AT_GEMM_C)), data->c)
               : 0;
}

int cuda_grouped_gemm(const TaskCall *call, const KernelCuda *at) {
    Device *cuda = call->device;
    GemmPlan *const plan = &cuda->gemms.plans[cuda->gemms.of_task[call->instance->task]];
    KernelGroups groups;
    int code = cuda_groups(call, at->stream, AT_GROUPED_CAME, &groups);
    for (int64_t g = 0, before = 0; code == 0 && g < groups.count; g++) {
        const int64_t rows = groups_rows(&groups, (int)g);
        const GemmData data = group_data(call, (int)g, before);
        const char *why = rows > 0 ? gemm_run_rows(&cuda->gemms.shop, plan, &data, rows, at->stream) : NULL;
        code = rows > 0 ? 0 : empty_group(call, &data, at);
        before += rows;
        if (why) {
            cuda_note_failure(cuda, call->task, why);
        }
    }
    return code;
}
