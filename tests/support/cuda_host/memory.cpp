// Memory and device of the stand-in. Device memory is the machine's: it begins as NaN, and what is written behind an
// allocation is seen when it is freed (the address sanitizer sees it at once).

#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cuda/launch_shape.h"
#include "tests/support/cuda_host/cuda_host.h"
#include "tests/support/cuda_host/grid.h"
#include "tests/support/cuda_host/queue.h"

#if defined(__SANITIZE_ADDRESS__)
enum { GUARD_BYTES = 0 };
#else
enum { GUARD_BYTES = 256 };
#endif
static const unsigned char GUARD = 0xA5;
static const size_t TOTAL_BYTES = (size_t)8 << 30;
static const int USUAL_PROCESSORS = 132;  // an H200's
static int processors = USUAL_PROCESSORS;

static thread_local cudaError_t last_error = cudaSuccess;

void cuda_host_processors(int count) {
    processors = count;
}

cudaError_t host_error(cudaError_t error) {
    last_error = error;
    return error;
}

cudaError_t cudaGetLastError(void) {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) {
    return last_error;
}

struct ErrorWords {
    cudaError_t error;
    const char *name, *words;
};
static const ErrorWords error_words[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
};

const char *cudaGetErrorString(cudaError_t error) {
    for (const ErrorWords &row : error_words) {
        if (row.error == error) {
            return row.words;
        }
    }
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error) {
    for (const ErrorWords &row : error_words) {
        if (row.error == error) {
            return row.name;
        }
    }
    return "unrecognized error code";
}

// ---- device: one, with the numbers of an H200 where they matter to launches

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : host_error(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    if (device != 0) {
        return host_error(cudaErrorInvalidDevice);
    }
    *properties = cudaDeviceProp{};
    strcpy(properties->name, "stand-in of the tests");
    properties->totalGlobalMem = TOTAL_BYTES;
    properties->sharedMemPerBlockOptin = 227 * 1024;
    properties->multiProcessorCount = processors;
    properties->major = 9;
    properties->l2CacheSize =
        (int)((int64_t)(60 << 20) * processors * processors / (USUAL_PROCESSORS * USUAL_PROCESSORS));
    properties->memoryBusWidth = 6144;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    const std::map<cudaDeviceAttr, int> values = {{cudaDevAttrMaxThreadsPerBlock, 1024},
                                                  {cudaDevAttrMaxSharedMemoryPerBlock, 48 * 1024},
                                                  {cudaDevAttrMultiProcessorCount, processors},
                                                  {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
                                                  {cudaDevAttrComputeCapabilityMajor, 9},
                                                  {cudaDevAttrComputeCapabilityMinor, 0},
                                                  {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 * 1024}};
    const auto found = values.find(attribute);
    if (device != 0 || found == values.end()) {
        return host_error(device != 0 ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    }
    *value = found->second;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

// ---- memory

struct Allocation {
    size_t bytes;
    bool on_device;
    char *pages;  // guarded: those that hold it, and one behind that nobody may touch; else NULL
    size_t page_bytes;
};
static std::map<void *, Allocation> &allocations() {
    static std::map<void *, Allocation> *all = new std::map<void *, Allocation>();
    return *all;
}

void cuda_host_guard(void) {
    HostLock lock(host_runtime().mutex);
    host_runtime().guarded = true;
}

static void protect_all(int protection) {
    for (const auto &[at, allocation] : allocations()) {
        if (allocation.pages && mprotect(allocation.pages, allocation.page_bytes, protection) != 0) {
            host_fail("device memory cannot be protected");
        }
    }
}

void host_memory_open() {
    if (host_runtime().working++ == 0) {
        protect_all(PROT_READ | PROT_WRITE);
    }
}

void host_memory_close() {
    if (--host_runtime().working == 0) {
        protect_all(PROT_NONE);
    }
}

// Ends where its last page does, but for what 256-byte alignment leaves.
static cudaError_t allocate_guarded(void **at, size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
    void *pages = mmap(nullptr, inside + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes > TOTAL_BYTES || pages == MAP_FAILED || mprotect(pages, inside, PROT_READ | PROT_WRITE) != 0) {
        return host_error(cudaErrorMemoryAllocation);
    }
#ifdef MADV_HUGEPAGE
    madvise(pages, inside, MADV_HUGEPAGE);  // a change of protection costs one entry for each page
#endif
    memset(pages, 0xFF, inside);
    *at = static_cast<char *>(pages) + (inside - bytes) / 256 * 256;
    allocations()[*at] = Allocation{bytes, true, static_cast<char *>(pages), inside};
    if (host_runtime().working == 0) {
        mprotect(pages, inside, PROT_NONE);
    }
    return cudaSuccess;
}

static cudaError_t allocate(void **at, size_t bytes, bool on_device) {
    HostLock lock(host_runtime().mutex);
    *at = nullptr;
    if (on_device && bytes > 0 && host_runtime().guarded) {
        return allocate_guarded(at, bytes);
    }
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (bytes > TOTAL_BYTES || posix_memalign(at, 256, bytes + GUARD_BYTES) != 0) {
        return host_error(cudaErrorMemoryAllocation);
    }
    memset(*at, 0xFF, bytes);
    memset(static_cast<char *>(*at) + bytes, GUARD, GUARD_BYTES);
    allocations()[*at] = Allocation{bytes, on_device, nullptr, 0};
    return cudaSuccess;
}

static cudaError_t release(void *at, bool on_device) {
    if (!at) {
        return cudaSuccess;
    }
    const cudaError_t error = cudaDeviceSynchronize();
    HostLock lock(host_runtime().mutex);
    const auto found = allocations().find(at);
    if (found == allocations().end() || found->second.on_device != on_device) {
        return host_error(cudaErrorInvalidValue);
    }
    if (found->second.pages) {
        munmap(found->second.pages, found->second.page_bytes + (size_t)sysconf(_SC_PAGESIZE));
        allocations().erase(found);
        return error;
    }
    for (int i = 0; i < GUARD_BYTES; i++) {
        if (static_cast<unsigned char *>(at)[found->second.bytes + (size_t)i] != GUARD) {
            host_fail("byte %d behind an allocation of %zu bytes was written", i, found->second.bytes);
        }
    }
    allocations().erase(found);
    free(at);
    return error;
}

cudaError_t cudaMalloc(void **at, size_t bytes) {
    return allocate(at, bytes, true);
}

cudaError_t cudaFree(void *at) {
    return release(at, true);
}

cudaError_t cudaMallocHost(void **at, size_t bytes) {
    return allocate(at, bytes, false);
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned int) {
    return allocate(at, bytes, false);
}

cudaError_t cudaFreeHost(void *at) {
    return release(at, false);
}

cudaError_t cudaHostRegister(void *, size_t, unsigned int) {
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *) {
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    HostLock lock(host_runtime().mutex);
    size_t used = 0;
    for (const auto &[at, allocation] : allocations()) {
        used += allocation.on_device ? allocation.bytes : 0;
    }
    *total_bytes = TOTAL_BYTES;
    *free_bytes = used < TOTAL_BYTES ? TOTAL_BYTES - used : 0;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind, cudaStream_t stream) {
    HostLock lock(host_runtime().mutex);
    return host_submit(stream, [to, from, bytes] { memmove(to, from, bytes); });
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind, cudaStream_t stream) {
    HostLock lock(host_runtime().mutex);
    return host_submit(stream, [=] {
        for (size_t row = 0; row < height; row++) {
            memmove(static_cast<char *>(to) + row * to_pitch, static_cast<const char *>(from) + row * from_pitch,
                    width);
        }
    });
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream) {
    HostLock lock(host_runtime().mutex);
    return host_submit(stream, [=] { memset(at, value, bytes); });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}

cudaError_t cudaMemset(void *at, int value, size_t bytes) {
    const cudaError_t error = cudaMemsetAsync(at, value, bytes, nullptr);
    return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}
