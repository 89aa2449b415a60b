// The characters that a line must not hold are those that YAML does not take raw (its c-printable), those at which
// Python, YAML or a terminal begins a new line, and the marks that reorder what is read (Unicode TR 36, 39).

#include "sim/base/escape.h"

#include <string.h>

#include "sim/base/error.h"

int text_character(const char *text, unsigned *code) {
    static const struct {
        unsigned char mask, lead;
        unsigned smallest;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char *bytes = (const unsigned char *)text;
    for (int more = 0; more < 4; more++) {
        if ((bytes[0] & forms[more].mask) != forms[more].lead) {
            continue;
        }
        *code = bytes[0] & (unsigned char)~forms[more].mask;
        for (int i = 1; i <= more; i++) {
            if ((bytes[i] & 0xc0) != 0x80) {
                return 0;
            }
            *code = *code << 6 | (bytes[i] & 0x3fu);
        }
        const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
        return *code >= forms[more].smallest && *code <= 0x10ffff && !surrogate ? more + 1 : 0;
    }
    return 0;
}

const char *text_behind_mark(const char *text) {
    return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

bool text_is_control(unsigned code) {
    static const struct {
        unsigned first, last;
    } ranges[] = {{0, 0x1f}, {0x7f, 0x9f}, {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xfffe, 0xffff}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

static bool is_text(const char *text, bool of_one_line) {
    unsigned code = 0;
    for (int bytes; *text; text += bytes) {
        bytes = text_character(text, &code);
        if (bytes == 0 || (of_one_line && text_is_control(code))) {
            return false;
        }
    }
    return true;
}

bool text_is_utf8(const char *text) {
    return is_text(text, false);
}

bool text_is_line(const char *text) {
    return is_text(text, true);
}

size_t text_cut(const char *text, size_t most) {
    size_t length = strnlen(text, most + 1);
    if (length <= most) {
        return length;
    }
    for (length = most; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80; length--) {
    }
    return length;
}

static void put(const char *text, bool quoted, FILE *out) {
    unsigned code = 0;
    for (int bytes; *text; text += bytes) {
        bytes = text_character(text, &code);
        if (bytes == 0) {
            fprintf(out, "%s\\x%02x", quoted ? "\\" : "", (unsigned char)*text);
            bytes = 1;
        } else if (text_is_control(code)) {
            fprintf(out, "\\u%04x", code);
        } else {
            fprintf(out, "%s%.*s", quoted && (code == '"' || code == '\\') ? "\\" : "", bytes, text);
        }
    }
}

void escape_line(const char *text, FILE *out) {
    put(text, false, out);
}

char *escape_line_text(const char *text, Arena *arena) {
    char *line = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&line, &bytes);
    ASSERT(out);
    escape_line(text, out);
    fclose(out);
    char *kept = arena_text(arena, line);
    free(line);
    return kept;
}

void escape_quoted(const char *text, FILE *out) {
    fputc('"', out);
    put(text, true, out);
    fputc('"', out);
}

char *escape_shell(const char *word, Arena *arena) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_-+=:,./^";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        return arena_text(arena, word);
    }
    char *quoted = arena_alloc(arena, 4 * strlen(word) + 3), *end = quoted;  // every letter a quote, two around
    *end++ = '\'';
    for (; *word; word++) {
        const char *as = *word == '\'' ? "'\\''" : (const char[]){*word, '\0'};
        end = stpcpy(end, as);
    }
    *end = '\'';
    return quoted;
}
