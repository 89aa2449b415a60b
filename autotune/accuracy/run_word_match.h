// Finding a part in the words of a text, beside which nothing is denied.

#pragma once

#include <stdbool.h>
#include <stddef.h>

// In lower case, without what stands between words; NULL = who has it is left out.
typedef struct WordPart {
    const char *part, *means;
    bool whole;  // the text is no more than that
} WordPart;

#define UNSAID "not stated"  // denies nothing

bool word_begins(const char *text, const char *at);

// Where a word of the text begins with the part; NULL = nowhere.
const char *word_part_at(const char *text, const WordPart *row, size_t *bytes);

// Does a text deny something beside the `bytes` at `part`?
bool word_denies(const char *text, const char *part, size_t bytes);

// What the first row says of a word: itself = its run is left out, NULL = no row. Rows end with an empty part.
const char *word_part_in(const WordPart *row, const char *word, bool whole);
