// Texts of the option table give the common value first and per-command values by name: "128; run, validate: 64". Help
// on one command shows what applies to that one.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/options.h"

static bool is_word_of(const char *text, size_t length, const char *word) {
    return strlen(word) == length && strncmp(text, word, length) == 0;
}

// Where "plan, run: " ends, 0 where the part does not begin with names of commands; *own = the command is one of them.
static size_t names_end(const char *part, size_t length, const char *command, bool *own) {
    *own = false;
    for (size_t at = 0; at < length;) {
        const size_t word = strcspn(part + at, ",: ;");
        bool known = false;
        for (int i = 0; i < COMMAND_COUNT && !known; i++) {
            known = is_word_of(part + at, word, command_names[i]);
        }
        if (!known) {
            return 0;
        }
        *own |= is_word_of(part + at, word, command);
        at += word;
        if (strncmp(part + at, ": ", 2) == 0) {
            return at + 2;
        }
        if (strncmp(part + at, ", ", 2) != 0) {
            return 0;
        }
        at += 2;
    }
    return 0;
}

static void append(char *out, size_t bytes, const char *text, size_t length) {
    const size_t used = strlen(out);
    snprintf(out + used, bytes - used, "%s%.*s", used > 0 ? "; " : "", (int)length, text);
}

char *option_words_of(const char *text, CommandId command, char *out, size_t bytes) {
    out[0] = '\0';
    bool replaced = false;
    for (int own_only = 1; own_only >= 0 && !replaced; own_only--) {
        for (const char *part = text; part;) {
            const char *next = strstr(part, "; ");
            const size_t length = next ? (size_t)(next - part) : strlen(part);
            bool own = false;
            const size_t named = names_end(part, length, command_names[command], &own);
            if (own_only ? own : named == 0) {
                append(out, bytes, part + named, length - named);
                replaced |= own;
            }
            part = next ? next + 2 : NULL;
        }
    }
    return out;
}
