// Token exchange with the experts of other ranks (sim/SOURCES.md E1), by the plan's dispatcher:
//   all-to-all   a row for every visit, permuted to expert order before and after; row counts are exchanged first
//   all-gather   every rank gets all tokens and picks those of its experts; results are summed by a reduce-scatter
//                (Megatron-LM, MoEAllGatherTokenDispatcher)
//   DeepEP       a token goes once to each rank that has one of its experts, and over the network once to each node;
//   HybridEP     each rank's results come back summed (Megatron-LM, _DeepepManager and _HybridEPManager)
// If ranks split each expert (etp), the rows that one of them receives by the all-to-all are gathered from the others,
// and results are summed by a reduce-scatter before they go back; the other dispatchers send the token to all of them
// (Megatron-core 0.19, token_dispatcher.py). With a capacity an expert takes that many rows from each rank; how many
// tokens are dropped depends on routing, so uniform rows are bounded and no more; with padding, the row count is fixed
// and nothing is counted. Routing is assumed uniform, within a token's best groups of experts where the router has
// groups. Not modelled: fp8 in transit.

#include "sim/base/integer.h"
#include "sim/step/experts.h"

// Shares of tokens are in whole 256ths, so that sizes stay proportional to them.
enum { WHOLE = 256 };

// Rows that experts process: each token once for every expert that it visits.
int64_t routed_rows(const Lowering *lowering) {
    return lowering->dims.tokens * lowering->model->experts.active;
}

// With a capacity, that many 256ths of them.
static int64_t bounded(const Lowering *lowering, int64_t parts) {
    enum { PER_CENT = 100 };
    const TrainPlan *plan = lowering->plan;
    const int64_t most = (int64_t)WHOLE * plan->expert_capacity / PER_CENT;
    return most > 0 && (plan->pad_experts || most < parts) ? most : parts;
}

static int64_t parts_of(const Lowering *lowering, int64_t parts) {
    return parts == WHOLE ? routed_rows(lowering) : routed_rows(lowering) * parts / WHOLE;
}

// Routed rows within capacity; if padded, the capacity itself.
static int64_t sent_rows(const Lowering *lowering) {
    return parts_of(lowering, bounded(lowering, WHOLE));
}

// Rows of other ranks' tokens that arrive at the busiest rank.
static int64_t came_rows(const Lowering *lowering) {
    enum { PER_CENT = 100 };
    const int64_t over = lowering->ep > 1 ? (int64_t)WHOLE * lowering->plan->imbalance / PER_CENT : 0;
    return parts_of(lowering, bounded(lowering, WHOLE + over));
}

static int sharers(const Lowering *lowering) {
    return lowering->ep > 1 ? lowering_expert_tp(lowering) : 1;
}

int64_t received_rows(const Lowering *lowering) {
    return came_rows(lowering) * sharers(lowering);
}

// Rows that this rank has room for. Our executor ends a run that needs more (exec/worker/exchange.c): no more than
// every rank's tokens can arrive, and each visits an expert once.
static int64_t rows_of_room(const Lowering *lowering) {
    enum { PER_CENT = 100 };
    const int percent = lowering->plan->capacity > 0 ? lowering->plan->capacity : PLAN_USUAL_CAPACITY;
    const int64_t mean = received_rows(lowering), room = routed_rows(lowering) * percent / PER_CENT;
    const int64_t all = lowering->dims.tokens * lowering->ep *
                        int_min(lowering->model->experts.active, lowering_local_experts(lowering));
    const bool counts = lowering->ep > 1 && lowering->target->own_kernels;
    return !counts ? mean : int_min(room > mean ? room : mean, all);
}

// Of tokens that are all alike each layer has another busiest rank: of what all layers keep, one has about the mean.
static int64_t kept_rows(const Lowering *lowering) {
    const bool evens_out = lowering->model->experts.alike && lowering->plan->recompute != RECOMPUTE_FULL;
    return evens_out ? sent_rows(lowering) * sharers(lowering) : rows_of_room(lowering);
}

int32_t routed_by(Lowering *lowering, const char *name, int64_t width) {
    return activation(lowering, name, sent_rows(lowering) * width);
}

int32_t received_by(Lowering *lowering, const char *name, int64_t width) {
    return activation(lowering, name, kept_rows(lowering) * width);
}

bool dispatch_sums(const Lowering *lowering) {
    return lowering->ep > 1 && target_dispatch(lowering->target, lowering->plan) != DISPATCH_ALLTOALL;
}

bool dispatch_gathers(const Lowering *lowering) {
    return lowering->ep > 1 && target_dispatch(lowering->target, lowering->plan) == DISPATCH_ALLGATHER;
}

// Over all ranks of ep, and those that share their experts.
static int32_t gathered_by(Lowering *lowering, const char *name) {
    return lowering_tensor(lowering, name, ROLE_ACTIVATION, activation_dtype(lowering, name),
                           lowering->dims.tokens * lowering->ep * sharers(lowering) * lowering->dims.hidden);
}

// Each token once for every rank that it visits.
static int64_t rows_of_ranks(const Lowering *lowering) {
    const Experts *experts = &lowering->model->experts;
    const double ranks = experts_parts_visited(experts, lowering->ep);
    return received_rows(lowering) * (int64_t)(WHOLE * ranks / experts->active + 0.5) / WHOLE;
}

static int32_t rank_rows_by(Lowering *lowering, const char *name) {
    return lowering_tensor(lowering, name, ROLE_ACTIVATION, activation_dtype(lowering, name),
                           rows_of_ranks(lowering) * lowering->dims.hidden);
}

static Op *exchange(Lowering *lowering, Section section, TaskKind kind, const char *name, OpRef from, int32_t to) {
    Op op = op_collective(lowering, kind, LANE_CP, lowering->expert_ranks_group, name, layer_phase(section));
    op.task.dtype = lowering->tensors[from.tensor].dtype;
    op.task.payload_bytes =
        kind == TASK_REDUCE_SCATTER ? lowering->tensors[from.tensor].bytes : lowering->tensors[to].bytes;
    return op_list_move(lowering, &lowering->lists[section], op, from, op_whole(lowering, to), ACCESS_WRITE);
}

// Exchanges how many tokens of each expert arrive, or which ones, before any of them do. The host needs the sizes.
void exchange_counts(Lowering *lowering, const ExpertTensors *tensors) {
    const bool gathers = dispatch_gathers(lowering);
    Op *op = exchange(lowering, SECTION_LAYER_FORWARD, gathers ? TASK_ALL_GATHER : TASK_ALL_TO_ALL,
                      gathers ? "gather routing" : "count tokens", op_whole(lowering, tensors->leave), tensors->come);
    op->task.awaited = true;
}

// ---- a row for every visit

// Sends to the ranks of the tokens' experts, or back.
static void exchange_tokens(Lowering *lowering, Section section, const char *name, const ExpertTensors *tensors,
                            bool back, OpRef from, int32_t to) {
    const int64_t row = lowering->dims.hidden * dtype_bytes(lowering->tensors[from.tensor].dtype);
    Op *op = exchange(lowering, section, TASK_ALL_TO_ALL, name, from, to);
    op->task.group = lowering->ep_group;
    op->task.payload_bytes = came_rows(lowering) * row;
    told(lowering, op, tensors->leave);
    told(lowering, op, tensors->come);
    op_size(op, rows_of_room(lowering), lowering->dims.hidden);
    op->task.backward = back;
}

// Rows in arrival order -> order of the local experts, or back.
static Op *reorder(Lowering *lowering, Section section, const char *name, const ExpertTensors *tensors, bool back,
                   OpRef from, int32_t to) {
    Op *op = add_routed(lowering, section, TASK_PERMUTE, name);
    op->task.rows = received_rows(lowering);
    op->task.inner = 1;
    op->task.groups = lowering_local_experts(lowering);
    op->task.backward = back;
    op_operand(op, from, ACCESS_READ);
    const bool told_here = lowering->ep > 1 && (!dispatch_sums(lowering) || dispatch_gathers(lowering));
    op_operand(op, op_whole(lowering, told_here ? tensors->come : tensors->routing), ACCESS_READ);
    op_operand(op, op_whole(lowering, to), ACCESS_WRITE);
    return op;
}

// For this rank and those that hold other parts of its experts: all of them need the rows of each.
static int32_t own_rows_by(Lowering *lowering, const char *name) {
    return activation(lowering, name, came_rows(lowering) * lowering->dims.hidden);
}

static void visits_to(Lowering *lowering, Section section, const ExpertTensors *tensors, OpRef sent, int32_t to) {
    const bool sorts = lowering_local_experts(lowering) > 1, forward = section == SECTION_LAYER_FORWARD;
    const int32_t came = sorts ? received_by(lowering, "experts_came", lowering->dims.hidden) : to;
    const int32_t own = sharers(lowering) > 1 ? own_rows_by(lowering, "experts_came_own") : came;
    exchange_tokens(lowering, section, forward ? "dispatch" : "combine backward", tensors, false, sent, own);
    if (own != came) {
        exchange(lowering, section, TASK_ALL_GATHER, forward ? "gather of etp" : "gather of etp backward",
                 op_whole(lowering, own), came)
            ->task.group = lowering->etp_group;
    }
    if (sorts) {
        reorder(lowering, section, "tokens by expert", tensors, false, op_whole(lowering, came), to);
    }
}

static void visits_back(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t from, int32_t to) {
    const bool sorts = lowering_local_experts(lowering) > 1, forward = section == SECTION_LAYER_FORWARD;
    const int32_t sent = sorts ? received_by(lowering, "experts_leave", lowering->dims.hidden) : from;
    const int32_t own = sharers(lowering) > 1 ? own_rows_by(lowering, "experts_leave_own") : sent;
    if (sorts) {
        Op *op = reorder(lowering, section, "tokens by rank", tensors, true, op_whole(lowering, from), sent);
        put_rows(lowering, op, received_rows(lowering), !forward);
    }
    if (own != sent) {
        exchange(lowering, section, TASK_REDUCE_SCATTER, forward ? "sum of etp" : "sum of etp backward",
                 op_whole(lowering, sent), own)
            ->task.group = lowering->etp_group;
    }
    exchange_tokens(lowering, section, forward ? "combine" : "dispatch backward", tensors, true,
                    op_whole(lowering, own), to);
}

// ---- all tokens to all ranks

// What is picked from them cannot exceed what is there.
static OpRef picked(const Lowering *lowering, int32_t gathered) {
    OpRef ref = op_whole(lowering, gathered);
    const int64_t rows = received_rows(lowering) * lowering->dims.hidden;
    const int64_t bytes = rows * dtype_bytes(lowering->tensors[gathered].dtype);
    ref.bytes = bytes < ref.bytes ? bytes : ref.bytes;
    return ref;
}

// Results are summed in the router's dtype, and so their gradients gathered.
static void sum_in_fp32(const Lowering *lowering, Op *exchanged, Op *beside) {
    const int64_t tokens = lowering->dims.tokens;
    if (lowering->target->runtime.routes_in_fp32) {
        exchanged->task.payload_bytes *= dtype_bytes(DTYPE_FP32) / dtype_bytes(exchanged->task.dtype);
        exchanged->task.dtype = DTYPE_FP32;
        cast_results(lowering, beside, tokens * lowering->ep * sharers(lowering) + tokens);
    }
}

static void gathered_to(Lowering *lowering, Section section, const ExpertTensors *tensors, OpRef sent, int32_t to) {
    const bool forward = section == SECTION_LAYER_FORWARD;
    const int32_t all = gathered_by(lowering, forward ? "tokens_gathered" : "dtokens_gathered");
    Op *gather = exchange(lowering, section, TASK_ALL_GATHER, forward ? "dispatch" : "combine backward", sent, all);
    Op *order = reorder(lowering, section, "tokens by expert", tensors, false, picked(lowering, all), to);
    if (!forward) {
        sum_in_fp32(lowering, gather, order);
    }
}

static void gathered_back(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t from, int32_t to) {
    const bool forward = section == SECTION_LAYER_FORWARD;
    const int32_t all = gathered_by(lowering, forward ? "results_of_all" : "dtokens_of_all");
    Op *order = reorder(lowering, section, "tokens by rank", tensors, true, op_whole(lowering, from), all);
    add_rows_apart(lowering, order, received_rows(lowering));
    Op *sum = exchange(lowering, section, TASK_REDUCE_SCATTER, forward ? "combine" : "dispatch backward",
                       op_whole(lowering, all), to);
    if (forward) {
        sum_in_fp32(lowering, sum, order);
    }
}

// ---- once to each node and rank

static void set_visits(const Lowering *lowering, Op *op, bool awaited) {
    op->task.payload_bytes = rows_of_ranks(lowering) * lowering->dims.hidden * dtype_bytes(op->task.dtype);
    op->task.once = true;
    op->task.awaited = awaited;  // how many arrive, inside the kernel itself; backward already knows
}

static void once_to(Lowering *lowering, Section section, const ExpertTensors *tensors, OpRef sent, int32_t to) {
    const bool forward = section == SECTION_LAYER_FORWARD;
    const int32_t came = rank_rows_by(lowering, "experts_came");
    Op *sends = exchange(lowering, section, TASK_ALL_TO_ALL, forward ? "dispatch" : "combine backward", sent, came);
    set_visits(lowering, sends, forward);
    op_operand(sends, op_whole(lowering, tensors->routing), ACCESS_READ);  // which ranks they visit
    Op *op = reorder(lowering, section, "tokens by expert", tensors, false, op_whole(lowering, came), to);
    if (!forward) {
        weigh_received(lowering, op, true);
    }
}

static void once_back(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t from, int32_t to) {
    const bool forward = section == SECTION_LAYER_FORWARD;
    const int32_t sent = rank_rows_by(lowering, "experts_leave");
    Op *op = reorder(lowering, section, "tokens by rank", tensors, true, op_whole(lowering, from), sent);
    if (forward) {
        weigh_received(lowering, op, false);
    }
    set_visits(lowering,
               exchange(lowering, section, TASK_ALL_TO_ALL, forward ? "combine" : "dispatch backward",
                        op_whole(lowering, sent), to),
               false);
}

// ---- all experts on one rank: nothing travels

static void alone_to(Lowering *lowering, Section section, const ExpertTensors *tensors, OpRef sent, int32_t to) {
    reorder(lowering, section, "tokens by expert", tensors, false, sent, to);
}

static void alone_back(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t from, int32_t to) {
    Op *op = reorder(lowering, section, "tokens by rank", tensors, true, op_whole(lowering, from), to);
    put_rows(lowering, op, received_rows(lowering), section != SECTION_LAYER_FORWARD);
}

bool dispatch_moves(const Lowering *lowering) {
    return lowering->ep > 1 || lowering->target->runtime.pads_alone;
}

// ---- the table

typedef struct Dispatcher {
    void (*to)(Lowering *lowering, Section section, const ExpertTensors *tensors, OpRef sent, int32_t to);
    void (*back)(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t from, int32_t to);
} Dispatcher;

enum { ALONE = DISPATCH_COUNT };

static const Dispatcher dispatchers[] = {[DISPATCH_ALLTOALL] = {visits_to, visits_back},
                                         [DISPATCH_ALLGATHER] = {gathered_to, gathered_back},
                                         [DISPATCH_DEEPEP] = {once_to, once_back},
                                         [DISPATCH_HYBRIDEP] = {once_to, once_back},
                                         [ALONE] = {alone_to, alone_back}};

static const Dispatcher *dispatcher_of(const Lowering *lowering) {
    return &dispatchers[lowering->ep > 1 ? target_dispatch(lowering->target, lowering->plan) : ALONE];
}

void dispatch(Lowering *lowering, Section section, const ExpertTensors *tensors, OpRef sent, int32_t to) {
    dispatcher_of(lowering)->to(lowering, section, tensors, sent, to);
}

void combine(Lowering *lowering, Section section, const ExpertTensors *tensors, int32_t from, int32_t to) {
    dispatcher_of(lowering)->back(lowering, section, tensors, from, to);
}
