// Text in and out: numbers with units for people, strict parsing of what people type, near-miss suggestions.
// Inside the program quantities are plain SI numbers; only this file and reports/ convert.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"

enum { TEXT_UNIT_BYTES = 32 };
#define UNIT_BUFFER ((char[TEXT_UNIT_BYTES]){0})  // room for one text: lives as long as the block around it

// "23.4 GiB", "1.02 s", "35.1 us", "4.19 M": three significant digits, into out; returns out.
char *text_bytes(char out[TEXT_UNIT_BYTES], double bytes);
char *text_seconds(char out[TEXT_UNIT_BYTES], double seconds);
char *text_count(char out[TEXT_UNIT_BYTES], double count);

// Smaller numbers are not plausible for a machine or a model, and dividing by them may not give a finite one.
#define TEXT_LEAST_NUMBER 1e-30

// Appends a part of a longer text after the `used` bytes of out, which has room for `bytes`; returns used, now more.
size_t text_put(char *out, size_t bytes, size_t used, const char *part);
size_t text_put_int(char *out, size_t bytes, size_t used, int number);

// Whole-string parses: false on anything left over, on overflow, on empty text.
bool text_parse_int(const char *text, int64_t *value);
bool text_parse_double(const char *text, double *value);
bool text_parse_bytes(const char *text, int64_t *bytes);  // "80e9", "64MiB", "80GB", "80G" (decimal)

// The candidate nearest to word by edit distance, or NULL when none is near enough to be a typing slip.
const char *text_nearest(const char *word, const char *const *candidates, size_t count);

// Another tool's name for a thing, and the answer to it.
typedef struct TextSynonym {
    const char *words, *answer;  // "gpus|devices"
} TextSynonym;

// The answer of the row that has that word, letters of either case; NULL = none.
const char *text_synonym(const char *word, const TextSynonym *table, size_t count);

// Does text contain the word, letters of either case?
bool text_contains(const char *text, const char *word);

// After one letter or more.
bool text_ends_in(const char *text, const char *ending);

// Names or files: what starts with '.' or '/' or ends in ".json" is a path, everything else a built-in name.
bool text_is_path(const char *text);

// The index of the first of `count` rows, `bytes` apart and with a text at `offset`, that has the word; -1 = none.
int text_row(const void *rows, size_t count, size_t bytes, size_t offset, const char *word);

static inline int text_index(const char *const *words, size_t count, const char *word) {
    return text_row(words, count, sizeof *words, 0, word);
}

static inline const void *text_find(const void *rows, size_t count, size_t bytes, size_t offset, const char *word) {
    const int at = text_row(rows, count, bytes, offset, word);
    return at < 0 ? NULL : (const char *)rows + (size_t)at * bytes;
}

// Of an array of structs: the index of the row whose member is the word, -1 = none; the row itself, NULL = none.
#define TEXT_ROW(rows, count, member, word)                                                                            \
    text_row((rows), (size_t)(count), sizeof *(rows), offsetof(__typeof__(*(rows)), member), (word))
#define TEXT_FIND(rows, count, member, word)                                                                           \
    text_find((rows), (size_t)(count), sizeof *(rows), offsetof(__typeof__(*(rows)), member), (word))

// "one, two or three": the words whose bits are set; "" = none.
const char *text_of_bits(const char *const *words, unsigned bits, Arena *arena);

// Equal texts; NULL = NULL.
bool text_same(const char *a, const char *b);

// Case-sensitive equality that accepts '-' for '_' and the reverse (option values).
bool text_same_word(const char *a, const char *b);
