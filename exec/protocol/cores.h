// The cores and memory available to ranks of this machine.

#pragma once

#include <stdint.h>

// Those this process may use (taskset, a container's or Slurm's cpuset), else those present; at least 1.
int cores_allowed(void);

int64_t memory_available_bytes(void);  // available to new processes; -1 = unknown
