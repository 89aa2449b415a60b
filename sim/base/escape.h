// Escaping of untrusted text (names, paths, words of files) for output: one escaper per destination, so that
// it stays the text that it is and never becomes a line, a key or a command. CSV and HTML have theirs next to their
// writers (reports/csv_lines.c, reports/html/markup.c).

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/base/arena.h"

// Length in bytes of the UTF-8 character at text and its code point; 0 where there is none (RFC 3629).
int text_character(const char *text, unsigned *code);

// The text after the byte order mark that some editors put before UTF-8.
const char *text_behind_mark(const char *text);

// Line breaks, terminal controls and invisible characters: not allowed in names.
bool text_is_control(unsigned code);

bool text_is_utf8(const char *text);

// UTF-8 without such characters: fit to be a name.
bool text_is_line(const char *text);

// The longest part of at most `most` bytes that ends between two characters.
size_t text_cut(const char *text, size_t most);

// For a comment, a terminal or a log: what text_is_line refuses becomes visible as \u001b, a byte outside UTF-8 as
// \xff.
void escape_line(const char *text, FILE *out);
char *escape_line_text(const char *text, Arena *arena);

// In double quotes, with the escapes that YAML, JSON, TOML and Python share, so that all four read the same text back.
void escape_quoted(const char *text, FILE *out);

// As one word of a POSIX shell: itself where it is plain, else in single quotes.
char *escape_shell(const char *word, Arena *arena);
