// cuBLASLt, opened at run time: half a gigabyte that a worker without a GPU does not need. Its code stays loaded after
// it is closed: its handlers for the end of a thread or of the process are in it.

#define _GNU_SOURCE  // dlfcn.h under strict C17

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#include "kernels/cuda/gemm.h"
#include "kernels/symbols.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static const Symbol functions[] = {
    SYMBOL(GemmLibrary, cublasLtGetVersion, version),
    SYMBOL(GemmLibrary, cublasLtGetStatusString, status_words),
    SYMBOL(GemmLibrary, cublasLtCreate, create),
    SYMBOL(GemmLibrary, cublasLtDestroy, destroy),
    SYMBOL(GemmLibrary, cublasLtMatmulDescCreate, describe),
    SYMBOL(GemmLibrary, cublasLtMatmulDescDestroy, release),
    SYMBOL(GemmLibrary, cublasLtMatmulDescSetAttribute, set),
    SYMBOL(GemmLibrary, cublasLtMatrixLayoutCreate, layout),
    SYMBOL(GemmLibrary, cublasLtMatrixLayoutSetAttribute, layout_set),
    SYMBOL(GemmLibrary, cublasLtMatrixLayoutDestroy, layout_release),
    SYMBOL(GemmLibrary, cublasLtMatmulPreferenceCreate, prefer),
    SYMBOL(GemmLibrary, cublasLtMatmulPreferenceDestroy, prefer_release),
    SYMBOL(GemmLibrary, cublasLtMatmulPreferenceSetAttribute, prefer_set),
    SYMBOL(GemmLibrary, cublasLtMatmulAlgoGetHeuristic, candidates),
    SYMBOL(GemmLibrary, cublasLtMatmulAlgoCheck, check),
    SYMBOL(GemmLibrary, cublasLtMatmul, multiply),
};

bool gemm_library_open(GemmLibrary *library, char why[GEMM_WHY_BYTES]) {
    static const char name[] = "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR);
    *library = (GemmLibrary){.file = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!library->file) {
        snprintf(why, GEMM_WHY_BYTES, "%s cannot be opened: %s", name, dlerror());
        return false;
    }
    const char *lacks = symbols_find(library->file, functions, sizeof functions / sizeof *functions, library);
    if (lacks) {
        snprintf(why, GEMM_WHY_BYTES, "%s has no %s", name, lacks);
        gemm_library_close(library);
        return false;
    }
    return true;
}

void gemm_library_close(GemmLibrary *library) {
    if (library->file) {
        dlclose(library->file);
    }
    *library = (GemmLibrary){0};
}
