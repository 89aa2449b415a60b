// bf16 support of the CPU device: prepared matrix products, and space in which other tasks find their operands as fp32.

#pragma once

#include "exec/device/cpu.h"
#include "exec/device/placement.h"

typedef struct CpuHalf CpuHalf;

// Whether any buffer that tasks compute in is bf16.
bool cpu_half_wanted(const StepProgram *program);
// Returns an error with a message where this build, processor or machine does not compute in bf16.
Status cpu_half_open(Placement *placement, Arena *arena, CpuHalf **half, Error *error);
void cpu_half_close(CpuHalf *half);
void cpu_half_run(CpuHalf *half, TaskCall *call, CpuTask *task);
