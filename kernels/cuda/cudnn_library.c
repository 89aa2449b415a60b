// cuDNN is opened at run time, so that programs start on machines without it: one table binds its functions. Only major
// version 9 is supported, whose interface the build's header cudnn.h describes. Its code stays loaded after it is
// closed: its handlers for the end of a thread or of the process are in it.

#include "kernels/cuda/cudnn_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#include "kernels/symbols.h"

// Older versions fail in backward passes over key counts that are not multiples of 128, or have other bugs that
// NVIDIA's cudnn-frontend works around (its node of scaled dot product attention, 2026-05).
enum { OLDEST = 91600 };

static const Symbol functions[] = {
    SYMBOL(CudnnLibrary, cudnnCreate, create),
    SYMBOL(CudnnLibrary, cudnnDestroy, destroy),
    SYMBOL(CudnnLibrary, cudnnSetStream, set_stream),
    SYMBOL(CudnnLibrary, cudnnGetVersion, version),
    SYMBOL(CudnnLibrary, cudnnGetErrorString, error_name),
    SYMBOL(CudnnLibrary, cudnnGetLastErrorString, last_error),
    SYMBOL(CudnnLibrary, cudnnBackendCreateDescriptor, describe),
    SYMBOL(CudnnLibrary, cudnnBackendDestroyDescriptor, release),
    SYMBOL(CudnnLibrary, cudnnBackendSetAttribute, set),
    SYMBOL(CudnnLibrary, cudnnBackendGetAttribute, get),
    SYMBOL(CudnnLibrary, cudnnBackendFinalize, finalize),
    SYMBOL(CudnnLibrary, cudnnBackendExecute, execute),
};

bool cudnn_library_open(CudnnLibrary *library, char why[CUDNN_WHY_BYTES]) {
    *library = (CudnnLibrary){.file = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!library->file) {
        snprintf(why, CUDNN_WHY_BYTES, "cuDNN could not be opened: %s", dlerror());
        return false;
    }
    const char *lacks = symbols_find(library->file, functions, sizeof functions / sizeof *functions, library);
    if (lacks) {
        snprintf(why, CUDNN_WHY_BYTES, "libcudnn.so.9 has no %s: version 9.16 or newer is needed", lacks);
        cudnn_library_close(library);
        return false;
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
