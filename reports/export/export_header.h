// A file's descriptive header: versions, batch, figures, launch command.

#pragma once

#include "reports/export/export.h"

// Without comment signs; lines separated by '\n'. Freed by the caller; NULL when out of memory.
char *export_header(const ExportFormat *format, const ExportJob *job);
