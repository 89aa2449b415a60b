// TrainPlan: canonical form, batch arithmetic, the one-line text and the hash. Text and hash are defined on the
// canonical form, so two spellings of one plan are one plan everywhere.

#include "sim/plan/plan.h"

#include <stdio.h>

const char *const reduce_dtype_names[REDUCE_DTYPE_COUNT] = {"auto", "fp32", "bf16"};
const char *const reshard_names[RESHARD_COUNT] = {"always", "never"};
const char *const recompute_names[RECOMPUTE_COUNT] = {"none", "full", "selective"};
const char *const cp_rotate_names[CP_ROTATE_COUNT] = {"ring", "allgather"};
const char *const attention_names[ATTENTION_COUNT] = {"flash", "flash3", "cudnn", "triton", "eager"};
const char *const fused_names[FUSED_COUNT] = {"fused", "eager", "compiled"};
const char *const fp8_recipe_names[FP8_RECIPE_COUNT] = {"tensorwise", "rowwise", "delayed"};

void plan_canonical(TrainPlan *plan) {
    mesh_canonical_order(&plan->mesh);
    if (plan_shard_count(plan) == 1) {
        plan->zero = 0;
    }
    if (plan->zero == 0) {
        plan->reduce_dtype = REDUCE_DTYPE_TARGET;
    }
    if (plan->zero != 3) {
        plan->reshard = RESHARD_ALWAYS;
    }
    if (plan->mesh.size[AXIS_CP] == 1) {
        plan->cp_rotate = CP_ROTATE_RING;
    }
    if (plan->precision != DTYPE_FP8) {
        plan->fp8_recipe = FP8_TENSORWISE;
    }
    plan->bf16_master = plan->bf16_master && plan->precision != DTYPE_FP32;
    plan->tp_overlap = plan->tp_overlap && plan->mesh.size[AXIS_TP] > 1;
}

int64_t plan_global_batch(const TrainPlan *plan) {
    return (int64_t)plan->micro_batch * plan->mesh.size[AXIS_DP_REPLICATE] * plan->mesh.size[AXIS_DP_SHARD] *
           plan->grad_accum;
}

int64_t plan_tokens_per_step(const TrainPlan *plan) {
    return plan_global_batch(plan) * plan->seq;
}

int plan_local_tokens(const TrainPlan *plan) {
    return (int)((int64_t)plan->micro_batch * plan->seq / plan->mesh.size[AXIS_CP]);
}

int plan_shard_count(const TrainPlan *plan) {
    return plan->mesh.size[AXIS_DP_SHARD] * plan->mesh.size[AXIS_CP];
}

char *plan_text(const TrainPlan *plan, char out[PLAN_TEXT_BYTES]) {
    TrainPlan canonical = *plan;
    plan_canonical(&canonical);
    const bool reduces = canonical.reduce_dtype != REDUCE_DTYPE_TARGET;
    const bool reordered = !mesh_has_default_order(&canonical.mesh);
    char mesh[MESH_TEXT_BYTES], order[MESH_TEXT_BYTES];
    snprintf(out, PLAN_TEXT_BYTES,
             "%s seq=%d mb=%d ga=%d zero=%d reshard=%s recompute=%s cp_rotate=%s precision=%s attention=%s "
             "fused=%s%s%s%s%s%s%s%s%s",
             mesh_text(&canonical.mesh, mesh), canonical.seq, canonical.micro_batch, canonical.grad_accum,
             canonical.zero, reshard_names[canonical.reshard], recompute_names[canonical.recompute],
             cp_rotate_names[canonical.cp_rotate], dtype_name(canonical.precision),
             attention_names[canonical.attention], fused_names[canonical.fused],
             canonical.tp_overlap ? " tp_overlap=on" : "", canonical.bf16_master ? " master=bf16" : "",
             canonical.precision == DTYPE_FP8 ? " fp8_recipe=" : "",
             canonical.precision == DTYPE_FP8 ? fp8_recipe_names[canonical.fp8_recipe] : "", reduces ? " reduce=" : "",
             reduces ? reduce_dtype_names[canonical.reduce_dtype] : "", reordered ? " order=" : "",
             reordered ? mesh_order_text(&canonical.mesh, order) : "");
    return out;
}

void plan_hash(const TrainPlan *plan, Hash *hash) {
    TrainPlan canonical = *plan;
    plan_canonical(&canonical);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        hash_int(hash, canonical.mesh.size[axis]);
    }
    const int64_t choices[] = {canonical.seq,        canonical.micro_batch, canonical.grad_accum, canonical.zero,
                               canonical.reshard,    canonical.recompute,   canonical.cp_rotate,  canonical.precision,
                               canonical.attention,  canonical.fused,       canonical.tp_overlap, canonical.bf16_master,
                               canonical.fp8_recipe, canonical.reduce_dtype};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        hash_int(hash, choices[i]);
    }
    if (!mesh_has_default_order(&canonical.mesh)) {  // else as before there were orders
        for (int place = 0; place < AXIS_COUNT; place++) {
            hash_int(hash, mesh_axis_at(&canonical.mesh, place));
        }
    }
}
