// Log lines to stderr; results go to stdout. Libraries log at debug and info, problems are returned instead.

#pragma once

typedef enum { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } LogLevel;

void log_set_level(LogLevel level);  // default LOG_WARN
void log_write(LogLevel level, const char *format, ...) __attribute__((format(printf, 2, 3)));
