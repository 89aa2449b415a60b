// Built in place of cudnn_*.c where cuDNN's headers are not installed: the tier is never available.

#include "kernels/cuda/cudnn_attention.h"

#include <stdio.h>

CudnnAttention *cudnn_attention_open(const char *device_json, char why[ATTENTION_WHY_BYTES]) {
    (void)device_json;
    snprintf(why, ATTENTION_WHY_BYTES, "this build is without cuDNN: its headers (cudnn.h) were not there");
    return NULL;
}

void cudnn_attention_close(CudnnAttention *cudnn) {
    (void)cudnn;
}

size_t cudnn_attention_version(const CudnnAttention *cudnn) {
    (void)cudnn;
    return 0;
}

int cudnn_attention_plan(CudnnAttention *cudnn, const CudaAttention *call, int64_t *workspace_bytes,
                         char why[ATTENTION_WHY_BYTES]) {
    (void)call;
    *workspace_bytes = 0;
    cudnn_attention_close(cudnn_attention_open(NULL, why));
    (void)cudnn;
    return -1;
}

int cudnn_attention_run(CudnnAttention *cudnn, int plan, const AttentionData *data, struct CUstream_st *stream) {
    (void)cudnn, (void)plan, (void)data, (void)stream;
    return 801;  // cudaErrorNotSupported
}

const char *cudnn_attention_error(const CudnnAttention *cudnn) {
    (void)cudnn;
    return "this build is without cuDNN";
}
