// Errors as values: a fallible function returns a Status and fills the caller's Error. The place that detects the error
// calls error_set; each caller that adds context calls error_wrap, so the message reads from the outside in ("plan:
// profile x.json: node.gpus: must be positive, got -3"). Habit taken from canonical/raft; infeasible plans are values
// with a reason, not errors.

#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum {
    STATUS_OK = 0,
    STATUS_USAGE,        // the user's words: bad option, value, mesh, file content
    STATUS_INFEASIBLE,   // a correct request that nothing satisfies
    STATUS_ENVIRONMENT,  // the machine: missing file, worker, device, permission, disk full
    STATUS_INTERNAL,     // ours: a bug or memory exhausted
} Status;

enum { ERROR_MESSAGE_BYTES = 768, ERROR_HINT_BYTES = 256 };

typedef struct Error {
    Status status;
    char message[ERROR_MESSAGE_BYTES];  // outermost context first, one sentence, never empty when status != OK
    char hint[ERROR_HINT_BYTES];        // what to try; may be empty
} Error;

// Fills *error (which may be NULL) and returns status, so that "return error_set(...)" reads well.
Status error_set(Error *error, Status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Prefixes "context: " to the message; keeps and returns the status. Truncates the tail, never the context.
Status error_wrap(Error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Sets the hint and returns the status already in *error.
Status error_hint(Error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The process exit code, which scripts rely on: 0 ok, 1 usage, 2 nothing feasible, 3 environment, 4 internal.
int status_exit_code(Status status);

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const Status try_status_ = (call);                                                                             \
        if (try_status_ != STATUS_OK) {                                                                                \
            return try_status_;                                                                                        \
        }                                                                                                              \
    } while (0)

// Where the condition holds: returns what error_set does.
#define FAIL_IF(condition, error, status, ...)                                                                         \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            return error_set(error, status, __VA_ARGS__);                                                              \
        }                                                                                                              \
    } while (0)

// The same where another call says what fails: its Status is never STATUS_OK.
#define FAIL_WITH(condition, call)                                                                                     \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            return call;                                                                                               \
        }                                                                                                              \
    } while (0)

// In a function with `...` after the parameter `last`: makes the call with what was passed there as `values`.
#define WITH_VALUES(last, call)                                                                                        \
    do {                                                                                                               \
        va_list values;                                                                                                \
        va_start(values, last);                                                                                        \
        call;                                                                                                          \
        va_end(values);                                                                                                \
    } while (0)

// Programmer errors: on in every build; prints the place and the condition, then aborts.
#define ASSERT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__, __LINE__, #condition);                          \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)
