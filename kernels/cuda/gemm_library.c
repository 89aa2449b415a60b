// cuBLASLt, opened at run time: half a gigabyte that a worker without a GPU does not need. Its code stays loaded after
// it is closed: its handlers for the end of a thread or of the process are in it.

#define _GNU_SOURCE  // dlfcn.h under strict C17

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/gemm.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

typedef struct Wanted {
    const char *name;
    void *place;  // where to store the pointer
} Wanted;

bool gemm_library_open(GemmLibrary *library, char why[GEMM_WHY_BYTES]) {
    static const char name[] = "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR);
    const Wanted wanted[] = {
        {"cublasLtGetVersion", &library->version},
        {"cublasLtGetStatusString", &library->status_words},
        {"cublasLtCreate", &library->create},
        {"cublasLtDestroy", &library->destroy},
        {"cublasLtMatmulDescCreate", &library->describe},
        {"cublasLtMatmulDescDestroy", &library->release},
        {"cublasLtMatmulDescSetAttribute", &library->set},
        {"cublasLtMatrixLayoutCreate", &library->layout},
        {"cublasLtMatrixLayoutSetAttribute", &library->layout_set},
        {"cublasLtMatrixLayoutDestroy", &library->layout_release},
        {"cublasLtMatmulPreferenceCreate", &library->prefer},
        {"cublasLtMatmulPreferenceDestroy", &library->prefer_release},
        {"cublasLtMatmulPreferenceSetAttribute", &library->prefer_set},
        {"cublasLtMatmulAlgoGetHeuristic", &library->candidates},
        {"cublasLtMatmulAlgoCheck", &library->check},
        {"cublasLtMatmul", &library->multiply},
    };
    *library = (GemmLibrary){.file = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!library->file) {
        snprintf(why, GEMM_WHY_BYTES, "%s cannot be opened: %s", name, dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *found = dlsym(library->file, wanted[i].name);
        if (!found) {
            snprintf(why, GEMM_WHY_BYTES, "%s has no %s", name, wanted[i].name);
            gemm_library_close(library);
            return false;
        }
        memcpy(wanted[i].place, &found, sizeof found);  // ISO C has no cast from object to function pointer
    }
    return true;
}

void gemm_library_close(GemmLibrary *library) {
    if (library->file) {
        dlclose(library->file);
    }
    *library = (GemmLibrary){0};
}
