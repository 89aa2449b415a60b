// ECMA-48 sequences, section 8.3.117.

#include "reports/colour.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool colour_wanted(FILE *out) {
    const char *refused = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    const bool dumb = terminal && strcmp(terminal, "dumb") == 0;
    const int file = fileno(out);  // -1: an in-memory stream
    return !(refused && refused[0] != '\0') && !dumb && file >= 0 && isatty(file) == 1;
}

const char *colour(FILE *out, Colour which) {
    static const char *const sequences[] = {"\033[0m", "\033[1;32m", "\033[33m", "\033[1;31m"};
    return colour_wanted(out) ? sequences[which] : "";
}
