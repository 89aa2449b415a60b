// The parts of the NCCL stand-in that belong to no communicator: memory, version, messages.

#include <stdlib.h>

#include <nccl.h>

ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
    *memory = aligned_alloc(NCCL_WIN_REQUIRED_ALIGNMENT, (bytes + NCCL_WIN_REQUIRED_ALIGNMENT - 1) /
                                                             NCCL_WIN_REQUIRED_ALIGNMENT * NCCL_WIN_REQUIRED_ALIGNMENT);
    return *memory ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclMemFree(void *memory) {
    free(memory);
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version) {
    const char *wanted = getenv("NDTUNE_NCCL_VERSION");
    *version = wanted ? (int)strtol(wanted, NULL, 10) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    static const char *const words[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error"};
    return result <= ncclRemoteError ? words[result] : "in progress";
}
