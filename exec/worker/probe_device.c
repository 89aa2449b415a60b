// A device's own kernels at sizes that grow until a call takes long: GEMM shapes of layers, and streams over memory.
// Attention is not among them: its rates follow from runs (ndtune calibrate).

#include <string.h>

#include "exec/worker/probe.h"

static const double LONG_ENOUGH_S = 0.02;  // larger ones of the kind tell nothing more

typedef struct WorkRow {
    DeviceWorkKind kind;
    const char *what, *name;
    double size[3];
} WorkRow;

#define GEMM(m, n, k)                                                                                                  \
    {                                                                                                                  \
        DEVICE_WORK_GEMM, "gemm", "nt", {                                                                              \
            m, n, k                                                                                                    \
        }                                                                                                              \
    }
#define STREAM(kind, name, count)                                                                                      \
    {                                                                                                                  \
        kind, "stream", name, {                                                                                        \
            count                                                                                                      \
        }                                                                                                              \
    }

// Square ones, then those of an 8B model's layer at 4096 tokens; by kind, growing.
static const WorkRow rows[] = {
    GEMM(128, 128, 128),
    GEMM(1024, 1024, 1024),
    GEMM(2048, 2048, 2048),
    GEMM(4096, 4096, 4096),
    GEMM(4096, 6144, 4096),
    GEMM(4096, 28672, 4096),
    GEMM(4096, 4096, 14336),
    GEMM(8192, 8192, 8192),
    STREAM(DEVICE_WORK_ADD, "floor", 4096),
    STREAM(DEVICE_WORK_ADD, "add", 1 << 20),
    STREAM(DEVICE_WORK_ADD, "add", 1 << 26),
    STREAM(DEVICE_WORK_NORM, "norm", 1 << 20),
    STREAM(DEVICE_WORK_NORM, "norm", 1 << 26),
    STREAM(DEVICE_WORK_SWIGLU, "swiglu", 1 << 20),
    STREAM(DEVICE_WORK_SWIGLU, "swiglu", 1 << 26),
    STREAM(DEVICE_WORK_ADAMW, "adamw", 1 << 20),
    STREAM(DEVICE_WORK_ADAMW, "adamw", 1 << 26),
};

static Status measure_row(Probe *probe, const WorkRow *row, double *seconds, Error *error) {
    const DeviceTable *devices = probe->session->devices;
    DeviceWork work = {.kind = row->kind};
    DeviceTiming timing;
    memcpy(work.size, row->size, sizeof work.size);
    TRY(devices->measure(probe->session->device, &work, &timing, error));
    ProbeTopic topic = {.what = row->what, .name = row->name, .nodes = 1, .per_node = 1};
    memcpy(topic.size, row->size, sizeof row->size);
    probe_add(probe, &topic, &(Timing){timing.seconds, timing.low, timing.high, timing.repeats});
    *seconds = timing.seconds;
    return STATUS_OK;
}

Status probe_device(Probe *probe, Error *error) {
    double seconds[DEVICE_WORK_COUNT] = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && probe->session->rank == 0; i++) {
        if (seconds[rows[i].kind] < LONG_ENOUGH_S) {
            TRY(measure_row(probe, &rows[i], &seconds[rows[i].kind], error));
        }
    }
    return probe_meet(probe, error);
}
