// The columns of a run file as a table: name, type, offset in RunRow, range. A new column is a row here and a field
// there; that of a new plan field follows from the plan's own table. Meanings of the columns:
// tests/accuracy/runs/README.md.

#include "autotune/accuracy/run_file.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/run_words.h"
#include "sim/base/escape.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster.h"

typedef enum { COLUMN_TEXT, COLUMN_INT, COLUMN_NUMBER } ColumnType;

// A file without the column: an error, read with a word about it, read without one. OPTIONAL, as an axis that is not
// named is 1, a model without experts has none, only failures have a certainty and the software only splits scores.
typedef enum { NEEDED, MISSED, OPTIONAL } Absence;

typedef struct Column {
    const char *name;
    ColumnType type;
    size_t offset;
    Absence absence;
    int64_t low, high, unknown;  // COLUMN_INT; COLUMN_NUMBER: 0..high
} Column;

#define AT(field) offsetof(RunRow, field)
#define TEXT(name, field, absence)                                                                                     \
    { name, COLUMN_TEXT, AT(field), absence, 0, 0, 0 }
#define COUNT(name, field, absence, high)                                                                              \
    { name, COLUMN_INT, AT(field), absence, 1, high, 0 }
#define AXIS_COUNT_COLUMN(symbol, name, role, lenders)                                                                 \
    COUNT(#name, mesh[AXIS_##symbol], (AXES_FIRST & AXIS_BIT(AXIS_##symbol)) ? NEEDED : OPTIONAL, MESH_MAX_WORLD),
#define CHOICE(name, field, absence, low, high)                                                                        \
    { name, COLUMN_INT, AT(field), absence, low, high, RUN_UNKNOWN }
#define MAYBE(name, field, high)                                                                                       \
    { name, COLUMN_INT, AT(field), OPTIONAL, 0, high, 0 }
#define NUMBER(name, field, absence, high)                                                                             \
    { name, COLUMN_NUMBER, AT(field), absence, 0, high, 0 }

static const Column columns[] = {
    TEXT("id", id, NEEDED),
    TEXT("source", source, MISSED),
    TEXT("source_locator", source_locator, MISSED),
    TEXT("date", date, MISSED),
    TEXT("software", software, OPTIONAL),
    TEXT("model", model, NEEDED),
    TEXT("mlp", mlp, MISSED),
    NUMBER("params_b", params_b, MISSED, 1000000),
    COUNT("layers", layers, MISSED, 1 << 16),
    COUNT("hidden", hidden, MISSED, 1 << 20),
    COUNT("heads", heads, MISSED, 1 << 16),
    COUNT("kv_heads", kv_heads, MISSED, 1 << 16),
    COUNT("ffn", ffn, MISSED, 1 << 24),
    COUNT("vocab", vocab, MISSED, 1 << 24),
    COUNT("head_dim", head_dim, MISSED, 1 << 16),
    COUNT("experts", experts.count, OPTIONAL, 1 << 20),
    COUNT("topk", experts.active, OPTIONAL, 1 << 20),
    COUNT("moe_ffn", experts.ffn, OPTIONAL, 1 << 24),
    MAYBE("shared_ffn", experts.shared_ffn, 1 << 24),
    MAYBE("dense_layers", experts.dense_layers, 1 << 16),
    MAYBE("q_lora", experts.q_rank, 1 << 20),
    MAYBE("kv_lora", experts.kv_rank, 1 << 20),
    MAYBE("qk_rope_head_dim", experts.rope, 1 << 16),
    MAYBE("v_head_dim", experts.value, 1 << 16),
    TEXT("attention_type", experts.attention_type, OPTIONAL),
    TEXT("cluster", cluster, NEEDED),
    TEXT("overrides", overrides, MISSED),
    NUMBER("gpu_mem_gb", gpu_mem_gb, MISSED, 1000000),
    COUNT("gpus_per_node", gpus_per_node, OPTIONAL, 1 << 16),
    TEXT("target", target, NEEDED),
    TEXT("reshard", plan_word[PLAN_RESHARD], MISSED),
    TEXT("lanes", lanes, MISSED),
    TEXT("recompute", plan_word[PLAN_RECOMPUTE], MISSED),
    TEXT("attention", plan_word[PLAN_ATTENTION], MISSED),
    TEXT("attention_precision", attention_precision, OPTIONAL),
    TEXT("precision", precision, MISSED),
    TEXT("dtype", plan_word[PLAN_PRECISION], MISSED),
    TEXT("fused", plan_word[PLAN_FUSED], MISSED),
    TEXT("compiled_or_fused", compiled_or_fused, OPTIONAL),
    TEXT("cp_algo", plan_word[PLAN_CP_ROTATE], MISSED),
    TEXT("fp8_recipe", plan_word[PLAN_FP8_RECIPE], MISSED),
    AXIS_LIST(AXIS_COUNT_COLUMN) COUNT("world", world, MISSED, MESH_MAX_WORLD),
    COUNT("seq_len", seq, NEEDED, 1 << 24),
    COUNT("micro_batch", micro_batch, NEEDED, 1 << 20),
    COUNT("grad_accum", grad_accum, MISSED, 1 << 20),
    COUNT("global_batch_seqs", global_batch, MISSED, 1 << 30),
    CHOICE("zero", plan_number[PLAN_ZERO], MISSED, 0, 3),
    CHOICE("sp", sp, MISSED, 0, 1),
    CHOICE("tp_overlap", plan_number[PLAN_TP_OVERLAP], MISSED, 0, 1),
    NUMBER("step_time_s", step_time_s, MISSED, 10000000),
    NUMBER("tokens_per_s_per_gpu", tokens_per_s_per_gpu, MISSED, 1000000000000),
    NUMBER("peak_mem_gb", peak_mem_gb, MISSED, 1000000),
    TEXT("mem_kind", mem_kind, MISSED),
    MAYBE("mem_fullest", mem_fullest, 1),
    NUMBER("dropout", dropout, OPTIONAL, 1),
    TEXT("attention_dropout", attention_dropout, OPTIONAL),
    NUMBER("lora_dropout", lora_dropout, OPTIONAL, 1),
    MAYBE("lora_a2a", lora_a2a, 1),
    MAYBE("launch_blocking", launch_blocking, 1),
    MAYBE("checked_collectives", checked_collectives, 1),
    MAYBE("gathers_again", gathers_again, 1),
    MAYBE("routes_apart", routes_apart, 1),
    MAYBE("router_fp32", router_fp32, 1),
    MAYBE("activation_apart", activation_apart, 1),
    TEXT("cublas_workspaces", cublas_workspaces, OPTIONAL),
    TEXT("balance", balance, OPTIONAL),
    {"usable", COLUMN_INT, AT(usable), MISSED, 0, 1, 1},
    MAYBE("oom", oom, 1),
    {"oom_certain", COLUMN_INT, AT(oom_certain), OPTIONAL, 0, 1, 0},
};

enum { OWN_COLUMNS = sizeof columns / sizeof columns[0], MOST_COLUMNS = OWN_COLUMNS + PLAN_FIELD_COUNT };

// Every column and its index in the file; -1 = absent.
typedef struct Layout {
    Column columns[MOST_COLUMNS];
    int count, at[MOST_COLUMNS];
} Layout;

static bool is_within(const Column *column, size_t first, size_t bytes) {
    return column->offset >= first && column->offset < first + bytes;
}

static void layout_fill(Layout *layout) {
    memcpy(layout->columns, columns, sizeof columns);
    layout->count = OWN_COLUMNS;
    for (int i = 0; i < OWN_COLUMNS; i++) {
        if (is_within(&columns[i], AT(mesh), sizeof((RunRow *)0)->mesh)) {
            const size_t axis = (columns[i].offset - AT(mesh)) / sizeof((RunRow *)0)->mesh[0];
            layout->columns[i].name = axis_run_column((Axis)axis);
        }
    }
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        const PlanField *field = &plan_fields[id];
        if (field->column && !TEXT_FIND(columns, OWN_COLUMNS, name, field->column)) {
            layout->columns[layout->count++] =
                field->column_is_number
                    ? (Column)CHOICE(field->column, plan_number[0], OPTIONAL, field->low, field->high)
                    : (Column)TEXT(field->column, plan_word[0], OPTIONAL);
            layout->columns[layout->count - 1].offset +=
                (size_t)id * (field->column_is_number ? sizeof(int64_t) : sizeof(const char *));
        }
    }
}

static Status layout_find(const CsvTable *table, Layout *layout, Arena *arena, RunFile *file, Error *error) {
    const char **missing = ARENA_ARRAY(arena, const char *, OWN_COLUMNS);
    const char *needed = "";
    layout_fill(layout);
    for (int i = 0; i < layout->count; i++) {
        const Column *column = &layout->columns[i];
        layout->at[i] = csv_column(table, column->name);
        const char *source = run_word_source(column->name, 0);
        const bool follows = source && csv_column(table, source) >= 0;
        if (layout->at[i] < 0 && column->absence == NEEDED && !follows) {
            needed = arena_format(arena, "%s%s%s", needed, needed[0] ? ", " : "", column->name);
        } else if (layout->at[i] < 0 && column->absence == MISSED) {
            missing[file->missing_count++] = column->name;
        }
    }
    file->missing = missing;
    if (!needed[0]) {
        return STATUS_OK;
    }
    error_set(error, STATUS_USAGE, "%s:1: the header lacks columns that are needed: %s", table->path, needed);
    return error_hint(error, "ndtune help accuracy names the columns of a run file");
}

static Status bad_value(const char *path, const CsvField *field, const Column *column, Error *error) {
    return error_set(error, STATUS_USAGE, "%s:%d:%d: %s takes %s from %lld to %lld, not \"%s\"", path, field->line,
                     field->column, column->name, column->type == COLUMN_INT ? "a whole number" : "a number",
                     (long long)column->low, (long long)column->high, field->text);
}

// Tables that once held an empty field write whole numbers as 16.0.
static bool parse_whole(const char *text, int64_t *number) {
    char digits[24];
    const size_t length = strlen(text);
    const bool decimal = length > 2 && length < sizeof digits && strcmp(text + length - 2, ".0") == 0;
    if (decimal) {
        snprintf(digits, sizeof digits, "%.*s", (int)length - 2, text);
    }
    return text_parse_int(decimal ? digits : text, number);
}

static Status value_read(const char *path, const CsvField *field, const Column *column, void *value, Error *error) {
    const bool empty = field->text[0] == '\0';
    FAIL_IF(column->type == COLUMN_TEXT && !text_is_line(field->text), error, STATUS_USAGE,
            "%s:%d:%d: %s must be one line of UTF-8 without control characters", path, field->line, field->column,
            column->name);
    if (column->type == COLUMN_TEXT) {
        *(const char **)value = field->text;
    } else if (column->type == COLUMN_INT) {
        int64_t *number = value;
        *number = column->unknown;
        FAIL_WITH(!empty && (!parse_whole(field->text, number) || *number < column->low || *number > column->high),
                  bad_value(path, field, column, error));
    } else {
        double *number = value;
        *number = 0;
        FAIL_WITH(!empty &&
                      (!text_parse_double(field->text, number) || !(*number >= 0) || *number > (double)column->high),
                  bad_value(path, field, column, error));
    }
    return STATUS_OK;
}

// Its numbers are unknown, whatever they say: "grad_accum 0" may be why the row is unusable.
static bool is_marked_unusable(const CsvTable *table, int index) {
    const int at = csv_column(table, "usable");
    return at >= 0 && strcmp(csv_field(table, index, at)->text, "0") == 0;
}

static const char *other_text(const CsvTable *table, int index, const char *name) {
    const int at = csv_column(table, name);
    return at < 0 ? "" : csv_field(table, index, at)->text;
}

// A chip's usual node, where the column has its name or is empty and another one has it.
static const char *cluster_text(const CsvTable *table, int index, const char *text, Arena *arena) {
    const char *chip = text[0] != '\0' ? text : other_text(table, index, run_word_source("cluster", 0));
    return run_word_cluster(chip, other_text(table, index, "gpu_mem_gb"), text[0] == '\0', arena);
}

// The text of a column: by its own words, or by other columns where it is empty.
static const char *column_text(const CsvTable *table, int index, const char *name, const char *text, Arena *arena) {
    if (strcmp(name, "cluster") == 0) {
        return cluster_text(table, index, text, arena);
    }
    const char *said = run_word(name, text, arena), *source = NULL;
    for (int i = 0; said[0] == '\0' && (source = run_word_source(name, i)) != NULL; i++) {
        said = run_word_from(name, other_text(table, index, source), arena);
    }
    return said;
}

// Is it a chip's name, whose usual node is taken?
static bool is_chip(const char *cluster) {
    const char *profile = cluster_built_in(cluster);
    return profile && strcmp(profile, cluster) != 0;
}

// A profile that is named has its own ranks of a node; a step of 0 is told from an empty one.
static void take_said(const CsvTable *table, int index, RunRow *row) {
    const char *cluster = other_text(table, index, "cluster");
    row->gpus_per_node = cluster[0] == '\0' || is_chip(cluster) ? row->gpus_per_node : 0;
    row->says_no_time = row->step_time_s == 0 && other_text(table, index, "step_time_s")[0] != '\0';
}

static Status row_read(const CsvTable *table, int index, const Layout *layout, Arena *arena, RunRow *row,
                       Error *error) {
    static const CsvField absent = {.text = ""};
    const bool unusable = is_marked_unusable(table, index);
    for (int i = 0; i < layout->count; i++) {
        const Column *column = &layout->columns[i];
        CsvField field = layout->at[i] < 0 ? absent : *csv_field(table, index, layout->at[i]);
        const bool forgotten = unusable && column->type != COLUMN_TEXT && column->offset != AT(usable);
        field.text = forgotten ? "" : column_text(table, index, column->name, field.text, arena);
        Error unread = {0};
        if (value_read(table->path, &field, column, (char *)row + column->offset, &unread) != STATUS_OK) {
            row->unreadable = row->unreadable ? row->unreadable : arena_text(arena, unread.message);
            TRY(value_read(table->path, &absent, column, (char *)row + column->offset, error));
        }
    }
    take_said(table, index, row);
    const CsvField *id = csv_field(table, index, layout->at[0]);
    row->path = table->path;
    row->line = id->line;
    FAIL_IF(row->id[0] == '\0', error, STATUS_USAGE, "%s:%d:%d: the id is empty", table->path, id->line, id->column);
    return STATUS_OK;
}

// A file of which no row can be read is not one of runs.
static Status check_readable(const RunFile *file, Error *error) {
    const char *first = NULL;
    for (int i = 0; i < file->count; i++) {
        if (!file->rows[i].unreadable) {
            return STATUS_OK;
        }
        first = first ? first : file->rows[i].unreadable;
    }
    return first ? error_set(error, STATUS_USAGE, "%s", first) : STATUS_OK;
}

static int compare_ids(const void *a, const void *b) {
    return strcmp((*(const RunRow *const *)a)->id, (*(const RunRow *const *)b)->id);
}

// The rows sorted by id, for fast lookup.
static const RunRow **rows_by_id(const RunFile *file, Arena *arena) {
    const RunRow **sorted = ARENA_ARRAY(arena, const RunRow *, file->count);
    for (int i = 0; i < file->count; i++) {
        sorted[i] = &file->rows[i];
    }
    qsort(sorted, (size_t)file->count, sizeof *sorted, compare_ids);
    return sorted;
}

static Status check_ids(const RunFile *file, Arena *arena, Error *error) {
    const RunRow **sorted = rows_by_id(file, arena);
    for (int i = 1; i < file->count; i++) {
        if (strcmp(sorted[i - 1]->id, sorted[i]->id) == 0) {
            const bool turned = sorted[i - 1] > sorted[i];
            const RunRow *first = sorted[turned ? i : i - 1], *second = sorted[turned ? i - 1 : i];
            const bool elsewhere = strcmp(first->path, second->path) != 0;
            return error_set(error, STATUS_USAGE, "%s:%d: the id \"%s\" is that of line %d%s%s too", second->path,
                             second->line, second->id, first->line, elsewhere ? " of " : "",
                             elsewhere ? first->path : "");
        }
    }
    return STATUS_OK;
}

// A profile's path is relative to the folder of the run file.
static void place_cluster(const char *path, Arena *arena, RunRow *row) {
    const char *slash = strrchr(path, '/');
    if (slash && row->cluster[0] != '/' && text_is_path(row->cluster)) {
        row->cluster = arena_format(arena, "%.*s%s", (int)(slash + 1 - path), path, row->cluster);
    }
}

static void note_missing(RunFile *file, const RunFile *more, Arena *arena) {
    const char **missing = ARENA_ARRAY(arena, const char *, OWN_COLUMNS);
    int count = 0;
    for (int i = 0; i < OWN_COLUMNS; i++) {  // in column order, each once
        const RunFile *const files[] = {file, more};
        bool lacks = false;
        for (int f = 0; f < 2; f++) {
            for (int k = 0; k < files[f]->missing_count; k++) {
                lacks = lacks || strcmp(files[f]->missing[k], columns[i].name) == 0;
            }
        }
        if (lacks) {
            missing[count++] = columns[i].name;
        }
    }
    file->missing = missing;
    file->missing_count = count;
}

static Status read_rows(const char *path, Arena *arena, RunFile *file, Error *error) {
    *file = (RunFile){.path = path};
    CsvTable table;
    Layout layout;
    TRY(csv_load(path, arena, &table, error));
    TRY(layout_find(&table, &layout, arena, file, error));
    file->rows = ARENA_ARRAY(arena, RunRow, table.row_count);
    file->count = table.row_count;
    for (int i = 0; i < file->count; i++) {
        TRY(row_read(&table, i, &layout, arena, &file->rows[i], error));
        place_cluster(path, arena, &file->rows[i]);
    }
    return check_readable(file, error);
}

Status run_files_read(const char *const *paths, Arena *arena, RunFile *file, Error *error) {
    TRY(read_rows(paths[0], arena, file, error));
    for (int i = 1; paths[i]; i++) {
        RunFile more;
        TRY(read_rows(paths[i], arena, &more, error));
        RunRow *rows = ARENA_ARRAY(arena, RunRow, file->count + more.count);
        for (int row = 0; row < file->count + more.count; row++) {
            rows[row] = row < file->count ? file->rows[row] : more.rows[row - file->count];
        }
        note_missing(file, &more, arena);
        file->path = arena_format(arena, "%s, %s", file->path, paths[i]);
        file->rows = rows;
        file->count += more.count;
    }
    return check_ids(file, arena, error);
}

void run_file_split(RunFile *runs, RunFile *failures, Arena *arena) {
    RunRow *failed = ARENA_ARRAY(arena, RunRow, failures->count + runs->count);
    int ran = 0, count = failures->count;
    for (int i = 0; i < failures->count; i++) {
        failed[i] = failures->rows[i];
    }
    for (int i = 0; i < runs->count; i++) {
        RunRow *to = runs->rows[i].oom == 1 ? &failed[count++] : &runs->rows[ran++];
        *to = runs->rows[i];
    }
    runs->count = ran;
    failures->rows = failed;
    failures->count = count;
}

Status run_file_read(const char *path, Arena *arena, RunFile *file, Error *error) {
    return run_files_read((const char *const[]){path, NULL}, arena, file, error);
}

static void group_read(const char *ids, const RunFile *runs, const RunRow *const *sorted, Arena *arena,
                       RunGroup *group) {
    char *text = arena_text(arena, ids), *rest = NULL;
    size_t capacity = 0;
    for (char *id = strtok_r(text, " \t\r\n", &rest); id; id = strtok_r(NULL, " \t\r\n", &rest)) {
        const RunRow key = {.id = id};
        const RunRow *wanted = &key;
        const RunRow *const *found = bsearch(&wanted, sorted, (size_t)runs->count, sizeof *sorted, compare_ids);
        if (!found) {
            group->unknown_ids++;
            continue;
        }
        ARENA_PUSH(arena, group->rows, group->row_count, &capacity) = (int)(*found - runs->rows);
    }
}

static void set_half(const char *half, const RunGroup *group, const RunFile *runs) {
    for (int i = 0; i < group->row_count; i++) {
        RunRow *row = &runs->rows[group->rows[i]];
        row->half = row->half ? row->half : half;
    }
}

Status run_groups_read(const char *path, const RunFile *runs, Arena *arena, RunGroups *groups, Error *error) {
    CsvTable table;
    TRY(csv_load(path, arena, &table, error));
    const int name = csv_column(&table, "group"), ids = csv_column(&table, "ids"), half = csv_column(&table, "half");
    FAIL_IF(name < 0 || ids < 0, error, STATUS_USAGE, "%s:1: the header lacks columns that are needed: %s%s%s", path,
            name < 0 ? "group" : "", name < 0 && ids < 0 ? ", " : "", ids < 0 ? "ids" : "");
    const RunRow **sorted = rows_by_id(runs, arena);
    RunGroup *all = ARENA_ARRAY(arena, RunGroup, groups->count + table.row_count);
    for (int i = 0; i < groups->count; i++) {
        all[i] = groups->groups[i];
    }
    for (int i = 0; i < table.row_count; i++) {
        RunGroup *group = &all[groups->count + i];
        group->name = csv_field(&table, i, name)->text;
        group_read(csv_field(&table, i, ids)->text, runs, sorted, arena, group);
        if (half >= 0 && csv_field(&table, i, half)->text[0] != '\0') {
            set_half(csv_field(&table, i, half)->text, group, runs);
        }
    }
    *groups = (RunGroups){all, groups->count + table.row_count};
    return STATUS_OK;
}
