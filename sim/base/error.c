// Errors as values. Every function formats into a local buffer first, so that an argument may point into the error
// itself. A NULL error has no status to return to error_wrap and error_hint: they answer STATUS_INTERNAL, which is
// never STATUS_OK.

#include "sim/base/error.h"

#include <stdarg.h>
#include <string.h>

Status error_set(Error *error, Status status, const char *format, ...) {
    if (!error) {
        return status;
    }
    char message[ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    error->status = status;
    memcpy(error->message, message, sizeof message);
    error->hint[0] = '\0';
    return status;
}

Status error_wrap(Error *error, const char *format, ...) {
    if (!error) {
        return STATUS_INTERNAL;
    }
    char message[ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const size_t used = strlen(message);
    const size_t room = sizeof message - used - 1;
    strncat(message, ": ", room);
    strncat(message, error->message, sizeof message - strlen(message) - 1);
    memcpy(error->message, message, sizeof message);
    return error->status;
}

Status error_hint(Error *error, const char *format, ...) {
    if (!error) {
        return STATUS_INTERNAL;
    }
    char hint[ERROR_HINT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(hint, sizeof hint, format, arguments);
    va_end(arguments);
    memcpy(error->hint, hint, sizeof hint);
    return error->status;
}

int status_exit_code(Status status) {
    static const int codes[] = {
        [STATUS_OK] = 0, [STATUS_USAGE] = 1, [STATUS_INFEASIBLE] = 2, [STATUS_ENVIRONMENT] = 3, [STATUS_INTERNAL] = 4,
    };
    return codes[status];
}
