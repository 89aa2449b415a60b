// A measurement taken while others use the machine is slower than the machine; tell the user before they believe it.

#include <stdio.h>
#include <unistd.h>

#include "autotune/cli/cli.h"
#include "exec/protocol/cores.h"

static const double MOST_LOAD = 0.5;  // per core, before we add our own

void cli_warn_if_bound(const ClusterProfile *profile) {
    const int allowed = cores_allowed();
    if (profile->accelerator.device_class == DEVICE_CLASS_CPU && allowed < (int)sysconf(_SC_NPROCESSORS_ONLN) &&
        allowed < profile->node.cores) {
        fprintf(stderr,
                "ndtune: runs are bound to %d of the %.0f cores that %s predicts for: give --set node.cores=%d\n",
                allowed, profile->node.cores, profile->name, allowed);
    }
}

void cli_warn_if_busy(const char *consequence) {
    double load = 0;
    FILE *file = fopen("/proc/loadavg", "r");
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (file && fscanf(file, "%lf", &load) == 1 && load > MOST_LOAD * (double)cores) {
        fprintf(stderr, "ndtune: this machine is busy (load %.1f on %ld cores): %s\n", load, cores, consequence);
    }
    if (file) {
        fclose(file);
    }
}
