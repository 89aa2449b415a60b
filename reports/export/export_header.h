// What a file says about itself: versions, batch, figures, launch command.

#pragma once

#include "reports/export/export.h"

// Without comment signs; lines separated by '\n'. To be freed; NULL without memory.
char *export_header(const ExportFormat *format, const ExportJob *job);
