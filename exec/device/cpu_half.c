// Tasks of bf16 programs. Products take bf16 directly. Other kernels compute in fp32: their operands are widened into
// scratch space allocated before the first step, and their results are narrowed from there, rounded once. Operands that
// overlap (columns of one matrix, in-place results) share their space.

#include "exec/device/cpu_half.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/half.h"

enum { ROOM_ALIGN = 64 };  // a cache line

struct CpuHalf {
    KernelHalves *products;
    int *product_of_task;  // -1: none
    char *room;
    pthread_mutex_t lock;  // lanes may run in threads, but share one room
};

// Bit i: operand i is used as it is.
static uint32_t taken_as_is(const TaskCall *call) {
    switch (call->task->kind) {
    case TASK_COPY:  // latent attention's keys are concatenated in fp32
        return call_copies_keys(call) ? 0 : ~UINT32_C(0);
    case TASK_UNPACK:
    case TASK_ACCUMULATE:
    case TASK_ZERO:
    case TASK_LOAD_TOKENS:
        return ~UINT32_C(0);
    case TASK_EMBED:
        return call_dtype(call, AT_EMBED_TABLE) == call_dtype(call, AT_EMBED_X) ? ~UINT32_C(0) : 0;
    case TASK_ADAMW:
        return UINT32_C(1) << AT_ADAMW_WORKING;
    default:
        return 0;
    }
}

bool cpu_half_wanted(const StepProgram *program) {
    for (int32_t b = 0; b < program->buffer_count; b++) {
        if (program->buffers[b].dtype == DTYPE_BF16 && program->buffers[b].role != ROLE_COMMUNICATION) {
            return true;
        }
    }
    return false;
}

static bool is_half(const TaskCall *call, int index) {
    return index < call->task->operand_count && call->operand[index] && call_dtype(call, index) == DTYPE_BF16;
}

static int64_t room_of(const TaskCall *call) {
    int64_t bytes = 0;
    for (int i = 0; i < call->task->operand_count; i++) {
        if (is_half(call, i) && !(taken_as_is(call) >> i & 1)) {
            bytes += call_elements(call, i) * (int64_t)sizeof(float) + ROOM_ALIGN;
        }
    }
    return bytes;
}

static Status product_open(CpuHalf *half, const TaskCall *call, Error *error) {
    const Task *task = call->task;
    const bool half_c = is_half(call, AT_GEMM_C);
    const bool biased = task->operand_count > AT_GEMM_BIAS && call->operand[AT_GEMM_BIAS];
    int *product = &half->product_of_task[call->instance->task];
    *product = -1;
    if (task->kind != TASK_GEMM || !is_half(call, AT_GEMM_A) || !is_half(call, AT_GEMM_B) ||
        (biased && is_half(call, AT_GEMM_BIAS) != half_c)) {
        return STATUS_OK;
    }
    const KernelHalfGemm shape = {.trans_a = task->trans_a,
                                  .trans_b = task->trans_b,
                                  .accumulate = task->accumulate || biased,
                                  .half_c = half_c,
                                  .m = task->m,
                                  .n = task->n,
                                  .k = task->k,
                                  .factor = task->factor != 0 ? (float)task->factor : 1};
    char why[KERNEL_HALF_WHY_BYTES];
    *product = kernel_halves_prepare(half->products, &shape, why);
    return *product >= 0 ? STATUS_OK : error_set(error, STATUS_ENVIRONMENT, "task '%s': %s", task->name, why);
}

Status cpu_half_open(Placement *placement, Arena *arena, CpuHalf **opened, Error *error) {
    const StepProgram *program = placement->program;
    CpuHalf *half = ARENA_NEW(arena, CpuHalf);
    char why[KERNEL_HALF_WHY_BYTES];
    half->products = kernel_halves_open(program->task_count, why);
    FAIL_IF(!half->products, error, STATUS_ENVIRONMENT, "the cpu device computes in fp32 here, not in bf16: %s", why);
    *opened = half;
    half->product_of_task = ARENA_ARRAY(arena, int, program->task_count);
    int64_t most = 0;
    for (int32_t t = 0; t < program->task_count; t++) {
        const StepInstance instance = {.task = t};
        const TaskCall call = placement_call(placement, &instance);
        TRY(product_open(half, &call, error));
        const int64_t bytes = half->product_of_task[t] < 0 ? room_of(&call) : 0;
        most = bytes > most ? bytes : most;
    }
    atomic_store(&placement->peak_bytes, 0);  // nothing has been touched yet
    half->room = aligned_alloc(ROOM_ALIGN, (size_t)(most / ROOM_ALIGN + 1) * ROOM_ALIGN);
    FAIL_IF(!half->room || !kernel_halves_ready(half->products), error, STATUS_ENVIRONMENT,
            "no memory to compute in bf16");
    memset(half->room, 0, (size_t)most);  // no page faults in a step
    pthread_mutex_init(&half->lock, NULL);
    return STATUS_OK;
}

void cpu_half_close(CpuHalf *half) {
    if (half) {
        kernel_halves_close(half->products);
        free(half->room);
    }
}

// A contiguous range of bf16 memory that holds operands, and its fp32 copy.
typedef struct HalfRange {
    char *begin, *end;
    float *room;
    bool read, written;
} HalfRange;

// Operands that overlap are merged.
static int ranges_of(const TaskCall *call, HalfRange ranges[TASK_MAX_OPERANDS]) {
    const uint32_t as_is = taken_as_is(call);
    int count = 0;
    for (int i = 0; i < call->task->operand_count; i++) {
        if (!is_half(call, i) || as_is >> i & 1) {
            continue;
        }
        const Operand *operand = task_operand(call->program, call->task, i);
        HalfRange all = {call->operand[i], call->operand[i] + operand->ref.bytes, NULL, operand->access & ACCESS_READ,
                         operand->access & ACCESS_WRITE};
        for (int s = 0; s < count; s++) {
            const HalfRange *other = &ranges[s];
            if (other->begin < all.end && all.begin < other->end) {
                all = (HalfRange){other->begin < all.begin ? other->begin : all.begin,
                                  other->end > all.end ? other->end : all.end, NULL, all.read || other->read,
                                  all.written || other->written};
                ranges[s] = ranges[--count];
                s = -1;  // it may now overlap ranges it did not before
            }
        }
        ranges[count++] = all;
    }
    return count;
}

static int64_t range_elements(const HalfRange *range) {
    return (range->end - range->begin) / (int64_t)sizeof(uint16_t);
}

static void run_widened(CpuHalf *half, TaskCall *call, CpuTask *task) {
    HalfRange ranges[TASK_MAX_OPERANDS];
    const int count = ranges_of(call, ranges);
    const uint32_t as_is = taken_as_is(call);
    char *room = half->room;
    for (int s = 0; s < count; s++) {
        ranges[s].room = (float *)(void *)room;
        room += (range_elements(&ranges[s]) * (int64_t)sizeof(float) + ROOM_ALIGN - 1) / ROOM_ALIGN * ROOM_ALIGN;
        if (ranges[s].read) {
            kernel_widen(range_elements(&ranges[s]), (const uint16_t *)(void *)ranges[s].begin, ranges[s].room);
        }
    }
    for (int i = 0; i < call->task->operand_count; i++) {
        for (int s = 0; s < count && is_half(call, i) && !(as_is >> i & 1); s++) {
            if (call->operand[i] >= ranges[s].begin && call->operand[i] < ranges[s].end) {
                call->operand[i] =
                    (char *)(ranges[s].room + (call->operand[i] - ranges[s].begin) / (int64_t)sizeof(uint16_t));
                break;
            }
        }
    }
    task(call);
    for (int s = 0; s < count; s++) {
        if (ranges[s].written) {
            kernel_narrow(range_elements(&ranges[s]), ranges[s].room, (uint16_t *)(void *)ranges[s].begin);
        }
    }
}

// The bias is stored before the product adds to it.
static void run_product(CpuHalf *half, const TaskCall *call, int product) {
    const Task *task = call->task;
    char *const c = call->operand[AT_GEMM_C];
    if (task->operand_count > AT_GEMM_BIAS && call->operand[AT_GEMM_BIAS]) {
        const int64_t row_bytes = task->n * dtype_bytes(call_dtype(call, AT_GEMM_C));
        for (int64_t row = 0; row < task->m; row++) {
            memcpy(c + row * row_bytes, call->operand[AT_GEMM_BIAS], (size_t)row_bytes);
        }
    }
    kernel_halves_gemm(half->products, product, call->operand[AT_GEMM_A], call->operand[AT_GEMM_B], c);
}

void cpu_half_run(CpuHalf *half, TaskCall *call, CpuTask *task) {
    const int product = half->product_of_task[call->instance->task];
    if (product < 0 && room_of(call) == 0) {
        task(call);
        return;
    }
    pthread_mutex_lock(&half->lock);
    if (product >= 0) {
        run_product(half, call, product);
    } else {
        run_widened(half, call, task);
    }
    pthread_mutex_unlock(&half->lock);
}
