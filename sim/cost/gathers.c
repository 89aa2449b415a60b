// Gathers of weights: the bytes of a number in them, what forward shows of those behind the update, and
// copies of what was gathered.

#include "sim/cost/gathers.h"

#include <math.h>

#include "sim/cost/compute.h"
#include "sim/frameworks/pp_groups.h"

// Of a gather that forward hides: the first layer's, of 32 to 80.
static const double least_open = 0.02;

static bool gathers_layer(const Task *task) {
    return task->kind == TASK_ALL_GATHER && task->lane == LANE_AG && task->unit == UNIT_LAYER;
}

double gather_number_bytes(const StepProgram *program, const Task *task) {
    const TrainPlan *plan = &program->plan;
    const bool kept = gathers_layer(task) && plan->fp8_parameters && plan->fp8_recipe != FP8_MX;
    return !kept ? dtype_bytes(task->dtype) : plan->fp8_recipe == FP8_NVFP4 ? 9.0 / 16 : 1;
}

double gather_sent_share(const CostModel *model, const StepProgram *program, const Task *task) {
    const TrainPlan *plan = &program->plan;
    const bool one_scale = plan->fp8_recipe == FP8_TENSORWISE || plan->fp8_recipe == FP8_DELAYED;
    const bool in_fp8 = gathers_layer(task) && plan->zero == 3 && plan->precision == DTYPE_FP8 && one_scale;
    return in_fp8 && model->target->runtime.gathers_fp8 ? 1.0 / dtype_bytes(task->dtype) : 1;
}

// Apart from their layer's, which they are with ep alone.
static bool holds_experts(const StepProgram *program, const Task *task) {
    return task->unit == UNIT_EXPERTS && program->plan.mesh.size[AXIS_EP] > 1;
}

// Tokens that each number of a gathered weight meets on a rank in a micro-step, in the mean.
static double tokens_of_weight(const StepProgram *program, const Task *task) {
    const TrainPlan *plan = &program->plan;
    const double tokens = plan_local_tokens(plan);
    if (!holds_experts(program, task)) {
        return tokens;
    }
    const Mesh *mesh = &plan->mesh;
    const Experts *experts = &program->model.experts;
    return tokens / mesh->size[AXIS_TP] * plan_expert_tp(plan) * experts->active * mesh->size[AXIS_EP] / experts->count;
}

static bool gathers_beside_forward(const CostModel *model, const StepProgram *program, const Task *task) {
    return model->target->runtime.gathers_beside_forward && task->kind == TASK_ALL_GATHER &&
           task->phase == PHASE_OPTIMIZER && (task->unit == UNIT_LAYER || holds_experts(program, task)) &&
           target_reduce_overlap(program->target, &program->plan) != REDUCE_OVERLAP_OFF;  // the one needs the other
}

double gather_open_s(const CostModel *model, const StepProgram *program, const Task *task, double seconds) {
    if (!gathers_beside_forward(model, program, task)) {
        return seconds;
    }
    const TrainPlan *plan = &program->plan;
    const double weights = (double)task->payload_bytes / gather_number_bytes(program, task);
    const double micro_step_s = 2 * weights * tokens_of_weight(program, task) /
                                model->profile->accelerator.gemm[plan->precision].sustained_flop_per_s;
    const double first = fmax(0, seconds - micro_step_s);
    const int chunks = plan_chunks(plan), group = chunks > 1 ? target_pp_group(model->target, plan) : 1;
    const double later = fmax(0, seconds - group * micro_step_s);
    return fmax(least_open * seconds, later + (first - later) / chunks);
}

double gather_copies_s(const CostModel *model, const StepProgram *program, const Task *task) {
    const Target *target = model->target;
    if (!target->gathers_flat || task->kind != TASK_ALL_GATHER || task->phase != PHASE_OPTIMIZER) {
        return 0;
    }
    const Accelerator *accelerator = &model->profile->accelerator;
    const Unit *unit = &program->units[task->unit];
    const double bytes_s = stream_time(accelerator, 2.0 * (double)task->payload_bytes, 1).seconds;
    const int32_t parameters = slices_parameters(&program->slices[unit->first_slice], unit->slice_count);
    return fmax(0, target->runtime.part_copy_s * parameters * unit->shards - bytes_s);
}
