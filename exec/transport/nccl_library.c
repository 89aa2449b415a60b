// Each function is a row: its symbol and its place in the table. Libraries stay open until the process ends, since
// NCCL's own threads run in them.

#include "exec/transport/nccl_library.h"

#include <dlfcn.h>
#include <stddef.h>

#include "exec/transport/nccl_choice.h"
#include "kernels/symbols.h"

#define NCCL_NEWER(name, member)                                                                                       \
    { #name, offsetof(NcclLibrary, member), true }
#define CUDA_SYMBOL(name, member)                                                                                      \
    { name, offsetof(CudaDriver, member), false }

static const Symbol nccl_symbols[] = {
    SYMBOL(NcclLibrary, ncclGetVersion, get_version),
    SYMBOL(NcclLibrary, ncclGetUniqueId, get_unique_id),
    SYMBOL(NcclLibrary, ncclCommInitRankConfig, comm_init_rank_config),
    SYMBOL(NcclLibrary, ncclCommSplit, comm_split),
    SYMBOL(NcclLibrary, ncclCommFinalize, comm_finalize),
    SYMBOL(NcclLibrary, ncclCommDestroy, comm_destroy),
    SYMBOL(NcclLibrary, ncclCommAbort, comm_abort),
    SYMBOL(NcclLibrary, ncclCommGetAsyncError, comm_get_async_error),
    SYMBOL(NcclLibrary, ncclGetErrorString, get_error_string),
    SYMBOL(NcclLibrary, ncclGetLastError, get_last_error),
    SYMBOL(NcclLibrary, ncclAllGather, all_gather),
    SYMBOL(NcclLibrary, ncclReduceScatter, reduce_scatter),
    SYMBOL(NcclLibrary, ncclAllReduce, all_reduce),
    SYMBOL(NcclLibrary, ncclSend, send),
    SYMBOL(NcclLibrary, ncclRecv, recv),
    SYMBOL(NcclLibrary, ncclGroupStart, group_start),
    SYMBOL(NcclLibrary, ncclGroupEnd, group_end),
    NCCL_NEWER(ncclMemAlloc, mem_alloc),
    NCCL_NEWER(ncclMemFree, mem_free),
    NCCL_NEWER(ncclCommWindowRegister, comm_window_register),
    NCCL_NEWER(ncclCommWindowDeregister, comm_window_deregister),
};

// Names that cuda.h maps to another version by macro are written out.
static const Symbol cuda_symbols[] = {
    CUDA_SYMBOL("cuInit", init),
    CUDA_SYMBOL("cuDriverGetVersion", driver_get_version),
    CUDA_SYMBOL("cuDeviceGetCount", device_get_count),
    CUDA_SYMBOL("cuDeviceGet", device_get),
    CUDA_SYMBOL("cuDevicePrimaryCtxRetain", primary_retain),
    CUDA_SYMBOL("cuDevicePrimaryCtxRelease_v2", primary_release),
    CUDA_SYMBOL("cuCtxSetCurrent", context_set),
    CUDA_SYMBOL("cuCtxGetStreamPriorityRange", priority_range),
    CUDA_SYMBOL("cuStreamCreateWithPriority", stream_create),
    CUDA_SYMBOL("cuStreamDestroy_v2", stream_destroy),
    CUDA_SYMBOL("cuStreamQuery", stream_query),
    CUDA_SYMBOL("cuStreamWriteValue32_v2", stream_write),
    CUDA_SYMBOL("cuMemAlloc_v2", mem_alloc),
    CUDA_SYMBOL("cuMemFree_v2", mem_free),
    CUDA_SYMBOL("cuMemHostAlloc", host_alloc),
    CUDA_SYMBOL("cuMemFreeHost", host_free),
    CUDA_SYMBOL("cuMemHostGetDevicePointer_v2", host_device_pointer),
    CUDA_SYMBOL("cuMemcpyAsync", copy),
    CUDA_SYMBOL("cuGetErrorString", get_error_string),
};

static Status library_load(const char *file, const char *what, const Symbol *symbols, size_t count, void *table,
                           Error *error) {
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    FAIL_IF(!handle, error, STATUS_ENVIRONMENT, "transport nccl: no %s on this machine (%s)", file, what);
    const char *lacks = symbols_find(handle, symbols, count, table);
    FAIL_IF(lacks, error, STATUS_ENVIRONMENT, "transport nccl: %s has no %s: it is too old", file, lacks);
    return STATUS_OK;
}

Status nccl_library_open(NcclLibrary *library, Error *error) {
    static const char file[] = "libnccl.so.2";
    *library = (NcclLibrary){0};
    TRY(library_load(file, "NVIDIA's NCCL: package libnccl2, or LD_LIBRARY_PATH to where it is", nccl_symbols,
                     sizeof nccl_symbols / sizeof *nccl_symbols, library, error));
    FAIL_IF(library->get_version(&library->version) != ncclSuccess, error, STATUS_ENVIRONMENT,
            "transport nccl: %s does not say its version", file);
    return nccl_check_version(library->version, error);
}

Status cuda_driver_open(CudaDriver *driver, Error *error) {
    static const char file[] = "libcuda.so.1";
    *driver = (CudaDriver){0};
    TRY(library_load(file, "the NVIDIA driver: this machine has no usable GPU", cuda_symbols,
                     sizeof cuda_symbols / sizeof *cuda_symbols, driver, error));
    const CUresult result = driver->init(0);
    if (result != CUDA_SUCCESS) {
        const char *text = NULL;
        driver->get_error_string(result, &text);
        return error_set(error, STATUS_ENVIRONMENT, "transport nccl: the NVIDIA driver does not start: %s",
                         text ? text : "no reason given");
    }
    driver->driver_get_version(&driver->version);
    return STATUS_OK;
}
