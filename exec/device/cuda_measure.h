// A kernel measured for the probe, and the resources it runs on.

#pragma once

#include "exec/device/cuda.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cudnn_attention.h"

enum { MEASURE_BUFFERS = 8 };

typedef struct MeasureBench {
    Device *cuda;
    const DeviceWork *work;
    KernelCuda at;
    char *buffer[MEASURE_BUFFERS];
    GemmPlan plan;
    GemmWorkshop shop;
    AttentionPlan attention;
    CudnnAttention *cudnn;  // NULL: our own kernels
    void *workspace;        // for attention
} MeasureBench;

// Elements of 4 bytes, which is enough room for any format.
int64_t measure_attention_elements(const DeviceWork *work, int buffer);
// *served false: this machine has no such kernel.
Status measure_attention_open(MeasureBench *bench, bool *served, Error *error);
int measure_attention_run(MeasureBench *bench);
// Why a run failed: a CUDA error, or cuDNN's own message.
Status measure_failed(const MeasureBench *bench, int code, Error *error);
void measure_attention_close(MeasureBench *bench);
