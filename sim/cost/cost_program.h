// Inside sim/cost: pricing against a profile that already contains the other ranks on the same cores.

#pragma once

#include "sim/cost/cost.h"

// The profile as a rank of this program sees it.
ClusterProfile program_profile(const CostModel *model, const StepProgram *program);

// cost_task with model->profile as program_profile gave it.
TaskCost task_cost_shared(const CostModel *model, const StepProgram *program, const Task *task);

// Bytes that the target's kernels move for an update of parameters (TASK_ADAMW, TASK_UPDATE).
double cost_update_bytes(const Target *target, const StepProgram *program, const Task *task);

// Host time to issue it.
double task_issue_s(const CostModel *model, const StepProgram *program, const Task *task);
