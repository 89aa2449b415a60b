// Log lines to stderr; results go to stdout. Problems are returned instead.

#pragma once

// A line that a worker's launcher passes on, as its own warning: LOG_NOTE and the words.
#define LOG_NOTE "note: "
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
// A warning; a line already written by this process is not repeated.
void log_warn_once(const char *line);
