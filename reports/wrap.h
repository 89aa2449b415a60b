// Sentences for a screen of 80 columns.

#pragma once

#include <stdio.h>

enum { WRAP_COLUMNS = 80 };

// Prints a line, broken between words; the lines that follow begin with `indent` spaces.
void wrap_line(FILE *out, int indent, const char *format, ...) __attribute__((format(printf, 3, 4)));
