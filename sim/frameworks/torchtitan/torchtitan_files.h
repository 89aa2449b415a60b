// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_torchtitan_toml;
extern const ExportFormat export_torchtitan_python;
extern const ImportFormat import_torchtitan;

const char *torchtitan_refuse(const ConfigJob *job);
void torchtitan_notes(const ConfigJob *job, FILE *out);
