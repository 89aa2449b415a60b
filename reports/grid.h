// A table for a terminal, over libsmartcols: columns once, then rows of cells.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/base/error.h"

typedef struct Grid Grid;

typedef struct GridColumn {
    const char *heading;
    bool right;  // numbers stand right
} GridColumn;

// NULL when memory is exhausted; every function takes NULL, and grid_print then reports it.
Grid *grid_new(const GridColumn *columns, int count);
void grid_row(Grid *grid);                                                                  // begins the next row
void grid_cell(Grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));  // the next cell of the row
Status grid_print(Grid *grid, FILE *out, Error *error);                                     // and frees
