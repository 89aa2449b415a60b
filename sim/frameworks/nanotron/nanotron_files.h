// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_nanotron_yaml;
extern const ImportFormat import_nanotron;
