// How many kernels a task is on the device, and how many operations the host issues for it. A fused target runs one
// kernel per task. An eager one (PyTorch without compile) runs a chain: Hugging Face's RMSNorm is upcast, square, mean,
// add, rsqrt, scale, downcast, weight. With these counts a Llama layer's forward comes to 38, which is what
// sim/SOURCES.md H7 counts (615 kernels in 16 layers). Autograd issues backward from C++: 0.7 of the time per operation
// (sim/SOURCES.md A3). What is replayed as a CUDA graph costs the host nothing. Not modelled: host time hidden in
// framework hooks (a target's step_fixed_s), the launch of a graph itself, zeroing of the gradients that it holds,
// chips on which a framework captures none (AMD); of graphs of a layer's parts the copies into their fixed inputs
// (Transformer Engine's graph.py), and the memory that they keep.

#include <math.h>

#include "sim/cost/compute.h"
#include "sim/cost/cost.h"
#include "sim/cost/peer_exchange.h"

static const double autograd_host_factor = 0.7;  // sim/SOURCES.md A3

// sim/SOURCES.md A3: 24 and 42 operations a layer forward and backward when fused, 12 and 22 when compiled, against
// 14 and 27 in the fused column below.
static const double host_factor[FUSED_COUNT] = {[FUSED_FUSED] = 1.7, [FUSED_EAGER] = 1, [FUSED_COMPILED] = 0.85};

// Results of a kind that a deterministic run fills, where they aren't one of each kernel: those that torch.empty or
// at::empty allocates. Operations of PyTorch that are structured and kernels of its compiler allocate their own by
// at::detail::empty_cuda, which fills nothing (aten/src/ATen/cuda/EmptyTensor.cpp).
enum {
    UNFILLED = -1,  // or in place
    SEVERAL = 3,    // a norm's statistics, or a weight's and a bias's gradients too; attention's statistics and state
};

// Of kinds that are more than one kernel in either: a layer norm is one, which PyTorch has.
typedef struct HostKind {
    unsigned char fused, eager;  // kernels; both 0: one
    signed char results;         // of one call; 0: one of each kernel
    // A call of torch.distributed, on top of the module that makes it, which was timed on one rank: 131 us to gather
    // into a tensor made for it, 122 to scatter, 89 to all-reduce (pytorch issue 138773, of PyTorch 2.4), where an
    // operation takes 13 (sim/SOURCES.md H7). A message between stages, into or out of a tensor that exists, is as the
    // last.
    double timed_operations;
    unsigned char vectors;  // parameters of no product whose gradients it makes
} HostKind;

static const HostKind host_kinds[TASK_KIND_COUNT] = {
    [TASK_LOAD_TOKENS] = {1, 2},        // two copies to the device
    [TASK_EMBED_BACKWARD] = {1, 2},     // zeros, scatter-add
    [TASK_POSITION] = {1, 2},           // look-up, add
    [TASK_POSITION_BACKWARD] = {1, 2},  // zeros, scatter-add
    [TASK_RMSNORM] = {1, 8, SEVERAL},   // see above
    // fused: rows, then the weight's gradient; eager: each of the eight back, three sums
    [TASK_RMSNORM_BACKWARD] = {2, 13, SEVERAL, .vectors = 1},
    [TASK_LAYERNORM] = {1, 1, SEVERAL},
    [TASK_LAYERNORM_BACKWARD] = {2, 3, SEVERAL, .vectors = 2},  // rows, weight and bias; eager: and the residual's add
    [TASK_QK_NORM] = {1, 16, 2 * SEVERAL},                      // two chains of RMSNorm
    [TASK_QK_NORM_BACKWARD] = {2, 26, 2 * SEVERAL, .vectors = 2},
    [TASK_ROUTE] = {2, 12},  // fused: choose, order; eager: softmax, top-k, sum, divide, casts, sort, count, add up
    [TASK_ROUTE_BACKWARD] = {1, 6},
    [TASK_PERMUTE] = {1, 2},    // divide, pick
    [TASK_UNPERMUTE] = {1, 5},  // multiply, invert the order, pick, sum
    [TASK_UNPERMUTE_BACKWARD] = {1, 7},
    [TASK_ROPE] = {1, 10},  // of q and k: x cos, negate, concatenate, x sin, add
    [TASK_ATTENTION] = {1, 1, SEVERAL},
    [TASK_ATTENTION_BACKWARD] = {3, 3, SEVERAL},  // row sums, the kernel, dq to the working dtype
    [TASK_SWIGLU] = {1, 2, UNFILLED},             // silu, multiply
    [TASK_SWIGLU_BACKWARD] = {1, 3, UNFILLED},    // two multiplies, silu backward
    [TASK_ACTIVATION] = {1, 1, UNFILLED},
    [TASK_ACTIVATION_BACKWARD] = {1, 1, UNFILLED},
    [TASK_ADD] = {1, 1, UNFILLED},
    [TASK_COPY] = {1, 1, UNFILLED},
    [TASK_LOSS_MAX] = {1, 2, UNFILLED},       // eager: upcast, maximum
    [TASK_LOSS_SUM] = {1, 3, UNFILLED},       // eager: subtract-exp, sum, pick the target
    [TASK_LOSS_GRADIENT] = {1, 4, UNFILLED},  // eager: log-softmax backward, scale, downcast, loss
    [TASK_LOSS] = {2, 2},                     // rows, then the loss: two kernels of a target that has it as one task
    [TASK_SQUARE_SUM] = {1, 2},               // eager: foreach norm, stack
    [TASK_CLIP] = {1, 4},                     // eager: norm of norms, add, divide, clamp
    [TASK_ADAMW] = {1, 12},                   // eager: foreach chain over chunked lists
    [TASK_UPDATE] = {1, 12},
    // eager: checks, buffer, launch, work object, wait, record
    [TASK_ALL_GATHER] = {1, 6, 1, 131.0 / OPERATION_US},
    [TASK_REDUCE_SCATTER] = {1, 6, 1, 122.0 / OPERATION_US},
    [TASK_ALL_REDUCE] = {1, 6, UNFILLED, 89.0 / OPERATION_US},
    [TASK_ALL_TO_ALL] = {1, 6, 1},
    [TASK_COLUMN_SUM] = {1, 1, UNFILLED, .vectors = 1},
    [TASK_SEND] = {1, 1, UNFILLED, 89.0 / OPERATION_US},
    [TASK_RECEIVE] = {1, 1, 0, 89.0 / OPERATION_US},
    [TASK_ACCUMULATE] = {1, 1, UNFILLED},
    [TASK_ZERO] = {1, 1, UNFILLED},
};

enum {
    EAGER_MERGE_KERNELS = 6,  // later ring blocks: sigmoid, subtract, multiply, add, log-sigmoid, subtract
    // gelu_new written out: pow, scale, add, scale, tanh, add 1, scale x, multiply; backward: one or two for each and
    // two sums of the gradients that meet in x
    WRITTEN_OUT_KERNELS = 7,
    WRITTEN_OUT_BACKWARD_KERNELS = 11,
};

// Beyond the table's row for the kind, where an activation is written out too.
static int further_eager_kernels(const Task *task) {
    const bool written_out = task->activation == ACTIVATION_GELU_NEW;
    switch (task->kind) {
    case TASK_ATTENTION:
        return task->ring_step > 0 ? EAGER_MERGE_KERNELS : 0;
    case TASK_EMBED:
        return task->scaled ? 1 : 0;
    case TASK_ACTIVATION:
    case TASK_SWIGLU:
        return written_out ? WRITTEN_OUT_KERNELS : 0;
    case TASK_ACTIVATION_BACKWARD:
    case TASK_SWIGLU_BACKWARD:
        return written_out ? WRITTEN_OUT_BACKWARD_KERNELS : 0;
    default:
        return 0;
    }
}

// Attention as separate operations, forward and backward: two products, scale, mask, softmax, dropout, and the reshapes
// around them; what the launch-bound runs of 2022 need besides the 29.5 us per operation of sim/SOURCES.md A3.
enum { EAGER_ATTENTION_KERNELS = 10, EAGER_ATTENTION_BACKWARD_KERNELS = 12 };

static bool is_attention_in_parts(const TrainPlan *plan, const Task *task) {
    return plan->attention == ATTENTION_EAGER &&
           (task->kind == TASK_ATTENTION || task->kind == TASK_ATTENTION_BACKWARD);
}

// Norms that PyTorch has as one operation (target.h, aten_norms); queries' and keys' are two.
static int aten_norm_kernels(const Task *task) {
    const int fused = host_kinds[task->kind].fused;
    switch (task->kind) {
    case TASK_RMSNORM:
    case TASK_RMSNORM_BACKWARD:
        return fused;
    case TASK_QK_NORM:
    case TASK_QK_NORM_BACKWARD:
        return 2 * fused;
    default:
        return 0;
    }
}

int task_kernels(const Target *target, const TrainPlan *plan, const Task *task) {
    const int counted = expert_launches(target, plan, task);
    if (counted > 0) {
        return counted;
    }
    if (is_attention_in_parts(plan, task)) {
        return task->kind == TASK_ATTENTION ? EAGER_ATTENTION_KERNELS : EAGER_ATTENTION_BACKWARD_KERNELS;
    }
    if (target->aten_norms && plan->fused == FUSED_EAGER && aten_norm_kernels(task) > 0) {
        return aten_norm_kernels(task);
    }
    const HostKind *row = &host_kinds[task->kind];
    const bool eager = plan->fused == FUSED_EAGER;
    const int kernels = eager ? row->eager : row->fused;
    return (kernels > 0 ? kernels : 1) + (eager ? further_eager_kernels(task) : 0);
}

// Megatron's fused softmax takes (sequences x heads) in fours (Megatron-LM fused_softmax.py, is_kernel_available); else
// it is to fp32, scale, mask, softmax and back, one by one. How many more: sim/SOURCES.md A3, 6 u and 10 u, u = 2.8
// (of a step that vTrain traced), here before the fused column's factor.
enum { SOFTMAX_GROUP = 4, REFUSED_SOFTMAX_KERNELS = 10, REFUSED_SOFTMAX_BACKWARD_KERNELS = 16 };

static int refused_softmax(const Target *target, const TrainPlan *plan, const Task *task) {
    if (!target->fused_softmax || plan->attention != ATTENTION_EAGER ||
        task->sequences * task->heads % SOFTMAX_GROUP == 0) {
        return 0;
    }
    return task->kind == TASK_ATTENTION            ? REFUSED_SOFTMAX_KERNELS
           : task->kind == TASK_ATTENTION_BACKWARD ? REFUSED_SOFTMAX_BACKWARD_KERNELS
                                                   : 0;
}

// Forward and backward of each micro-step, with the reductions overlapping them; the batch is copied in before, and the
// optimizer runs afterwards (sources: at own_graphs and graph_switch in the rows of targets). Or parts of layers alone.
bool task_is_captured(const Target *target, const TrainPlan *plan, const Task *task) {
    const unsigned parts = plan_graphed_parts(plan);
    if (parts) {
        return (unsigned)task->part & parts;
    }
    return target_cuda_graphs(target, plan) && task->phase != PHASE_OPTIMIZER && task->kind != TASK_LOAD_TOKENS;
}

// Transformer Engine runs a product of experts as a loop of cuBLAS calls over four streams, and casts for each expert
// before it (common/gemm/cublaslt_gemm.cu, multi_stream_cublas_gemm, its PR 853; pytorch tex.split_quantize, its issue
// 1499 on what that costs the host). They are issued from C++, under the one operation that the table counts. The rest
// for each expert is Python that was measured and comes to what is counted here and in parameter_operations
// (tests/accuracy/runs/RESULTS.md, "What a call for each expert costs the host").
int task_expert_calls(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool loops = task->kind == TASK_GROUPED_GEMM && target->expert_flavour == EXPERTS_PERMUTE_KERNELS &&
                       (!target->experts_at_once || target->runtime.experts_one_by_one) && !plan->op_fuser;
    return loops ? task->groups : 1;
}

// A call takes 20.3 us of the host in the mean of 645,099 and 10.3 at least (nvte_cublas_gemm of Qwen3 30B on B200,
// yanring/Megatron-MoE-ModelZoo issue 7), where an operation takes 13 (sim/SOURCES.md H7); a cast is a launch alone, so
// that it takes no more than the shortest call.
static const double call_operations = 20.2666e-6 / 13e-6, launch_operations = 10.327e-6 / 13e-6;

static double issued_by_expert(const Target *target, const TrainPlan *plan, const Task *task) {
    const int calls = task_expert_calls(target, plan, task);
    return calls > 1 ? calls * (call_operations + (task->cast_bytes > 0 ? launch_operations : 0)) - 1 : 0;
}

// What a product of one of Transformer Engine's linear layers costs the host, in operations of plain PyTorch on the
// same machine: on a GB200 its Linear takes 311.3 us forward and backward in bf16 and 440.9 in mxfp8 (its PR 3523,
// before it; three products), torch's forward 37.08 (its issue 2053).
static const double linear_operations = 311.3 / 3 / 37.08, fp8_linear_operations = 440.9 / 3 / 37.08;

// Adapters are linear layers of Megatron-core (Megatron-Bridge, peft/utils.py); the rank is a size of their products.
static bool is_of_adapter(const TrainPlan *plan, const Task *task) {
    if (!plan_has_adapters(plan)) {
        return false;
    }
    const int64_t rank = plan_lora_rank(plan), on_tp = rank / plan->mesh.size[AXIS_TP];
    return task->m == rank || task->n == rank || task->k == rank || task->m == on_tp || task->n == on_tp ||
           task->k == on_tp;
}

bool task_has_engine_layers(const Target *target, const TrainPlan *plan) {
    return target->fp8_flavour == FP8_TRANSFORMER_ENGINE && !target->until && plan->fused == FUSED_FUSED;
}

// The router's product is torch's (Megatron-core, transformer/moe/router.py).
static bool is_of_transformer_engine(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool of_layer =
        (task->kind == TASK_GEMM && task->part != 0 && task->part != GRAPHED_ROUTER && !is_of_adapter(plan, task)) ||
        task->kind == TASK_GROUPED_GEMM;
    return of_layer && task_has_engine_layers(target, plan) && !target->runtime.torch_linears;
}

// Whatever fuses kernels, collectives of tp, cp and ep are calls of torch.distributed: as many operations as in the
// eager column. User buffers, DeepEP and HybridEP have calls of their own.
static int collective_operations(const TrainPlan *plan, const Task *task, int launches) {
    if (!task_is_collective(task) || (task->lane != LANE_TP && task->lane != LANE_CP) || task->once ||
        peer_exchange_in_product(plan, task)) {
        return 0;
    }
    const int calls = task->kind == TASK_ALL_TO_ALL && task->rows > 0 ? launches : 1;  // tokens, and their weights
    return calls * (host_kinds[task->kind].eager - 1);
}

// Of each parameter, one for each expert: AccumulateGrad and the hook on it that takes the gradient (Megatron-LM at
// d98e8a64d, distributed/distributed_data_parallel.py, _make_backward_post_hook), in every micro-step. Forward in fp8
// asks for each expert's cast weight (Transformer Engine 2.8, pytorch/module/grouped_linear.py, get_weight_workspace in
// a loop).
static int64_t parameter_operations(const Target *target, const Task *task) {
    if (task->kind != TASK_GROUPED_GEMM) {
        return 0;
    }
    const bool of_weight = task->phase == PHASE_BACKWARD && task->trans_a;
    const bool asks = task->phase == PHASE_FORWARD && task->dtype == DTYPE_FP8 && !target->experts_at_once;
    const int64_t parameters = task->groups;
    return of_weight && target->adds_gradients ? 2 * parameters : of_weight || asks ? parameters : 0;
}

// Without moe-grouped-gemm each expert is an MLP (Megatron-LM's SequentialMLP at d98e8a64d): of each product the Python
// of a Linear, 84 us both ways on an EPYC (tests/accuracy/megatron_ci/RESULTS.md, "What a layer's Python is"), and the
// call; and of its activation, times its rows' weights, whose backward is four, one for each product.
// Megatron-core's own Linear takes 74 us forward where that takes 115 (Transformer Engine PR 1191).
static const double module_call_operations = (84.0 / 3 + 20.2666) / OPERATION_US,
                    torch_call_operations = (84.0 / 3 * 74 / 115 + 20.2666) / OPERATION_US;
enum { ACTIVATED_PER_PRODUCT = 1 };

static bool is_one_by_one(const Target *target, const Task *task) {
    return task->kind == TASK_GROUPED_GEMM && target->runtime.experts_one_by_one;
}

// Of mixtures in mxfp8 the gaps of what is called and cast expert by expert stand for it: with both Qwen3 235B on B200
// is 7 % too slow (tests/accuracy/runs/RESULTS.md, "Megatron-core's own Python"). Not both, until those gaps are known.
static bool has_measured_modules(const Target *target, const TrainPlan *plan) {
    return task_has_engine_layers(target, plan) && target->runtime.module_operations > 0 &&
           !(plan->precision == DTYPE_FP8 && plan->fp8_recipe == FP8_MX && plan->mesh.size[AXIS_EP] > 1);
}

// As called, with the Python of a group of experts, which is measured; else what is lost between launches.
static double module_products(const Target *target, const TrainPlan *plan, const Task *task, bool called) {
    const double fp8_factor = task->dtype == DTYPE_FP8 ? fp8_linear_operations / linear_operations : 1;
    const double call = target->runtime.torch_linears ? torch_call_operations : module_call_operations;
    const double experts = (double)task->groups;
    if (is_one_by_one(target, task)) {
        return experts * call * fp8_factor + (experts - 1) * ACTIVATED_PER_PRODUCT;
    }
    const double grouped = called && has_measured_modules(target, plan) ? module_grouped_operations(task) : 0;
    return fmax(grouped, linear_operations * fp8_factor);
}

// What is counted in the code is as many operations.
static double issue_factor(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool counted = target->runtime.memory_passes > 0 || expert_launches(target, plan, task) > 0;
    return counted ? 1 : host_factor[plan->fused];
}

// Where an operation launches more than one kernel, each further one is a launch: 4.165 us at the least of 2.7 million
// from PyTorch (nvprof in ryujaehun/pytorch-gpu-benchmark issue 6), where an operation takes 13 (sim/SOURCES.md H7).
static const double further_launch_operations = 4.165 / OPERATION_US;

static double counted_operations(const Target *target, const TrainPlan *plan, const Task *task, int launches) {
    const int further = target->runtime.routes_apart ? expert_launches_in_operations(target, plan, task) : 0;
    return issue_factor(target, plan, task) * (launches - (1 - further_launch_operations) * further);
}

// Operations issued from Python, in any phase; called: with what Python does between launches.
static double issued_operations(const Target *target, const TrainPlan *plan, const Task *task, bool called) {
    if (task_is_captured(target, plan, task)) {
        return 0;
    }
    const int launches = task_kernels(target, plan, task) + refused_softmax(target, plan, task);
    double operations = counted_operations(target, plan, task, launches);
    if (is_of_transformer_engine(target, plan, task) || is_one_by_one(target, task)) {
        operations = module_products(target, plan, task, called);
    }
    if (task_has_engine_layers(target, plan)) {
        operations += collective_operations(plan, task, launches) + (double)parameter_operations(target, task);
    }
    return operations + (is_one_by_one(target, task) ? 0 : issued_by_expert(target, plan, task));
}

// Where all ranks' tokens are gathered, which of them visit which expert and by which weights are gathers of their own,
// and the gradient of the weights is scattered beside that of the tokens (MoEAllGatherTokenDispatcher).
static int calls_of(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool back = task->kind == TASK_REDUCE_SCATTER && task->lane == LANE_CP && task->phase == PHASE_BACKWARD &&
                      plan->mesh.size[AXIS_CP] == 1 && target_dispatch(target, plan) == DISPATCH_ALLGATHER;
    return back || (task->kind == TASK_ALL_GATHER && task->awaited) ? 2 : 1;
}

// Stages of one chunk send and take by one call (Megatron-LM core_v0.14, pipeline_parallel/p2p_communication.py,
// _batched_p2p_ops).
static double timed_operations(const Target *target, const TrainPlan *plan, const Task *task) {
    const double operations = host_kinds[task->kind].timed_operations;
    const bool message = task_is_message(task), batched = message && target_stops_host(target, plan);
    const bool timed = operations > 0 && task_has_engine_layers(target, plan) &&
                       !task_is_captured(target, plan, task) && (message || collective_operations(plan, task, 1) > 0);
    return timed ? calls_of(target, plan, task) * operations / (batched ? 2 : 1) : 0;
}

// Of separate operations the fused softmax's, dropout's and its mask's, the copy's; back the softmax's and the copy's
// (transformer/dot_product_attention.py, fusions/fused_softmax.py).
static int results_in_parts(const Task *task) {
    enum { FORWARD = 4, BACKWARD = 2 };
    return task->kind == TASK_ATTENTION ? FORWARD : BACKWARD;
}

// torch.use_deterministic_algorithms has each result that is allocated filled first, by a launch of its own (PyTorch,
// torch.utils.deterministic.fill_uninitialized_memory). Not priced: its pass over them.
static double fill_operations(const Target *target, const TrainPlan *plan, const Task *task) {
    const int of_call = host_kinds[task->kind].results;
    const bool counted = target->runtime.routes_apart && expert_launches(target, plan, task) > 0;
    if (!target->runtime.fills_results || of_call == UNFILLED || task->phase == PHASE_OPTIMIZER || counted ||
        task_is_captured(target, plan, task)) {
        return 0;
    }
    const int64_t results = is_one_by_one(target, task)         ? task->groups
                            : is_attention_in_parts(plan, task) ? results_in_parts(task)
                            : of_call == 0                      ? task_kernels(target, plan, task)
                                                                : of_call * calls_of(target, plan, task);
    return launch_operations * (double)results;
}

// Modules of layers have Python of their own around what they launch. A product of experts was measured as a whole and
// the way to them counted launch by launch.
static bool is_of_module(const Target *target, const TrainPlan *plan, const Task *task) {
    return task_has_engine_layers(target, plan) && task->part != 0 && task->kind != TASK_GROUPED_GEMM &&
           !task_is_collective(task) && expert_launches(target, plan, task) == 0 &&
           !(task->kind == TASK_GEMM && task->part == GRAPHED_ROUTER);
}

// Of each parameter autograd runs AccumulateGrad with Megatron's hook and the sum into the main gradient
// (distributed/distributed_data_parallel.py, _make_backward_post_hook): 12 us, measured with its modules
// (module_host.c), where an operation takes 13. Those of experts are counted in parameter_operations.
static double hand_over_operations(const Task *task) {
    static const double each = 12.0 / OPERATION_US;
    const bool of_weight = task->kind == TASK_GEMM && task->phase == PHASE_BACKWARD && task->trans_a;
    return each * (of_weight ? 1 : host_kinds[task->kind].vectors);
}

// Beside another micro-step a layer is run in nodes, forward and back each four, whose autograd is called apart
// (Megatron-core 0.16, pipeline_parallel/utils.py and models/common/model_chunk_schedule_plan.py): a layer of experts
// took 505 us more both ways than whole where its modules were measured (module_host.c), at 1.40 of it. By two
// nodes for each of the four exchanges between them.
static const double two_nodes_operations = 505.0 * 1.40 / 4 / OPERATION_US;

static double node_operations(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool travels = task->kind == TASK_ALL_TO_ALL && (task->once || (task->rows > 0 && !task->awaited));
    return plan->ep_overlap && travels && task_has_engine_layers(target, plan) && !task_is_captured(target, plan, task)
               ? two_nodes_operations
               : 0;
}

static double called_operations(const Target *target, const TrainPlan *plan, const Task *task) {
    const bool measured = has_measured_modules(target, plan) && !task_is_captured(target, plan, task);
    const double with_python = measured && !is_of_adapter(plan, task) ? module_host_operations(target, plan, task) : 0;
    const double timed = timed_operations(target, plan, task), of_module = target->runtime.module_operations;
    if (with_python > 0 || timed > 0) {
        return with_python + timed + hand_over_operations(task);
    }
    const bool one_by_one =
        plan->fused == FUSED_EAGER || (target->routes_eagerly && expert_launches(target, plan, task) > 0);
    const bool autograd = one_by_one && task->phase == PHASE_BACKWARD;
    const bool by_module = of_module > 0 && is_of_module(target, plan, task);
    const bool hands_over = task_has_engine_layers(target, plan) && !task_is_captured(target, plan, task);
    const double issued = issued_operations(target, plan, task, true);
    return (by_module ? of_module : 1) * issued * (autograd ? autograd_host_factor : 1) +
           (hands_over ? hand_over_operations(task) : 0);
}

// Idle time of the device at a stop is that of launches whatever the processor: gaps, counts read back and the exchange
// behind them.
static double host_pace(const Target *target, const Task *task) {
    return task->kind != TASK_ALL_TO_ALL ? runtime_host_pace(&target->runtime) : 1;
}

double task_host_s(const Target *target, const TrainPlan *plan, const Task *task) {
    return target->runtime.host_s_per_op * host_pace(target, task) *
           (called_operations(target, plan, task) + node_operations(target, plan, task) +
            fill_operations(target, plan, task) + hook_operations(target, plan, task));
}

// A target's lost_lead of what the host needs is lost to the device even where the host is ahead on the whole: its lead
// is used up at every collective and every read-back, and host and device time add in part. A kernel far longer than
// its launch hides it. Python between launches is not lost: a host that is ahead has it behind it.
double task_gap_s(const Target *target, const TrainPlan *plan, const Task *task, double device_s) {
    const double host_s = target->runtime.host_s_per_op * issued_operations(target, plan, task, false);
    if (target->runtime.launches_wait) {
        return host_pace(target, task) * host_s;
    }
    return host_s > 0 ? target->runtime.lost_lead * host_s * host_s / (host_s + device_s) : 0;
}

// Counts of tokens are copied to the host, theirs and the other ranks', and it waits (expert_parallel.py,
// _token_dispatch; Megatron-LM, token_dispatcher.py _maybe_dtoh_and_synchronize, before_ep_alltoall). Tokens are in
// order by then. Graphs of whole micro-steps have exchanges that ask the host nothing (HybridEP with
// num_permuted_tokens, fused_a2a.py). DeepEP and HybridEP count first and launch their exchange then, so the host goes
// on beside it.
enum { READ_BACKS = 2 };

// Sinkhorn's router asks after each round whether it is the last (moe_utils.py, sinkhorn), and what is trained whether
// a micro-step's loss is a number (Megatron-LM at d98e8a64d, pretrain_gpt.py, loss_func with
// check_for_nan_in_loss_and_grad; rerun_state_machine.py, validate_result). A loss that is one task is waited for with
// its gradient.
static bool is_awaited(const Target *target, const Task *task) {
    const bool checked = target->runtime.checks_loss && (task->kind == TASK_LOSS_SUM || task->kind == TASK_LOSS);
    return task->awaited || checked || (task->kind == TASK_ROUTE && target->runtime.sinkhorn_rounds > 0);
}

HostStop task_host_stop(const Target *target, const TrainPlan *plan, const Task *task) {
    if (!is_awaited(target, task) || (plan_graphed_parts(plan) == 0 && target_cuda_graphs(target, plan))) {
        return HOST_GOES_ON;
    }
    return task->once ? HOST_WAITS_FOR_START : HOST_WAITS_FOR_END;
}

ChunkHost cost_chunk_host(const CostModel *model, const TrainPlan *plan) {
    const Task taken = {.kind = TASK_RECEIVE, .phase = PHASE_FORWARD}, sent = {.kind = TASK_SEND},
               taken_back = {.kind = TASK_RECEIVE, .phase = PHASE_BACKWARD};
    if (timed_operations(model->target, plan, &sent) == 0) {
        return (ChunkHost){0};
    }
    const double sent_s = task_host_s(model->target, plan, &sent);
    return (ChunkHost){.before_s = task_host_s(model->target, plan, &taken) + sent_s,
                       .after_s = task_host_s(model->target, plan, &taken_back) + sent_s};
}

double task_read_back_s(const Target *target, const TrainPlan *plan, const Task *task) {
    if (task_host_stop(target, plan, task) == HOST_GOES_ON) {
        return 0;
    }
    const int operations = READ_BACKS + (task->once ? expert_launches_behind_counts(target, plan) : 0);
    const Task sent = {.kind = TASK_ALL_TO_ALL, .phase = PHASE_FORWARD, .rows = 1};
    return target->runtime.host_s_per_op * issue_factor(target, plan, &sent) * operations;
}

bool cost_host_waits_in_layers(const CostModel *model, const TrainPlan *plan) {
    const Task counts = {.kind = TASK_ALL_TO_ALL, .phase = PHASE_FORWARD, .awaited = true};
    if (plan->pad_experts && target_dispatch(model->target, plan) == DISPATCH_ALLTOALL) {
        return false;  // every expert has as many
    }
    const bool asked = plan->mesh.size[AXIS_EP] > 1 || model->target->runtime.sinkhorn_rounds > 0;
    return asked && task_host_stop(model->target, plan, &counts) != HOST_GOES_ON;
}

double message_sleep_s(const CostModel *model, const Mesh *mesh) {
    const TargetRuntime *runtime = &model->target->runtime;
    const int per_node = cost_ranks_per_node(model->profile, mesh);
    if (runtime->message_sleep_s == 0) {
        return 0;
    }
    const bool stalls = mesh_world(mesh) > (int64_t)per_node * (runtime->stalls_from_nodes - 1) ||
                        mesh_group_placement(mesh, AXIS_BIT(AXIS_TP), per_node).nodes >= runtime->stalls_from_tp_nodes;
    return stalls ? runtime->message_sleep_s : 0;
}
