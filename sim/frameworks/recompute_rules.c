// By modules: sim/plan/plan.h. By layers: target.h. By tiles of the MLP: sim/step/lower_tiles.c.

#include "sim/frameworks/plan_rules.h"

static const char *refuse_selective(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    (void)model;
    const bool by_modules = plan->recompute_modules != 0 && target->recompute_modules != 0;
    REFUSE_IF(arena,
              plan->recompute == RECOMPUTE_SELECTIVE && target->selective_flavour == SELECTIVE_NONE && !by_modules,
              "%s has no selective recompute: use recompute none or full", target->name);
    return NULL;
}

// Modules that the target does not know, then those that the model does not have.
static const char *refuse_modules(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const unsigned asked = (unsigned)plan->recompute_modules, known = target->recompute_modules;
    const bool experts = model->experts.count > 0, latent = model->latent.kv_rank > 0;
    const unsigned absent = asked & (unsigned)((!experts ? RECOMPUTE_EXPERT_ACTIVATION | RECOMPUTE_EXPERTS
                                                : model->run_count == 0 ? RECOMPUTE_MLP
                                                                        : 0) |
                                               (latent ? 0 : RECOMPUTE_LATENT_UP));
    if (asked & ~known) {
        return known == 0
                   ? arena_format(arena, "%s has no choice of recomputed modules: leave out recompute_modules=%s",
                                  target->name, recompute_module_names[asked])
                   : arena_format(arena, "%s recomputes %s, not %s", target->name, recompute_module_names[known],
                                  recompute_module_names[asked & ~known]);
    }
    REFUSE_IF(arena, absent, "recompute_modules=%s: layers of %s have no %s", recompute_module_names[asked],
              model->name, recompute_module_names[absent]);
    return NULL;
}

static const char *refuse_unit(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    (void)model;
    const RecomputeUnit own =
        target->recompute_flavour == RECOMPUTE_CHILD ? RECOMPUTE_UNIT_CHILDREN : RECOMPUTE_UNIT_LAYER;
    REFUSE_IF(arena,
              plan->recompute == RECOMPUTE_FULL && plan->recompute_unit != RECOMPUTE_UNIT_TARGET &&
                  plan->recompute_unit != own && !target->recompute_other_unit,
              "%s recomputes with recompute_unit=%s: use recompute_unit %s or auto", target->name,
              recompute_unit_names[own], recompute_unit_names[own]);
    return NULL;
}

// Of how many layers.
static const char *refuse_count(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const RecomputeCounts counts = target->recompute_counts;
    if (!plan_keeps_layers(plan)) {
        return NULL;
    }
    const bool first = plan->recompute_layers > 0;
    const char *name = first ? "recompute_layers" : "recompute_every";
    const int value = first ? plan->recompute_layers : plan->recompute_every;
    REFUSE_IF(arena, first && plan->recompute_every > 1,
              "recompute_layers and recompute_every exclude each other: use one of them");
    REFUSE_IF(arena, counts == RECOMPUTE_ALL_ALIKE || first != (counts == RECOMPUTE_FIRST_N),
              "%s has no %s=%d: use %s 0%s", target->name, name, value, name,
              counts == RECOMPUTE_ALL_ALIKE ? ""
              : first                       ? ", or recompute_every"
                                            : ", or recompute_layers");
    REFUSE_IF(arena, value >= model->layers + !first,
              "%s=%d does not fit the %d layers of %s: use less, or %s 0 for all of them", name, value, model->layers,
              model->name, name);
    return NULL;
}

// The feature combined with it that is not predicted, as text; NULL.
static const char *beside_tiles(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int tp = plan->mesh.size[AXIS_TP], pp = mesh_stages(&plan->mesh);
    return model->experts.count > 0       ? "layers of experts"
           : plan_has_adapters(plan)      ? "adapters"
           : plan->precision == DTYPE_FP8 ? "fp8 layers"
           : tp > 1                       ? arena_format(arena, "tp=%d", tp)
           : pp > 1                       ? arena_format(arena, "pp=%d", pp)
                                          : NULL;
}

static const char *refuse_tiles(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int tiles = plan->mlp_tiles, tokens = plan_local_tokens(plan);
    if (tiles == 0) {
        return NULL;
    }
    REFUSE_IF(arena, !target->tiles_mlp, "%s has no tiled MLP: use mlp_tiles 0", target->name);
    const char *beside = beside_tiles(model, plan, arena);
    REFUSE_IF(arena, beside, "a tiled MLP beside %s is not predicted yet: use mlp_tiles 0", beside);
    if (tokens % tiles != 0) {
        int fewer = tiles;
        while (tokens % fewer != 0) {
            fewer--;
        }
        return arena_format(arena,
                            "mlp_tiles=%d does not cut the %d tokens of a rank and micro-step into equal tiles: use "
                            "mlp_tiles %d",
                            tiles, tokens, fewer);
    }
    return NULL;
}

const char *recompute_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    static const char *(*const rules[])(const Target *, const ModelSpec *, const TrainPlan *, Arena *) = {
        refuse_selective, refuse_modules, refuse_unit, refuse_count, refuse_tiles};
    const char *reason = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !reason; i++) {
        reason = rules[i](target, model, plan, arena);
    }
    return reason;
}
