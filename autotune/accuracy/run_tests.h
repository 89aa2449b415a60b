// What Megatron-LM's own functional tests ask for that their rows do not say.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "sim/frameworks/target.h"

bool row_attends_apart(const RunRow *row);  // attention is operations of its own, scores in memory
bool row_is_of_experts(const RunRow *row);  // a test whose experts' switches are known
bool row_is_deterministic(const RunRow *row);
bool row_runs_moonlight(const RunRow *row);   // by Megatron-Bridge's recipe
bool row_fuses_no_choice(const RunRow *row);  // of experts, nor rotary positions
bool row_is_undropped(const RunRow *row);
bool row_updates_by_muon(const RunRow *row);
bool row_is_hybrid(const RunRow *row);  // layers of state-space models among its own
void take_experts_of_test(const RunRow *row, TargetRuntime *runtime);
void take_instances(const RunRow *row, Mesh *mesh);  // of its distributed optimizer
