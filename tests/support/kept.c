// Records one behind the other, each a head and its bytes. The file is made before the first claim starts; where it is
// stands in the environment, for Criterion closes what its processes inherit.

#include "tests/support/kept.h"

#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const PLACE = "NDTUNE_TESTS_KEPT";

typedef struct Head {
    char name[KEPT_NAME_BYTES];
    uint64_t bytes;
} Head;

ReportHook(PRE_ALL)(struct criterion_test_set *tests) {
    (void)tests;
    FILE *file = tmpfile();
    char place[64];
    if (file) {
        snprintf(place, sizeof place, "/proc/%d/fd/%d", (int)getpid(), fileno(file));
        setenv(PLACE, place, 1);
    }
}

static void read_all(int file, void *bytes, size_t count, off_t at) {
    for (size_t done = 0; done < count;) {
        const ssize_t read = pread(file, (char *)bytes + done, count - done, at + (off_t)done);
        cr_assert_gt(read, 0, "what was kept cannot be read");
        done += (size_t)read;
    }
}

static void write_all(int file, const void *bytes, size_t count, off_t at) {
    for (size_t done = 0; done < count;) {
        const ssize_t written = pwrite(file, (const char *)bytes + done, count - done, at + (off_t)done);
        cr_assert_gt(written, 0, "what others may use cannot be kept");
        done += (size_t)written;
    }
}

// Where the bytes of this name begin; -1 and the end where there are none.
static off_t find(int file, const Head *wanted, off_t *end) {
    const off_t size = lseek(file, 0, SEEK_END);
    for (*end = 0; *end < size;) {
        Head head;
        read_all(file, &head, sizeof head, *end);
        const off_t bytes = *end + (off_t)sizeof head;
        if (head.bytes == 0) {  // the claim that made it ended before the head was written
            return -1;
        }
        if (memcmp(&head, wanted, sizeof head) == 0) {
            return bytes;
        }
        *end = bytes + (off_t)head.bytes;
    }
    return -1;
}

static void lock(int file) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    cr_assert_neq(fcntl(file, F_SETLKW, &whole), -1, "what was kept cannot be locked");
}

void kept(const char *name, void *value, size_t bytes, void (*make)(void *value)) {
    const char *place = getenv(PLACE);
    const int file = place ? open(place, O_RDWR) : -1;
    if (file < 0) {
        make(value);
        return;
    }
    off_t end = 0;
    Head head = {.bytes = bytes};
    cr_assert_lt(snprintf(head.name, sizeof head.name, "%s", name), (int)sizeof head.name);
    lock(file);
    const off_t at = find(file, &head, &end);
    if (at >= 0) {
        read_all(file, value, bytes, at);
    } else {
        make(value);
        write_all(file, value, bytes, end + (off_t)sizeof head);
        write_all(file, &head, sizeof head, end);
    }
    close(file);  // and with it the lock
}
