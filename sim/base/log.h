// Log lines to stderr; results go to stdout. Libraries log at debug and info, problems are returned instead.

#pragma once

typedef enum { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } LogLevel;

void log_set_level(LogLevel level);  // default LOG_WARN
// A line that a worker's launcher passes on, as its own warning: LOG_NOTE and the words.
#define LOG_NOTE "note: "
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_write(LogLevel level, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A line that this process wrote before is not written again.
void log_write_once(LogLevel level, const char *line);
