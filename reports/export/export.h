// A plan as a file that a framework reads. A format is a row of a framework (sim/frameworks), or one in this folder
// that wraps another.

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
    const char *command;    // the requesting command line, quoted for a shell
    const char *file_name;  // output file name; NULL = the format's own name
    Arena *arena;           // for texts
    ConfigJob config;       // export_write fills it in
} ExportJob;

extern const ExportFormat export_sbatch;

// The formats of all frameworks in order, then sbatch; NULL past the last.
const ExportFormat *export_format_at(int index);
int export_format_count(void);

// Finds it by name; USAGE with the list and a suggestion otherwise.
Status export_find(const char *name, const ExportFormat **format, Error *error);

// Does it belong to this framework, in any version? Formats for any target count, too.
bool export_is_of(const ExportFormat *format, const Target *target);

// The default format of a target; USAGE where there is none.
Status export_usual(const Target *target, const ExportFormat **format, Error *error);

// That of a name that takes the target, else its default one; NULL = there is none.
const ExportFormat *export_like(const char *name, const Target *target);

// Restricts a search to choices that the format can express, where a shape does not require others.
void export_narrow(const ExportFormat *format, TuneRequest *request);

// Can the format express the plan? USAGE with a one-sentence reason where it cannot.
Status export_check(const ExportFormat *format, const ExportJob *job, Error *error);

// Writes the whole file. USAGE with a one-sentence reason where the format cannot express the plan.
Status export_write(const ExportFormat *format, const ExportJob *job, FILE *out, Error *error);

// The whole file as one text, freed by the caller; NULL where it cannot be written.
Status export_text(const ExportFormat *format, const ExportJob *job, char **text, Error *error);

// What the user's own code has to do in addition to the file, freed by the caller; "" = nothing.
Status export_notes(const ExportFormat *format, const ExportJob *job, char **notes, Error *error);

// The same inside one JSON object, together with the prediction.
Status export_json(const ExportFormat *format, const ExportJob *job, FILE *out, Error *error);
