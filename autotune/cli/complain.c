// Errors for people: the command line echoed, the offending word underlined, one sentence, and a hint on a line of
// its own. The form is that of bfs.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/quote.h"
#include "reports/colour.h"

enum { LINE_BYTES = 4096, WORD_BYTES = 512 };

void cli_complain(const Cli *cli, const Error *error) {
    char line[LINE_BYTES] = "ndtune", below[LINE_BYTES];
    size_t start = 0, end = 0;
    for (int i = 1; i < cli->argc; i++) {
        char word[WORD_BYTES];
        quote_word(cli->argv[i], word, sizeof word);
        const size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, " %s", word);
        if (i == cli->blame) {
            start = used + 1;
            end = strlen(line);
        }
    }
    if (end > start) {
        memset(below, ' ', start);
        memset(below + start, '~', end - start);
        below[end] = '\0';
        fprintf(stderr, "ndtune: error: %s\nndtune: error: %s\n", line, below);
    }
    fprintf(stderr, "ndtune: %serror:%s %s\n", colour(stderr, COLOUR_BAD), colour(stderr, COLOUR_END), error->message);
    if (error->hint[0] != '\0') {
        fprintf(stderr, "hint: %s\n", error->hint);
    }
}
