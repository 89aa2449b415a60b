// A device's own kernels at layer sizes: products, attention by each available kernel, memory streams, and one product
// for several seconds, which shows the rate under the power limit. Sizes are for a chip of about 128 multiprocessors;
// on one with half as many, sides are half as long and streams a quarter, and so on. Sizes of each kind grow until a
// call takes long.

#include <math.h>
#include <string.h>

#include "exec/worker/probe.h"

enum { FULL_PROCESSORS = 128, LEAST_SIDE = 16, LEAST_STREAM = 4096, HEADS = 32 };
static const double LONG_ENOUGH_S = 0.02;  // larger ones of the kind add no information
static const double SUSTAIN_S = 4;         // longer than the seconds in which a chip warms up

typedef struct WorkRow {
    DeviceWork work;
    const char *what, *name;
} WorkRow;

#define GEMM(m, n, k)                                                                                                  \
    { {.kind = DEVICE_WORK_GEMM, .size = {m, n, k}}, "gemm", "nt" }
#define SUSTAINED(side)                                                                                                \
    { {.kind = DEVICE_WORK_GEMM, .size = {side, side, side}, .sustain_s = SUSTAIN_S}, "sustained", "nt" }
#define STREAM(work, name, count)                                                                                      \
    { {.kind = work, .size = {count}}, "stream", name }
// Full blocks, and causal ones.
#define ATTENTION(dim, of)                                                                                             \
    PASS(DEVICE_WORK_ATTENTION, "forward", 1024, dim, of), PASS(DEVICE_WORK_ATTENTION, "forward", 8192, dim, of),      \
        PASS(DEVICE_WORK_ATTENTION_BACKWARD, "backward", 1024, dim, of),                                               \
        PASS(DEVICE_WORK_ATTENTION_BACKWARD, "backward", 8192, dim, of)
#define PASS(pass, name, length, dim, of)                                                                              \
    {{.kind = pass, .size = {length, length, HEADS, dim}, .library = of}, "attention", name}, {                        \
        {.kind = pass, .size = {length, 0, HEADS, dim}, .library = of}, "attention", name                              \
    }

// Square ones, then those of an 8B model's layer at 4096 tokens; by kind, ascending.
static const WorkRow rows[] = {
    GEMM(128, 128, 128),
    GEMM(1024, 1024, 1024),
    GEMM(2048, 2048, 2048),
    GEMM(4096, 4096, 4096),
    GEMM(4096, 6144, 4096),
    GEMM(4096, 28672, 4096),
    GEMM(4096, 4096, 14336),
    GEMM(8192, 8192, 8192),
    STREAM(DEVICE_WORK_ADD, "floor", LEAST_STREAM),
    STREAM(DEVICE_WORK_ADD, "add", 1 << 20),
    STREAM(DEVICE_WORK_ADD, "add", 1 << 26),
    STREAM(DEVICE_WORK_NORM, "norm", 1 << 20),
    STREAM(DEVICE_WORK_NORM, "norm", 1 << 26),
    STREAM(DEVICE_WORK_SWIGLU, "swiglu", 1 << 20),
    STREAM(DEVICE_WORK_SWIGLU, "swiglu", 1 << 26),
    STREAM(DEVICE_WORK_ADAMW, "adamw", 1 << 20),
    STREAM(DEVICE_WORK_ADAMW, "adamw", 1 << 26),
    ATTENTION(64, false),
    ATTENTION(128, false),
    ATTENTION(64, true),
    ATTENTION(128, true),
    SUSTAINED(8192),
};

static bool is_attention(const DeviceWork *work) {
    return work->kind == DEVICE_WORK_ATTENTION || work->kind == DEVICE_WORK_ATTENTION_BACKWARD;
}

int probe_divisor(const Probe *probe) {
    DeviceAccount account;
    int divisor = 1;
    probe->session->devices->account(probe->session->device, &account);
    while (account.processors > 0 && account.processors * 2 * divisor <= FULL_PROCESSORS) {
        divisor *= 2;
    }
    return divisor;
}

static void shrink(DeviceWork *work, int divisor) {
    double *size = work->size;
    if (is_attention(work)) {
        size[0] = fmax(size[0] / divisor, LEAST_SIDE);
        size[1] = size[1] > 0 ? size[0] : 0;
        size[2] = fmax(size[2] / divisor, 1);
    } else if (work->kind == DEVICE_WORK_GEMM) {
        for (int i = 0; i < 3; i++) {
            size[i] = fmax(size[i] / divisor, LEAST_SIDE);
        }
        work->sustain_s /= divisor;
    } else {
        size[0] = fmax(size[0] / divisor / divisor, LEAST_STREAM);
    }
}

static Status measure_row(Probe *probe, const WorkRow *row, double *seconds, Error *error) {
    const DeviceTable *devices = probe->session->devices;
    DeviceWork work = row->work;
    DeviceTiming timing;
    shrink(&work, probe->divisor);
    TRY(devices->measure(probe->session->device, &work, &timing, error));
    if (timing.repeats == 0) {
        return STATUS_OK;
    }
    ProbeTopic topic = {.what = row->what, .name = row->name, .nodes = 1, .per_node = 1};
    if (timing.way) {
        topic.name = arena_format(probe->arena, "%s %s", timing.way, row->name);
    }
    memcpy(topic.size, work.size, sizeof topic.size);
    probe_add(probe, &topic, &(Timing){timing.seconds, timing.low, timing.high, timing.repeats});
    *seconds = timing.seconds;
    return STATUS_OK;
}

Status probe_device(Probe *probe, Error *error) {
    double seconds[DEVICE_WORK_COUNT] = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && probe->session->rank == 0; i++) {
        const DeviceWork *work = &rows[i].work;
        if (is_attention(work) || work->sustain_s > 0 || seconds[work->kind] < LONG_ENOUGH_S) {
            TRY(measure_row(probe, &rows[i], &seconds[work->kind], error));
        }
    }
    return probe_meet(probe, error);
}
