// GPU progress, for a host that has issued everything and waits: after each fixed amount of work a stream counts in
// pinned memory, inside graphs as well. Code that waits for a stream polls it and reports changes, so that a step of
// minutes in one graph does not look like a hung rank. A count shows that there was progress, not of what.

#include <sched.h>

#include "exec/device/cuda.h"
#include "sim/base/clock.h"

enum { YIELDS = 400 };  // polls before naps: those of a short wait
static const double NAP_S = 20e-6;

// Bytes as the arithmetic a chip does in the same time: H100 and H200 some 200 FLOP/B in bf16 (data sheets).
static const double FLOP_PER_BYTE = 200;

Status cuda_marks_open(Device *cuda, Error *error) {
    CUDA_TRY(cudaHostAlloc((void **)&cuda->marks.count, sizeof *cuda->marks.count, cudaHostAllocDefault),
             "pinned memory to count in");
    *cuda->marks.count = 0;
    return STATUS_OK;
}

void cuda_marks_close(Device *cuda) {
    if (cuda->marks.count) {
        cudaFreeHost(cuda->marks.count);
    }
}

double cuda_marks_work(const Task *task) {
    return task->flops + FLOP_PER_BYTE * (double)task->traffic_bytes;
}

int cuda_marks_add(Device *cuda, cudaStream_t stream, double work) {
    cuda->marks.work += work;
    if (cuda->setup.mark_work <= 0 || cuda->marks.work < cuda->setup.mark_work) {
        return 0;
    }
    cuda->marks.work = 0;
    const KernelCuda at = {.stream = stream, .processors = cuda->properties.multiProcessorCount};
    return kernel_cuda_count(&at, cuda->marks.count);
}

bool cuda_moved(Device *cuda) {
    const unsigned count = *(volatile unsigned *)cuda->marks.count;
    const bool moved = count != cuda->marks.seen;
    cuda->marks.seen = count;
    return moved;
}

int cuda_settle(Device *cuda, cudaStream_t stream, cudaEvent_t event) {
    for (int looks = 0;; looks++) {
        const cudaError_t code = event ? cudaEventQuery(event) : cudaStreamQuery(stream);
        if (code != cudaErrorNotReady) {
            return (int)code;
        }
        cudaGetLastError();  // "not ready" is no error
        if (cuda_moved(cuda) && cuda->setup.alive) {
            cuda->setup.alive(cuda->setup.alive_context);
        }
        if (looks < YIELDS) {
            sched_yield();
        } else {
            clock_nap(NAP_S);
        }
    }
}
