// What Megatron-LM's own functional tests ask for that their rows do not say.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "sim/frameworks/target.h"

bool row_is_of_core(const RunRow *row);  // such a test, of Megatron-core's default version
bool row_has_local_layers(const RunRow *row);
bool row_attends_apart(const RunRow *row);   // attention is operations of its own, scores in memory
bool row_is_of_experts(const RunRow *row);   // a test whose experts' switches are known
bool row_adds_gradients(const RunRow *row);  // a test of Megatron-core with --no-gradient-accumulation-fusion
bool row_is_deterministic(const RunRow *row);
bool row_runs_moonlight(const RunRow *row);   // by Megatron-Bridge's recipe
bool row_fuses_no_choice(const RunRow *row);  // of experts, nor rotary positions
bool row_turns_apart(const RunRow *row);      // rotary positions by operations of PyTorch
bool row_has_plain_gelu(const RunRow *row);
bool row_drops_in_test(const RunRow *row);
bool row_has_test_loss(const RunRow *row, const Target *target);
double row_workspace_bytes(const RunRow *row);  // of each cuBLAS handle; 0 = its own
bool row_sets_workspaces(const RunRow *row);
void row_take_latent_head(const RunRow *row, int *head_dim, LatentAttention *latent);  // what is still 0
void row_take_structure(const RunRow *row, ModelSpec *model);                          // once its sizes are set
bool row_deals_by_layer(const RunRow *row);
bool row_hashes_weights(const RunRow *row);                    // of all ranks after each step
const RunRow *row_as_tested(const RunRow *row, Arena *arena);  // with what its columns leave out
bool row_is_hybrid(const RunRow *row);                         // layers of state-space models among its own
void take_experts_of_test(const RunRow *row, TargetRuntime *runtime);
void take_instances(const RunRow *row, Mesh *mesh);  // of its distributed optimizer
