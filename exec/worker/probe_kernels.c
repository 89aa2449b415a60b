// Kernels at sizes found in models. A table row is a kernel and a size; sizes whose operands fit a cache are listed
// next to ones that do not, since both occur. Values are small and normal, so that no slow path is taken. A core's
// speed drifts over seconds, with its clock or with the load on its other hyperthread. So all ranks first compute in
// rounds, which give its mean speed, and each table row is scaled to that mean: the product used in the rounds is timed
// before and after it.

#include <math.h>
#include <string.h>

#include "exec/worker/gather.h"
#include "exec/worker/probe.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "sim/base/clock.h"

static const double BUDGET_S = 0.05;    // per sample
static const double TOGETHER_S = 0.15;  // of a kernel in a round: many scheduler time slices
enum { ROUNDS = 10, BESIDE_CALLS = 5 };
enum { BUFFERS = 7, LARGEST = 4 << 20 };  // floats of each
enum { GROUPS_MOST = 8 };

typedef struct Work {
    float *buffer[BUFFERS];
    double size[4];
    bool backward;
    KernelHalves *halves;  // NULL: this machine has no bf16 products
    int product;           // for the row's size
    int64_t turn;          // previous calls of this row
} Work;

typedef struct KernelRow {
    const char *what, *name;
    void (*run)(const Work *work);
    double size[4];
    bool backward;
} KernelRow;

static void run_gemm(const Work *work) {
    kernel_gemm(false, true, (int64_t)work->size[0], (int64_t)work->size[1], (int64_t)work->size[2], work->buffer[0],
                work->buffer[1], work->buffer[2], false);
}

static void run_half_gemm(const Work *work) {
    kernel_halves_gemm(work->halves, work->product, work->buffer[3], work->buffer[4], work->buffer[2]);
}

// size: rows of each group, n, k, groups.
static void run_grouped(const Work *work) {
    int32_t counts[GROUPS_MOST];
    const KernelGroups groups = {.parts = 1, .count = (int)work->size[3], .counts = counts};
    for (int g = 0; g < groups.count; g++) {
        counts[g] = (int32_t)work->size[0];
    }
    kernel_grouped_gemm(&groups, false, true, (int64_t)work->size[1], (int64_t)work->size[2], work->buffer[0],
                        work->buffer[1], work->buffer[2], false);
}

// For streams size is the number of elements of one operand.
static void run_add(const Work *work) {
    kernel_add((int64_t)work->size[0], work->buffer[0], work->buffer[1], work->buffer[2]);
}

enum { NORM_COLS = 512 };

static void run_norm(const Work *work) {
    kernel_rmsnorm((int64_t)work->size[0] / NORM_COLS, NORM_COLS, 1e-5f, work->buffer[0], work->buffer[1],
                   work->buffer[2], work->buffer[3]);
}

static void run_swiglu(const Work *work) {
    const KernelGated shape = {.rows = (int64_t)work->size[0] / NORM_COLS, .cols = NORM_COLS, .stride = NORM_COLS};
    kernel_gated(&shape, work->buffer[0], work->buffer[1], work->buffer[2]);
}

static void run_adamw(const Work *work) {
    static const KernelAdamw options = {.lr = 0, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .step = 10};
    static const float scale = 1;
    kernel_adamw((int64_t)work->size[0], 0, &options, &scale, work->buffer[0], work->buffer[1], work->buffer[2],
                 work->buffer[3]);
}

// size: queries, distance of the first query from the first key, heads, head_dim; as many keys as queries.
static void run_attention(const Work *work) {
    const int heads = (int)work->size[2], dim = (int)work->size[3];
    const int64_t rows = (int64_t)work->size[0], stride = (int64_t)heads * dim;
    const KernelAttention shape = {.queries = rows,
                                   .keys = rows,
                                   .q_first = (int64_t)work->size[1],
                                   .heads = heads,
                                   .kv_heads = heads,
                                   .head_dim = dim,
                                   .q_stride = stride,
                                   .kv_stride = stride,
                                   .o_stride = stride,
                                   .lse_stride = rows};
    float *const q = work->buffer[0], *const k = work->buffer[1], *const v = work->buffer[2];
    float *const lse = work->buffer[3], *const delta = lse + LARGEST / 2;
    if (work->backward) {
        kernel_attention_backward(&shape, q, k, v, work->buffer[0], lse, delta, work->buffer[4], stride,
                                  work->buffer[5], work->buffer[6], stride);
    } else {
        kernel_attention(&shape, q, k, v, work->buffer[4], lse, false);
    }
}

static const char FAR_STREAM[] = "far";
// A stream as in a step: its operands have not been touched since the last pass over the window. A chunk plays the same
// part in every round, so that values stay as they are.
enum { FAR_ELEMENTS = 256 << 10, FAR_OPERANDS = 4, FAR_CHUNK_BYTES = 4 * FAR_ELEMENTS };

static void operands_far(const Work *work, Work *far) {
    const int64_t chunks = (int64_t)work->size[1] / FAR_CHUNK_BYTES;
    *far = *work;
    for (int operand = 0; operand < FAR_OPERANDS; operand++) {
        const int64_t chunk = (FAR_OPERANDS * work->turn + operand) % chunks;
        far->buffer[operand] = work->buffer[chunk % BUFFERS] + chunk / BUFFERS * FAR_ELEMENTS;
    }
}

#define GEMM(m, n, k)                                                                                                  \
    { "gemm", "nt", run_gemm, {m, n, k}, false }
#define HALF_GEMM(m, n, k)                                                                                             \
    { "gemm", "nt bf16", run_half_gemm, {m, n, k}, false }
#define GROUPED(rows, n, k, groups)                                                                                    \
    { "gemm", "grouped", run_grouped, {rows, n, k, groups}, false }
#define STREAM(name, run, count)                                                                                       \
    { "stream", name, run, {count}, false }
#define FAR(name, run, mebibytes)                                                                                      \
    { FAR_STREAM, name, run, {FAR_ELEMENTS, (mebibytes)*1048576.0}, false }
// Full blocks, and causal ones.
#define ATTENTION(dim, heads)                                                                                          \
    {"attention", "forward", run_attention, {128, 128, heads, dim}, false},                                            \
        {"attention", "forward", run_attention, {512, 512, heads, dim}, false},                                        \
        {"attention", "forward", run_attention, {128, 0, heads, dim}, false},                                          \
        {"attention", "forward", run_attention, {512, 0, heads, dim}, false},                                          \
        {"attention", "backward", run_attention, {128, 128, heads, dim}, true},                                        \
        {"attention", "backward", run_attention, {512, 512, heads, dim}, true},                                        \
        {"attention", "backward", run_attention, {128, 0, heads, dim}, true}, {                                        \
        "attention", "backward", run_attention, {512, 0, heads, dim}, true                                             \
    }

static const KernelRow rows[] = {
    GEMM(1, 1, 1),
    GEMM(64, 64, 64),
    GEMM(64, 64, 256),
    GEMM(64, 128, 256),
    GEMM(128, 128, 256),
    GEMM(128, 256, 256),
    GEMM(128, 1024, 256),
    GEMM(128, 256, 768),
    GEMM(256, 768, 768),
    GEMM(256, 3072, 768),
    GEMM(256, 768, 3072),
    GEMM(512, 512, 512),
    GEMM(1024, 1024, 1024),
    HALF_GEMM(1, 1, 1),
    HALF_GEMM(64, 64, 256),
    HALF_GEMM(64, 128, 256),
    HALF_GEMM(128, 128, 256),
    HALF_GEMM(256, 768, 768),
    HALF_GEMM(256, 3072, 768),
    HALF_GEMM(256, 768, 3072),
    HALF_GEMM(512, 512, 512),
    HALF_GEMM(1024, 1024, 1024),
    GROUPED(8, 256, 256, 8),
    GROUPED(32, 256, 256, 8),
    GROUPED(32, 768, 256, 4),
    GROUPED(128, 256, 256, 8),
    STREAM("floor", run_add, 16),
    STREAM("add", run_add, 32 << 10),
    STREAM("add", run_add, 256 << 10),
    STREAM("add", run_add, LARGEST),
    STREAM("norm", run_norm, 32 << 10),
    STREAM("norm", run_norm, 256 << 10),
    STREAM("swiglu", run_swiglu, 32 << 10),
    STREAM("swiglu", run_swiglu, 256 << 10),
    STREAM("adamw", run_adamw, 64 << 10),
    STREAM("adamw", run_adamw, 512 << 10),
    STREAM("adamw", run_adamw, LARGEST),
    ATTENTION(16, 16),
    ATTENTION(64, 4),
    ATTENTION(128, 4),
    FAR("add", run_add, 24),
    FAR("add", run_add, 48),
    FAR("add", run_add, 112),  // all buffers
    FAR("norm", run_norm, 112),
    FAR("swiglu", run_swiglu, 112),
    FAR("adamw", run_adamw, 112),
};

static KernelHalfGemm half_shape(const KernelRow *row) {
    return (KernelHalfGemm){.trans_b = true,
                            .half_c = true,
                            .m = (int64_t)row->size[0],
                            .n = (int64_t)row->size[1],
                            .k = (int64_t)row->size[2],
                            .factor = 1};
}

static void work_begin(Work *work, Arena *arena) {
    *work = (Work){0};
    for (int b = 0; b < BUFFERS; b++) {
        work->buffer[b] = ARENA_ARRAY(arena, float, LARGEST);
        for (int i = 0; i < LARGEST; i++) {
            work->buffer[b][i] = 0.25f + (float)(i % 61) / 64;
        }
    }
}

// If one fails all are left out: the profile has no rate then.
static void halves_begin(Work *work) {
    enum { ROWS = sizeof rows / sizeof rows[0] };
    char why[KERNEL_HALF_WHY_BYTES];
    work->halves = kernel_halves_open(ROWS, why);
    bool done = work->halves;
    for (int i = 0; done && i < ROWS; i++) {
        const KernelHalfGemm shape = half_shape(&rows[i]);
        done = rows[i].run != run_half_gemm || kernel_halves_prepare(work->halves, &shape, why) >= 0;
    }
    if (!done || !kernel_halves_ready(work->halves)) {
        kernel_halves_close(work->halves);
        work->halves = NULL;
    }
}

typedef struct Call {
    const KernelRow *row;
    Work *work;
} Call;

static Status call_kernel(void *context, Error *error) {
    const Call *call = context;
    Work far;
    (void)error;
    if (call->row->what == FAR_STREAM) {
        operands_far(call->work, &far);
        call->work->turn++;
        call->row->run(&far);
    } else {
        call->row->run(call->work);
    }
    return STATUS_OK;
}

static void call_prepare(const Call *call) {
    memcpy(call->work->size, call->row->size, sizeof call->work->size);
    call->work->backward = call->row->backward;
    if (call->row->run == run_half_gemm) {
        const KernelHalfGemm shape = half_shape(call->row);
        char why[KERNEL_HALF_WHY_BYTES];
        call->work->product = kernel_halves_prepare(call->work->halves, &shape, why);  // selects the product
        kernel_narrow(shape.m * shape.k, call->work->buffer[0], (uint16_t *)(void *)call->work->buffer[3]);
        kernel_narrow(shape.n * shape.k, call->work->buffer[1], (uint16_t *)(void *)call->work->buffer[4]);
    }
    call->row->run(call->work);
}

// All ranks at once, by name: how much of a lone rank's rate remains on a full machine.
static const KernelRow shared_rows[] = {GEMM(256, 768, 768), STREAM("add", run_add, 256 << 10)};
enum { SHARED_ROWS = sizeof shared_rows / sizeof shared_rows[0] };

// Current time per call of the rounds' product.
static double speed_call_s(Work *work) {
    double calls_s[BESIDE_CALLS];
    call_prepare(&(Call){shared_rows, work});
    for (int i = 0; i < BESIDE_CALLS; i++) {
        const double start_s = stopwatch_cpu_s();
        shared_rows->run(work);
        calls_s[i] = stopwatch_cpu_s() - start_s;
    }
    return timing_of(calls_s, BESIDE_CALLS).seconds;
}

static void timing_scale(Timing *timing, double factor) {
    timing->seconds *= factor;
    timing->low *= factor;
    timing->high *= factor;
}

static Status probe_row(Probe *probe, const KernelRow *row, Work *work, Error *error) {
    Call call = {row, work};
    const double before_s = speed_call_s(work);
    call_prepare(&call);
    const double start_s = stopwatch_cpu_s();
    row->run(work);
    const StopwatchPlan plan = stopwatch_plan(stopwatch_cpu_s, stopwatch_cpu_s() - start_s, BUDGET_S);
    Timing timing;
    TRY(stopwatch_run(call_kernel, &call, &plan, &timing, error));
    if (row->what != FAR_STREAM) {  // memory speed does not follow the core clock
        timing_scale(&timing, 2 * probe->mean_call_s / (before_s + speed_call_s(work)));
    }
    ProbeTopic topic = {.what = row->what, .name = row->name, .nodes = 1, .per_node = 1};
    memcpy(topic.size, row->size, sizeof topic.size);
    probe_add(probe, &topic, &timing);
    return STATUS_OK;
}

Status probe_kernels(Probe *probe, Error *error) {
    if (probe->session->rank == 0) {
        Work work;
        work_begin(&work, probe->arena);
        halves_begin(&work);
        Status status = STATUS_OK;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == STATUS_OK; i++) {
            status =
                rows[i].run == run_half_gemm && !work.halves ? STATUS_OK : probe_row(probe, &rows[i], &work, error);
        }
        kernel_halves_close(work.halves);
        TRY(status);
    }
    return probe_meet(probe, error);
}

// Calls of one kernel until the time is over, each by its compute time: what a rank's neighbours cost it in addition to
// time slices on a core.
static double mean_call_s(const KernelRow *row, Work *work) {
    call_prepare(&(Call){row, work});
    const double start_s = clock_s(), cpu_s = stopwatch_cpu_s();
    int64_t calls = 0;
    while (clock_s() - start_s < TOGETHER_S) {
        row->run(work);
        calls++;
    }
    return (stopwatch_cpu_s() - cpu_s) / (double)calls;
}

// Rank 0 alone, then all ranks: the mean rate over ranks.
static Status probe_shared(Probe *probe, const KernelRow *row, Work *work, bool all, Error *error) {
    TRY(probe_meet(probe, error));
    const double own_s = all || probe->session->rank == 0 ? mean_call_s(row, work) : 0;
    double *each = ARENA_ARRAY(probe->arena, double, probe->world);
    TRY(gather(probe->session, &own_s, each, sizeof own_s, error));
    Timing timing = {.low = INFINITY};
    double rate = 0;
    for (int rank = 0; rank < probe->world; rank++) {
        if (each[rank] > 0) {
            timing.repeats++;
            timing.low = fmin(timing.low, each[rank]);
            timing.high = fmax(timing.high, each[rank]);
            rate += 1 / each[rank];
        }
    }
    timing.seconds = timing.repeats / rate;
    probe->mean_call_s += row == shared_rows && !all ? timing.seconds / ROUNDS : 0;
    int nodes = 1, per_node = 1;
    if (all) {
        hosts_of_group(probe->session, probe->hosts, AXIS_ALL, &nodes, &per_node);
    }
    ProbeTopic topic = {.what = "shared", .name = row->what, .nodes = nodes, .per_node = per_node};
    memcpy(topic.size, row->size, sizeof topic.size);
    probe_add(probe, &topic, &timing);
    return STATUS_OK;
}

Status probe_together(Probe *probe, Error *error) {
    Work work;
    work_begin(&work, probe->arena);
    for (int i = 0; i < ROUNDS * SHARED_ROWS; i++) {
        TRY(probe_shared(probe, &shared_rows[i % SHARED_ROWS], &work, false, error));
        TRY(probe_shared(probe, &shared_rows[i % SHARED_ROWS], &work, true, error));
    }
    return STATUS_OK;
}
