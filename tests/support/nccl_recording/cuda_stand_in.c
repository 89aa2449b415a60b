// libcuda.so.1 for tests (stand_in.h): a stream is a thread that processes its queue in order; device memory is host
// memory. A program that brings the stand-in runtime (tests/support/cuda_host) passes streams of that one as well: work
// goes there as host functions. That runtime runs work only when asked, and a collective waits for other processes, so
// some threads keep asking as long as our work is pending.

#define _GNU_SOURCE  // RTLD_DEFAULT

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/nccl_recording/stand_in.h"

typedef struct Job {
    void (*run)(void *context);
    void *context;
    struct Job *next;
} Job;

struct CUstream_st {
    struct CUstream_st *older;  // among those created here
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    Job *first, *last;
    int pending;  // in the queue or running
    int closing;
};

static void *stream_main(void *argument) {
    CUstream stream = argument;
    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        while (!stream->first && !stream->closing) {
            pthread_cond_wait(&stream->changed, &stream->mutex);
        }
        Job *job = stream->first;
        if (!job) {
            break;
        }
        stream->first = job->next;
        pthread_mutex_unlock(&stream->mutex);
        job->run(job->context);
        free(job);
        pthread_mutex_lock(&stream->mutex);
        stream->pending--;
    }
    pthread_mutex_unlock(&stream->mutex);
    return NULL;
}

// ---------------------------------------------------------------------------------------------- another's streams

enum { ASKERS = 8 };  // more than the lanes of a program that wait for others at a time
typedef void HostFunction(void *context);
typedef int HostPush(CUstream stream, HostFunction *run, void *context);
typedef int HostStreamMake(CUstream *stream, unsigned flags);
typedef int HostStreamQuery(CUstream stream);

static struct {
    HostPush *push;
    HostStreamMake *make;
    HostStreamQuery *query;
    atomic_int waiting;  // pieces of work there that have not run
} host;

static void host_find(void) {
    const struct {
        const char *name;
        void *at;
    } symbols[] = {{"cudaLaunchHostFunc", &host.push},
                   {"cudaStreamCreateWithFlags", &host.make},
                   {"cudaStreamQuery", &host.query}};
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(RTLD_DEFAULT, symbols[i].name);
        memcpy(symbols[i].at, &found, sizeof found);
    }
}

static void nothing(void *context) {
    (void)context;
}

// Querying its own stream, which is never empty, runs one piece of any stream's work.
static void *asker_main(void *context) {
    CUstream own;
    host.make(&own, 0);
    for (;;) {
        while (atomic_load(&host.waiting) > 0) {
            if (host.query(own) == 0) {
                host.push(own, nothing, context);
                nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
            }
        }
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return NULL;
}

static void host_begin(void) {
    host_find();
    for (int i = 0; host.push && i < ASKERS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, asker_main, NULL);
        pthread_detach(thread);
    }
}

static void host_run(void *context) {
    Job *job = context;
    job->run(job->context);
    free(job);
    atomic_fetch_sub(&host.waiting, 1);
}

// ---------------------------------------------------------------------------------------------- streams

static pthread_mutex_t made_mutex = PTHREAD_MUTEX_INITIALIZER;
static CUstream newest;

static int is_ours(CUstream stream) {
    pthread_mutex_lock(&made_mutex);
    CUstream at = newest;
    while (at && at != stream) {
        at = at->older;
    }
    pthread_mutex_unlock(&made_mutex);
    return at != NULL;
}

void stand_in_push(CUstream stream, void (*run)(void *context), void *context) {
    Job *job = malloc(sizeof *job);
    *job = (Job){.run = run, .context = context};
    if (!is_ours(stream)) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, host_begin);
        atomic_fetch_add(&host.waiting, 1);
        host.push(stream, host_run, job);
        return;
    }
    pthread_mutex_lock(&stream->mutex);
    if (stream->first) {
        stream->last->next = job;
    } else {
        stream->first = job;
    }
    stream->last = job;
    stream->pending++;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    (void)flags;
    (void)priority;
    *stream = calloc(1, sizeof **stream);
    pthread_mutex_init(&(*stream)->mutex, NULL);
    pthread_cond_init(&(*stream)->changed, NULL);
    pthread_mutex_lock(&made_mutex);
    (*stream)->older = newest;
    newest = *stream;
    pthread_mutex_unlock(&made_mutex);
    return pthread_create(&(*stream)->thread, NULL, stream_main, *stream) == 0 ? CUDA_SUCCESS
                                                                               : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamDestroy(CUstream stream) {
    pthread_mutex_lock(&stream->mutex);
    stream->closing = 1;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&made_mutex);
    CUstream *at = &newest;
    while (*at != stream) {
        at = &(*at)->older;
    }
    *at = stream->older;
    pthread_mutex_unlock(&made_mutex);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->mutex);
    free(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
    pthread_mutex_lock(&stream->mutex);
    const int pending = stream->pending;
    pthread_mutex_unlock(&stream->mutex);
    return pending > 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

// ---------------------------------------------------------------------------------------------- what streams run

typedef struct Write {
    atomic_uint *at;
    unsigned value;
} Write;

static void write_run(void *context) {
    Write *write = context;
    atomic_store(write->at, write->value);
    free(write);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
    (void)flags;
    Write *write = malloc(sizeof *write);
    *write = (Write){(atomic_uint *)(uintptr_t)at, value};
    stand_in_push(stream, write_run, write);
    return CUDA_SUCCESS;
}

typedef struct Copy {
    void *to;
    const void *from;
    size_t bytes;
} Copy;

static void copy_run(void *context) {
    Copy *copy = context;
    memmove(copy->to, copy->from, copy->bytes);
    free(copy);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    Copy *copy = malloc(sizeof *copy);
    *copy = (Copy){(void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes};
    stand_in_push(stream, copy_run, copy);
    return CUDA_SUCCESS;
}

// ---------------------------------------------------------------------------------------------- memory

enum { PAGE = 4096, POISON = 0xA5 };

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    const size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
    *memory = aligned_alloc(PAGE, room);
    if (*memory) {
        memset(*memory, POISON, room);  // unwritten memory is NaN
    }
    return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *memory) {
    free(memory);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *at, void *memory, unsigned flags) {
    (void)flags;
    *at = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes) {
    void *memory = NULL;
    const CUresult result = cuMemHostAlloc(&memory, bytes, 0);
    *at = (CUdeviceptr)(uintptr_t)memory;
    return result;
}

CUresult cuMemFree(CUdeviceptr at) {
    free((void *)(uintptr_t)at);
    return CUDA_SUCCESS;
}

// ---------------------------------------------------------------------------------------------- the machine

CUresult cuInit(unsigned flags) {
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDriverGetVersion(int *version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    const char *wanted = getenv("NDTUNE_STAND_IN_GPUS");
    *count = wanted ? (int)strtol(wanted, NULL, 10) : 8;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    int count;
    cuDeviceGetCount(&count);
    *device = ordinal;
    return ordinal >= 0 && ordinal < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    static int contexts[64];
    *context = (CUcontext)(void *)&contexts[device % 64];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    (void)device;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult result, const char **text) {
    *text = result == CUDA_SUCCESS ? "no error" : "an error of the stand-in";
    return CUDA_SUCCESS;
}
