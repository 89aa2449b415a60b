// From options to a TuneRequest: models, clusters and targets are found, defaults are filled and said.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/result.h"

// What each command assumes where nobody says otherwise.
typedef struct RequestDefaults {
    const char *cluster;
    const char *target;
    int seq;            // 0 = min(TUNE_DEFAULT_SEQ, the model's)
    bool fp32;          // else bf16 where the profile has it
    bool flash;         // the one attention kernel of the executor, else the target's
    bool small_batch;   // without --global-batch: a sequence per rank
    const char *model;  // NULL = --model is needed
    bool single_plan;   // --mesh, --micro-batch and --grad-accum name one plan
} RequestDefaults;

// Fills *request (texts in cli->arena). Points at the words at fault.
Status request_build(Cli *cli, const RequestDefaults *defaults, TuneRequest *request, Error *error);

// Our executor on CPUs runs lanes one after another unless --lanes async: then nothing overlaps.
void request_serial(const Cli *cli, TuneRequest *request);

// The plan that --mesh and its companions name, canonical.
void request_plan(const Cli *cli, const TuneRequest *request, const Mesh *mesh, TrainPlan *plan);

// --pp-schedule FILE.csv: puts the schedule that has its order, else `file` and the order itself, and its chunks and
// micro-steps in the place of the file.
Status request_order_file(Cli *cli, const RequestDefaults *defaults, TuneRequest *request, Error *error);

Status request_mesh(Cli *cli, Mesh *mesh, Error *error);
Status request_one_plan(Cli *cli, const TuneRequest *request, TrainPlan *plan, Error *error);  // both

// A profile without a network cannot hold a larger world than its node; no world has a rank or node beyond its last.
Status request_check_world(Cli *cli, const TuneRequest *request, Error *error);

extern const RequestDefaults search_defaults;   // of plan and explain
extern const RequestDefaults predict_defaults;  // of predict and export: one plan
extern const RequestDefaults run_defaults;
extern const RequestDefaults preflight_defaults;
extern const RequestDefaults validate_defaults;
