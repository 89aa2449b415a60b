// Over libsmartcols. Text is never cut to the terminal: a cut number is a wrong number.

#include "reports/grid.h"

#include <libsmartcols/libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>

enum { CELL_BYTES = 1024 };

struct Grid {
    struct libscols_table *table;
    struct libscols_line *line;
    size_t cell;
    bool failed;
};

Grid *grid_new(const GridColumn *columns, int count) {
    Grid *grid = calloc(1, sizeof *grid);
    if (!grid) {
        return NULL;
    }
    grid->table = scols_new_table();
    grid->failed = !grid->table;
    for (int i = 0; i < count && !grid->failed; i++) {
        grid->failed =
            !scols_table_new_column(grid->table, columns[i].heading, 0, columns[i].right ? SCOLS_FL_RIGHT : 0);
    }
    if (!grid->failed) {
        scols_table_set_termforce(grid->table, SCOLS_TERMFORCE_NEVER);
        scols_table_set_column_separator(grid->table, "  ");
    }
    return grid;
}

void grid_row(Grid *grid) {
    if (!grid || grid->failed) {
        return;
    }
    grid->line = scols_table_new_line(grid->table, NULL);
    grid->cell = 0;
    grid->failed = !grid->line;
}

void grid_cell(Grid *grid, const char *format, ...) {
    if (!grid || grid->failed) {
        return;
    }
    char text[CELL_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    grid->failed = scols_line_set_data(grid->line, grid->cell++, text) != 0;
}

Status grid_print(Grid *grid, FILE *out, Error *error) {
    bool failed = !grid || grid->failed;
    if (!failed) {
        scols_table_set_stream(grid->table, out);
        failed = scols_print_table(grid->table) != 0;
    }
    if (grid) {
        scols_unref_table(grid->table);
        free(grid);
    }
    return failed ? error_set(error, STATUS_INTERNAL, "a table could not be printed") : STATUS_OK;
}
