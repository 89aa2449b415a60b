// Words of sources in the columns of a run file: what they stand for, and what an empty column follows from.

#pragma once

#include <stdbool.h>

#include "autotune/accuracy/csv_file.h"

// The text of a column as its rules read it: itself where they know it or nothing speaks for another.
const char *run_word(const char *column, const char *text, Arena *arena);

// The columns that an empty or missing one follows from, in their order: the first that says something; NULL = no more.
const char *run_word_source(const char *column, int index);

// What the text of such a column says of an empty one: "" = nothing. What it says in words that no rule knows is
// itself, so that its run is left out with them.
const char *run_word_from(const char *column, const char *other, Arena *arena);

// The profile of a chip with so much memory, which may be empty: where that decides between two, else the usual one if
// `usual`. The chip itself where there is none.
const char *run_word_cluster(const char *chip, const char *memory_gb, bool usual, Arena *arena);
