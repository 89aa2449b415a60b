// Runs ndtune from tests, each with its own store.

#pragma once

#include <jansson.h>

#include "tests/support/run_program.h"

enum { CLI_MAX_WORDS = 64 };

// ndtune with these words, a time limit of four minutes and $XDG_DATA_HOME in a fresh folder.
ProgramRun cli_words(const char *const *words);
#define CLI(...) cli_words((const char *const[]){__VA_ARGS__, NULL})

// The same, run for the first claim of the program that asks with these words; the others get what it printed.
ProgramRun cli_words_once(const char *const *words);
#define CLI_ONCE(...) cli_words_once((const char *const[]){__VA_ARGS__, NULL})

// Its standard output as JSON; fails the test when the exit code differs or the text is not JSON. The caller frees
// the root.
json_t *cli_json_words(int exit_code, const char *const *words);
#define CLI_JSON(exit_code, ...) cli_json_words(exit_code, (const char *const[]){__VA_ARGS__, NULL})
json_t *cli_json_words_once(int exit_code, const char *const *words);
#define CLI_JSON_ONCE(exit_code, ...) cli_json_words_once(exit_code, (const char *const[]){__VA_ARGS__, NULL})

double cli_number(const json_t *object, const char *key);
const char *cli_text(const json_t *object, const char *key);

int cli_lines(const char *text);

// A worker for the calls of this test, written into folder: these lines of a shell script, in which rank and request
// file are $3 and $2, and then the real worker in its place.
void cli_worker(const char *folder, const char *before);

// Rank 1 is killed if the request contains these words; any other rank runs the real worker.
void cli_worker_that_dies(const char *folder, const char *words);
