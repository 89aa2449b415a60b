// What a target refuses of a plan, by choice: why, in one sentence (arena text); NULL: it runs it.

#pragma once

#include "sim/frameworks/target.h"

const char *expert_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
const char *fp8_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
const char *op_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
const char *optimizer_rule(const Target *target, const TrainPlan *plan, Arena *arena);
const char *pack_rule(const Target *target, const TrainPlan *plan, Arena *arena);
const char *recompute_rule(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena);
