// cuDNN is opened at run time, so that programs start on machines without it: one table binds its functions. Only major
// version 9 is supported, whose interface the build's header cudnn.h describes. Its code stays loaded after it is
// closed: its handlers for the end of a thread or of the process are in it.

#include "kernels/cuda/cudnn_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

// Older versions fail in backward passes over key counts that are not multiples of 128, or have other bugs that
// NVIDIA's cudnn-frontend works around (its node of scaled dot product attention, 2026-05).
enum { OLDEST = 91600 };

static const struct {
    const char *name;
    size_t at;
} functions[] = {
    {"cudnnCreate", offsetof(CudnnLibrary, create)},
    {"cudnnDestroy", offsetof(CudnnLibrary, destroy)},
    {"cudnnSetStream", offsetof(CudnnLibrary, set_stream)},
    {"cudnnGetVersion", offsetof(CudnnLibrary, version)},
    {"cudnnGetErrorString", offsetof(CudnnLibrary, error_name)},
    {"cudnnGetLastErrorString", offsetof(CudnnLibrary, last_error)},
    {"cudnnBackendCreateDescriptor", offsetof(CudnnLibrary, describe)},
    {"cudnnBackendDestroyDescriptor", offsetof(CudnnLibrary, release)},
    {"cudnnBackendSetAttribute", offsetof(CudnnLibrary, set)},
    {"cudnnBackendGetAttribute", offsetof(CudnnLibrary, get)},
    {"cudnnBackendFinalize", offsetof(CudnnLibrary, finalize)},
    {"cudnnBackendExecute", offsetof(CudnnLibrary, execute)},
};

bool cudnn_library_open(CudnnLibrary *library, char why[CUDNN_WHY_BYTES]) {
    *library = (CudnnLibrary){.file = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!library->file) {
        snprintf(why, CUDNN_WHY_BYTES, "cuDNN could not be opened: %s", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library->file, functions[i].name);
        if (!function) {
            snprintf(why, CUDNN_WHY_BYTES, "libcudnn.so.9 has no %s: version 9.16 or newer is needed",
                     functions[i].name);
            cudnn_library_close(library);
            return false;
        }
        memcpy((char *)library + functions[i].at, &function, sizeof function);  // POSIX: same size as a pointer
    }
    if (library->version() < OLDEST) {
        snprintf(why, CUDNN_WHY_BYTES, "libcudnn.so.9 is version %zu: %d or newer is needed", library->version(),
                 (int)OLDEST);
        cudnn_library_close(library);
        return false;
    }
    return true;
}

void cudnn_library_close(CudnnLibrary *library) {
    if (library->file) {
        dlclose(library->file);
    }
    *library = (CudnnLibrary){0};
}
