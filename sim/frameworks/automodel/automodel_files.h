// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"

extern const ExportFormat export_automodel_yaml;

const char *automodel_refuse_mesh(const Mesh *mesh, Arena *arena);
