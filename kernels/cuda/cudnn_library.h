// cuDNN's C interface, opened at run time: the functions that attention needs.

#pragma once

#include <cudnn.h>
#include <stdbool.h>

enum { CUDNN_WHY_BYTES = 1024 };  // same as ATTENTION_WHY_BYTES

typedef struct CudnnLibrary {
    void *file;
    cudnnStatus_t (*create)(cudnnHandle_t *handle);
    cudnnStatus_t (*destroy)(cudnnHandle_t handle);
    cudnnStatus_t (*set_stream)(cudnnHandle_t handle, cudaStream_t stream);
    size_t (*version)(void);
    const char *(*error_name)(cudnnStatus_t status);
    void (*last_error)(char *text, size_t bytes);
    cudnnStatus_t (*describe)(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor);
    cudnnStatus_t (*release)(cudnnBackendDescriptor_t descriptor);
    cudnnStatus_t (*set)(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count, const void *values);
    cudnnStatus_t (*get)(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values);
    cudnnStatus_t (*finalize)(cudnnBackendDescriptor_t descriptor);
    cudnnStatus_t (*execute)(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack);
} CudnnLibrary;

// False, with a sentence in why, when libcudnn.so.9 is not found or lacks a function.
bool cudnn_library_open(CudnnLibrary *library, char why[CUDNN_WHY_BYTES]);
void cudnn_library_close(CudnnLibrary *library);
