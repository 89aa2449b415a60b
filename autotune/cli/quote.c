// Quotes with single quotes, POSIX style: a quote inside becomes '\''.

#include "autotune/cli/quote.h"

#include <stdbool.h>
#include <string.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_-+=:,./^";

static void append(char *out, size_t bytes, size_t *used, const char *text) {
    const size_t length = strlen(text);
    const size_t room = bytes - 1 - *used;
    const size_t copied = length < room ? length : room;
    memcpy(out + *used, text, copied);
    *used += copied;
    out[*used] = '\0';
}

void quote_word(const char *word, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    if (word[0] != '\0' && strspn(word, plain) == strlen(word)) {
        append(out, bytes, &used, word);
        return;
    }
    append(out, bytes, &used, "'");
    for (const char *p = word; *p; p++) {
        const char letter[2] = {*p == '\n' || *p == '\t' ? ' ' : *p, '\0'};
        append(out, bytes, &used, *p == '\'' ? "'\\''" : letter);
    }
    append(out, bytes, &used, "'");
}

char *quote_line(int argc, char *const *argv, Arena *arena) {
    size_t bytes = sizeof "ndtune";
    for (int i = 1; i < argc; i++) {
        bytes += 4 * strlen(argv[i]) + 3;  // every letter a quote, two quotes around, one space
    }
    char *line = arena_alloc(arena, bytes);
    size_t used = 0;
    append(line, bytes, &used, "ndtune");
    for (int i = 1; i < argc; i++) {
        append(line, bytes, &used, " ");
        quote_word(argv[i], line + used, bytes - used);
        used += strlen(line + used);
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
