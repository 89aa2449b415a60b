// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_axolotl_yaml;
extern const ImportFormat import_axolotl;
