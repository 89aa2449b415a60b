// Columns are characters: continuation bytes of UTF-8 do not count. A word longer than a line stands alone.

#include "reports/wrap.h"

#include <stdbool.h>
#include <string.h>

#include "sim/base/error.h"

static int columns_of(const char *text, size_t bytes) {
    int columns = 0;
    for (size_t i = 0; i < bytes; i++) {
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return columns;
}

// A number and its percent sign are one word, and so are an option and its value.
static size_t word_bytes(const char *text) {
    const size_t bytes = strcspn(text, " ");
    const char *next = text + bytes;
    const bool valued = strncmp(text, "--", 2) == 0 && *next && strncmp(next, " --", 3) != 0;
    return valued || strncmp(next, " %", 2) == 0 ? bytes + 1 + strcspn(next + 1, " ") : bytes;
}

void wrap_line(FILE *out, int indent, const char *format, ...) {
    char text[2048];
    WITH_VALUES(format, vsnprintf(text, sizeof text, format, values));
    int column = (int)strspn(text, " ");
    fprintf(out, "%*s", column, "");
    bool first = true;
    for (const char *word = text + column; *word;) {
        const size_t bytes = word_bytes(word);
        const int columns = columns_of(word, bytes);
        if (!first && column + 1 + columns > WRAP_COLUMNS) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        fprintf(out, "%s%.*s", first ? "" : " ", (int)bytes, word);
        column += columns + !first;
        first = false;
        word += bytes + strspn(word + bytes, " ");
    }
    fputc('\n', out);
}
