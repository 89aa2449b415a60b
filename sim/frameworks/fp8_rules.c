// Legality of fp8 and its recipes by framework. Which chips have the products: autotune/prune.c.

#include "sim/frameworks/fp8_rules.h"

// "tensorwise or rowwise".
static const char *recipes_text(unsigned recipes, Arena *arena) {
    const char *text = "";
    for (int recipe = 0; recipe < FP8_RECIPE_COUNT; recipe++) {
        const bool last = (recipes >> recipe) == 1;
        if (recipes & FP8_BIT(recipe)) {
            text = arena_format(arena, "%s%s%s", text, !text[0] ? "" : last ? " or " : ", ", fp8_recipe_names[recipe]);
        }
    }
    return text;
}

const char *fp8_rule(const Target *target, const TrainPlan *plan, Arena *arena) {
    const int tp = plan->mesh.size[AXIS_TP];
    if (plan->precision != DTYPE_FP8) {
        return NULL;
    }
    if (target->fp8_flavour == FP8_NONE) {
        return arena_format(arena, "%s does not run fp8: use precision bf16", target->name);
    }
    if (!(target->fp8_recipes & FP8_BIT(plan->fp8_recipe))) {
        return arena_format(arena, "%s has no fp8_recipe=%s: use fp8_recipe %s", target->name,
                            fp8_recipe_names[plan->fp8_recipe], recipes_text(target->fp8_recipes, arena));
    }
    if (target->tp_flavour != TP_SP && tp > 1) {
        return arena_format(arena, "%s does not run fp8 beside tp=%d: use tp=1 or precision bf16", target->name, tp);
    }
    return NULL;
}
