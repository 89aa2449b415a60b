// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_deepspeed_json;
extern const ExportFormat export_accelerate_deepspeed;  // in the folder of accelerate, whose file it is
extern const ImportFormat import_deepspeed;

// Of every file with its plans: it shards over all data-parallel ranks. NULL = nothing to refuse.
const char *deepspeed_refuse_replicas(const ConfigJob *job);
