// Assumptions that no run has confirmed, or that cannot be known before a run, begin with "a guess".

#include "autotune/cli/request_experts.h"

#include "autotune/search/expert_cuts.h"
#include "autotune/search/space.h"
#include "sim/frameworks/target_choices.h"

Status request_check_experts(Cli *cli, const TuneRequest *request, Error *error) {
    static const PlanFieldId of_experts[] = {PLAN_IMBALANCE, PLAN_DISPATCH,        PLAN_EP_OVERLAP,
                                             PLAN_ETP,       PLAN_EXPERT_CAPACITY, PLAN_PAD_EXPERTS};
    for (size_t i = 0; i < sizeof of_experts / sizeof of_experts[0]; i++) {
        const OptionId option = option_of(of_experts[i]);
        if (cli_given(cli, option) && request->model.experts.count == 0) {
            return cli_refuse(cli, option, error, "--%s is of experts, and %s has none",
                              plan_fields[of_experts[i]].option.name, request->model.name);
        }
    }
    return STATUS_OK;
}

static const char *balance_text(const TrainPlan *plan, Arena *arena) {
    return plan->imbalance == 0
               ? "a guess: all experts get as many tokens (imbalance 0); routers that are not forced to it let the "
                 "busiest rank keep the others waiting: what if, by --imbalance"
               : arena_format(arena,
                              "a guess: where experts are spread (ep), those of the busiest rank get %d %% more tokens "
                              "than the mean, on every layer and micro-step",
                              plan->imbalance);
}

static const char *capacity_text(const TrainPlan *plan, Arena *arena) {
    return plan->expert_capacity == 0
               ? "no token is dropped: experts take all that come"
               : arena_format(
                     arena,
                     "a guess: how many tokens the capacity of experts, %d %% of the mean, drops: those of the "
                     "mean and of --imbalance beyond it%s",
                     plan->expert_capacity, plan->pad_experts ? "; rows up to it are padded" : "");
}

static const char *dispatch_text(const TuneRequest *request, const TrainPlan *plan, Arena *arena) {
    const Dispatch dispatch = target_dispatch(request->target, plan);
    if (dispatch == DISPATCH_DEEPEP || dispatch == DISPATCH_HYBRIDEP) {
        return arena_format(arena,
                            "a guess: tokens travel by the kernels of %s at the share of a node's links that DeepEP "
                            "names for 8 B200, on every chip",
                            dispatch_names[dispatch]);
    }
    const Provenance *inside = cluster_provenance(&request->cluster, "node.p2p.bandwidth_bytes_per_s");
    const Provenance *between = cluster_provenance(&request->cluster, "fabric.exchange_efficiency");
    const bool seen = inside && (inside->grade == GRADE_MEASURED || inside->grade == GRADE_FITTED);
    const bool known = between && between->value > 0;
    return arena_format(
        arena, "%stokens travel between ranks by %s, inside a node at a rate that was %s, between nodes %s",
        seen && known ? "" : "a guess: ", dispatch_names[dispatch == DISPATCH_TARGET ? DISPATCH_ALLTOALL : dispatch],
        seen ? "measured" : "not measured",
        known ? "at the profile's share of the cards"
              : "at the share of the cards that InfiniBand "
                "usually reaches");
}

static const char *products_text(const TuneRequest *request) {
    return request->cluster.accelerator.grouped_ramp_rows > 0
               ? "grouped products of experts at rates that fall with their rows, as measured"
               : "a guess: grouped products of experts at the rate of plain ones with as many rows: the profile has "
                 "measured none (ndtune probe does)";
}

int request_expert_texts(const TuneRequest *request, const TrainPlan *plan, Arena *arena,
                         const char *texts[EXPERT_TEXTS]) {
    int count = 0;
    TrainPlan said = *plan;
    space_take(request, &said, PLAN_DISPATCH);
    space_take(request, &said, PLAN_ETP);
    if (request->model.experts.count == 0) {
        return 0;
    }
    texts[count++] = balance_text(plan, arena);
    texts[count++] = capacity_text(plan, arena);
    texts[count++] = products_text(request);
    if (request->target->axes & AXIS_BIT(AXIS_EP)) {
        texts[count++] = dispatch_text(request, &said, arena);
    }
    if (said.etp > 1) {
        texts[count++] =
            "a guess: experts cut by ranks (etp) beside ranks with whole ones (ep): no published run has both";
    } else if (expert_cuts_open(request)) {
        texts[count++] = "a guess: experts cut by ranks (etp above 1), where a search takes it: no published run has "
                         "both it and ep";
    }
    return count;
}
