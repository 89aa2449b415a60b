// A user's training config file as a request: its plan, and the search for a better one with the same batch. Settings
// in the file replace the corresponding options.

#pragma once

#include "autotune/cli/cli.h"
#include "reports/import_report.h"

typedef struct ConfigFile {
    Import import;
    TuneRequest request;  // the search is free in what a shape goes with, and keeps the file's batch, sequence length,
                          // precision and kernels
    TrainPlan plan;       // canonical; empty where the import was refused
} ConfigFile;

// Reads the file, or, where root is not NULL, that tree in its place. Errors in the file point at that argument of the
// command line. A file that does not yield a request is an error; one that its framework refuses is not.
Status config_file_read(Cli *cli, const char *path, int argument, ConfigNode *root, ConfigFile *file, Error *error);

// The plan alone.
Status config_file_predict(Cli *cli, const ConfigFile *file, OnePlan *one, Error *error);

// What to change in the file. Texts in the arena.
Status config_file_advise(Cli *cli, ConfigFile *file, ImportReport *report, Error *error);
