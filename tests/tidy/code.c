// Lightweight scanning of C, character by character; see code.h for what it can and cannot tell.

#include "tests/tidy/code.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// Length of the comment, literal or preprocessor line that starts at p; 0 when none does.
static size_t blank_length(const char *p, bool at_line_start) {
    const char *start = p;
    if (at_line_start && *p == '#') {
        while (*p && (*p != '\n' || p[-1] == '\\')) {
            p++;
        }
    } else if (p[0] == '/' && p[1] == '/') {
        while (*p && *p != '\n') {
            p++;
        }
    } else if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        p = end ? end + 2 : p + strlen(p);
    } else if (*p == '"' || *p == '\'') {
        const char quote = *p++;
        while (*p && *p != quote && *p != '\n') {
            p += *p == '\\' && p[1] ? 2 : 1;
        }
        p += *p == quote;
    }
    return (size_t)(p - start);
}

char *code_blank(const char *text) {
    char *blanked = strdup(text);
    bool at_line_start = true;
    for (char *p = blanked; *p;) {
        const size_t length = blank_length(p, at_line_start);
        for (size_t i = 0; i < length; i++) {
            p[i] = p[i] == '\n' ? '\n' : ' ';
        }
        if (length > 0) {
            p += length;
            continue;
        }
        at_line_start = *p == '\n' || (at_line_start && isspace((unsigned char)*p));
        p++;
    }
    return blanked;
}

int code_line(const char *text, const char *place) {
    int line = 1;
    for (; text < place; text++) {
        line += *text == '\n';
    }
    return line;
}

void code_functions(const char *blanked, FunctionVisit visit, void *context) {
    int depth = 0;
    int open_line = 0;
    char previous = '\0';  // last character that is not blank
    bool in_function = false;
    for (const char *p = blanked; *p; p++) {
        if (*p == '{' && depth++ == 0) {
            in_function = previous == ')';
            open_line = in_function ? code_line(blanked, p) : 0;
        } else if (*p == '}' && --depth == 0 && in_function) {
            visit(context, open_line, code_line(blanked, p));
        }
        if (!isspace((unsigned char)*p)) {
            previous = *p;
        }
    }
}

static const char *find_word(const char *place, const char *end, const char *word) {
    const size_t length = strlen(word);
    for (const char *p = place; p + length <= end; p++) {
        if (strncmp(p, word, length) == 0 && !is_word(p[length]) && (p == place || !is_word(p[-1]))) {
            return p;
        }
    }
    return NULL;
}

static bool starts_with_word(const char *start, const char *end, const char *word) {
    return find_word(start, end, word) == start;
}

// "(*": a pointer to a function is being declared.
static const char *find_function_pointer(const char *start, const char *end) {
    for (const char *p = start; p + 1 < end; p++) {
        if (p[0] == '(' && p[1] == '*') {
            return p;
        }
    }
    return NULL;
}

// The object itself is constant: const follows the last star, or is anywhere when there is no star.
static bool is_constant(const char *start, const char *end) {
    const char *pointer = find_function_pointer(start, end);
    if (pointer) {
        return starts_with_word(pointer + 2, end, "const");
    }
    const char *star = NULL;
    for (const char *p = start; p < end; p++) {
        star = *p == '*' ? p : star;
    }
    return find_word(star ? star : start, end, "const") != NULL;
}

// One statement up to its "=", ";" or "{": is it a variable of program lifetime?
static bool is_static_variable(const char *start, const char *end, char terminator, int depth) {
    const bool has_parenthesis = memchr(start, '(', (size_t)(end - start)) && !find_function_pointer(start, end);
    if (depth > 0 || terminator == '{') {  // "static struct" is followed by the brace of its fields
        return starts_with_word(start, end, "static") && !(terminator == '{' && has_parenthesis);
    }
    if (has_parenthesis) {
        return false;
    }
    if (starts_with_word(start, end, "typedef") || starts_with_word(start, end, "extern")) {
        return false;
    }
    // "struct Name;" declares a type, "} Name;" ends one.
    const bool is_tag = starts_with_word(start, end, "struct") || starts_with_word(start, end, "union") ||
                        starts_with_word(start, end, "enum");
    int words = 0;
    for (const char *p = start; p < end; p++) {
        words += is_word(*p) && (p == start || !is_word(p[-1]));
    }
    return words >= (is_tag ? 3 : 2);
}

void code_static_variables(const char *blanked, VariableVisit visit, void *context) {
    int depth = 0;
    const char *start = NULL;  // of the statement being read
    bool in_value = false;     // after its "="
    for (const char *p = blanked; *p; p++) {
        if (!start && !isspace((unsigned char)*p) && *p != '}' && *p != ';' && *p != '{') {
            start = p;
        }
        if ((*p == '=' || *p == ';' || *p == '{') && start && !in_value) {
            if (is_static_variable(start, p, *p, depth)) {
                char declaration[96];
                snprintf(declaration, sizeof declaration, "%.*s", (int)(p - start), start);
                visit(context, code_line(blanked, start), declaration, is_constant(start, p));
            }
            in_value = *p == '=';
        }
        depth += (*p == '{') - (*p == '}');
        if (*p == ';' || ((*p == '{' || *p == '}') && !in_value)) {
            start = NULL;
            in_value = false;
        }
    }
}

const char *code_find_call(const char *place, const char *function) {
    const size_t length = strlen(function);
    for (const char *p = strstr(place, function); p; p = strstr(p + 1, function)) {
        if (p[length] == '(' && (p == place || !is_word(p[-1]))) {
            return p;
        }
    }
    return NULL;
}
