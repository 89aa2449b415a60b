// The cores that ranks of this machine may use.

#pragma once

// Those that the system lets this process use (taskset, a container's or Slurm's cpuset), else those that are there; at
// least 1.
int cores_allowed(void);
