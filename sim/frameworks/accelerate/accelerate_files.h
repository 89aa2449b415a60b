// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_accelerate_yaml;
extern const ExportFormat export_accelerate_python;
extern const ExportFormat export_hf_trainer;
extern const ImportFormat import_accelerate;

// Of all three: context parallelism is SDPA's.
const char *accelerate_python_refuse(const ConfigJob *job);
void liger_arguments_write(const ConfigJob *job, FILE *out);     // of TrainingArguments
void optimizer_argument_write(const ConfigJob *job, FILE *out);  // the same
void collator_comment_write(const ConfigJob *job, FILE *out);    // what packs documents
void accelerate_notes(const ConfigJob *job, FILE *out);
void parallelism_config_write(const ConfigJob *job, FILE *out);  // its object of the mesh
