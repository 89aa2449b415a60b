// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_automodel_yaml;
extern const ImportFormat import_automodel;

const char *automodel_refuse_mesh(const Mesh *mesh, Arena *arena);
