// What FSDP's hooks on a unit cost the host in Python: it gathers the parameters and puts them in place before forward
// and backward, lets go of them behind, and reduces gradients when the last one is there. Measured by training layers
// of 5 and of 9 parameters on PyTorch 2.6 with a process group that does nothing, one thread's time on module_host.c's
// EPYC and on its scale, least of 150 steps, inner layers (torch/distributed/fsdp/_fully_shard, _fsdp_state.py and
// _fsdp_param_group.py): 453 and 564 us forward, of which 88 and 106 behind it, 274 and 362 before backward, 300 and
// 403 behind it, the mean of reductions in bf16 and fp32 (292, 308; 374, 433). FSDP 1 (_runtime_utils.py), units of one
// flat parameter of one tensor: 242, 173 and 139. In these are the group's own gather, 13 us, and reduction, 5, which
// are taken off: a collective's call is operations of its own (host.c). Megatron-core's own (d98e8a64d,
// distributed/fsdp/src/megatron_fsdp), layers of 6, 12 and 14 parameters: a unit's buffers are fetched and let go of
// parameter by parameter, a hook of each gradient copies it and looks whether the unit's are there, and experts of ep,
// one more buffer in the same hooks, add nothing but their parameters. Not counted: a collective's call and a
// gradient's copy; views of further tensors of a flat parameter; hooks that a recomputed forward runs again; what
// CUDA's streams, events and launches add beyond a collective's operations. Steps of small models double by it; two
// logs of a model of six layers lie on both sides of that (tests/accuracy/holdout/RESULTS.md).

#include "sim/cost/compute.h"

typedef struct HookTime {
    double unit_us, parameter_us;
} HookTime;

typedef struct HookTimes {
    HookTime forward, before_backward, behind_backward;
} HookTimes;

static const HookTimes times[SHARD_HOOKS_COUNT] = {
    [SHARD_HOOKS_BY_PARAMETER] = {{301, 27.8}, {151, 22}, {166, 25.8}},
    [SHARD_HOOKS_FLAT] = {{229, 0}, {160, 0}, {134, 0}},
    [SHARD_HOOKS_BY_GRADIENT] = {{245, 11}, {69, 4.2}, {351, 27.1}},
};

static bool is_of_shards(const TrainPlan *plan, const Task *task) {
    const bool runs = task->phase == PHASE_FORWARD || task->phase == PHASE_BACKWARD || task->phase == PHASE_REDUCE;
    return plan->zero == 3 && task->unit >= 0 && runs;
}

// Experts of ep are in hooks of their own, or in those of their layer.
static double hook_us(const StepProgram *program, const Task *task, ShardHooks hooks, const HookTime *hook) {
    const Unit *unit = &program->units[task->unit];
    const bool inside = hooks == SHARD_HOOKS_BY_GRADIENT && task->unit == UNIT_EXPERTS;
    const int32_t parameters = slices_parameters(&program->slices[unit->first_slice], unit->slice_count);
    return (inside ? 0 : hook->unit_us) + hook->parameter_us * parameters;
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
    const double us = hook ? hook_us(program, task, runtime->shard_hooks, hook) : 0;
    return us * 1e-6 * TIMED_PYTHON * runtime_host_pace(runtime);
}
