// The devices of this build. A missing one is an error with a message, never replaced by another.

#include "exec/device/device.h"

#include <string.h>

#include "exec/device/cpu.h"

#if NDTUNE_HAVE_CUDA
extern const DeviceTable device_cuda;  // cuda.h holds what only its own files need
#endif

static const DeviceTable *const devices[] = {
    &device_cpu,
#if NDTUNE_HAVE_CUDA
    &device_cuda,
#endif
};

const DeviceTable *device_find(const char *name, Error *error) {
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (strcmp(devices[i]->name, name) == 0) {
            return devices[i];
        }
    }
    if (strcmp(name, "cuda") == 0) {
        error_set(error, STATUS_ENVIRONMENT, "device cuda is not part of this build; it runs cpu");
    } else {
        error_set(error, STATUS_USAGE, "no device '%s'; there are cpu and cuda", name);
    }
    return NULL;
}
