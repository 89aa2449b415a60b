// OpenBLAS chooses its kernels when it is loaded, before main runs: where the choice is worse than what the processor
// supports, the process re-executes itself with a better one in its environment.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "kernels/cpu/core_type.h"
#include "kernels/kernels.h"

static const char CORE_VARIABLE[] = "OPENBLAS_CORETYPE";     // read by OpenBLAS
static const char ASKED_VARIABLE[] = "NDTUNE_CORE_TYPE";     // a core type that is used whatever it costs
static const char BEFORE_VARIABLE[] = "NDTUNE_CORE_BEFORE";  // carries the earlier choice across the re-execution

static const char *processor_core(void) {
    Cpuid cpuid;
    cpuid_read(&cpuid);
    return core_type_of(&cpuid);
}

bool kernel_blas_is_slow(void) {
    return core_type_is_narrow(kernel_blas_name(), processor_core());
}

// core NULL: without one. If exec fails, the run is slow, not wrong.
static void begin_anew(const char *core, char **argv) {
    if (core) {
        setenv(CORE_VARIABLE, core, 1);
    } else {
        unsetenv(CORE_VARIABLE);
    }
    execv("/proc/self/exe", argv);
}

void kernel_core_settle(char **argv) {
    const char *asked = getenv(ASKED_VARIABLE), *set = getenv(CORE_VARIABLE), *best = processor_core();
    char before[64];
    if (asked && *asked) {
        if (!set || strcmp(set, asked) != 0) {
            begin_anew(asked, argv);
        }
        return;
    }
    if (!core_type_is_narrow(kernel_blas_name(), best) || (set && strcasecmp(set, best) == 0)) {
        return;
    }
    // The variable may be set for other work or another machine: OpenBLAS' own choice is tried first.
    snprintf(before, sizeof before, "%s%s", set ? "OPENBLAS_CORETYPE=" : "", set ? set : kernel_blas_name());
    setenv(BEFORE_VARIABLE, before, 0);
    begin_anew(set ? NULL : best, argv);
}

bool kernel_core_words(char *out, size_t out_bytes) {
    const char *before = getenv(BEFORE_VARIABLE), *name = kernel_blas_name();
    if (kernel_blas_is_slow()) {
        snprintf(out, out_bytes, "OpenBLAS runs its kernels for %s, which are narrower than this processor's %s%s",
                 name, processor_core(), getenv(ASKED_VARIABLE) ? ": NDTUNE_CORE_TYPE asks for them" : "");
    } else if (before && strchr(before, '=')) {
        snprintf(out, out_bytes,
                 "%s is narrower than this processor and was left out: OpenBLAS runs its kernels for %s "
                 "(NDTUNE_CORE_TYPE=%s keeps them)",
                 before, name, strchr(before, '=') + 1);
    } else if (before) {
        snprintf(out, out_bytes, "OpenBLAS took this processor for %s: it runs its kernels for %s here", before, name);
    }
    return kernel_blas_is_slow() || before;
}
