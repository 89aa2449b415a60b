// Splits given by a plan: the layers must divide evenly, as the frameworks that have them assert.

#include "sim/frameworks/target.h"

LayerRule target_layer_rule(const Target *target, const TrainPlan *plan) {
    static const LayerRule rules[SPLIT_COUNT] = {[SPLIT_EVEN] = LAYERS_EVEN,
                                                 [SPLIT_WEIGHTED] = LAYERS_WEIGHTED,
                                                 [SPLIT_ENDS] = LAYERS_BY_ENDS,
                                                 [SPLIT_CHUNKS] = LAYERS_BY_CHUNKS};
    return plan->pp_split == SPLIT_TARGET ? target->layer_rule : rules[plan->pp_split];
}

static const char *refuse_weights(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int32_t parts = plan_all_chunks(plan), all = model->layers + plan->pp_first + plan->pp_last;
    const int32_t fewest = all / parts;
    REFUSE_IF(arena, target->edges_weigh_one && (plan->pp_first > 1 || plan->pp_last > 1 || all % parts != 0),
              "%s counts embedding and loss as one layer or none, and the %d of %s with them, %d, must divide by %d: "
              "use pp_split ends or chunks",
              target->name, model->layers, model->name, all, parts);
    REFUSE_IF(arena, fewest == 0 || plan->pp_first > fewest || plan->pp_last > fewest,
              "embedding and head cannot count as %d and %d layers where a stage or chunk has %d: use less",
              plan->pp_first, plan->pp_last, fewest);
    return NULL;
}

// Of units: stages, or chunks of all stages; each of the ends in `cut` parts.
static const char *refuse_ends(const ModelSpec *model, const TrainPlan *plan, const char *unit, int32_t units,
                               int32_t cut, Arena *arena) {
    const int32_t rest = model->layers - plan->pp_first - plan->pp_last, inner = units - 2;
    const bool even = inner == 0 ? rest == 0 : rest >= 0 && rest % (inner * cut) == 0;
    if (even && plan->pp_first % cut == 0 && plan->pp_last % cut == 0) {
        return NULL;
    }
    REFUSE_IF(arena, rest < 0, "pp_first=%d and pp_last=%d are %d layers, and %s has %d: use at most so many together",
              plan->pp_first, plan->pp_last, plan->pp_first + plan->pp_last, model->name, model->layers);
    REFUSE_IF(arena, inner == 0 && rest > 0,
              "pp_first=%d and pp_last=%d are %d of the %d layers of %s, and no %s is between: use pp_last %d",
              plan->pp_first, plan->pp_last, plan->pp_first + plan->pp_last, model->layers, model->name, unit,
              plan->pp_last + rest);
    return arena_format(arena,
                        "pp_first=%d and pp_last=%d leave %d layers of %s to %d %s%s between, which must hold as "
                        "many each%s: use other numbers, or leave them out",
                        plan->pp_first, plan->pp_last, rest, model->name, inner, unit, inner == 1 ? "" : "s",
                        cut > 1 ? ", in chunks of as many" : "");
}

// What holds layers that do not divide: with one chunk to a stage, the numbers of an even rest.
static const char *uneven_hint(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int32_t stages = mesh_stages(&plan->mesh), inner = stages - 2;
    const int32_t rest = model->layers - inner * ((model->layers + stages - 1) / stages);
    if (!(target->splits & PP_BIT(SPLIT_ENDS)) || plan_chunks(plan) > 1 || rest < 2) {
        return "use pp_split target, or a pp that divides them";
    }
    return arena_format(arena, "use pp_split ends with pp_first %d and pp_last %d, or a pp that divides them",
                        rest - rest / 2, rest / 2);
}

const char *target_refuse_split(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int32_t stages = mesh_stages(&plan->mesh), parts = plan_all_chunks(plan);
    if (plan->pp_split == SPLIT_TARGET || stages == 1) {
        return NULL;
    }
    const char *word = pp_split_names[plan->pp_split];
    REFUSE_IF(arena, !(target->splits & PP_BIT(plan->pp_split)), "%s has no pp_split=%s: use pp_split target",
              target->name, word);
    REFUSE_IF(arena, plan->pp_split == SPLIT_ENDS && plan_is_folded(plan),
              "pp_schedule=%s has the first and the last chunk on one stage: use pp_split chunks",
              pp_schedule_names[plan->pp_schedule]);
    REFUSE_IF(arena,
              plan->pp_split == SPLIT_ENDS && target->edges_weigh_one && (plan->pp_first == 0 || plan->pp_last == 0),
              "%s has layers on the first and on the last stage: use pp_split chunks", target->name);
    REFUSE_IF(arena, plan->pp_split == SPLIT_EVEN && target->edges_weigh_one && model->layers % parts != 0,
              "pp_split=even gives each of %d %s as many layers, and the %d of %s do not divide by %d: %s", parts,
              parts == stages ? "stages" : "chunks", model->layers, model->name, parts,
              uneven_hint(target, model, plan, arena));
    switch (plan->pp_split) {
    case SPLIT_WEIGHTED:
        return refuse_weights(target, model, plan, arena);
    case SPLIT_ENDS:
        return refuse_ends(model, plan, "stage", stages, plan_chunks(plan), arena);
    case SPLIT_CHUNKS:
        return refuse_ends(model, plan, "chunk", parts, 1, arena);
    case SPLIT_TARGET:
    case SPLIT_EVEN:
    case SPLIT_COUNT:
        break;
    }
    return NULL;
}
