// How a target resolves plan fields left open: its own value, and the values that a search may try.

#pragma once

#include "sim/frameworks/target.h"
#include "sim/plan/plan_fields.h"

// Elements of the smaller buckets of reductions that a search tries: the fewest that cost a step about 1 % at most
// (DeepSpeed, stages 1 to 3, 1b to 8b on 8 to 64 ranks: 1.15 %; 5e7 up to 3.4 %). Larger ones than its own 5e8 gain
// nothing.
enum { TARGET_SMALL_BUCKET = 100000000 };

// Chunks of layers on a stage that a search tries at most: more save little of a bubble and send as many more messages.
enum { TARGET_MOST_CHUNKS = 8 };

// The value of a field that is left to the target, given the plan's mesh and the fields above it.
int target_usual(const Target *target, const TrainPlan *plan, PlanFieldId id);

// What reports tell of a field: plan_told, but where a value stands for the target's own that value is told.
int target_told(const Target *target, const TrainPlan *plan, PlanFieldId id);

// Canonical for this target: what is its own is left to it, so that a plan is the same whether that was given or not.
void target_canonical(const Target *target, TrainPlan *plan);

// Of two plans that differ only in micro-batch, micro-steps and rank order: is all that this file says of their choices
// the same?
bool target_choices_alike(const Target *target, const TrainPlan *a, const TrainPlan *b);

// Are there values other than the target's own to choose from, on any plan?
bool target_has_choice(const Target *target, PlanFieldId id);

// Why no plan of the target for the model has that value: one sentence, arena text; NULL: as far as this tells without
// the rest of a plan (target_check), some do. Asked too of what was said, of which plans drop what changes nothing.
const char *target_refuses(const Target *target, PlanFieldId id, int value, Arena *arena);
// Of op_fuser=on beside this fp8_recipe (another number: none) and this model.
const char *target_refuses_fused(const Target *target, const ModelSpec *model, int recipe, Arena *arena);

// The value that is no slower and needs no more memory than the others which the target offers, whatever else the plan
// says; PLAN_ANY where there is none.
int target_outdoing(const Target *target, const TrainPlan *plan, PlanFieldId id);

// Does a search at that stage try another one than its own?
bool target_searches(const Target *target, int zero, PlanFieldId id);

// Do targets differ in it?
bool target_decides(PlanFieldId id);

// Does a search take the value of the field that just fits in memory?
bool target_fits(const Target *target, PlanFieldId id);

// Does a search of the field try this value, given the plan's mesh and stage? What is no choice there is not tried
// twice; a value not offered may be requested, and target_check then decides.
bool target_offers(const Target *target, const TrainPlan *plan, PlanFieldId id, int value);
