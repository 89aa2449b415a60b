// Preloaded into workers: while armed, malloc and its relatives end the process with a message. Calls through to
// glibc's own entry points, so nothing has to be looked up. NDTUNE_GUARD_SELF_TEST=1 allocates once when armed, to show
// that the guard works.

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void ndtune_allocation_guard(int armed);

static atomic_int guard_armed;

static void check(void) {
    if (atomic_load(&guard_armed)) {
        static const char words[] = "allocation inside a step\n";
        const ssize_t written = write(STDERR_FILENO, words, sizeof words - 1);
        (void)written;
        abort();
    }
}

void *malloc(size_t bytes) {
    check();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    check();
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
    check();
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    check();
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    check();
    *memory = __libc_memalign(alignment, bytes);
    return *memory ? 0 : 12;  // ENOMEM
}

void ndtune_allocation_guard(int armed) {
    atomic_store(&guard_armed, armed);
    const char *self_test = armed ? getenv("NDTUNE_GUARD_SELF_TEST") : NULL;
    if (self_test && strcmp(self_test, "1") == 0) {
        void *volatile one = malloc(1);
        free(one);
    }
}
