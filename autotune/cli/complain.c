// Error messages for the user: the command line echoed, the offending word underlined, one sentence, and a hint on a
// line of its own, in the style of bfs.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/quote.h"
#include "reports/colour.h"

// The width of the text in columns, one per character.
static int columns(const char *text) {
    int count = 0;
    for (; *text; text++) {
        count += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return count;
}

static void underline(const Cli *cli) {
    Arena arena = {0};
    const char *before = quote_line(cli->blame, cli->argv, &arena), *word = quote_word(cli->argv[cli->blame], &arena);
    const char *after = quote_line(cli->argc - cli->blame, cli->argv + cli->blame, &arena) + strlen("ndtune");
    fprintf(stderr, "ndtune: error: %s %s%s\nndtune: error: %*s", before, word, after, columns(before) + 1, "");
    for (int i = columns(word); i > 0; i--) {
        fputc('~', stderr);
    }
    fputc('\n', stderr);
    arena_free(&arena);
}

void cli_complain(const Cli *cli, const Error *error) {
    fflush(stdout);  // with both in one file the error begins a line
    if (cli->blame > 0 && cli->blame < cli->argc) {
        underline(cli);
    }
    fprintf(stderr, "ndtune: %serror:%s %s\n", colour(stderr, COLOUR_BAD), colour(stderr, COLOUR_END), error->message);
    if (error->hint[0] != '\0') {
        fprintf(stderr, "hint: %s\n", error->hint);
    }
}
