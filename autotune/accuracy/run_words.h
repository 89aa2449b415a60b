// Words of sources in the columns of a run file: what they stand for, and what an empty column follows from.

#pragma once

#include <stdbool.h>

#include "autotune/accuracy/csv_file.h"

// The text of a column as its rules read it: itself where they know it or nothing speaks for another.
const char *run_word(const char *column, const char *text, Arena *arena);

// The column that an empty or missing one follows from; NULL = none.
const char *run_word_source(const char *column);

// What the text of that other column says of an empty one: "" = nothing.
const char *run_word_from(const char *column, const char *other, Arena *arena);

// The profile of a chip with so much memory, which may be empty: where that decides between two, else the usual one if
// `usual`. The chip itself where there is none.
const char *run_word_cluster(const char *chip, const char *memory_gb, bool usual, Arena *arena);
