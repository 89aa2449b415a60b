// A part may stand anywhere in a text that begins a word; a denial anywhere beside it takes its meaning away.

#include "autotune/accuracy/run_word_match.h"

#include <ctype.h>
#include <string.h>

bool word_begins(const char *text, const char *at) {
    return at == text || !isalnum((unsigned char)at[-1]);
}

// The bytes of the part at the head of a text, with what stands between its words; 0 = it is not there.
static size_t head_bytes(const char *text, const char *part) {
    const char *at = text;
    for (; *part; part++, at++) {
        while (at != text && *at && strchr(" -_:=", *at)) {
            at++;
        }
        if (*at != *part) {
            return 0;
        }
    }
    return (size_t)(at - text);
}

const char *word_part_at(const char *text, const WordPart *row, size_t *bytes) {
    for (const char *at = text; *at; at++) {
        *bytes = word_begins(text, at) || !isalnum((unsigned char)*row->part) ? head_bytes(at, row->part) : 0;
        if (*bytes > 0) {
            return !row->whole || (at == text && text[*bytes] == '\0') ? at : NULL;
        }
    }
    return NULL;
}

static bool is_denial(const char *at) {
    static const char *const words[] = {"no",    "not",  "non",   "nor",     "un",       "without", "w/o",   "off",
                                        "false", "none", "never", "disable", "disabled", "instead", "except"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t bytes = strlen(words[i]);
        if (strncmp(at, words[i], bytes) == 0 && !isalnum((unsigned char)at[bytes])) {
            return true;
        }
    }
    return false;
}

bool word_denies(const char *text, const char *part, size_t bytes) {
    for (const char *at = text; *at; at++) {
        const bool beside = at < part || at >= part + bytes;
        if (beside && word_begins(text, at) && is_denial(at) && strncmp(at, UNSAID, strlen(UNSAID)) != 0) {
            return true;
        }
    }
    return false;
}

const char *word_part_in(const WordPart *row, const char *word, bool whole) {
    for (; row->part; row++) {
        size_t bytes = 0;
        const char *at = row->whole && !whole ? NULL : word_part_at(word, row, &bytes);
        if (at) {
            return row->means && !word_denies(word, at, bytes) ? row->means : word;
        }
    }
    return NULL;
}
