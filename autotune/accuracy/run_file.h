// Files of measured runs, one row each: the columns that `ndtune accuracy` and calibration read, as plain values.
// Numbers that are given must be numbers; an empty field is unknown.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "autotune/accuracy/csv_file.h"
#include "sim/axes/mesh.h"
#include "sim/plan/plan_fields.h"

enum { RUN_UNKNOWN = -1 };  // of sp and the plan's columns; other unknown numbers are 0, texts ""

// Of a model with experts, and of latent attention; columns that a file goes without.
typedef struct RunExperts {
    int64_t count, active, ffn, shared_ffn, dense_layers;
    int64_t q_rank, kv_rank;
    const char *attention_type;  // "mla": latent attention
} RunExperts;

typedef struct RunRow {
    const char *id, *source;
    const char *source_locator;  // where in the source
    const char *date;            // "YYYY-MM-DD" or "YYYY-MM"
    const char *software;        // container, release or commit: scores are split by it
    const char *path;            // of its file
    int line;
    // what was trained
    const char *model, *mlp;
    double params_b;
    int64_t layers, hidden, heads, kv_heads, ffn, vocab, head_dim;
    RunExperts experts;
    // on what
    const char *cluster, *overrides;
    double gpu_mem_gb;
    // how
    const char *target, *lanes, *precision;
    const char *compiled_or_fused;            // the source's words about kernels, where `fused` is empty
    const char *plan_word[PLAN_FIELD_COUNT];  // of the plan's fields whose column holds words
    int64_t plan_number[PLAN_FIELD_COUNT];    // of the others
    int64_t mesh[AXIS_COUNT], world;
    int64_t seq, micro_batch, grad_accum, global_batch;
    int64_t sp;
    // what was measured
    double step_time_s, tokens_per_s_per_gpu, peak_mem_gb;
    const char *mem_kind;
    int64_t usable, oom_certain;
    const char *half;  // of a set of runs that constants were fitted on in part: what its group says; NULL
} RunRow;

typedef struct RunFile {
    const char *path;  // of several files: all of them
    RunRow *rows;
    int count;
    const char **missing;  // columns that the file, or one of the files, lacks and that are then unknown
    int missing_count;
} RunFile;

// Everything lives in the arena. USAGE: a needed column is missing (all of them are named), a number is none or out of
// range ("path:line:column: ...") in a row that is meant to be scored, an id appears twice.
Status run_file_read(const char *path, Arena *arena, RunFile *file, Error *error);

// The rows of several files, ended by NULL, as if they were one: an id appears in one of them only.
Status run_files_read(const char *const *paths, Arena *arena, RunFile *file, Error *error);

// Sets of rows of a run file that differ in the plan only: a ranking is judged by them.
typedef struct RunGroup {
    const char *name;
    int *rows;  // indices into the run file
    int row_count;
    int unknown_ids;  // that the run file lacks
} RunGroup;

typedef struct RunGroups {
    RunGroup *groups;
    int count;
} RunGroups;

// Columns "group" and "ids" (separated by spaces); with a column "half" ("fitted", "held") the groups' rows get its
// word, of several groups the first one's. Begin with {0}: groups of the files before stay in front.
Status run_groups_read(const char *path, const RunFile *runs, Arena *arena, RunGroups *groups, Error *error);
