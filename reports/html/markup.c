// Escaping, and tables in which it cannot be forgotten. HTML: the five characters that mean something in elements and
// attributes (WHATWG HTML 13.1.2). JSON in a script element: '<', '>' and '&' as \u escapes, so that no content can
// close or comment out the element (WHATWG HTML 4.12.1.3).

#include "reports/html/markup.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/text.h"

void markup_text(const char *text, FILE *out) {
    for (; text && *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

static void format_escaped(FILE *out, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text) {
        vsnprintf(text, (size_t)length + 1, format, arguments);
        markup_text(text, out);
    }
    free(text);
}

void markup_format(FILE *out, const char *format, ...) {
    WITH_VALUES(format, format_escaped(out, format, values));
}

void markup_element(FILE *out, const char *element, const char *format, ...) {
    fprintf(out, "<%s>", element);
    WITH_VALUES(format, format_escaped(out, format, values));
    fprintf(out, "</%.*s>\n", (int)strcspn(element, " "), element);
}

void markup_card(const char *name, const char *value, const char *note, FILE *out) {
    fputs("<div class=\"card\"><dt>", out);
    markup_text(name, out);
    fputs("</dt><dd><strong>", out);
    markup_text(value, out);
    fputs("</strong><span>", out);
    markup_text(note, out);
    fputs("</span></dd></div>\n", out);
}

static int dump_escaped(const char *text, size_t length, void *out) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '<' || text[i] == '>' || text[i] == '&') {
            fprintf(out, "\\u%04x", (unsigned)text[i]);
        } else {
            fputc(text[i], out);
        }
    }
    return 0;
}

Status markup_json(json_t *root, FILE *out, Error *error) {
    FAIL_IF(!root, error, STATUS_INTERNAL,
            "the data of the page could not be built: out of memory, or text that is not UTF-8");
    const int failed = json_dump_callback(root, dump_escaped, out, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(root);
    return failed ? error_set(error, STATUS_INTERNAL, "the data of the page could not be written: out of memory")
                  : STATUS_OK;
}

Status markup_no_place(const char *name, Error *error) {
    return error_set(error, STATUS_INTERNAL, "the page has no text for {{%s}}", name);
}

Status markup_page(const char *text, PlaceWriter write, const void *what, FILE *out, Error *error) {
    enum { NAME_BYTES = 32 };
    for (const char *open; (open = strstr(text, "{{"));) {
        char name[NAME_BYTES];
        const char *close = strstr(open, "}}");
        ASSERT(close && close - open - 2 < NAME_BYTES);
        snprintf(name, sizeof name, "%.*s", (int)(close - open - 2), open + 2);
        fwrite(text, 1, (size_t)(open - text), out);
        TRY(write(what, name, out, error));
        text = close + 2;
    }
    fputs(text, out);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the page could not be written") : STATUS_OK;
}

void markup_lines(LineWriter writer, const void *what, FILE *out) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *lines = open_memstream(&text, &bytes);
    if (!lines) {
        return;
    }
    writer(what, lines);
    fclose(lines);
    for (char *line = text, *next; line && *line; line = next) {
        const size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        line[length] = '\0';
        line += strspn(line, " ");
        if (*line) {
            markup_element(out, "p", "%s", line);
        }
    }
    free(text);
}

static MarkupTable open_table(const char *id, const char *caption, FILE *out) {
    fprintf(out, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"");
    markup_text(caption, out);
    fprintf(out, "\"><table id=\"%s\"><caption>", id);
    markup_text(caption, out);
    fputs("</caption>\n<thead><tr>", out);
    return (MarkupTable){.out = out, .column = -1};
}

static void add_column(MarkupTable *table, bool number, const char *name, int length) {
    fprintf(table->out, "<th scope=\"col\"%s>", number ? " class=\"number\"" : "");
    markup_format(table->out, "%.*s", length, name);
    fputs("</th>", table->out);
    table->numbers |= (unsigned)number << table->count++;
}

static void close_head(const MarkupTable *table) {
    fputs("</tr></thead>\n<tbody>\n", table->out);
}

MarkupTable table_begin(const char *id, const char *caption, const char *columns, FILE *out) {
    MarkupTable table = open_table(id, caption, out);
    for (const char *at = columns; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        const bool number = *at == '#';
        add_column(&table, number, at + number, (int)strcspn(at + number, "|"));
    }
    close_head(&table);
    return table;
}

static void close_row(MarkupTable *table) {
    if (table->column >= 0) {
        fputs("</tr>\n", table->out);
    }
}

void table_row(MarkupTable *table, const char *attributes) {
    close_row(table);
    fprintf(table->out, "<tr%s%s>", attributes ? " " : "", attributes ? attributes : "");
    table->column = 0;
}

void table_cell(MarkupTable *table, const char *format, ...) {
    ASSERT(table->column >= 0 && table->column < table->count);
    const bool head = table->column == 0, number = table->numbers >> table->column & 1;
    fprintf(table->out, "<%s%s>", head ? "th scope=\"row\"" : "td", number ? " class=\"number\"" : "");
    WITH_VALUES(format, format_escaped(table->out, format, values));
    fputs(head ? "</th>" : "</td>", table->out);
    table->column++;
}

// Of a number that has a unit.
static const char *cell_words(char kind, double number, char out[TEXT_UNIT_BYTES]) {
    if (number < 0 || (kind == 'b' && number == 0)) {
        return "–";
    }
    switch (kind) {
    case 'b':
        return text_bytes(out, number);
    case 'c':
        return text_count(out, number);
    case 't':
        return text_seconds(out, number);
    default:
        snprintf(out, TEXT_UNIT_BYTES, "%.1f %%", 100 * number);
        return out;
    }
}

void table_cells(MarkupTable *table, const char *kinds, ...) {
    va_list values;
    va_start(values, kinds);
    for (const char *kind = kinds; *kind; kind++) {
        if (*kind == 's') {
            const char *text = va_arg(values, const char *);
            table_cell(table, "%s", text && text[0] ? text : "–");
        } else if (*kind == 'd') {
            table_cell(table, "%d", va_arg(values, int));
        } else if (*kind == 'I') {
            const int64_t number = va_arg(values, int64_t);
            table_cell(table, number < 0 ? "–" : "%" PRId64, number);
        } else {
            table_cell(table, "%s", cell_words(*kind, va_arg(values, double), UNIT_BUFFER));
        }
    }
    va_end(values);
}

void table_rest(MarkupTable *table, const char *format, ...) {
    fprintf(table->out, "<td colspan=\"%d\">", table->count - table->column);
    WITH_VALUES(format, format_escaped(table->out, format, values));
    fputs("</td>", table->out);
    table->column = table->count;
}

void table_end(MarkupTable *table) {
    close_row(table);
    fputs("</tbody></table></div>\n", table->out);
}

void table_records(const char *id, const char *caption, const RecordSchema *schema, const void *records, int count,
                   FILE *out) {
    const RecordField *fields[RECORD_MOST_COLUMNS];
    const Records all = {schema, records, count};
    const int width = record_columns(&all, IN_PAGE, fields);
    MarkupTable table = open_table(id, caption, out);
    for (int i = 0; i < width; i++) {
        add_column(&table, record_is_number(fields[i]), fields[i]->heading, (int)strlen(fields[i]->heading));
    }
    close_head(&table);
    for (int row = 0; row < count; row++) {
        table_row(&table, NULL);
        for (int i = 0; i < width; i++) {
            char text[RECORD_BYTES];
            table_cell(&table, "%s", record_words(&all, row, fields[i], text));
        }
    }
    table_end(&table);
}
