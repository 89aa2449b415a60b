// The slots are few, some hundred of a shape at most: a scan.

#include "autotune/search/choices.h"

Accumulation accumulation_of(const TrainPlan *plan) {
    const bool runs_ahead = plan_has_stages(plan) && (plan_chunks(plan) > 1 || plan_splits_backward(plan));
    const bool few = runs_ahead && plan_round_steps(plan) < 2 * mesh_stages(&plan->mesh);
    return plan->grad_accum == 1 ? ONE_MICRO_STEP : few ? FEW_MICRO_STEPS : ACCUMULATES;
}

ByChoices by_choices_but(uint64_t without) {
    return (ByChoices){.apart = plan_key_bits(without)};
}

PlanKey choices_that(const TrainPlan *plan, Accumulation accumulation) {
    PlanKey choices = plan_key(plan, 0);
    plan_key_add(&choices, accumulation, 2);
    return choices;
}

PlanKey choices_of(const TrainPlan *plan) {
    return choices_that(plan, accumulation_of(plan));
}

ChoiceSlot *choice_slot(Arena *arena, ByChoices *by, const PlanKey *plan) {
    PlanKey choices = *plan;
    for (int i = 0; i < PLAN_KEY_WORDS; i++) {
        choices.words[i] &= ~by->apart.words[i];
    }
    for (size_t i = 0; i < by->count; i++) {
        if (plan_keys_equal(&by->slots[i].choices, &choices)) {
            return &by->slots[i];
        }
    }
    by->slots = arena_grow(arena, by->slots, by->count, &by->capacity, sizeof *by->slots);
    by->slots[by->count] = (ChoiceSlot){.choices = choices};
    return &by->slots[by->count++];
}
