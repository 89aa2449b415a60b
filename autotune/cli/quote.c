// Quotes with single quotes, POSIX style.

#include "autotune/cli/quote.h"

#include <stdbool.h>
#include <string.h>

#include "sim/base/escape.h"

char *quote_word(const char *word, Arena *arena) {
    char *line = arena_text(arena, word);
    for (char *at = line + strcspn(line, "\n\t"); *at; at += strcspn(at, "\n\t")) {
        *at = ' ';
    }
    return escape_shell(text_is_line(line) ? line : escape_line_text(line, arena), arena);
}

char *quote_line(int argc, char *const *argv, Arena *arena) {
    char *line = arena_text(arena, "ndtune");
    for (int i = 1; i < argc; i++) {
        line = arena_format(arena, "%s %s", line, quote_word(argv[i], arena));
    }
    return line;
}

char **quote_split(const char *line, int *argc, Arena *arena) {
    char **words = ARENA_ARRAY(arena, char *, strlen(line) / 2 + 2);
    int count = 0;
    for (const char *p = line; *p;) {
        p += strspn(p, " ");
        if (!*p) {
            break;
        }
        char *word = arena_alloc(arena, strlen(p) + 1);
        size_t used = 0;
        bool quoted = false;
        for (; *p && (quoted || *p != ' '); p++) {
            if (*p == '\'') {
                quoted = !quoted;
            } else if (!quoted && *p == '\\' && p[1]) {
                word[used++] = *++p;
            } else {
                word[used++] = *p;
            }
        }
        word[used] = '\0';
        words[count++] = word;
    }
    words[count] = NULL;
    *argc = count;
    return words;
}
