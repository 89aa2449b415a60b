// Inputs of a product that come peer by peer while their parts are multiplied: what of the exchange the product does
// not hide. Each step moves one part over the links of one pair, whatever other pairs could carry (Transformer Engine,
// common/comm_gemm_overlap/comm_gemm_overlap.cpp, CommOverlapP2PBase::split_overlap_ag: to _next_rank alone, by the
// copy engine; initialize_ub has it for qkv_fprop, fc1_fprop, proj_dgrad and fc2_dgrad. PyTorch's
// _pipelined_all_gather_and_consume likewise). The part that a rank has is multiplied first.

#include "sim/cost/peer_exchange.h"

#include <math.h>

#include "sim/cost/collective.h"
#include "sim/cost/products.h"

bool peer_exchange_in_product(const TrainPlan *plan, const Task *task) {
    return plan->tp_overlap && task->lane == LANE_TP && task->kind != TASK_ALL_REDUCE && !task->unhidden;
}

bool peer_exchange_feeds(const StepProgram *program, const Task *task) {
    const bool in_pass = task->phase == PHASE_FORWARD || task->phase == PHASE_BACKWARD;
    return in_pass && task->kind == TASK_ALL_GATHER && peer_exchange_in_product(&program->plan, task);
}

static bool is_fed(const Task *product) {  // linear layers have buffers, routers have not
    return product->kind == TASK_GEMM && product->part != 0 && product->part != GRAPHED_ROUTER;
}

// The next one of the same pass; recomputed inputs are gathered whole, beside another product.
static const Task *fed_product(const StepProgram *program, const Task *task) {
    const Task *end = program->tasks + program->task_count;
    if (!peer_exchange_feeds(program, task) || task < program->tasks || task >= end) {
        return NULL;
    }
    const Task *next = task + 1;
    while (next < end && next->phase == task->phase && next->kind != TASK_GEMM && next->lane != LANE_TP) {
        next++;
    }
    return next < end && next->phase == task->phase && is_fed(next) ? next : NULL;
}

// The rate of a send over that of a ring: links of a pair's own are at most half of those that three accelerators have;
// through a switch it is 0.80 (HGX H200) to 0.96 (B200) of all, in profiles fitted on both.
static const double OWN_LINKS = 0.5, SWITCHED = 0.8;

// By how much a pair's links are all that the group's ranks have.
static double all_links(const NodeLinks *links) {
    const double rate = links->p2p.bandwidth_bytes_per_s / links->ring.bandwidth_bytes_per_s;
    return fmin(1, fmax(0, (rate - OWN_LINKS) / (SWITCHED - OWN_LINKS)));
}

// Copy engines move at the rate of all links where a switch lets a pair have them; a pair of its own links is as steep
// below their whole rate as a send.
static double one_step_s(const ClusterProfile *profile, const GroupPlacement *group, double bytes) {
    const NodeLinks links = collective_node_links(profile, group);
    const double all = all_links(&links);
    const double of_pair_s = all < 1 ? cost_collective_s(profile, COLLECTIVE_SEND_RECV, group, bytes, NULL) : 0;
    return all * bytes / links.ring.bandwidth_bytes_per_s + (1 - all) * of_pair_s;
}

double peer_exchange_open_s(const CostModel *model, const StepProgram *program, const Task *task,
                            const GroupPlacement *group) {
    const Task *product = group->nodes == 1 ? fed_product(program, task) : NULL;
    if (!product) {
        return 0;
    }
    const double parts = group->size;
    const double step_s = one_step_s(model->profile, group, (double)task->payload_bytes / parts);
    const double part_s = cost_gemm_time(&model->profile->accelerator, program, product).seconds *
                          cost_chip_factor(model, &program->plan.mesh) / parts;
    return (parts - 1) * fmax(0, step_s - part_s);
}
