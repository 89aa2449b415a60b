// What FSDP's hooks on a unit cost the host in Python: it gathers the parameters and puts them in place before forward
// and backward, lets go of them behind, and reduces gradients when the last one is there. Measured by training layers
// of 5 and of 9 parameters on PyTorch 2.6 with a process group that does nothing, one thread's time on module_host.c's
// EPYC and on its scale, least of 150 steps, inner layers (torch/distributed/fsdp/_fully_shard, _fsdp_state.py and
// _fsdp_param_group.py): 453 and 564 us forward, of which 88 and 106 behind it, 274 and 362 before backward, 300 and
// 403 behind it, the mean of reductions in bf16 and fp32 (292, 308; 374, 433). FSDP 1 (_runtime_utils.py), units of one
// flat parameter of one tensor: 242, 173 and 139. Not counted: views of further tensors of a flat parameter; hooks that
// a recomputed forward runs again; what CUDA's streams, events and launches add beyond a collective's operations. Steps
// of small models double by it, as two logs of a model of six layers have them (tests/accuracy/holdout/RESULTS.md).

#include "sim/cost/compute.h"

typedef struct HookTime {
    double unit_us, parameter_us;
} HookTime;

typedef struct HookTimes {
    HookTime forward, before_backward, behind_backward;
} HookTimes;

static const HookTimes times[SHARD_HOOKS_COUNT] = {
    [SHARD_HOOKS_BY_PARAMETER] = {{314, 27.8}, {164, 22}, {171, 25.8}},
    [SHARD_HOOKS_FLAT] = {{242, 0}, {173, 0}, {139, 0}},
};

static bool is_of_shards(const TrainPlan *plan, const Task *task) {
    return plan->zero == 3 && task->unit >= 0 && (task->phase == PHASE_FORWARD || task->phase == PHASE_BACKWARD);
}

double shard_host_s(const CostModel *model, const StepProgram *program, const Task *task) {
    const TargetRuntime *runtime = &model->target->runtime;
    if (!is_of_shards(&program->plan, task)) {
        return 0;
    }
    const HookTimes *row = &times[runtime->shard_hooks];
    const HookTime *hook = task->kind == TASK_REDUCE_SCATTER ? &row->behind_backward
                           : task->kind != TASK_ALL_GATHER   ? NULL
                           : task->phase == PHASE_FORWARD    ? &row->forward
                                                             : &row->before_backward;
    const double us = hook ? hook->unit_us + hook->parameter_us * program->units[task->unit].slice_count : 0;
    return us * 1e-6 * TIMED_PYTHON * runtime_host_pace(runtime);
}
