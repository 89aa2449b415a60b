// The version recorded with measurements: derived from the sources of the executor, its kernels and what it interprets.

#include "exec/launch/executor_version.h"

#include "exec/launch/launch.h"

const char *executor_version(void) {
    return EXECUTOR_VERSION;
}
