// A CUDA driver without a GPU, for tests only, so that cuDNN can make plans for a described device: all functions of
// the driver's interface fail as in the toolkit's stub (CMakeLists.txt generates them), except those that load compiled
// code, which is accepted and never run. Loaded as libcuda.so.1 before cuDNN looks for it.

#include <stddef.h>

static char something[4096];

#define ACCEPTS(name)                                                                                                  \
    int name(void);                                                                                                    \
    int name(void) {                                                                                                   \
        return 0;                                                                                                      \
    }
#define HANDS_OUT(name)                                                                                                \
    int name(void **made);                                                                                             \
    int name(void **made) {                                                                                            \
        *made = something;                                                                                             \
        return 0;                                                                                                      \
    }

HANDS_OUT(cuLibraryLoadData)
HANDS_OUT(cuLibraryGetKernel)
HANDS_OUT(cuLibraryGetModule)
HANDS_OUT(cuKernelGetFunction)
HANDS_OUT(cuModuleGetFunction)
ACCEPTS(cuLibraryUnload)
ACCEPTS(cuKernelSetAttribute)
ACCEPTS(cuFuncSetAttribute)
