// CSV as in RFC 4180: fields with comma, quote or line break are quoted, CRLF. Unknown numbers are empty.

#include "reports/csv_lines.h"

#include <inttypes.h>
#include <string.h>

static void separate(Csv *csv) {
    if (csv->inside) {
        fputc(',', csv->out);
    }
    csv->inside = true;
}

// Text that a spreadsheet would evaluate as a formula; a leading apostrophe makes it text (OWASP, CSV injection). "-"
// alone is harmless.
static bool is_formula(const char *value) {
    return value[0] != '\0' && strchr("=+-@\t\r", value[0]) && value[1] != '\0';
}

void csv_text(Csv *csv, const char *value) {
    separate(csv);
    if (!value) {
        return;
    }
    const char *before = is_formula(value) ? "'" : "";
    if (!strpbrk(value, ",\"\r\n")) {
        fprintf(csv->out, "%s%s", before, value);
        return;
    }
    fprintf(csv->out, "\"%s", before);
    for (const char *p = value; *p; p++) {
        fputs(*p == '"' ? "\"\"" : (char[]){*p, '\0'}, csv->out);
    }
    fputc('"', csv->out);
}

void csv_integer(Csv *csv, int64_t value) {
    separate(csv);
    fprintf(csv->out, "%" PRId64, value);
}

void csv_number(Csv *csv, bool known, double value) {
    separate(csv);
    if (known) {
        fprintf(csv->out, "%.10g", value);
    }
}

void csv_end_line(Csv *csv) {
    fputs("\r\n", csv->out);
    csv->inside = false;
}

void csv_row(Csv *csv, const char *kinds, ...) {
    va_list values;
    va_start(values, kinds);
    for (const char *kind = kinds; *kind; kind++) {
        if (*kind == 's') {
            csv_text(csv, va_arg(values, const char *));
        } else if (*kind == 'd') {
            csv_integer(csv, va_arg(values, int));
        } else if (*kind == 'I') {
            csv_integer(csv, va_arg(values, int64_t));
        } else if (*kind == 'n') {
            const double value = va_arg(values, double);
            csv_number(csv, !isnan(value), value);
        } else {
            csv_end_line(csv);
        }
    }
    va_end(values);
}

void csv_header(Csv *csv, const char *names) {
    fputs(names, csv->out);
    csv_end_line(csv);
}

Status csv_finish(const Csv *csv, Error *error) {
    return ferror(csv->out) ? error_set(error, STATUS_ENVIRONMENT, "the result could not be written") : STATUS_OK;
}
