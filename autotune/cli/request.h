// From options to a TuneRequest: looks up models, clusters and targets; fills in defaults and reports them.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/result.h"

// Per-command defaults.
typedef struct RequestDefaults {
    const char *cluster;
    const char *target;
    int seq;            // 0 = min(TUNE_DEFAULT_SEQ, the model's)
    bool fp32;          // else bf16 where the profile has it
    bool flash;         // the one attention kernel of the executor, else the target's
    bool small_batch;   // without --global-batch: one sequence per rank
    const char *model;  // NULL = --model is required
    bool single_plan;   // --mesh, --micro-batch and --grad-accum name one plan
} RequestDefaults;

// Fills *request (texts in cli->arena). Errors point at the offending arguments.
Status request_build(Cli *cli, const RequestDefaults *defaults, TuneRequest *request, Error *error);

// The plan named by --mesh and the accompanying options, canonical.
void request_plan(const Cli *cli, const TuneRequest *request, const Mesh *mesh, TrainPlan *plan);

// --pp-schedule FILE.csv: replaces the file by the built-in schedule with the same order, else by `file` and the order
// itself, along with its chunks and micro-steps.
Status request_order_file(Cli *cli, const RequestDefaults *defaults, TuneRequest *request, Error *error);

Status request_mesh(Cli *cli, Mesh *mesh, Error *error);
Status request_one_plan(Cli *cli, const TuneRequest *request, TrainPlan *plan, Error *error);  // both

// A profile without a network cannot hold a world larger than its node; a rank or node index must be within the world.
Status request_check_world(Cli *cli, const TuneRequest *request, Error *error);

extern const RequestDefaults search_defaults;   // of plan and explain
extern const RequestDefaults predict_defaults;  // of predict and export: one plan
extern const RequestDefaults run_defaults;
extern const RequestDefaults preflight_defaults;
extern const RequestDefaults validate_defaults;
