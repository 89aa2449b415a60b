// A pipe without a writer and one whose writer is slow look alike to poll: a read tells them apart, which without a
// writer is at the end at once.

#include "sim/base/open.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 3000 };  // for a writer that is started at the same time

static bool is_pipe(int descriptor) {
    struct stat about;
    return fstat(descriptor, &about) == 0 && S_ISFIFO(about.st_mode);
}

// *first: what has come meanwhile, EOF = nothing.
static bool has_writer(int descriptor, int *first) {
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    unsigned char byte = 0;
    if (poll(&wait, 1, PATIENCE_MS) != 0) {
        return true;
    }
    const ssize_t got = read(descriptor, &byte, 1);
    *first = got == 1 ? byte : EOF;
    return got != 0;
}

FILE *open_to_read(const char *path, const char **why) {
    const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int first = EOF;
    if (descriptor < 0) {
        *why = strerror(errno);
        return NULL;
    }
    if (is_pipe(descriptor) && !has_writer(descriptor, &first)) {
        close(descriptor);
        *why = "it is a pipe that nobody writes to";
        return NULL;
    }
    const int flags = fcntl(descriptor, F_GETFL);
    fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK);
    FILE *file = fdopen(descriptor, "rb");
    if (!file) {
        *why = strerror(errno);
        close(descriptor);
    } else if (first != EOF) {
        ungetc(first, file);
    }
    return file;
}

const char *read_and_close(FILE *file, size_t most, Arena *arena, char **bytes, size_t *count) {
    size_t capacity = 1 << 16, got = 1;
    char *all = arena_alloc(arena, capacity);
    for (*count = 0; got > 0 && *count <= most; *count += got) {
        if (*count == capacity - 1) {
            all = arena_grow(arena, all, capacity, &capacity, 1);
        }
        const size_t room = capacity - 1 - *count, wanted = most + 1 - *count;
        got = fread(all + *count, 1, room < wanted ? room : wanted, file);
    }
    const char *why = ferror(file) ? strerror(errno) : NULL;
    fclose(file);
    all[*count] = '\0';
    *bytes = all;
    return why;
}

bool line_next(FILE *file, char *line, size_t bytes) {
    const bool more = file && fgets(line, (int)bytes, file);
    if (file && !more) {
        fclose(file);
    }
    return more;
}
