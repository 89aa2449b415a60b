// Products of a task, by its shape and what its target multiplies: exact sums, scales per row or block, casts and
// biases beside them. Formula of one product: compute_gemm.c.

#include "sim/cost/products.h"

#include <math.h>

// The executor on processors multiplies in bf16; its other kernels compute in fp32, and experts' products too
// (exec/device/cpu_half.c).
static bool is_widened(const Accelerator *accelerator, const Task *task) {
    return accelerator->device_class == DEVICE_CLASS_CPU && task->dtype == DTYPE_BF16 && task->kind != TASK_GEMM &&
           cost_supports(accelerator, DTYPE_FP32);
}

Dtype cost_computed_dtype(const Accelerator *accelerator, const Task *task) {
    return is_widened(accelerator, task) ? DTYPE_FP32 : task->dtype;
}

static bool has_block_scales(const StepProgram *program, const Task *task) {
    return task->dtype == DTYPE_FP8 && program->plan.fp8_recipe == FP8_MX;
}

// PyTorch alone has scales per row.
static double row_share(const Accelerator *accelerator, const StepProgram *program, const Task *task) {
    const bool rows = program->plan.fp8_recipe == FP8_ROWWISE || program->plan.fp8_recipe == FP8_ROWWISE_BF16;
    return rows && task->dtype == DTYPE_FP8 && accelerator->fp8_row_share > 0 ? accelerator->fp8_row_share : 1;
}

// torchao (config.py: use_fast_accum) and Transformer Engine (use_split_accumulator) alike; only forward reads weights
// as they lie. With a scale per block forward sums exactly too: all is in the rate of DTYPE_FP8_BLOCK.
static double fp8_share(const Accelerator *accelerator, const StepProgram *program, const Task *task) {
    const double newer = program->target->runtime.cuda_13 ? accelerator->fp8_exact_share_cuda_13 : 0;
    const bool exact = task->dtype == DTYPE_FP8 && !task->trans_b;
    const double share = !exact ? 1 : newer > 0 ? newer : accelerator->fp8_exact_share;
    return share * row_share(accelerator, program, task);
}

// Beyond the traffic that is counted of them.
static double beyond_s(const Accelerator *accelerator, int64_t elements, double element_s, int64_t bytes) {
    const double traffic_s = (double)bytes / (accelerator->memory_bytes_per_s * accelerator->memory_efficiency);
    return elements == 0 ? 0 : fmax(0, (double)elements * element_s - traffic_s);
}

double cost_apart_s(const Accelerator *accelerator, const Task *task) {
    enum { READ_AND_WRITTEN = 2, READ_TWICE_AND_WRITTEN = 3 };
    const int64_t element = dtype_bytes(task->dtype);
    return beyond_s(accelerator, task->apart_elements, accelerator->element_s, task->apart_bytes) +
           beyond_s(accelerator, task->atomic_elements, accelerator->atomic_s,
                    task->atomic_elements * READ_AND_WRITTEN * element) +
           beyond_s(accelerator, task->sorted_elements, accelerator->sorted_s,
                    task->sorted_elements * READ_TWICE_AND_WRITTEN * element);
}

// Without gradient accumulation fusion each product writes a gradient of its own in 16 bits, and one launch more adds
// it to the sum, in the first micro-step too (Megatron-core, distributed_data_parallel.py: main_grad.add_(param.grad)).
static bool writes_own_gradient(const StepProgram *program, const Task *task) {
    return program->target->adds_gradients && task->trans_a;
}

static Dtype own_gradient(const Task *task) {
    return dtype_bytes(task->dtype) < dtype_bytes(DTYPE_BF16) ? DTYPE_BF16 : task->dtype;
}

static double bytes_of_own_sum(const Task *task, Dtype sum) {
    return dtype_bytes(own_gradient(task)) + 2.0 * dtype_bytes(sum);
}

// What autograd makes of a product that accumulates: it overwrites, and both are read and their sum is written.
static double bytes_of_autograd_sum(Dtype sum) {
    enum { READ_READ_AND_WRITTEN = 3 };
    return READ_READ_AND_WRITTEN * dtype_bytes(sum);
}

// A launch behind the product that moves so many bytes for each element of its gradient; 0: there is none.
static KernelTime sum_apart(const Accelerator *accelerator, const Task *task, double element_bytes, KernelTime time) {
    if (element_bytes > 0) {
        const double groups = task->groups > 0 ? (double)task->groups : 1;
        const KernelTime sum = stream_time(accelerator, element_bytes * groups * (double)task->m * (double)task->n, 1);
        time.seconds += sum.seconds;
        time.memory_s += sum.memory_s;
    }
    return time;
}

// A bias that rows pick by their expert has its gradient added by one warp for each expert and 128 columns, row after
// row (aten/src/ATen/native/cuda/Indexing.cu, indexing_backward_kernel): in bf16 320.0, 640.5 and 1,157.3 ms more where
// a quarter, a half and nine tenths of 2,048 x 641 indices are the same, an H200 (notes/ds-v4-kernels, "CSA attention,
// measured": a layer of DeepSeek-V4-Flash, 641 keys a query; fp32 0.67 us). On an H100 4.1 ms a call of "about
// 7,000" (coart, fused_modulation_patch.py). Loads that wait for the one before take as many clocks on V100 and A100 as
// on H100 (PMC10448217, table 3: 400 from memory, 200 from L2). Rows of the busiest expert as routers that learned: a
// plan's imbalance is of ranks, and here one has all experts.
static const double repeated_clocks = 1157.3e-3 / (0.9 * 2048 * 641) * H100_CLOCK_HZ;

double cost_repeated_s(const Accelerator *accelerator, const StepProgram *program, const Task *task) {
    const Experts *experts = &program->model.experts;
    if (task->kind != TASK_COLUMN_SUM || task->groups == 0) {
        return 0;
    }
    const int over = experts->alike ? experts_alike_imbalance(experts, experts->count)
                                    : experts_learned_imbalance(experts, experts->count);
    const double rows = (1 + over / 100.0) * (double)task->rows / (double)task->groups;
    return repeated_clocks / cost_clock_hz(accelerator) * rows;
}

KernelTime cost_gemm_time(const Accelerator *accelerator, const StepProgram *program, const Task *task) {
    const Dtype sum = program->buffers[task_operand(program, task, AT_GEMM_C)->ref.buffer].dtype;
    const bool own = writes_own_gradient(program, task);
    const Dtype output = own ? own_gradient(task) : sum;
    const bool by_autograd = !own && task->accumulate && program->target->runtime.sums_apart;
    const bool adds = task->accumulate && !by_autograd && !own;
    const GemmShape shape = {.m = task->m,
                             .n = task->n,
                             .k = task->k,
                             .output_bytes = dtype_bytes(output) * (adds ? 2 : 1),
                             .trans_a = task->trans_a,
                             .trans_b = task->trans_b,
                             .output = output,
                             .accumulate = adds,
                             .fp8_share = fp8_share(accelerator, program, task),
                             .padded = program->plan.fused == FUSED_COMPILED && program->target->runtime.pads_rows,
                             .block_scales = has_block_scales(program, task)};
    const double apart_bytes = own ? bytes_of_own_sum(task, sum) : by_autograd ? bytes_of_autograd_sum(sum) : 0;
    KernelTime time = sum_apart(accelerator, task, apart_bytes, gemm_time(accelerator, task->dtype, &shape));
    const double cast_bytes = (double)task->cast_bytes + autocast_bytes(program->target, &program->plan, task);
    if (cast_bytes > 0) {
        const KernelTime casts = stream_time(accelerator, cast_bytes, 1);
        time.seconds += casts.seconds + cost_apart_s(accelerator, task);
        time.memory_s += casts.memory_s;
    }
    return time;
}

// Kernels beside a product of experts: biases are added expert by expert, and two for all of them (lower_apart.c);
// fused operations cast all rows by one.
static int kernels_beside(const TrainPlan *plan, const Task *task) {
    enum { BIAS_KERNELS = 2, BIAS_BACKWARD_KERNELS = 5, BIAS_KERNELS_OF_ALL = 2 };
    const int each = task->phase == PHASE_FORWARD ? BIAS_KERNELS : BIAS_BACKWARD_KERNELS;
    return plan->op_fuser ? 1 : each * task->groups + BIAS_KERNELS_OF_ALL;
}

// Liger's kernels in place of transformers' experts (LigerExperts of 0.8, ops/fused_moe.py: tiles of 64 tokens) keep up
// this many FLOP/s however fast the chip is: 128 experts of 768, 8 a token, on a B300 4.99 ms forward and 19.83 back
// for 32,768 tokens, 1.32 and 5.06 for 8,192 (dev/moe_research of michaelroyzen/Liger-Kernel, v0), less the order of
// rows and the activation, tasks of their own here. On an H100 7.34 and 20.49 (Liger's all_benchmark_data.csv).
static const double liger_forward_flops = 590e12, liger_backward_flops = 262e12;

static double liger_s(const StepProgram *program, const Task *task) {
    const TrainPlan *plan = &program->plan;
    const bool indexes = program->target->runtime.indexes_experts && plan->mesh.size[AXIS_EP] == 1;
    const bool replaced = plan->fused == FUSED_FUSED && !program->model.experts.bias;
    const bool forward = task->phase == PHASE_FORWARD || task->phase == PHASE_RECOMPUTE;
    return !indexes || !replaced ? 0 : task->flops / (forward ? liger_forward_flops : liger_backward_flops);
}

// Of as many rows for each expert. Calls share their waves on the streams that they are spread over, but each starts
// anew: 72 products of Transformer Engine on B200 (20 to 256 experts, forward and input gradients) are at -23 % without
// that and at -10 with it, 8 on A100 at -7 and -5 (MooreThreads/SimuMax, configs/system, group_matmul).
KernelTime cost_grouped_time(const CostModel *model, const StepProgram *program, const Task *task) {
    const Accelerator *accelerator = &model->profile->accelerator;
    const Dtype sum = program->buffers[task_operand(program, task, AT_GEMM_C)->ref.buffer].dtype;
    const bool own = writes_own_gradient(program, task), adds = task->accumulate && !own;
    const Dtype output = own ? own_gradient(task) : sum;
    const int64_t rows = ((task->trans_a ? task->k : task->m) + task->groups - 1) / task->groups;
    const GemmShape shape = {.m = task->trans_a ? task->m : rows,
                             .n = task->n,
                             .k = task->trans_a ? rows : task->k,
                             .groups = task->groups,
                             .output_bytes = dtype_bytes(output) * (adds ? 2 : 1) + task->epilogue_bytes,
                             .trans_a = task->trans_a,
                             .trans_b = task->trans_b,
                             .output = output,
                             .accumulate = adds,
                             .fused = program->plan.op_fuser,
                             .block_scales = has_block_scales(program, task)};
    KernelTime time = gemm_time(accelerator, cost_computed_dtype(accelerator, task), &shape);
    if (accelerator->grouped_ramp_rows == 0) {  // measured ones have it; fp8's has a cast in it, bf16's is a launch
        time.seconds +=
            (task_expert_calls(model->target, &program->plan, task) - 1) * accelerator->gemm[DTYPE_BF16].launch_s;
    }
    time.seconds = fmax(time.seconds, liger_s(program, task));
    time = sum_apart(accelerator, task, own ? bytes_of_own_sum(task, sum) : 0, time);
    if (task->cast_bytes > 0) {
        const KernelTime biases =
            stream_time(accelerator, (double)task->cast_bytes, kernels_beside(&program->plan, task));
        time.seconds += biases.seconds + cost_apart_s(accelerator, task);
        time.memory_s += biases.memory_s;
    }
    return time;
}
