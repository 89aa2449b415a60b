// TrainPlan: canonical form, batch arithmetic, the one-line text and the hash. Text and hash are defined on the
// canonical form, so two spellings of one plan are one plan everywhere.

#include "sim/plan/plan_fields.h"

#include <math.h>
#include <stdio.h>

#include "sim/base/text.h"

int64_t plan_global_batch(const TrainPlan *plan) {
    return (int64_t)plan->micro_batch * mesh_group_size(&plan->mesh, AXES_BATCH) * plan->grad_accum;
}

int64_t plan_tokens_per_step(const TrainPlan *plan) {
    return plan_global_batch(plan) * plan->seq;
}

int plan_local_tokens(const TrainPlan *plan) {
    return (int)((int64_t)plan->micro_batch * plan->seq / mesh_group_size(&plan->mesh, AXES_SEQUENCE));
}

int plan_expert_tp(const TrainPlan *plan) {
    return plan->etp > 0 ? plan->etp : plan->mesh.size[AXIS_EP] > 1 ? 1 : plan->mesh.size[AXIS_TP];
}

Dtype plan_product_dtype(const TrainPlan *plan) {
    return plan->precision != DTYPE_FP8    ? plan->precision
           : plan->fp8_recipe == FP8_BLOCK ? DTYPE_FP8_BLOCK
           : plan->fp8_recipe == FP8_NVFP4 ? DTYPE_NVFP4
                                           : DTYPE_FP8;
}

int plan_shard_count(const TrainPlan *plan) {
    return mesh_group_size(&plan->mesh, AXES_SHARD_GROUP);
}

double plan_unpacked_share(const TrainPlan *plan) {
    const double mean = plan->pack, seq = plan->seq;
    return plan->pack > 0 ? mean / seq * -expm1(-seq / mean) : 1;
}

double plan_document_tokens(const TrainPlan *plan) {
    return plan->pack > 0 ? 2.0 * plan->pack * (1 - plan_unpacked_share(plan)) : plan->seq;
}

int pp_own_chunks(PpSchedule schedule) {
    static const int own[PP_SCHEDULE_COUNT] = {[PP_1F1B] = 1, [PP_GPIPE] = 1, [PP_ZBV] = 2, [PP_DUALPIPEV] = 2};
    return own[schedule];
}

int plan_chunks(const TrainPlan *plan) {
    const int own = pp_own_chunks(plan->pp_schedule);
    return !plan_has_stages(plan) ? 1 : own > 0 ? own : plan->virtual_stages;
}

int plan_all_chunks(const TrainPlan *plan) {
    return mesh_stages(&plan->mesh) * plan_chunks(plan);
}

int plan_rounds(const TrainPlan *plan) {
    return plan_has_stages(plan) && plan->pp_rounds > 1 ? plan->pp_rounds : 1;
}

int plan_round_steps(const TrainPlan *plan) {
    return plan->grad_accum / plan_rounds(plan);
}

bool plan_is_folded(const TrainPlan *plan) {
    return plan->pp_schedule == PP_FILE ? plan->pp_order && plan->pp_order->folded
                                        : plan->pp_schedule == PP_ZBV || plan->pp_schedule == PP_DUALPIPEV;
}

bool plan_splits_backward(const TrainPlan *plan) {
    return plan->pp_schedule == PP_FILE ? plan->pp_order && plan->pp_order->splits
                                        : plan->pp_schedule == PP_ZERO_BUBBLE || plan_is_folded(plan);
}

bool plan_keeps_layers(const TrainPlan *plan) {
    return plan->recompute == RECOMPUTE_FULL && (plan->recompute_layers > 0 || plan->recompute_every > 1);
}

const char *plan_recompute_text(const TrainPlan *plan, char out[PLAN_RECOMPUTE_BYTES]) {
    if (!plan_keeps_layers(plan)) {
        snprintf(out, PLAN_RECOMPUTE_BYTES, "%s", recompute_names[plan->recompute]);
    } else if (plan->recompute_layers > 0) {
        snprintf(out, PLAN_RECOMPUTE_BYTES, "%d layer%s", plan->recompute_layers,
                 plan->recompute_layers == 1 ? "" : "s");
    } else {
        snprintf(out, PLAN_RECOMPUTE_BYTES, "1 in %d layers", plan->recompute_every);
    }
    return out;
}

static bool is_printed(const TrainPlan *plan, PlanFieldId id) {
    const PlanField *field = &plan_fields[id];
    switch (field->printed) {
    case PLAN_PRINTED_ALWAYS:
        return true;
    case PLAN_PRINTED_WHERE_IT_MATTERS:
        return plan_field_matters(plan, id);
    case PLAN_PRINTED_UNLESS_USUAL:
        break;
    }
    return plan_get(plan, id) != field->usual;
}

char *plan_text(const TrainPlan *plan, char out[PLAN_TEXT_BYTES]) {
    TrainPlan canonical = *plan;
    plan_canonical(&canonical);
    size_t used = text_put(out, PLAN_TEXT_BYTES, 0, mesh_text(&canonical.mesh, MESH_BUFFER));
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        if (is_printed(&canonical, id)) {
            used = text_put(out, PLAN_TEXT_BYTES, used, " ");
            used = text_put(out, PLAN_TEXT_BYTES, used, plan_field_key(id));
            used = text_put(out, PLAN_TEXT_BYTES, used, "=");
            used = text_put(out, PLAN_TEXT_BYTES, used, plan_value_text(id, plan_get(&canonical, id), VALUE_BUFFER));
        }
    }
    if (!mesh_has_default_order(&canonical.mesh)) {
        used = text_put(out, PLAN_TEXT_BYTES, used, " order=");
        used = text_put(out, PLAN_TEXT_BYTES, used, mesh_order_text(&canonical.mesh, MESH_BUFFER));
    }
    if (canonical.pp_schedule == PP_FILE && canonical.pp_order) {
        used = text_put(out, PLAN_TEXT_BYTES, used, " actions=");
        text_put(out, PLAN_TEXT_BYTES, used, hash_hex(canonical.pp_order->hash, HASH_BUFFER));
    }
    return out;
}

void plan_hash(const TrainPlan *plan, Hash *hash) {
    TrainPlan canonical = *plan;
    plan_canonical(&canonical);
    plan_hash_canonical(&canonical, hash);
}

void plan_fields_from(const PlanFieldId *first, int count, PlanFieldId order[PLAN_FIELD_COUNT]) {
    bool taken[PLAN_FIELD_COUNT] = {false};
    int places = 0;
    for (int i = 0; i < count; i++) {
        order[places++] = first[i];
        taken[first[i]] = true;
    }
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (!taken[id]) {
            order[places++] = (PlanFieldId)id;
        }
    }
}
