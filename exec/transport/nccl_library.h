// NCCL and the CUDA driver, loaded at run time: a worker of this build starts without them. Functions by their name
// without prefix; types come from the headers of the build.

#pragma once

#include <cuda.h>
#include <nccl.h>
#include <stdbool.h>

#include "sim/base/error.h"

typedef struct NcclLibrary {
    int version;
    ncclResult_t (*get_version)(int *version);
    ncclResult_t (*get_unique_id)(ncclUniqueId *id);
    ncclResult_t (*comm_init_rank_config)(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config);
    ncclResult_t (*comm_split)(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config);
    ncclResult_t (*comm_finalize)(ncclComm_t comm);
    ncclResult_t (*comm_destroy)(ncclComm_t comm);
    ncclResult_t (*comm_abort)(ncclComm_t comm);
    ncclResult_t (*comm_get_async_error)(ncclComm_t comm, ncclResult_t *result);
    const char *(*get_error_string)(ncclResult_t result);
    const char *(*get_last_error)(ncclComm_t comm);
    ncclResult_t (*all_gather)(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm,
                               cudaStream_t stream);
    ncclResult_t (*reduce_scatter)(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                   ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*all_reduce)(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*send)(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                         cudaStream_t stream);
    ncclResult_t (*recv)(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*group_start)(void);
    ncclResult_t (*group_end)(void);
    // NULL in libraries before 2.27:
    ncclResult_t (*mem_alloc)(void **memory, size_t bytes);
    ncclResult_t (*mem_free)(void *memory);
    ncclResult_t (*comm_window_register)(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window, int flags);
    ncclResult_t (*comm_window_deregister)(ncclComm_t comm, ncclWindow_t window);
} NcclLibrary;

typedef struct CudaDriver {
    int version;
    CUresult (*init)(unsigned flags);
    CUresult (*driver_get_version)(int *version);
    CUresult (*device_get_count)(int *count);
    CUresult (*device_get)(CUdevice *device, int ordinal);
    CUresult (*primary_retain)(CUcontext *context, CUdevice device);
    CUresult (*primary_release)(CUdevice device);
    CUresult (*context_set)(CUcontext context);
    CUresult (*priority_range)(int *least, int *greatest);
    CUresult (*stream_create)(CUstream *stream, unsigned flags, int priority);
    CUresult (*stream_destroy)(CUstream stream);
    CUresult (*stream_query)(CUstream stream);
    CUresult (*stream_write)(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags);
    CUresult (*mem_alloc)(CUdeviceptr *memory, size_t bytes);
    CUresult (*mem_free)(CUdeviceptr memory);
    CUresult (*host_alloc)(void **memory, size_t bytes, unsigned flags);
    CUresult (*host_free)(void *memory);
    CUresult (*host_device_pointer)(CUdeviceptr *at, void *memory, unsigned flags);
    CUresult (*copy)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
    CUresult (*get_error_string)(CUresult result, const char **text);
} CudaDriver;

// ENVIRONMENT where one is missing, too old or lacks functions; the message says what to install.
Status nccl_library_open(NcclLibrary *library, Error *error);
Status cuda_driver_open(CudaDriver *driver, Error *error);
