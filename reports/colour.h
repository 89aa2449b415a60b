// Colours, on terminals only. NO_COLOR (any non-empty value) and TERM=dumb disable them: no-color.org.

#pragma once

#include <stdio.h>

typedef enum { COLOUR_END, COLOUR_GOOD, COLOUR_WARNING, COLOUR_BAD } Colour;

// The escape sequence, or "" where colours are disabled.
const char *colour(FILE *out, Colour which);
