// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_deepspeed_json;
extern const ExportFormat export_accelerate_deepspeed;  // in the folder of accelerate, whose file it is
extern const ImportFormat import_deepspeed;

// Of every file with its plans: it shards over all data-parallel ranks. NULL = nothing to refuse.
const char *deepspeed_refuse_replicas(const ConfigJob *job);

// What the script calls by itself of the package, a line each that begins with whose it is.
void deepspeed_call_notes(const ConfigJob *job, const char *whose, FILE *out);
