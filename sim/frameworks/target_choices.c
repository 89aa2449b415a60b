// Fields without a row here are the same for every target: their usual value, and every value where they are searched.

#include "sim/frameworks/target_choices.h"

static int usual_zero(const Target *target, const TrainPlan *plan) {
    return target_default_zero(target, &plan->mesh);
}

static int usual_rotate(const Target *target, const TrainPlan *plan) {
    (void)plan;
    return (int)target_default_rotate(target);
}

static int usual_attention(const Target *target, const TrainPlan *plan) {
    (void)plan;
    return (int)target->default_attention;
}

static int usual_fused(const Target *target, const TrainPlan *plan) {
    (void)plan;
    return (int)target->default_fused;
}

static int usual_fp8(const Target *target, const TrainPlan *plan) {
    (void)plan;
    return (int)target_default_fp8(target);
}

static int usual_master(const Target *target, const TrainPlan *plan) {
    return target->bf16_weights && plan->precision == DTYPE_BF16;
}

static bool offers_reshard(const Target *target, const TrainPlan *plan, int value) {
    return value == RESHARD_ALWAYS || (plan->zero == 3 && !target->always_reshards);
}

static bool offers_recompute(const Target *target, const TrainPlan *plan, int value) {
    (void)plan;
    return value != RECOMPUTE_SELECTIVE || target->selective_flavour != SELECTIVE_NONE;
}

static bool offers_rotate(const Target *target, const TrainPlan *plan, int value) {
    const bool several = plan->mesh.size[AXIS_CP] > 1;
    return value == CP_ROTATE_RING ? target->cp_ring || !several : target->cp_allgather && several;
}

// More often than needed is slower and saves nothing: whole gradients are there anyway at stage 0, and where replicas
// may wait for the last micro-step they do.
static bool offers_sync(const Target *target, const TrainPlan *plan, int value) {
    const GradSync own = target_plain_sync(plan, target_own_sync(target, plan));
    const bool may_wait = (target->grad_syncs & GRAD_SYNC_BIT(GRAD_SYNC_SHARDS)) || own == GRAD_SYNC_SHARDS;
    if (value == GRAD_SYNC_TARGET) {
        return true;
    }
    return plan->zero >= 2 && plan_field_matters(plan, PLAN_GRAD_SYNC) && (target->grad_syncs & GRAD_SYNC_BIT(value)) &&
           target_plain_sync(plan, (GradSync)value) == (GradSync)value && value != (int)own &&
           !(value == GRAD_SYNC_EACH && may_wait);
}

typedef struct TargetChoice {
    int (*usual)(const Target *target, const TrainPlan *plan);
    bool (*offers)(const Target *target, const TrainPlan *plan, int value);
} TargetChoice;

static const TargetChoice choices[PLAN_FIELD_COUNT] = {
    [PLAN_ZERO] = {.usual = usual_zero},
    [PLAN_RESHARD] = {.offers = offers_reshard},
    [PLAN_RECOMPUTE] = {.offers = offers_recompute},
    [PLAN_CP_ROTATE] = {usual_rotate, offers_rotate},
    [PLAN_ATTENTION] = {.usual = usual_attention},
    [PLAN_FUSED] = {.usual = usual_fused},
    [PLAN_MASTER_WEIGHTS] = {.usual = usual_master},
    [PLAN_FP8_RECIPE] = {.usual = usual_fp8},
    [PLAN_GRAD_SYNC] = {.offers = offers_sync},
};

int target_usual(const Target *target, const TrainPlan *plan, PlanFieldId id) {
    return choices[id].usual ? choices[id].usual(target, plan) : plan_fields[id].usual;
}

bool target_decides(PlanFieldId id) {
    return choices[id].usual != NULL;
}

bool target_offers(const Target *target, const TrainPlan *plan, PlanFieldId id, int value) {
    return !choices[id].offers || choices[id].offers(target, plan, value);
}

bool target_fits(const Target *target, PlanFieldId id) {
    static const PlanFieldId counted[] = {[RECOMPUTE_ALL_ALIKE] = PLAN_FIELD_COUNT,
                                          [RECOMPUTE_FIRST_N] = PLAN_RECOMPUTE_LAYERS,
                                          [RECOMPUTE_EVERY_FIRST] = PLAN_RECOMPUTE_EVERY,
                                          [RECOMPUTE_EVERY_LAST] = PLAN_RECOMPUTE_EVERY};
    return plan_fields[id].fitted && counted[target->recompute_counts] == id;
}

int target_told(const Target *target, const TrainPlan *plan, PlanFieldId id) {
    if (id != PLAN_GRAD_SYNC) {
        return plan_told(plan, id);
    }
    const bool matters = plan_field_matters(plan, id);
    return (int)(matters ? target_plain_sync(plan, target_grad_sync(target, plan)) : GRAD_SYNC_LAST);
}

void target_canonical(const Target *target, TrainPlan *plan) {
    const GradSync own = target_plain_sync(plan, target_own_sync(target, plan));
    const GradSync plain = target_plain_sync(plan, plan->grad_sync);
    plan->grad_sync = plain == own ? GRAD_SYNC_TARGET : plain;
    plan_canonical(plan);
}

bool target_has_choice(const Target *target, PlanFieldId id) {
    return id != PLAN_GRAD_SYNC || target->grad_syncs != 0;
}
