// Finds the dump files of a job.

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "autotune/blame/job.h"
#include "sim/base/escape.h"

enum { PATH_BYTES = 4096, MOST_RANK = 1 << 20 };

typedef struct Found {
    int rank;
    const char *path, *host;
    int64_t written_ns;
} Found;

typedef struct Search {
    Job *job;
    Arena *arena;
    Found *files;
    int count;
    size_t capacity, note_capacity;
} Search;

static void note(Search *search, const char *sentence) {
    Job *job = search->job;
    ARENA_PUSH(search->arena, job->notes, job->note_count, &search->note_capacity) = sentence;
}

// The number at the end of a name; -1 = there is none.
static int rank_of_name(const char *name) {
    static const char *const endings[] = {".json", ".pickle", ".pkl"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(name + length - ending, endings[i]) == 0) {
            length -= ending;
            break;
        }
    }
    size_t begin = length;
    while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') {
        begin--;
    }
    const long rank = begin < length && length - begin < 8 ? strtol(name + begin, NULL, 10) : -1;
    return rank < MOST_RANK ? (int)rank : -1;
}

static void add_file(Search *search, const char *path, const char *name, const char *host, const struct stat *about) {
    const int rank = rank_of_name(name);
    if (rank < 0) {
        note(search, arena_format(search->arena, "%s is left out: a dump's name ends in its rank",
                                  escape_line_text(name, search->arena)));
        return;
    }
    ARENA_PUSH(search->arena, search->files, search->count, &search->capacity) =
        (Found){.rank = rank,
                .path = arena_text(search->arena, path),
                .host = host ? escape_line_text(host, search->arena) : NULL,
                .written_ns = (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec};
}

static Status look_in(Search *search, const char *folder, const char *host, Error *error) {
    DIR *entries = opendir(folder);
    FAIL_IF(!entries, error, STATUS_ENVIRONMENT, "cannot read the folder %s: %s",
            escape_line_text(folder, search->arena), strerror(errno));
    Status status = STATUS_OK;
    for (const struct dirent *entry = readdir(entries); entry && status == STATUS_OK; entry = readdir(entries)) {
        char path[PATH_BYTES];
        struct stat about;
        const bool fits = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path;
        if (entry->d_name[0] == '.' || !fits || stat(path, &about) != 0) {
            continue;
        }
        if (S_ISDIR(about.st_mode) && !host) {
            status = look_in(search, path, entry->d_name, error);
        } else if (S_ISREG(about.st_mode)) {  // reading a pipe would block
            add_file(search, path, entry->d_name, host, &about);
        }
    }
    closedir(entries);
    return status;
}

static int compare_files(const void *a, const void *b) {
    const Found *one = a, *other = b;
    return one->rank != other->rank ? (one->rank > other->rank) - (one->rank < other->rank)
                                    : strcmp(one->path, other->path);
}

static Status read_one(Search *search, const Found *file, Dump *dump, Error *error) {
    Arena values = {0};
    const DumpValue *root = NULL;
    Status status = dump_read_file(file->path, &values, &root, error);
    if (status == STATUS_OK) {
        status = dump_of_value(root, search->arena, dump, error);
    }
    arena_free(&values);
    dump->rank = file->rank;
    dump->path = escape_line_text(file->path, search->arena);
    dump->host = file->host ? file->host : dump->host;
    dump->written_ns = file->written_ns;
    return status;
}

// Ranks with unreadable files count as ranks without a dump; it is an error if none can be read.
Status job_read(const char *folder, int world, Arena *arena, Job *job, Error *error) {
    Search search = {.job = job, .arena = arena};
    *job = (Job){.folder = escape_line_text(folder, arena)};
    TRY(look_in(&search, folder, NULL, error));
    if (search.count == 0) {
        error_set(error, STATUS_USAGE, "no dumps in %s: no file whose name ends in a rank", job->folder);
        return error_hint(error,
                          "TORCH_FR_BUFFER_SIZE=2000 and TORCH_FR_DUMP_TEMP_FILE=DIR/rank_ make torch write them");
    }
    qsort(search.files, (size_t)search.count, sizeof *search.files, compare_files);
    Dump *dumps = ARENA_ARRAY(arena, Dump, search.count);
    int count = 0;
    Error first = {0};
    for (int i = 0; i < search.count; i++) {
        const Found *file = &search.files[i];
        Error why = {0};
        Dump dump = {0};
        FAIL_IF(count > 0 && dumps[count - 1].rank == file->rank, error, STATUS_USAGE,
                "two dumps of rank %d: %s and %s: one job to a folder", file->rank, dumps[count - 1].path,
                escape_line_text(file->path, arena));
        if (read_one(&search, file, &dump, &why) == STATUS_OK) {
            dumps[count++] = dump;
            continue;
        }
        first = first.status == STATUS_OK ? why : first;
        note(&search, arena_format(arena, "%s is left out: %s", dump.path, why.message));
    }
    FAIL_IF(count == 0, error, first.status, "no dump in %s can be read: %s", job->folder, first.message);
    return job_of_dumps(dumps, count, world, arena, job, error);
}
