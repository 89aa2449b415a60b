// The cores and the memory that ranks of this machine may use.

#pragma once

#include <stdint.h>

// Those that the system lets this process use (taskset, a container's or Slurm's cpuset), else those that are there; at
// least 1.
int cores_allowed(void);

int64_t memory_available_bytes(void);  // for new processes; -1 = unknown
