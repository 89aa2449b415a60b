// Errors as values. Every function formats into a local buffer first, so that an argument may point into the error
// itself. A NULL error has no status to return to error_wrap and error_hint: they answer STATUS_INTERNAL, which is
// never STATUS_OK. Words of a file or a user may hold anything: control characters and bytes outside UTF-8 become '?',
// so that a sentence stays one line and cannot steer a terminal; a character cut by the buffer's end goes as a whole.

#include "sim/base/error.h"

#include <string.h>

#include "sim/base/escape.h"

static void make_printable(char *text, size_t bytes) {
    size_t length = strlen(text);
    if (length == bytes - 1) {  // may end inside a character of UTF-8
        while (length > 0 && ((unsigned char)text[length - 1] & 0xC0) == 0x80) {
            length--;
        }
        length -= length > 0 && (unsigned char)text[length - 1] >= 0xC0;
        text[length] = '\0';
    }
    char *to = text;
    unsigned code = 0;
    for (const char *from = text; *from;) {
        const int count = text_character(from, &code);
        if (count == 0 || text_is_control(code)) {
            *to++ = '?';
            from += count > 0 ? count : 1;
        } else {
            memmove(to, from, (size_t)count);
            to += count;
            from += count;
        }
    }
    *to = '\0';
}

Status error_set(Error *error, Status status, const char *format, ...) {
    if (!error) {
        return status;
    }
    char message[ERROR_MESSAGE_BYTES];
    WITH_VALUES(format, vsnprintf(message, sizeof message, format, values));
    make_printable(message, sizeof message);
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
    WITH_VALUES(format, vsnprintf(message, sizeof message, format, values));
    const size_t used = strlen(message);
    const size_t room = sizeof message - used - 1;
    strncat(message, ": ", room);
    strncat(message, error->message, sizeof message - strlen(message) - 1);
    make_printable(message, sizeof message);
    memcpy(error->message, message, sizeof message);
    return error->status;
}

Status error_hint(Error *error, const char *format, ...) {
    if (!error) {
        return STATUS_INTERNAL;
    }
    char hint[ERROR_HINT_BYTES];
    WITH_VALUES(format, vsnprintf(hint, sizeof hint, format, values));
    make_printable(hint, sizeof hint);
    memcpy(error->hint, hint, sizeof hint);
    return error->status;
}

int status_exit_code(Status status) {
    static const int codes[] = {
        [STATUS_OK] = 0, [STATUS_USAGE] = 1, [STATUS_INFEASIBLE] = 2, [STATUS_ENVIRONMENT] = 3, [STATUS_INTERNAL] = 4,
    };
    return codes[status];
}
