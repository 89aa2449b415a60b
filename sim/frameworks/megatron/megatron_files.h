// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"

extern const ExportFormat export_megatron_flags, export_megatron_bridge;

// Why its rule of layers by stage takes no such mesh; NULL.
const char *megatron_refuse_stages(const ConfigJob *job);
