// Run files and predicted rows, one call each.

#pragma once

#include "autotune/accuracy/accuracy.h"

// The required columns, and those that most tests vary.
#define RUNS_HEADER                                                                                                    \
    "id,source,model,layers,hidden,heads,kv_heads,ffn,vocab,mlp,cluster,overrides,target,dp_replicate,dp_shard,cp,tp," \
    "pp,seq_len,micro_batch,grad_accum,zero,recompute,dtype,step_time_s,tokens_per_s_per_gpu,peak_mem_gb,mem_kind,"    \
    "gpu_mem_gb,usable\n"

typedef struct RunLine {
    const char *id;       // default "a"
    const char *source;   // default "ours"
    const char *cluster;  // default "dgx-h100"
    const char *target;   // default "accelerate"
    const char *zero;     // default "3", of one rank "0"
    const char *overrides, *mlp, *recompute, *dtype, *mem_kind;
    int dp_shard, tp, pp, micro_batch;  // default 8, 1, 1, 1
    double step_time_s, peak_mem_gb, gpu_mem_gb;
    bool unusable;
} RunLine;

// A row of llama-3-8b under RUNS_HEADER, in the arena.
const char *run_line(Arena *arena, RunLine line);

// Writes text to a file in a fresh folder; temp_dir_remove(folder) removes both.
const char *run_text_file(Arena *arena, const char *folder, const char *name, const char *text);

// Header and lines as a read file; fails the test with the reason.
RunFile run_file_of(Arena *arena, const char *text);

// The first row of the text as a case.
RunCase text_case(Arena *arena, const char *text);

// The same of a line that has further columns.
RunCase line_case(Arena *arena, RunLine line, const char *columns, const char *values);

// A predicted row: 4096 tokens per step, these times, plan number `plan`.
typedef struct ScoredRow {
    double predicted_s, measured_s, mfu;
    int plan;
    const char *source;
    double peak_bytes, peak_mem_gb;
    const char *mem_kind;
} ScoredRow;

RunCase *scored_rows(Arena *arena, const ScoredRow *rows, int count);
