// Dispatch: a task's kind picks the formula and says how many bytes the target really moves for it. Every kernel of a
// GPU stream is followed by the gap to the next one (sim/SOURCES.md H7), which belongs to its time here. Not modelled
// here: what runs at the same time (the engine), ranks that differ (the engine's slowdowns).

#include "sim/cost/cost_program.h"

#include <math.h>

#include "sim/cost/buckets.h"
#include "sim/cost/compute.h"
#include "sim/cost/gathers.h"
#include "sim/cost/peer_exchange.h"
#include "sim/cost/products.h"

// How the target's loss traffic splits over the three loss tasks: each reads the logits, the last also writes them.
static const double loss_max_share = 0.25, loss_sum_share = 0.25, loss_gradient_share = 0.5;

// Eager merge of a ring block: fp32 partial and result read, result written (sim/SOURCES.md P7).
static const double eager_merge_bytes = 12;

static double clamp_share(double share) {
    return share > 0 ? fmin(share, 1) : 0;  // not a number (infinite time): 0
}

static double operand_elements(const StepProgram *program, const Task *task, int index) {
    const BufferRef *ref = &task_operand(program, task, index)->ref;
    return (double)ref->bytes / dtype_bytes(program->buffers[ref->buffer].dtype);
}

// By as much as the target's own AdamW moves more than that optimizer's passes another one does too. Beside these
// bytes: the working copy in the compute dtype, written on the way, and what the target does to gradients that other
// ranks use.
double cost_update_bytes(const Target *target, const StepProgram *program, const Task *task) {
    const TrainPlan *plan = &program->plan;
    const double own =
        plan->bf16_master ? target->bf16_optimizer_bytes_per_parameter : target->runtime.optimizer_bytes_per_parameter;
    const bool copies = target->own_kernels && task_operand(program, task, AT_ADAMW_WORKING)->ref.buffer >= 0;
    const double moved = plan->optimizer == OPTIMIZER_TARGET
                             ? operand_elements(program, task, AT_ADAMW_MASTER) * own
                             : (double)task->traffic_bytes * optimizer_rows[plan->optimizer].passes * own /
                                   optimizer_pass_bytes(target->own_optimizer, plan_master_bytes(plan));
    const double whole = target->runtime.whole_bytes_per_parameter;
    const int others = whole > 0 ? program->units[task->unit].shards - 1 : 0;
    return moved + whole * others * operand_elements(program, task, AT_ADAMW_MASTER) +
           (copies ? (double)task_operand(program, task, AT_ADAMW_WORKING)->ref.bytes : 0);
}

// Where nothing was in the table's gradient before, rows of no token are written too: zeros.
static double embed_backward_bytes(const Target *target, const StepProgram *program, const Task *task) {
    const bool whole = target->own_kernels && !task->accumulate;
    return (double)task->traffic_bytes +
           (whole ? (double)task_operand(program, task, AT_EMBED_BACKWARD_DTABLE)->ref.bytes : 0);
}

// Bytes that the target moves for a streaming task.
static double stream_bytes(const Target *target, const StepProgram *program, const Task *task) {
    const double logits = (double)task->rows * (double)task->cols;
    const double least = (double)task->traffic_bytes;
    switch (task->kind) {
    case TASK_RMSNORM:
    case TASK_RMSNORM_BACKWARD:
    case TASK_LAYERNORM:
    case TASK_LAYERNORM_BACKWARD:
    case TASK_QK_NORM:
    case TASK_QK_NORM_BACKWARD:
    case TASK_ACTIVATION:
    case TASK_ACTIVATION_BACKWARD:
    case TASK_ROUTE:
    case TASK_ROUTE_BACKWARD:
    case TASK_UNPERMUTE:
    case TASK_UNPERMUTE_BACKWARD:
        return least * traffic_passes(target, &program->plan, task);
    case TASK_PERMUTE:
    case TASK_ROPE:
    case TASK_SWIGLU:
    case TASK_SWIGLU_BACKWARD:
        return least * traffic_passes(target, &program->plan, task) + (double)task->cast_bytes;
    case TASK_LOSS_MAX:
        return logits * traffic_loss_bytes_per_logit(target, &program->plan, task) * loss_max_share;
    case TASK_LOSS_SUM:
        return logits * traffic_loss_bytes_per_logit(target, &program->plan, task) * loss_sum_share;
    case TASK_LOSS_GRADIENT:
        return logits * traffic_loss_bytes_per_logit(target, &program->plan, task) * loss_gradient_share;
    case TASK_ADAMW:
    case TASK_UPDATE:
        return cost_update_bytes(target, program, task) + buckets_copied_bytes(target, program, task);
    case TASK_EMBED_BACKWARD:
        return embed_backward_bytes(target, program, task);
    case TASK_COPY:  // those of the loss are in its bytes per logit
        return task->phase == PHASE_LOSS ? 0 : least + (double)task->cast_bytes;
    default:
        return least;
    }
}

// What each byte of bf16 becomes where it is widened: read, written and read again as fp32, and results the other way.
// Counted; add, norm and SwiGLU took 2.1 to 2.9 times the time of fp32, which this makes 2.5 (Emerald Rapids,
// 2026-11-26, one thread, 512 rows).
static const double widened_traffic = 5;

static double widened_factor(const Accelerator *accelerator, const Task *task) {
    switch (task->kind) {
    case TASK_EMBED:
    case TASK_ADAMW:
    case TASK_COPY:
    case TASK_UNPACK:
    case TASK_ACCUMULATE:
    case TASK_ZERO:
        return 1;
    default:
        return cost_computed_dtype(accelerator, task) != task->dtype ? widened_traffic : 1;
    }
}

// What the causal mask lets through of this block, for the rank that the ring waits for. Zigzag: every rank half of
// every block. Contiguous: half of the rank's own block, earlier ones whole, and the last rank has no block to skip.
static double visible_share(const StepProgram *program, const Task *task) {
    const bool split = program->plan.mesh.size[AXIS_CP] > 1;
    return split && !program->target->zigzag && task->ring_step > 0 ? 1 : 0.5;
}

// Of layers of which a share takes the second time.
static KernelTime mean_time(const KernelTime *first, const KernelTime *second, double share) {
    return (KernelTime){.seconds = (1 - share) * first->seconds + share * second->seconds,
                        .memory_s = (1 - share) * first->memory_s + share * second->memory_s,
                        .memory_bound = (1 - share) * first->memory_bound + share * second->memory_bound};
}

static KernelTime attention_task_time(const Accelerator *accelerator, const StepProgram *program, const Task *task) {
    const double queries = (double)task->rows / task->sequences;
    AttentionShape shape = {.kernel = program->plan.attention,
                            .sequences = (double)task->sequences,
                            .heads = task->heads,
                            .kv_heads = task->kv_heads,
                            .head_dim = task->head_dim,
                            .uneven_heads = program->model.latent.kv_rank > 0,
                            .queries = queries,
                            .keys = (double)task->cols,
                            .visible_share = visible_share(program, task),
                            .diagonal = task->ring_step == 0,
                            .drops = program->target->attention_dropout == DROPOUT_SOME,
                            .fills = program->target->fills_masked,
                            .backward = task->kind == TASK_ATTENTION_BACKWARD,
                            .softmax = program->target->fused_softmax ? FUSED_FUSED : program->plan.fused,
                            .reference = program->target->reference_attention,
                            .fp8 = program->target->fp8_attention,
                            .block_scales = program->plan.fp8_recipe == FP8_MX};
    if (program->plan.pack > 0) {  // kernels of variable lengths: as many documents as make the rows
        const double document = plan_document_tokens(&program->plan);
        shape.sequences *= queries / document;
        shape.queries = shape.keys = document;
    }
    KernelTime time = attention_time(accelerator, cost_computed_dtype(accelerator, task), &shape);
    if (task->window > 0) {
        shape.window = task->window;
        const KernelTime sliding = attention_time(accelerator, cost_computed_dtype(accelerator, task), &shape);
        time = mean_time(&time, &sliding, task->window_share);
    }
    if (task->kind == TASK_ATTENTION && task->ring_step > 0 && program->plan.fused == FUSED_EAGER) {
        const double merged = (double)task->rows * task->heads * task->head_dim * eager_merge_bytes;
        const int kernels = task_kernels(program->target, &program->plan, task) - 1;
        const KernelTime merge = stream_time(accelerator, merged, kernels);
        time.seconds += merge.seconds;
        time.memory_s += merge.memory_s;
    }
    return time;
}

// What the target's layers lose to nothing that is modelled; the optimizer and copies of sharding have their own.
static double other_factor(const Target *target, const Task *task) {
    switch (task->kind) {
    case TASK_ADAMW:
    case TASK_UPDATE:
    case TASK_SQUARE_SUM:
    case TASK_CLIP:
    case TASK_ZERO:
    case TASK_COPY:
    case TASK_UNPACK:
    case TASK_ACCUMULATE:
        return 1;
    default:
        return 1 + target->runtime.other_share;
    }
}

static int ranks_on_node(const CostModel *model, const Mesh *mesh);

static bool touches_host(const StepProgram *program, const Task *task) {
    bool found = false;
    for (int i = 0; program->plan.offload != OFFLOAD_NONE && i < task->operand_count; i++) {
        const int32_t buffer = task_operand(program, task, i)->ref.buffer;
        found |= buffer >= 0 && program->buffers[buffer].host;
    }
    return found;
}

// Copies cross the link in the dtype that they have before; the rest runs on the host, whose memory its accelerators
// share: AdamW reads gradient, master and moments and writes the last three (28 bytes in fp32, sim/SOURCES.md H6),
// then sends the working copy.
static TaskCost host_task_cost(const CostModel *model, const StepProgram *program, const Task *task) {
    const Node *node = &model->profile->node;
    const bool copies = task->kind == TASK_COPY || task->kind == TASK_ACCUMULATE;
    const double sharers = fmax(1, (double)ranks_on_node(model, &program->plan.mesh) / fmax(1, node->hosts));
    double link_bytes = 0, memory_bytes = 0;
    for (int i = 0; i < task->operand_count; i++) {
        const Operand *operand = task_operand(program, task, i);
        const Buffer *buffer = operand->ref.buffer >= 0 ? &program->buffers[operand->ref.buffer] : NULL;
        const double bytes = buffer ? (double)operand->ref.bytes : 0;
        const bool temporary = (task->kind == TASK_ADAMW || task->kind == TASK_UPDATE) && i > AT_ADAMW_WORKING;
        if (buffer && buffer->host && !temporary) {
            memory_bytes += bytes * (operand->access == ACCESS_UPDATE ? 2 : 1);
        }
        link_bytes += copies ? (i == AT_COPY_SRC ? bytes : 0) : buffer && !buffer->host ? bytes : 0;
    }
    const double link_s = node->host_link_bytes_per_s > 0 ? link_bytes / node->host_link_bytes_per_s : 0;
    const double memory_s =
        node->host_memory_bytes_per_s > 0 ? memory_bytes * sharers / node->host_memory_bytes_per_s : 0;
    return (TaskCost){.seconds = copies ? fmax(link_s, memory_s) : link_s + memory_s, .algorithm = "host"};
}

// Ranks that time-share a core are equally fast.
static int chips_at_once(const CostModel *model, const Mesh *mesh) {
    const int world = mesh_world(mesh);
    if (model->profile->accelerator.device_class != DEVICE_CLASS_CPU) {
        return world;
    }
    const double turns = ranks_on_node(model, mesh) / fmax(1, model->profile->node.cores);
    return (int)ceil(world / fmax(1, turns));
}

double cost_chip_factor(const CostModel *model, const Mesh *mesh) {
    return model->chip_factor > 0 ? model->chip_factor
                                  : slowest_chip_factor(&model->profile->accelerator, chips_at_once(model, mesh));
}

// Attention as separate operations streams beside its products, and traffic is not slower on slow chips; a kernel of
// its own hides its traffic.
static double attention_on_slowest(const StepProgram *program, const KernelTime *time, double chip_factor) {
    const bool apart = program->plan.attention == ATTENTION_EAGER || program->target->reference_attention;
    const double streamed_s = apart ? time->memory_s : 0;
    return streamed_s + (time->seconds - streamed_s) * chip_factor;
}

static TaskCost compute_task_cost(const CostModel *model, const StepProgram *program, const Task *task) {
    if (touches_host(program, task)) {
        return host_task_cost(model, program, task);
    }
    const Accelerator *accelerator = &model->profile->accelerator;
    KernelTime time;
    const char *algorithm = "stream";
    if (task->kind == TASK_GEMM || task->kind == TASK_GROUPED_GEMM) {
        time = task->kind == TASK_GEMM ? cost_gemm_time(accelerator, program, task)
                                       : cost_grouped_time(model, program, task);
        time.seconds *= cost_chip_factor(model, &program->plan.mesh);
        time.seconds /= program->plan.zero == 3 ? accelerator->sharded_gemm_share : 1;
        algorithm = "tile";
    } else if (task->kind == TASK_ATTENTION || task->kind == TASK_ATTENTION_BACKWARD) {
        time = attention_task_time(accelerator, program, task);
        time.seconds = attention_on_slowest(program, &time, cost_chip_factor(model, &program->plan.mesh));
        algorithm = attention_names[program->plan.attention];
    } else {
        const double bytes =
            (stream_bytes(model->target, program, task) + autocast_bytes(model->target, &program->plan, task)) *
            widened_factor(accelerator, task);
        time = stream_time(accelerator, bytes, task_kernels(program->target, &program->plan, task));
        time.seconds =
            fmax(time.seconds, cost_repeated_s(accelerator, program, task)) + cost_apart_s(accelerator, task);
        time.seconds += traffic_issue_s(accelerator, model->target, &program->plan, task);
    }
    if (task->kind == TASK_UPDATE && unit_is_orthogonalized(&program->units[task->unit])) {
        const KernelTime products = orthogonal_time(accelerator, program, task);
        time.seconds += products.seconds * cost_chip_factor(model, &program->plan.mesh);
        time.memory_s += products.memory_s;
    }
    time.seconds *= other_factor(model->target, task);
    time.seconds += task_gap_s(model->target, &program->plan, task, time.seconds);
    TaskCost cost = {.seconds = time.seconds + accelerator->kernel_gap_s,
                     .sm_share = 1,
                     .memory_bound = (float)time.memory_bound,
                     .algorithm = algorithm};
    cost.use[RESOURCE_HBM] = (float)clamp_share(time.memory_s / cost.seconds);
    return cost;
}

static CollectiveKind collective_kind(const CostModel *model, const StepProgram *program, const Task *task) {
    const bool whole = model->target->runtime.scatters_by_all_reduce && program->plan.zero < 3;
    switch (task->kind) {
    case TASK_ALL_GATHER:
        return COLLECTIVE_ALL_GATHER;
    case TASK_REDUCE_SCATTER:
        return whole && task->lane == LANE_RS ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_REDUCE_SCATTER;
    case TASK_ALL_REDUCE:
        return COLLECTIVE_ALL_REDUCE;
    case TASK_ALL_TO_ALL:
        return COLLECTIVE_ALL_TO_ALL;
    default:
        return COLLECTIVE_SEND_RECV;
    }
}

// The first forward passes of a pipeline have no partner, and its last backward ones: of v chunks on each of p stages
// (v - 1) p and the stages after it (Narayanan et al. 2021, section 2.2), without a pipeline one of each.
double cost_unpaired_share(const TrainPlan *plan) {
    const double stages = mesh_stages(&plan->mesh), chunks = plan_chunks(plan);
    const double first = stages > 1 ? (chunks - 1) * stages + (stages - 1) : 1;
    return fmin(1, first / (chunks * plan_round_steps(plan)));
}

static bool travels_to_experts(const StepProgram *program, const Task *task) {
    return task->group >= 0 && (program->groups[task->group].axes & AXIS_BIT(AXIS_EP)) && !task->awaited;
}

// Multiprocessors that an exchange has. HybridEP's in all performance recipes of Megatron-Bridge (moe_hybridep_num_sms
// of scripts/performance/utils/overrides.py, d8348845d to 693ad1b0c, and of perf_recipes/_common.py); DeepEP's are
// those of the rate that it is priced at (collective_exchange.c).
static double exchange_sms(const CostModel *model, const StepProgram *program, const Task *task,
                           const CollectiveCost *exchange) {
    enum { HYBRIDEP_SMS = 32, DEEPEP_SMS = 24 };
    const bool hybrid = target_dispatch(model->target, &program->plan) == DISPATCH_HYBRIDEP;
    return !task->once ? exchange->ctas : hybrid ? HYBRIDEP_SMS : DEEPEP_SMS;
}

// What is left of a tp collective inside a product is the target's number. Tokens that travel beside a micro-step take
// multiprocessors from its kernels.
static double exposed_share(const CostModel *model, const StepProgram *program, const Task *task,
                            const CollectiveCost *exchange) {
    if (program->plan.ep_overlap && (travels_to_experts(program, task) || task->once)) {
        const double alone = model->paired ? 0 : cost_unpaired_share(&program->plan);
        const double taken = exchange_sms(model, program, task, exchange) / model->profile->accelerator.sm_count;
        return alone + (1 - alone) * (model->target->ep_overlap_exposed + taken);
    }
    return peer_exchange_in_product(&program->plan, task) ? model->target->tp_overlap_exposed : 1;
}

// Functional collectives gather and scatter the first dimension: along the sequence a copy puts the parts in order.
static double tp_copy_s(const CostModel *model, const Task *task) {
    const bool copies = model->target->tp_copies && task->lane == LANE_TP && task->kind != TASK_ALL_REDUCE;
    return copies ? stream_time(&model->profile->accelerator, 2.0 * (double)task->payload_bytes, 1).seconds : 0;
}

// What it holds while it runs alone.
static void occupy(const CostModel *model, const CollectiveCost *alone, TaskCost *cost) {
    const Accelerator *accelerator = &model->profile->accelerator;
    const double hbm_bytes_per_s = accelerator->memory_bytes_per_s * accelerator->memory_efficiency;
    const double hbm_s = alone->wire_bytes * model->profile->interference.hbm_factor / hbm_bytes_per_s;
    cost->use[RESOURCE_NODE_LINK] = (float)clamp_share(alone->link_s / alone->seconds);
    cost->use[RESOURCE_NIC] = (float)clamp_share(alone->nic_s / alone->seconds);
    cost->use[RESOURCE_UPLINK] = (float)clamp_share(alone->uplink_s / alone->seconds);
    cost->use[RESOURCE_HBM] = (float)clamp_share(hbm_s / alone->seconds);
    cost->sm_share = (float)clamp_share(alone->ctas / accelerator->sm_count);
}

// Tokens that go once to each rank, over those that go once to each node.
static void merge_visits(const StepProgram *program, const Task *task, GroupPlacement *placement) {
    if (!task->once) {
        return;
    }
    const Experts *experts = &program->model.experts;
    const int size = placement->size, nodes = placement->nodes;
    const int sharers = plan_expert_tp(&program->plan);  // each needs the token
    placement->merged = 1;
    if (nodes > 1) {
        const double visited = experts_parts_visited(experts, size / sharers) * sharers;
        const double to_ranks = visited * (size - placement->per_node) / size;
        placement->merged = to_ranks * nodes / (experts_parts_visited(experts, nodes) * (nodes - 1));
    }
}

static TaskCost collective_task_cost(const CostModel *model, const StepProgram *program, const Task *task) {
    const ClusterProfile *profile = model->profile;
    const Mesh *mesh = &program->plan.mesh;
    GroupPlacement placement =
        mesh_group_placement(mesh, program->groups[task->group].axes, cost_ranks_per_node(profile, mesh));
    merge_visits(program, task, &placement);
    TaskCost cost = {.algorithm = "none"};
    const double share = gather_sent_share(model, program, task);
    const double payload =
        (double)task->payload_bytes * share * buckets_travelling_share(program, task, placement.size);
    const CollectiveKind kind = collective_kind(model, program, task);
    const CollectiveCost alone = cost_collective(profile, kind, &placement, payload, &cost.algorithm);
    if (alone.seconds > 0) {
        const double number = gather_number_bytes(program, task) * share;
        const double bucketed =
            buckets_collective_s(model, program, task, &(BucketCall){kind, &placement, payload, number, alone.seconds});
        const double in_the_open = gather_open_s(model, program, task, bucketed);
        const double shown = (in_the_open + tp_copy_s(model, task)) * exposed_share(model, program, task, &alone);
        const double unhidden = peer_exchange_open_s(model, program, task, &placement);
        cost.seconds = fmax(shown, unhidden) * (1 + model->target->runtime.collective_share);
        cost.seconds += gather_copies_s(model, program, task);
        if (task->awaited) {
            cost.seconds += task_read_back_s(model->target, &program->plan, task);
            cost.host_stop = task_host_stop(model->target, &program->plan, task);
        }
        occupy(model, &alone, &cost);
    }
    return cost;
}

static int ranks_on_node(const CostModel *model, const Mesh *mesh) {
    const int world = mesh_world(mesh), per_node = cost_ranks_per_node(model->profile, mesh);
    return world < per_node ? world : per_node;
}

// A collective inside a node is copies and sums all the time, one across nodes while bytes pass inside the node.
static double core_share(const CostModel *model, const StepProgram *program, const Task *task, const TaskCost *cost) {
    const bool collective = task_is_collective(task) || task_is_message(task);
    const double share = cost_core_share(model->profile, ranks_on_node(model, &program->plan.mesh), collective);
    const bool leaves_node = collective && cost->use[RESOURCE_NIC] > 0;
    return cost->seconds > 0 ? share * (leaves_node ? (double)cost->use[RESOURCE_NODE_LINK] : 1) : 0;
}

// In addition to time-sharing, which cpu_sharing.c counts.
static double crowding_factor(const CostModel *model, const StepProgram *program) {
    const bool cpu = model->profile->accelerator.device_class == DEVICE_CLASS_CPU;
    const double turns = cpu ? ranks_on_node(model, &program->plan.mesh) / fmax(1, model->profile->node.cores) : 1;
    return turns > 1 ? 1 + model->target->runtime.crowding_share * (turns - 1) : 1;
}

// To the next stage on the way of the axis: inside the node where all pairs of these two stages are. All ranks of a
// stage send at once. A receive takes no time of its own: the message is there when its send has ended.
static TaskCost message_task_cost(const CostModel *model, const StepProgram *program, const Task *task) {
    const Mesh *mesh = &program->plan.mesh;
    const double sleep_s = message_sleep_s(model, mesh);
    TaskCost cost = {.algorithm = "none", .host_stop = sleep_s > 0 ? HOST_WAITS_FOR_END : HOST_GOES_ON};
    if (task->kind == TASK_RECEIVE) {
        return cost;
    }
    const int per_node = cost_ranks_per_node(model->profile, mesh);
    GroupPlacement placement = mesh_group_placement(mesh, AXES_STAGE, per_node);
    if (!mesh_stages_cross(mesh, program->stage, task->peer, per_node)) {
        placement.nodes = 1;
        placement.per_node = placement.size;
    }
    // Tied gradients go both ways at once: the all-reduce of two ranks.
    const bool sum = task->phase == PHASE_OPTIMIZER;
    if (sum) {
        placement.size = 2;
        placement.per_node = placement.nodes == 1 ? 2 : 1;
        placement.nodes = placement.nodes == 1 ? 1 : 2;
    }
    CollectiveCost alone = cost_collective(model->profile, sum ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_SEND_RECV,
                                           &placement, (double)task->payload_bytes, &cost.algorithm);
    if (alone.seconds > 0) {
        cost.seconds = alone.seconds * (1 + model->target->runtime.collective_share) + sleep_s;
        alone.ctas *= alone.seconds / (alone.seconds + sleep_s);  // nothing is held while hosts sleep
        alone.seconds += sleep_s;
        occupy(model, &alone, &cost);
    }
    return cost;
}

// Layers of two kinds are priced by their mean.
static double share_of_layers(const Task *task) {
    return task->share > 0 ? task->share : 1;
}

double task_issue_s(const CostModel *model, const StepProgram *program, const Task *task) {
    // Before a message can come its receiver has slept; a sender sleeps while it goes.
    const double sleep_s = task->kind == TASK_RECEIVE ? message_sleep_s(model, &program->plan.mesh) : 0;
    const double host_s = task_host_s(model->target, &program->plan, task) + check_host_s(model, program, task) +
                          update_host_s(model, program, task) + shard_host_s(model, program, task) + sleep_s;
    return host_s * share_of_layers(task);
}

TaskCost task_cost_shared(const CostModel *model, const StepProgram *program, const Task *task) {
    TaskCost cost = task_is_collective(task) ? collective_task_cost(model, program, task)
                    : task_is_message(task)  ? message_task_cost(model, program, task)
                                             : compute_task_cost(model, program, task);
    cost.seconds *= crowding_factor(model, program) * share_of_layers(task);
    cost.host_s = task_issue_s(model, program, task);
    if (!task_is_collective(task) && !task_is_message(task)) {
        cost.host_stop = task_host_stop(model->target, &program->plan, task);
    }
    if (model->target->runtime.launches_wait && (task_is_collective(task) || task_is_message(task))) {
        cost.seconds += cost.host_s;  // of kernels task_gap_s has it
    }
    cost.use[RESOURCE_CORES] = (float)core_share(model, program, task, &cost);
    return cost;
}

ClusterProfile program_profile(const CostModel *model, const StepProgram *program) {
    const int ranks = ranks_on_node(model, &program->plan.mesh);
    ClusterProfile shared = cost_shared_profile(model->profile, ranks);
    double held = 0;
    for (int32_t b = 0; b < program->buffer_count; b++) {
        const Buffer *buffer = &program->buffers[b];
        held += buffer->persistent ? (double)buffer->slots * (double)buffer->slot_bytes : 0;
    }
    cost_streams_from(&shared.accelerator, ranks * held);
    return shared;
}

TaskCost cost_task(const CostModel *model, const StepProgram *program, const Task *task) {
    if (model->profile->accelerator.device_class != DEVICE_CLASS_CPU) {
        return task_cost_shared(model, program, task);
    }
    const ClusterProfile shared = program_profile(model, program);
    CostModel seen = *model;
    seen.profile = &shared;
    return task_cost_shared(&seen, program, task);
}
