// How well predictions agree with published or own measured runs: every row is predicted as `ndtune predict` would,
// then scored alongside a baseline with a single fitted constant.

#pragma once

#include "autotune/accuracy/left_out.h"

typedef struct AccuracyOptions {
    const char *const *runs_paths;                       // NULL-terminated, as are the others
    const char *const *oom_paths, *const *groups_paths;  // NULL = not asked
    Effort effort;
    bool leave_out;  // refit with each source left out: Accuracy.left_out
} AccuracyOptions;

// Errors are predicted / measured - 1.
typedef struct ErrorScore {
    int n;
    double median_abs, p90_abs;
    double bias;         // median of the signed error
    double in_interval;  // share of measured values inside the predicted interval; step times only
    // One constant MFU fitted to these rows, in place of the model; step times only.
    double baseline_mfu, baseline_median_abs, baseline_p90_abs;
    double scaled_median_abs;  // of predictions over their median ratio to what was measured: one fitted number, too
} ErrorScore;

typedef struct ScoreRow {
    const char *target, *cluster, *source, *software, *kind, *half, *class;  // NULL where the score is not split by it
    ErrorScore score;
} ScoreRow;

typedef struct ScoreTable {
    ScoreRow *rows;
    int count;
} ScoreTable;

// What mem_kind says was measured. MEMORY_KIND_UNKNOWN is compared with what the framework logs, or with live bytes
// where that is not known, and counted separately.
typedef enum {
    MEMORY_KIND_ALLOCATED,
    MEMORY_KIND_RESERVED,
    MEMORY_KIND_DEVICE,
    MEMORY_KIND_UNKNOWN,
    MEMORY_KIND_COUNT
} MemoryKind;
extern const char *const memory_kind_names[MEMORY_KIND_COUNT];

typedef struct RankedGroup {
    const char *name;
    int plans;
    double regret, kendall_tau;
    const char *picked, *best;  // rows of the plans predicted and measured fastest, the first of each
} RankedGroup;

typedef struct RankingScore {
    RankedGroup *each;       // of the groups, the highest regret first
    int groups, not_scored;  // not scored: fewer than two distinct plans among the scored rows
    double median_regret, p90_regret, worst_regret, median_kendall_tau;
    double baseline_median_regret, baseline_p90_regret;  // of a plan picked at random: the mean over the plans
    const char *worst_group;
    int unknown_ids;
} RankingScore;

typedef struct OomScore {
    int n, called_infeasible, certain, certain_called_infeasible;
    int feasible_rows, called_feasible;  // rows of the run file whose memory size is known
} OomScore;

typedef struct SkipReason {
    const char *reason;
    int runs, failures;
} SkipReason;

typedef struct Accuracy {
    AccuracyOptions options;
    RunFile runs, failures;
    RunCase *cases;          // of runs.rows
    RunCase *failure_cases;  // of failures.rows
    int scored;
    ErrorScore step, step_measured;  // the latter without rows that their source computed
    ScoreTable step_by, step_by_source, step_by_target;
    ScoreTable step_by_half;      // rows of groups that name a half
    ScoreTable step_by_class;     // by accuracy_class
    ScoreTable step_by_machine;   // source and cluster: what one constant MFU a chip is fitted to
    ScoreTable step_by_software;  // rows that state theirs: source, software, cluster
    ErrorScore memory;            // rows of known kind
    ScoreTable memory_by, memory_by_kind;
    OomScore oom;
    RankingScore ranking, ranking_measured;
    SkipReason *skips;  // sorted by number of rows
    int skip_count;
    LeftOut left_out;
    int *loss_rows;  // per entry of run_case_losses: scored rows it applies to
} Accuracy;

// Results live in the arena. Malformed files are USAGE with the position; inexpressible rows are no error.
Status accuracy_run(const AccuracyOptions *options, const Progress *progress, Arena *arena, Accuracy *accuracy,
                    Error *error);

// ---- of one predicted row; reports and scores both use these

// Whether a step time was measured and predicted.
bool accuracy_has_step(const RunCase *run);
// And no simulator computed it.
bool accuracy_is_measured(const RunCase *run);
// "dense", "stages", "experts" or "adapters": errors in one class say little about another.
const char *accuracy_class(const RunCase *run);
double accuracy_step_error(const RunCase *run);
double accuracy_measured_mfu(const RunCase *run);

// Of a line of step times with rows enough to judge, whether one MFU fitted to the very rows is nearer in the middle.
bool accuracy_is_judged(const ScoreRow *row);
bool accuracy_is_beaten(const ScoreRow *row);
bool accuracy_is_beaten_scaled(const ScoreRow *row);  // after one factor fitted to them as well

MemoryKind accuracy_memory_kind(const RunRow *row);
// False where the row has no memory figure to compare.
bool accuracy_memory(const RunCase *run, MemoryKind *kind, double *measured_bytes, double *predicted_bytes);
