// An advisory lock on the directory itself tells live launchers from dead ones: the kernel drops it with the last
// descriptor, however the launcher ends, and it works across containers that share a file system, where process ids
// would not.

#define _GNU_SOURCE  // mkdtemp, flock, O_DIRECTORY

#include "exec/launch/run_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PREFIX[] = "ndtune-run-";

enum { DEPTH_MOST = 8 };

static const char *base_path(void) {
    const char *base = getenv("TMPDIR");
    return base && *base ? base : "/tmp";
}

static int open_locked(const char *path) {
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

// Removes everything below; mpirun nests directories. Takes ownership of the descriptor.
static void remove_below(int fd, int depth) {
    const int listed_fd = dup(fd);
    DIR *directory = listed_fd >= 0 ? fdopendir(listed_fd) : NULL;
    for (const struct dirent *entry = directory ? readdir(directory) : NULL; entry; entry = readdir(directory)) {
        const bool itself = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (itself || unlinkat(fd, entry->d_name, 0) == 0 || depth == DEPTH_MOST) {
            continue;
        }
        const int inner_fd = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner_fd >= 0) {
            remove_below(inner_fd, depth + 1);
            unlinkat(fd, entry->d_name, AT_REMOVEDIR);
        }
    }
    if (directory) {
        closedir(directory);
    }
    close(fd);
}

// Takes ownership of the descriptor, and with it the lock: released when everything below is gone.
static void remove_locked(const char *path, int fd) {
    const int lock_fd = dup(fd);
    remove_below(fd, 0);
    rmdir(path);
    close(lock_fd);
}

static void sweep(const char *base, Arena *arena) {
    DIR *directory = opendir(base);
    for (const struct dirent *entry = directory ? readdir(directory) : NULL; entry; entry = readdir(directory)) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0) {
            continue;
        }
        const char *path = arena_format(arena, "%s/%s", base, entry->d_name);
        struct stat status;
        const bool ours = lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
        const int fd = ours ? open_locked(path) : -1;
        if (fd >= 0) {
            remove_locked(path, fd);
        }
    }
    if (directory) {
        closedir(directory);
    }
}

Status run_directory_make(Arena *arena, RunDirectory *directory, Error *error) {
    const char *base = base_path();
    sweep(base, arena);
    for (int attempt = 0; attempt < 10; attempt++) {  // another launcher may remove it between the next two lines
        char *path = arena_format(arena, "%s/%sXXXXXX", base, PREFIX);
        FAIL_IF(!mkdtemp(path), error, STATUS_ENVIRONMENT, "cannot make a directory %s: %s", path, strerror(errno));
        const int fd = open_locked(path);
        struct stat status;
        if (fd >= 0 && lstat(path, &status) == 0) {
            *directory = (RunDirectory){.path = path, .lock_fd = fd};
            return STATUS_OK;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return error_set(error, STATUS_ENVIRONMENT, "cannot lock a directory under %s", base);
}

void run_directory_remove(RunDirectory *directory) {
    if (directory->path) {
        remove_locked(directory->path, directory->lock_fd);
        directory->path = NULL;
    }
}
