// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"

extern const ExportFormat export_megatron_flags, export_megatron_bridge;

// The words of the modules that recompute=selective makes again, the first and each further one by its format.
void megatron_modules(const ConfigJob *job, const char *first, const char *next, FILE *out);

// Why its rule of layers by stage takes no such mesh; NULL.
const char *megatron_refuse_stages(const ConfigJob *job);
