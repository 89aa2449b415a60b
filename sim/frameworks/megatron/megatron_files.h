// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"

extern const ExportFormat export_megatron_flags;
