// A config file that somebody trains with, as a question: its plan, and the search for a better one with the same
// batch. What the file says stands in for the options that say the same.

#pragma once

#include "autotune/cli/cli.h"
#include "reports/import_report.h"

typedef struct ConfigFile {
    Import import;
    TuneRequest request;  // the search is free in what a shape goes with, and keeps the file's batch, sequence length,
                          // precision and kernels
    TrainPlan plan;       // canonical; nothing where the import has a refusal
} ConfigFile;

// The options are changed to what the file says. Errors in the file point at that argument of the command line. A file
// from which no request follows is an error, one that its framework refuses is not.
Status config_file_read(Cli *cli, const char *path, int argument, ConfigFile *file, Error *error);

// The same of a tree: of the file at `path`, changed.
Status config_file_read_tree(Cli *cli, const char *path, ConfigNode *root, ConfigFile *file, Error *error);

// The plan alone: *reason NULL where it runs and fits; `legal` where only memory is in the way.
Status config_file_predict(Cli *cli, const ConfigFile *file, Prediction *own, bool *legal, const char **reason,
                           Error *error);

// What to change in the file. Texts in the arena.
Status config_file_advise(Cli *cli, ConfigFile *file, ImportReport *report, Error *error);

// STATUS_OK where the plan runs and fits, else the sentence that says why not.
Status config_file_verdict(const ImportReport *report, Error *error);
