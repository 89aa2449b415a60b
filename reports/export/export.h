// A plan as a file that a framework reads. A format is a row of a framework (sim/frameworks), or one of this folder
// that holds another.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "autotune/result.h"
#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/frameworks/export.h"

// What is exported: the plan of a prediction.
typedef struct ExportJob {
    const TuneRequest *request;
    const Prediction *prediction;
    const char *command;    // the command line that asks, quoted for a shell
    const char *file_name;  // where the file goes; NULL = the format's own name
    Arena *arena;           // of texts
    ConfigJob config;       // export_write fills it in
} ExportJob;

extern const ExportFormat export_sbatch;

// The formats of all frameworks in their order, then sbatch; NULL past the last.
const ExportFormat *export_format_at(int index);
int export_format_count(void);

// By its name; USAGE with the list and a suggestion otherwise.
Status export_find(const char *name, const ExportFormat **format, Error *error);

// Is it of this framework, whatever the version? So is one for any target.
bool export_is_of(const ExportFormat *format, const Target *target);

// The usual format of a target; USAGE where there is none.
Status export_usual(const Target *target, const ExportFormat **format, Error *error);

// Leaves out of a search what no file of the format can say and a shape need not have.
void export_narrow(const ExportFormat *format, TuneRequest *request);

// Can the format express the plan? USAGE with one sentence where it cannot.
Status export_check(const ExportFormat *format, const ExportJob *job, Error *error);

// Writes the whole file. USAGE with one sentence where the format cannot express the plan.
Status export_write(const ExportFormat *format, const ExportJob *job, FILE *out, Error *error);

// The whole file as one text, to be freed; NULL where it cannot be written.
Status export_text(const ExportFormat *format, const ExportJob *job, char **text, Error *error);

// What the user's own code has to do beside the file, to be freed; "" of nothing.
Status export_notes(const ExportFormat *format, const ExportJob *job, char **notes, Error *error);

// The same inside one JSON object, beside the prediction.
Status export_json(const ExportFormat *format, const ExportJob *job, FILE *out, Error *error);
