// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_deepspeed_json;
extern const ExportFormat export_accelerate_deepspeed;  // in the folder of accelerate, whose file it is
extern const ImportFormat import_deepspeed;
