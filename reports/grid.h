// A terminal table, over libsmartcols: columns once, then rows of cells.

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/base/error.h"

typedef struct Grid Grid;

typedef struct GridColumn {
    const char *heading;
    bool right;  // numbers are right-aligned
} GridColumn;

// NULL when memory is exhausted; every function takes NULL, and grid_print then reports it.
Grid *grid_new(const GridColumn *columns, int count);
void grid_row(Grid *grid);                                                                  // begins the next row
void grid_cell(Grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));  // the next cell of the row
// A column that a narrow terminal may omit; the first one named is dropped first.
void grid_may_drop(Grid *grid, int column);

// The same for a terminal that many characters wide, 0 = unlimited; omitted columns are named below the table.
Status grid_print_within(Grid *grid, int width, FILE *out, Error *error);
Status grid_print(Grid *grid, FILE *out, Error *error);  // within the terminal, where out is one
// Both free the grid.
