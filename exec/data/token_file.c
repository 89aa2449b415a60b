// Reading is a copy with widening. All possible errors are checked before a run starts, on exactly the tokens it will
// read, so a step needs no check.

#include "exec/data/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/philox.h"

enum { STREAM_PLACES = 3, STREAM_SHIFT = 48 };  // chain.c uses streams 1 and 2

enum { UINT16_VOCAB = 1 << 16 };

static bool ends_in(const char *path, const char *end) {
    const size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcmp(path + length - tail, end) == 0;
}

static int width_of(const char *path, int32_t vocab) {
    if (ends_in(path, ".u16") || ends_in(path, ".uint16")) {
        return 2;
    }
    if (ends_in(path, ".u32") || ends_in(path, ".uint32")) {
        return 4;
    }
    return vocab <= UINT16_VOCAB ? 2 : 4;
}

static Status file_map(int descriptor, TokenFile *file, Error *error) {
    struct stat about;
    FAIL_IF(fstat(descriptor, &about) != 0, error, STATUS_ENVIRONMENT, "%s: cannot be read: %s", file->path,
            strerror(errno));
    FAIL_IF(!S_ISREG(about.st_mode), error, STATUS_USAGE, "%s is not a file of tokens", file->path);
    FAIL_IF(about.st_size == 0, error, STATUS_USAGE, "%s is empty", file->path);
    FAIL_IF(about.st_size % file->width != 0, error, STATUS_USAGE,
            "%s has %lld bytes, which is no number of uint%d tokens (the name says the type when it ends in "
            ".u16 or .u32)",
            file->path, (long long)about.st_size, 8 * file->width);
    void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    FAIL_IF(bytes == MAP_FAILED, error, STATUS_ENVIRONMENT, "%s: cannot be mapped: %s", file->path, strerror(errno));
    file->bytes = bytes;
    file->count = about.st_size / file->width;
    return STATUS_OK;
}

Status token_file_open(const char *path, int32_t vocab, TokenFile *file, Error *error) {
    *file = (TokenFile){.path = path, .width = width_of(path, vocab)};
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    FAIL_IF(descriptor < 0, error, STATUS_USAGE, "%s: cannot be read: %s", path, strerror(errno));
    const Status status = file_map(descriptor, file, error);
    close(descriptor);
    return status;
}

void token_file_close(TokenFile *file) {
    if (file->bytes) {
        munmap((void *)(uintptr_t)file->bytes, (size_t)(file->count * file->width));
        file->bytes = NULL;
    }
}

int64_t token_file_place(const TokenFile *file, uint64_t seed, int64_t step, int64_t sequence, int32_t count) {
    const Philox random = philox(seed, (uint64_t)STREAM_PLACES << STREAM_SHIFT | (uint64_t)step, (uint64_t)sequence);
    const uint64_t draw = (uint64_t)random.word[0] << 32 | random.word[1];
    return (int64_t)(draw % (uint64_t)(file->count - count + 1));
}

static uint32_t token_at(const TokenFile *file, int64_t place) {
    const unsigned char *at = file->bytes + place * file->width;
    const uint32_t low = (uint32_t)at[0] | (uint32_t)at[1] << 8;
    return file->width == 2 ? low : low | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

void token_file_read(const TokenFile *file, int64_t place, int32_t count, int32_t *tokens) {
    for (int32_t i = 0; i < count; i++) {
        tokens[i] = (int32_t)token_at(file, place + i);
    }
}

typedef struct Seen {
    int64_t odd, odd_zero;  // tokens at odd positions, and those that are 0
} Seen;

static Status check_sequence(const TokenFile *file, const TokenNeed *need, int64_t place, Seen *seen, Error *error) {
    for (int64_t i = place; i < place + need->count; i++) {
        const uint32_t token = token_at(file, i);
        seen->odd += i & 1;
        seen->odd_zero += (i & 1) && token == 0;
        if (token >= (uint32_t)need->vocab) {
            error_set(error, STATUS_USAGE,
                      "%s: token %" PRIu32 " at place %" PRId64
                      " is outside the model's vocabulary of %d (read as uint%d)",
                      file->path, token, i, need->vocab, 8 * file->width);
            return error_hint(error, "a name that ends in .u16 or .u32 says the type of the tokens");
        }
    }
    return STATUS_OK;
}

Status token_file_check(const TokenFile *file, const TokenNeed *need, Error *error) {
    FAIL_IF(file->count < need->count, error, STATUS_USAGE,
            "%s holds %" PRId64 " tokens (read as uint%d), a sequence and its last target need %d", file->path,
            file->count, 8 * file->width, need->count);
    Seen seen = {0};
    for (int64_t step = 0; step < need->steps; step++) {
        for (int64_t sequence = 0; sequence < need->sequences; sequence++) {
            const int64_t place = token_file_place(file, need->seed, step, sequence, need->count);
            TRY(check_sequence(file, need, place, &seen, error));
        }
    }
    enum { ENOUGH = 64 };  // no text has this many zeros in a row at every second position
    FAIL_IF(file->width == 2 && seen.odd >= ENOUGH && seen.odd == seen.odd_zero, error, STATUS_USAGE,
            "%s: every second uint16 is 0, so its tokens are uint32: give it a name that ends in .u32", file->path);
    return STATUS_OK;
}
