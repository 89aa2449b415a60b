// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"

extern const ExportFormat export_trainer;

// What TRL's file has in common with it: arguments of `config`, a class of `package`.
void trainer_write(const ConfigJob *job, const char *package, const char *config, FILE *out);
