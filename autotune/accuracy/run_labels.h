// What the code of a run did beyond the columns of its row, and what its words mean.

#pragma once

#include "autotune/accuracy/run_file.h"
#include "sim/cluster/cluster.h"
#include "sim/frameworks/target.h"
#include "sim/plan/plan.h"

bool row_ran_before(const RunRow *row, const char *date);  // without a date it ran today's
GraphUse row_graphs(const RunRow *row);
bool row_says_uncompiled(const RunRow *row);
bool row_says_liger(const RunRow *row);
bool row_is_traced(const RunRow *row);          // its graph, which is run in place of the modules
bool row_is_plain_trace(const RunRow *row);     // collectives and kernels of its traced graphs wait where they stand
bool row_has_full_inductor(const RunRow *row);  // which compiles all of a step, not layers
bool row_skips_upcast(const RunRow *row);
bool row_repeats_keys(const RunRow *row);  // for each query head, before flash attention
bool row_keeps_logits(const RunRow *row);  // in bf16, beside the loss's fp32 copies
bool row_casts_states(const RunRow *row);  // of a precision-aware optimizer in bf16
bool row_runs_casting_liger(const RunRow *row);
bool row_runs_engine_2_11(const RunRow *row);
bool row_runs_engine_2_7(const RunRow *row);
bool row_is_computed(const RunRow *row);            // by its source's simulator
bool row_keeps_script_defaults(const RunRow *row);  // gradients are scaled apart, and looked through for NaN
void take_script_defaults(const RunRow *row, TargetRuntime *runtime);
bool row_drops(const RunRow *row);  // what attention and MLP add to the stream
AttentionKernel row_attention(const RunRow *row, AttentionKernel labelled);
bool row_router_learns(const RunRow *row);  // which experts get how many tokens is its own
bool row_router_begins(const RunRow *row);  // and nothing has balanced it
bool row_repeats_words(const RunRow *row);  // so that its tokens are alike
bool row_gates_in_turn(const RunRow *row);
bool row_is_paddle(const RunRow *row);          // whatever target it names
bool row_is_flagscale(const RunRow *row);       // the layers of Megatron-LM before its core, in FlagScale of 2023
bool row_gathers_on_demand(const RunRow *row);  // updated weights, where they are needed
bool row_is_nemotron(const RunRow *row);        // dense: a plain MLP with squared ReLU, which the column calls gelu
bool row_squares_apart(const RunRow *row);      // and that is two operations
bool row_lacks_sp(const RunRow *row);
bool row_prints_live(const RunRow *row);                         // where it says that memory is what was reserved
int64_t row_sequence(const RunRow *row, const TrainPlan *plan);  // tokens of one, by its measurements where they say

// What recipes set, and what the libraries of the row's date had.
bool row_is_fp8_recipe(const RunRow *row, const Target *target);
bool row_has_recipe_overlap(const RunRow *row, const Target *target, const TrainPlan *plan);
bool row_has_recipe_loss(const RunRow *row, const Target *target, const TrainPlan *plan);
bool row_fuses_experts(const RunRow *row);
bool row_attends_in_fp8(const RunRow *row);
bool row_has_fp8_head(const RunRow *row);
bool row_records_streams(const RunRow *row);
bool row_pads_rows(const RunRow *row);
bool row_has_delayed_scale(const RunRow *row, const Target *target, const TrainPlan *plan);
void row_take_container(const RunRow *row, int head_dim, Accelerator *accelerator);
void row_take_libraries(const RunRow *row, Accelerator *accelerator);
