// The words of a run file's columns: what sources write for each.

#pragma once

#include "autotune/accuracy/run_word_match.h"

typedef struct WordColumn {
    const char *column;
    const WordPart *parts;    // NULL: names of frameworks
    const char *from[2];      // what it follows from where it is empty; NULL = nothing
    bool same;                // that is of the same thing: it has the column's own words, and what nobody knows is kept
    const WordPart *of_same;  // only where it has one of these; NULL = always
} WordColumn;

// NULL = the column has no words of its own.
const WordColumn *run_word_column(const char *name);
