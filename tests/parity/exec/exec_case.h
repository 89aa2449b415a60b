// Real runs for tests: a small model, a global batch of 8 sequences on every mesh, and the comparison with one rank.

#pragma once

#include "exec/launch/launch.h"

enum { CASE_BATCH = 8, CASE_STEPS = 20, CASE_SEQ = 64 };

// For pairwise coverings, which have many runs: lengths are not among the choices combined.
enum { PAIRS_STEPS = 6, PAIRS_SEQ = 32, EXPERTS_STEPS = 4 };

// 2 layers, hidden 64, 16 query heads on 8 key heads, vocabulary 256: every axis may have size 8.
ModelSpec case_model(void);

// Options as tests want them: 20 steps, seed 7.
RunOptions case_options(void);

// A plan of the batch on this mesh; micro_batch follows from grad_accum. False if 8 sequences do not divide so.
bool case_plan(const Mesh *mesh, int grad_accum, TrainPlan *plan);
TrainPlan case_sharded_plan(Mesh mesh);  // one micro-step, stage 3, canonical

RunRequest case_request(const TrainPlan *plan, const RunOptions *options);  // of case_model on target ndtune

// Runs it; fails the test with the error otherwise.
RunResult case_run(const TrainPlan *plan, const RunOptions *options, Arena *arena);
RunResult case_run_request(const RunRequest *request, Arena *arena);
RunResult case_run_by(const char *worker, const RunRequest *request,
                      Arena *arena);  // a program other than ndtune-worker

// The same with a state file: kept is the option that names it (moments_path, weights_path). *bytes of its content.
RunResult case_run_keeping(RunRequest *request, const char **kept, Arena *arena, char **content, int64_t *bytes);
Status case_try(const TrainPlan *plan, const RunOptions *options, Arena *arena, RunResult *result, Error *error);

typedef struct Deviation {
    double loss_first, loss_last, norm_first, norm_last;  // relative
} Deviation;

// Expects that the run trained as the reference did: loss and gradient norm within 2e-6 at step 1 (rounding of fp32
// sums in another order, sim/SOURCES.md X3) and 1e-4 at step 20, less at an earlier last one (that rounding, grown by
// training), and that it touched the memory that was planned. Widens *worst.
void case_expect_same(const RunRequest *request, const RunResult *run, const RunResult *reference, Deviation *worst);
