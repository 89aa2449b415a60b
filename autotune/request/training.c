// What is trained, and what is assumed about experts. Assumptions that no run has confirmed, or that cannot be known
// before a run, begin with "a guess".

#include "autotune/request/request_internal.h"
#include "autotune/search/expert_cuts.h"
#include "autotune/search/space.h"

enum { SOME_RANKS = 8 };  // of ep, for an example

static void say_adapters(Builder *builder, const TrainPlan *plan) {
    static const char *const layers[LORA_TARGETS_COUNT] = {[LORA_ALL] = "all linear layers",
                                                           [LORA_ATTENTION] = "the linear layers of attention",
                                                           [LORA_QUERY_VALUE] = "the query and value projections"};
    static const char *const weights[FINETUNE_COUNT] = {[FINETUNE_LORA] = "",
                                                        [FINETUNE_QLORA] = ", whose weights are in 4 bits (nf4)",
                                                        [FINETUNE_LORA_INT8] = ", whose weights are in int8"};
    assume(builder, "adapters of rank %d beside %s of each block%s", plan_lora_rank(plan), layers[plan->lora_targets],
           weights[plan->finetune]);
}

// Where it is asked for, or a search may take it. A base that is frozen has no gradient of the head.
void say_loss(Builder *builder) {
    const TuneRequest *request = builder->request;
    const Target *target = request->target;
    const int asked = request->asked[PLAN_LOSS];
    TrainPlan plan = {.seq = request->seq};
    space_job(request, &plan);
    const bool searched = asked == TUNE_ANY && !builder->defaults->single_plan && target->losses & LOSS_BIT(LOSS_FUSED);
    if (target->runtime.casts_loss_sums && !plan_freezes_base(&plan) && (asked == LOSS_FUSED || searched)) {
        assume(builder, "loss fused as in Liger 0.6.2 to 0.8.2, which cast each part of the head's gradient to fp32 to "
                        "add it; older and newer ones do not, and take less time");
    }
}

void say_training(Builder *builder, const TrainPlan *plan) {
    if (plan_has_adapters(plan)) {
        say_adapters(builder, plan);
    }
    if (plan->bf16_master) {
        assume(builder, plan->optimizer == OPTIMIZER_TARGET
                            ? "parameters, gradients and optimizer state in bf16, without an fp32 master"
                            : "parameters and gradients in bf16, without an fp32 master");
    }
    if (plan->pack > 0) {
        assume(builder,
               "documents of %d tokens in the mean share a sequence and see themselves only, lengths as of an "
               "exponential: a token's has %.0f; one to a sequence would leave %.0f %% of it padding",
               plan->pack, plan_document_tokens(plan), 100 * (1 - plan_unpacked_share(plan)));
    }
}

static void say_balance(Builder *builder, const TrainPlan *plan) {
    if (plan->imbalance == 0) {
        const ModelSpec *model = &builder->request->model;
        const int few = model->experts.count < SOME_RANKS ? model->experts.count : SOME_RANKS;
        const int learned = experts_learned_imbalance(&model->experts, few);
        const int starting = experts_starting_imbalance(model, few);
        char first[80] = "";
        if (starting > learned) {
            snprintf(first, sizeof first, "; up to %d in the first steps from random weights", starting);
        }
        assume(builder,
               "a guess: where experts are spread (ep), all ranks get as many tokens (imbalance 0); routers that are "
               "not forced to it let the busiest rank keep the others waiting: what if, by --imbalance (some %d %% "
               "more than the mean with ep=%d%s)",
               learned, few, first);
    } else {
        assume(builder,
               "a guess: where experts are spread (ep), those of the busiest rank get %d %% more tokens than the mean, "
               "on every layer and micro-step",
               plan->imbalance);
    }
    if (plan->expert_capacity == 0) {
        assume(builder, "no token is dropped: experts take all that come");
    } else {
        assume(builder,
               "a guess: how many tokens the capacity of experts, %d %% of the mean, drops: those of the mean and of "
               "--imbalance beyond it%s",
               plan->expert_capacity, plan->pad_experts ? "; rows up to it are padded" : "");
    }
}

static bool is_observed(const Provenance *of) {
    return of && of->value > 0 && (of->grade == GRADE_MEASURED || of->grade == GRADE_FITTED);
}

static void say_dispatch(Builder *builder, const TrainPlan *plan) {
    const TuneRequest *request = builder->request;
    const Dispatch dispatch = target_dispatch(request->target, plan);
    if (dispatch == DISPATCH_DEEPEP || dispatch == DISPATCH_HYBRIDEP) {
        assume(builder,
               "a guess: tokens travel by the kernels of %s at the share of a node's links that DeepEP "
               "names for 8 B200, on every chip",
               dispatch_names[dispatch]);
        return;
    }
    const Provenance *between = cluster_provenance(&request->cluster, "fabric.exchange_efficiency");
    const bool seen = is_observed(cluster_provenance(&request->cluster, "node.p2p.bandwidth_bytes_per_s"));
    const bool known = is_observed(between), given = between && between->value > 0;
    assume(builder, "%stokens travel between ranks by %s, inside a node at a rate that was %s, between nodes %s",
           seen && known ? "" : "a guess: ", dispatch_names[dispatch == DISPATCH_TARGET ? DISPATCH_ALLTOALL : dispatch],
           seen ? "measured" : "not measured",
           given ? "at the profile's share of the cards"
                 : "at the share of the cards that InfiniBand "
                   "usually reaches");
}

void say_experts(Builder *builder, const TrainPlan *plan) {
    const TuneRequest *request = builder->request;
    TrainPlan said = *plan;
    space_take(request, &said, PLAN_DISPATCH);
    space_take(request, &said, PLAN_ETP);
    if (request->model.experts.count == 0) {
        return;
    }
    say_balance(builder, plan);
    assume(builder, request->cluster.accelerator.grouped_ramp_rows > 0
                        ? "grouped products of experts at rates that fall with their rows, as measured"
                        : "a guess: grouped products of experts at the rate of plain ones with as many rows: the "
                          "profile has measured none (ndtune probe does)");
    if (request->target->axes & AXIS_BIT(AXIS_EP)) {
        say_dispatch(builder, &said);
    }
    if (said.etp > 1) {
        assume(builder,
               "a guess: experts cut by ranks (etp) beside ranks with whole ones (ep): no published run has both");
    } else if (expert_cuts_open(request)) {
        assume(builder,
               "a guess: experts cut by ranks (etp above 1), where a search takes it: no published run has both it "
               "and ep");
    }
}
