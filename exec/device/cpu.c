// The CPU device: one mapping for all buffers, with guard pages on both sides, and a table of task functions. The arena
// ends exactly at the upper guard page, so that the first byte past the plan faults.

#define _GNU_SOURCE  // MAP_ANONYMOUS

#include "exec/device/cpu.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exec/device/cpu_half.h"
#include "sim/base/text.h"

static CpuTask *const cpu_tasks[TASK_KIND_COUNT] = {
    [TASK_LOAD_TOKENS] = cpu_load_tokens,
    [TASK_EMBED] = cpu_embed,
    [TASK_EMBED_BACKWARD] = cpu_embed_backward,
    [TASK_POSITION] = cpu_position,
    [TASK_POSITION_BACKWARD] = cpu_position_backward,
    [TASK_RMSNORM] = cpu_norm,
    [TASK_RMSNORM_BACKWARD] = cpu_norm_backward,
    [TASK_LAYERNORM] = cpu_norm,
    [TASK_LAYERNORM_BACKWARD] = cpu_norm_backward,
    [TASK_QK_NORM] = cpu_qk_norm,
    [TASK_QK_NORM_BACKWARD] = cpu_qk_norm_backward,
    [TASK_COLUMN_SUM] = cpu_column_sum,
    [TASK_GEMM] = cpu_gemm,
    [TASK_ROPE] = cpu_rope,
    [TASK_ATTENTION] = cpu_attention,
    [TASK_ATTENTION_BACKWARD] = cpu_attention_backward,
    [TASK_SWIGLU] = cpu_gated,
    [TASK_SWIGLU_BACKWARD] = cpu_gated_backward,
    [TASK_ACTIVATION] = cpu_activation,
    [TASK_ACTIVATION_BACKWARD] = cpu_activation_backward,
    [TASK_ADD] = cpu_add,
    [TASK_LOSS_MAX] = cpu_loss_max,
    [TASK_LOSS_SUM] = cpu_loss_sum,
    [TASK_LOSS_GRADIENT] = cpu_loss_gradient,
    [TASK_LOSS] = cpu_loss,
    [TASK_SQUARE_SUM] = cpu_square_sum,
    [TASK_CLIP] = cpu_clip,
    [TASK_ADAMW] = cpu_adamw,
    [TASK_COPY] = cpu_copy,
    [TASK_UNPACK] = cpu_unpack,
    [TASK_ACCUMULATE] = cpu_accumulate,
    [TASK_ZERO] = cpu_zero,
    [TASK_GROUPED_GEMM] = cpu_grouped_gemm,
    [TASK_ROUTE] = cpu_route,
    [TASK_ROUTE_BACKWARD] = cpu_route_backward,
    [TASK_PERMUTE] = cpu_permute,
    [TASK_UNPERMUTE] = cpu_unpermute,
    [TASK_UNPERMUTE_BACKWARD] = cpu_unpermute_backward,
};

struct Device {
    DeviceSetup setup;
    Placement placement;
    char *mapping;
    int64_t mapping_bytes;
    CpuTask *const *tasks;
    CpuHalf *half;   // for a bf16 program; else NULL
    ExactSum *sums;  // bitwise: one per 4 bytes of the arena; else NULL
};

static Status arena_map(Device *cpu, Error *error) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int64_t wanted = cpu->setup.memory->arena_bytes;
    const int64_t inside = (wanted + page - 1) / page * page;
    cpu->mapping_bytes = inside + 2 * page;
    cpu->mapping = mmap(NULL, (size_t)cpu->mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FAIL_IF(cpu->mapping == MAP_FAILED ||
                (inside > 0 && mprotect(cpu->mapping + page, (size_t)inside, PROT_READ | PROT_WRITE) != 0),
            error, STATUS_ENVIRONMENT, "cannot map an arena of %s: %s", text_bytes(UNIT_BUFFER, (double)wanted),
            strerror(errno));
    cpu->placement.arena = cpu->mapping + page + inside - wanted;
    if (cpu->setup.poison) {
        const uint32_t quiet_nan = 0x7FC0DEAD;  // IEEE 754: exponent all ones, quiet bit, any payload
        for (int64_t i = 0; i + 4 <= wanted; i += 4) {
            memcpy(cpu->placement.arena + i, &quiet_nan, 4);
        }
    }
    return STATUS_OK;
}

static int64_t sums_bytes(const Device *cpu) {
    return cpu->setup.memory->arena_bytes * DEVICE_SUM_BYTES;
}

static Status sums_map(Device *cpu, Error *error) {
    if (!cpu->setup.bitwise) {
        return STATUS_OK;
    }
    void *sums =
        mmap(NULL, (size_t)sums_bytes(cpu), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FAIL_IF(sums == MAP_FAILED, error, STATUS_ENVIRONMENT, "cannot map exact sums of %s: %s",
            text_bytes(UNIT_BUFFER, (double)sums_bytes(cpu)), strerror(errno));
    cpu->sums = sums;
    return STATUS_OK;
}

static void parameters_take(void *context, int32_t buffer, const InitialStretch *stretch) {
    Device *cpu = context;
    const StepProgram *program = cpu->setup.program;
    void *slot = placement_slot(&cpu->placement, buffer, stretch->instance);
    if (program->buffers[buffer].dtype == DTYPE_BF16) {
        initial_parameters_half(program, cpu->setup.numbers.seed, stretch, slot);
    } else {
        initial_parameters(program, cpu->setup.numbers.seed, stretch, slot);
    }
}

static void state_begin(Device *cpu) {
    const StepProgram *program = cpu->setup.program;
    for (int32_t b = 0; b < program->buffer_count; b++) {
        if (program->buffers[b].persistent) {
            memset(placement_slot(&cpu->placement, b, 0), 0,
                   (size_t)(program->buffers[b].slots * program->buffers[b].slot_bytes));
        }
    }
    placement_parameters(&cpu->placement, parameters_take, cpu);
}

// What this device cannot run is refused here, before the first task.
static Status program_check(const StepProgram *program, CpuTask *const *tasks, Error *error) {
    for (int32_t t = 0; t < program->task_count; t++) {
        const Task *task = &program->tasks[t];
        FAIL_IF(!task_is_transfer(task) && !tasks[task->kind], error, STATUS_INTERNAL,
                "task '%s': the cpu device has no %s%s", task->name, tasks == cpu_tasks ? "" : "bitwise ",
                task_kind_name(task->kind));
        FAIL_IF(task->operand_count > TASK_MAX_OPERANDS, error, STATUS_INTERNAL, "task '%s' has %d operands",
                task->name, task->operand_count);
    }
    for (int32_t b = 0; b < program->buffer_count; b++) {
        const Dtype dtype = program->buffers[b].dtype;
        FAIL_IF(dtype != DTYPE_FP32 && dtype != DTYPE_INT32 && dtype != DTYPE_BF16, error, STATUS_USAGE,
                "the cpu device computes in fp32 and bf16, buffer '%s' is %s", program->buffers[b].name,
                dtype_name(dtype));
    }
    return STATUS_OK;
}

static Status cpu_open(const DeviceSetup *setup, Arena *arena, Device **device, Error *error) {
    Device *cpu = ARENA_NEW(arena, Device);
    cpu->setup = *setup;
    cpu->tasks = setup->bitwise ? cpu_exact_tasks : cpu_tasks;
    TRY(program_check(setup->program, cpu->tasks, error));
    TRY(placement_open(cpu, &cpu->setup, arena, &cpu->placement, error));
    TRY(arena_map(cpu, error));
    TRY(sums_map(cpu, error));
    int32_t *positions = ARENA_ARRAY(arena, int32_t, plan_local_tokens(&setup->program->plan));
    placement_positions(&cpu->placement, positions);
    cpu->placement.positions = positions;
    kernel_set_threads(setup->threads);
    if (cpu_half_wanted(setup->program)) {
        TRY(cpu_half_open(&cpu->placement, arena, &cpu->half, error));
    }
    state_begin(cpu);
    *device = cpu;
    return STATUS_OK;
}

static void cpu_close(Device *cpu) {
    placement_close(&cpu->placement);
    cpu_half_close(cpu->half);
    munmap(cpu->mapping, (size_t)cpu->mapping_bytes);
    if (cpu->sums) {
        munmap(cpu->sums, (size_t)sums_bytes(cpu));
    }
}

static void cpu_begin_step(Device *cpu, int64_t step, bool timed) {
    (void)timed;  // the host's clock does the timing
    cpu->placement.step = step;
}

static ExactSum *sums_behind(const Device *cpu, const char *at) {
    return cpu->sums ? cpu->sums + (at - cpu->placement.arena) / (int64_t)sizeof(float) : NULL;
}

// In a bitwise run sums travel as integers and are rounded after the last rank's part. Data that only moves, around a
// ring, to another stage or to all ranks, may be values or partial sums (gradients): floats and sums both go.
static Status cpu_begin_transfer(Device *cpu, const StepInstance *instance, DeviceTransfer *transfer, Error *error) {
    (void)error;
    const Task *task = &cpu->setup.program->tasks[instance->task];
    placement_transfer(&cpu->placement, instance, transfer);
    if (cpu->sums && task->kind != TASK_ALL_GATHER && !task->reduce_max) {
        transfer->in_sums = sums_behind(cpu, transfer->in);
        transfer->out_sums = sums_behind(cpu, transfer->out);
        transfer->sums_alone = task->kind != TASK_SEND_RECV && task->kind != TASK_ALL_TO_ALL && !task_is_message(task);
    }
    return STATUS_OK;
}

static Status cpu_end_transfer(Device *cpu, const StepInstance *instance, const DeviceTransfer *transfer,
                               Error *error) {
    (void)error;
    const StepProgram *program = cpu->setup.program;
    if (transfer->sums_alone) {
        const int64_t bytes = transfer_to(program, &program->tasks[instance->task])->bytes;
        exact_round(bytes / (int64_t)sizeof(float), transfer->out_sums, transfer->out);
    }
    return STATUS_OK;
}

static void cpu_account(const Device *cpu, DeviceAccount *account) {
    *account = (DeviceAccount){.arena = cpu->placement.arena, .peak_bytes = placement_peak_bytes(&cpu->placement)};
}

static int64_t cpu_run(Device *cpu, const StepInstance *instance, int64_t ordinal) {
    (void)ordinal;
    TaskCall call = placement_call(&cpu->placement, instance);
    call.bitwise = cpu->setup.bitwise;
    for (int i = 0; cpu->sums && i < call.task->operand_count; i++) {
        call.sums[i] = call.operand[i] ? sums_behind(cpu, call.operand[i]) : NULL;
    }
    CpuTask *const task = cpu->tasks[call.task->kind];
    if (cpu->half) {
        cpu_half_run(cpu->half, &call, task);
    } else {
        task(&call);
    }
    return 1;
}

static Status cpu_synchronize(Device *cpu, Error *error) {
    (void)cpu, (void)error;  // every task is done when run returns
    return STATUS_OK;
}

static Status cpu_read(Device *cpu, const BufferRef *ref, const StepInstance *instance, void *out, Error *error) {
    (void)error;
    memcpy(out, placement_at(&cpu->placement, ref, instance), (size_t)ref->bytes);
    return STATUS_OK;
}

const DeviceTable device_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .begin_step = cpu_begin_step,
    .run = cpu_run,
    .begin_transfer = cpu_begin_transfer,
    .end_transfer = cpu_end_transfer,
    .synchronize = cpu_synchronize,
    .read = cpu_read,
    .account = cpu_account,
};
