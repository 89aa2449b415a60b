// Over libsmartcols. Text is never cut to the terminal: a cut number is a wrong number. Whole columns are left out
// where they say which may be missed first, and are named.

#include "reports/grid.h"

#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { CELL_BYTES = 1024, MAX_DROPS = 8 };

struct Grid {
    struct libscols_table *table;
    struct libscols_line *line;
    size_t cell;
    int drops[MAX_DROPS], drop_count;
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
    WITH_VALUES(format, vsnprintf(text, sizeof text, format, values));
    grid->failed = scols_line_set_data(grid->line, grid->cell++, text) != 0;
}

// Width of the widest line; 0 when out of memory.
static int table_width(const Grid *grid) {
    char *text = NULL;
    size_t widest = 0;
    if (scols_print_table_to_string(grid->table, &text) != 0) {
        return 0;
    }
    for (const char *line = text; *line;) {
        const size_t length = strcspn(line, "\n");
        widest = length > widest ? length : widest;
        line += length + (line[length] == '\n');
    }
    free(text);
    return (int)widest;
}

void grid_may_drop(Grid *grid, int column) {
    if (grid && grid->drop_count < MAX_DROPS) {
        grid->drops[grid->drop_count++] = column;
    }
}

// Hides columns until the table fits or none is left to hide; returns how many were hidden.
static int drop_columns(const Grid *grid, int width) {
    int dropped = 0;
    while (dropped < grid->drop_count && table_width(grid) > width) {
        scols_column_set_flags(scols_table_get_column(grid->table, (size_t)grid->drops[dropped++]), SCOLS_FL_HIDDEN);
    }
    return dropped;
}

static void name_dropped(const Grid *grid, int dropped, FILE *out) {
    for (int i = 0; i < dropped; i++) {
        struct libscols_column *column = scols_table_get_column(grid->table, (size_t)grid->drops[i]);
        fprintf(out, "%s%s", i > 0 ? ", " : "(a wider terminal shows ", scols_column_get_name(column));
    }
    fputs(dropped > 0 ? " too)\n" : "", out);
}

Status grid_print_within(Grid *grid, int width, FILE *out, Error *error) {
    bool failed = !grid || grid->failed;
    int dropped = 0;
    if (!failed) {
        dropped = width > 0 ? drop_columns(grid, width) : 0;
        scols_table_set_stream(grid->table, out);
        failed = scols_print_table(grid->table) != 0;
        name_dropped(grid, dropped, out);
    }
    if (grid) {
        scols_unref_table(grid->table);
        free(grid);
    }
    return failed ? error_set(error, STATUS_INTERNAL, "a table could not be printed") : STATUS_OK;
}

Status grid_print(Grid *grid, FILE *out, Error *error) {
    struct winsize size = {0};
    const int file = fileno(out);  // -1: an in-memory stream
    const bool terminal = file >= 0 && isatty(file) == 1 && ioctl(file, TIOCGWINSZ, &size) == 0;
    return grid_print_within(grid, terminal ? size.ws_col : 0, out, error);
}
