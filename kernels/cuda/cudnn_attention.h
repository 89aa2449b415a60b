// cuDNN's fused attention: execution plans cached by shape, run on a stream.

#pragma once

#include "kernels/cuda/attention.h"

typedef struct CudnnAttention CudnnAttention;

// Opens the library. device_json NULL: for the calling thread's current GPU. Otherwise plans can be made but not run,
// for a device with these properties (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). NULL on failure, with a sentence in
// why.
CudnnAttention *cudnn_attention_open(const char *device_json, char why[ATTENTION_WHY_BYTES]);
void cudnn_attention_close(CudnnAttention *cudnn);
size_t cudnn_attention_version(const CudnnAttention *cudnn);

// The number of the call's plan, newly made or cached; -1, with a sentence in why, when cuDNN has none.
// workspace_bytes: the size that `workspace` must have in every run.
int cudnn_attention_plan(CudnnAttention *cudnn, const CudaAttention *call, int64_t *workspace_bytes,
                         char why[ATTENTION_WHY_BYTES]);
// 0, or cuDNN's status; cudnn_attention_error has the message.
int cudnn_attention_run(CudnnAttention *cudnn, int plan, const AttentionData *data, struct CUstream_st *stream);
const char *cudnn_attention_error(const CudnnAttention *cudnn);
