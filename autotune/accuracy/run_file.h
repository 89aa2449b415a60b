// Files of measured runs, one row each: the columns that `ndtune accuracy` and calibration read, as plain values. The
// row of a number that cannot be read is not scored; an empty field is unknown or follows from others (run_words.h).

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "autotune/accuracy/csv_file.h"
#include "sim/plan/plan_fields.h"

enum { RUN_UNKNOWN = -1 };  // of sp and the plan's columns; other unknown numbers are 0, texts ""

// For models with experts and for latent attention; optional columns.
typedef struct RunExperts {
    int64_t count, active, ffn, shared_ffn, dense_layers;
    int64_t q_rank, kv_rank, rope, value;  // of a head: what is rotated, and its value
    const char *attention_type;            // "mla": latent attention
} RunExperts;

typedef struct RunRow {
    const char *id, *source;
    const char *source_locator;  // position within the source
    const char *date;            // "YYYY-MM-DD" or "YYYY-MM"
    const char *software;        // container, release or commit: scores are split by it
    const char *path;            // of the run's file
    int line;
    const char *unreadable;  // why it is not scored: the place of a value that cannot be read; NULL
    // what was trained
    const char *model, *mlp;
    double params_b;
    int64_t layers, hidden, heads, kv_heads, ffn, vocab, head_dim;
    RunExperts experts;
    // on what
    const char *cluster, *overrides;
    double gpu_mem_gb;
    int64_t gpus_per_node;  // where the cluster follows from its chip, else 0
    // how
    const char *target, *lanes, *precision;
    const char *attention_precision;          // "fp8": cuDNN multiplies queries, keys and values in it
    const char *compiled_or_fused;            // what the source says about kernels, where `fused` is empty
    const char *plan_word[PLAN_FIELD_COUNT];  // plan fields whose column holds words
    int64_t plan_number[PLAN_FIELD_COUNT];    // the other plan fields
    int64_t mesh[AXIS_COUNT], world;
    int64_t seq, micro_batch, grad_accum, global_batch;
    int64_t sp;
    // what was measured
    double step_time_s, tokens_per_s_per_gpu, peak_mem_gb;
    const char *mem_kind;
    bool says_no_time;    // a step of 0, where an empty one is unknown
    int64_t mem_fullest;  // of stages it is the largest of, whichever its framework logs
    // what the run set beside its plan
    int64_t launch_blocking;        // CUDA_LAUNCH_BLOCKING
    int64_t checked_collectives;    // TORCH_DISTRIBUTED_DEBUG=DETAIL
    int64_t gathers_again;          // inputs of tensor parallelism, in backward: an older code's
    int64_t routes_apart;           // neither moe_router_fusion nor moe_permute_fusion of Megatron-core
    int64_t router_fp32;            // its moe_router_dtype
    int64_t activation_apart;       // not its bias_activation_fusion: act(gate) is kept, its product another kernel
    double dropout, lora_dropout;   // of what attention and MLP add to the stream; of adapters' inputs
    int64_t lora_a2a;               // Megatron-Bridge's a2a_experimental
    const char *attention_dropout;  // of its probabilities: "0" = none
    const char *cublas_workspaces;  // CUBLAS_WORKSPACE_CONFIG of its environment
    const char *balance;            // how tokens were spread over experts: "forced", "natural", "real (..)"
    int64_t usable, oom, oom_certain;
    const char *half;  // of a set of runs, part of which constants were fitted on: as its group says; NULL
} RunRow;

typedef struct RunFile {
    const char *path;  // of several files: all of them, joined
    RunRow *rows;
    int count;
    const char **missing;  // columns absent from the file (or one of the files), thus unknown
    int missing_count;
} RunFile;

// Everything lives in the arena. USAGE: a required column is missing (all are named), no row can be read (its first bad
// number is named as "path:line:column: ..."), or an id is duplicated.
Status run_file_read(const char *path, Arena *arena, RunFile *file, Error *error);

// The rows of several files, NULL-terminated, as if they were one: ids are unique across all of them.
Status run_files_read(const char *const *paths, Arena *arena, RunFile *file, Error *error);

// Moves the rows that ran out of memory behind those of `failures`.
void run_file_split(RunFile *runs, RunFile *failures, Arena *arena);

// Sets of rows of a run file that differ in the plan only, for judging rankings.
typedef struct RunGroup {
    const char *name;
    int *rows;  // indices into the run file
    int row_count;
    int unknown_ids;  // absent from the run file
} RunGroup;

typedef struct RunGroups {
    RunGroup *groups;
    int count;
} RunGroups;

// Columns "group" and "ids" (separated by spaces); with a column "half" ("fitted", "held") the groups' rows get its
// value, from the first group where a row is in several. Begin with {0}: groups of earlier files stay in front.
Status run_groups_read(const char *path, const RunFile *runs, Arena *arena, RunGroups *groups, Error *error);
