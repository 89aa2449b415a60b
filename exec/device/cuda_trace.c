// Spans of a traced step: a pair of timed events around each task on its stream. Other steps have none.

#include "exec/device/cuda.h"

enum { MOST_INSTANCES = 1 << 15 };  // some hundred bytes of driver memory per event

Status cuda_trace_open(Device *cuda, Arena *arena, Error *error) {
    CudaTrace *trace = &cuda->trace;
    const int64_t instances = step_instance_count(cuda->setup.program);
    if (instances > MOST_INSTANCES) {
        return STATUS_OK;
    }
    trace->begin = ARENA_ARRAY(arena, cudaEvent_t, instances);
    trace->end = ARENA_ARRAY(arena, cudaEvent_t, instances);
    CUDA_TRY(cudaEventCreate(&trace->origin), "an event");
    for (; trace->instances < instances; trace->instances++) {
        CUDA_TRY(cudaEventCreate(&trace->begin[trace->instances]), "an event");
        CUDA_TRY(cudaEventCreate(&trace->end[trace->instances]), "an event");
    }
    return STATUS_OK;
}

void cuda_trace_close(Device *cuda) {
    CudaTrace *trace = &cuda->trace;
    for (int64_t i = 0; i < trace->instances; i++) {
        cudaEventDestroy(trace->begin[i]);
        cudaEventDestroy(trace->end[i]);
    }
    if (trace->origin) {
        cudaEventDestroy(trace->origin);
    }
}
