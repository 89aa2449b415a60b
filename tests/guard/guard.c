// Reads the requests and answers of this folder, asks the program, and walks two answers in parallel.

#include "tests/guard/guard.h"

#include <criterion/criterion.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/accuracy/csv_file.h"
#include "tests/support/run_program.h"

enum { PATH_BYTES = 600 };

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    char *text = calloc((size_t)size + 1, 1);
    cr_assert_eq(fread(text, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    return text;
}

// The lines of a file of this folder that are neither empty nor a comment.
static void each_line(const char *name, void (*take)(void *context, char *line), void *context) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/tests/guard/%s", NDTUNE_SOURCE_DIR, name);
    char *text = read_file(path), *rest = NULL;
    cr_assert_not_null(text, "%s cannot be read", path);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] != '#') {
            take(context, line);
        }
    }
    free(text);
}

// ------------------------------------------------------------------------------------------------------- the files

static void take_request(void *context, char *line) {
    GuardRequests *requests = context;
    cr_assert_lt(requests->count, GUARD_MAX_REQUESTS);
    GuardRequest *request = &requests->requests[requests->count++];
    char *colon = strstr(line, ": ");
    cr_assert_not_null(colon, "requests.txt: %s", line);
    request->name = strndup(line, (size_t)(colon - line));
    request->line = strdup(colon + 2);
    char *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(request->line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        cr_assert_lt(count, GUARD_MAX_WORDS - 1, "%s has too many words", request->name);
        request->words[count++] = word;
    }
}

GuardRequests *guard_requests(void) {
    GuardRequests *requests = calloc(1, sizeof *requests);
    each_line("requests.txt", take_request, requests);
    return requests;
}

void guard_requests_free(GuardRequests *requests) {
    for (int i = 0; i < requests->count; i++) {
        free(requests->requests[i].name);
        free(requests->requests[i].line);
    }
    free(requests);
}

static void take_change(void *context, char *line) {
    GuardChanges *changes = context;
    cr_assert_lt(changes->count, GUARD_MAX_CHANGES);
    GuardChange *change = &changes->changes[changes->count++];
    cr_assert_eq(sscanf(line, "%79s %159s %399[^\n]", change->request, change->path, change->reason), 3,
                 "changed.txt: a request, a path and the reason, not: %s", line);
}

GuardChanges *guard_changes(const char *more) {
    GuardChanges *changes = calloc(1, sizeof *changes);
    each_line("changed.txt", take_change, changes);
    if (more) {
        each_line(more, take_change, changes);
    }
    return changes;
}

// ------------------------------------------------------------------------------------------------------ the answers

// What is another each time: the hash of the sources, how long it took, how large a page is that is no answer.
static char *masked(const char *text) {
    static const struct {
        const char *pattern, *mask;  // the mask is never longer than what it is put over
    } masks[] = {{"[0-9]+\\.[0-9]+\\.[0-9]+\\+[0-9a-f]{12}", "VERSION"},
                 {", in [0-9.]+ [mun]?s$", ", in 0 s"},
                 {"\"elapsed_s\": [0-9.e-]+", "\"elapsed_s\": 0"},
                 {"html: [0-9]+ KiB", "html: 0 KiB"}};
    char *result = strdup(text);
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        regex_t pattern;
        regmatch_t match;
        cr_assert_eq(regcomp(&pattern, masks[i].pattern, REG_EXTENDED | REG_NEWLINE), 0);
        for (size_t from = 0; regexec(&pattern, result + from, 1, &match, 0) == 0;) {
            char *begin = result + from + match.rm_so;
            const size_t length = strlen(masks[i].mask), room = (size_t)(match.rm_eo - match.rm_so);
            cr_assert_leq(length, room);
            memcpy(begin, masks[i].mask, length);
            memmove(begin + length, begin + room, strlen(begin + room) + 1);
            from += (size_t)match.rm_so + length;
        }
        regfree(&pattern);
    }
    return result;
}

static json_t *lines_of(char *text) {
    json_t *lines = json_array();
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) {
            *end++ = '\0';
        }
        json_array_append_new(lines, json_string(line));
    }
    return lines;
}

static json_t *rows_of(const char *text) {
    Arena arena = {0};
    CsvTable table;
    Error error = {0};
    cr_assert_eq(csv_parse(text, strlen(text), "answer", &arena, &table, &error), STATUS_OK, "%s", error.message);
    json_t *rows = json_array();
    for (int i = 0; i < table.row_count; i++) {
        json_t *row = json_object();
        for (int j = 0; j < table.column_count; j++) {
            json_object_set_new(row, table.header[j].text, json_string(csv_field(&table, i, j)->text));
        }
        json_array_append_new(rows, row);
    }
    arena_free(&arena);
    return rows;
}

json_t *guard_structured(const char *text) {
    char *plain = masked(text);
    json_t *result = NULL;
    if (plain[0] == '{' || plain[0] == '[') {
        result = json_loads(plain, JSON_REJECT_DUPLICATES, NULL);
    }
    if (!result && strstr(plain, "\r\n")) {
        result = rows_of(plain);
    }
    if (!result) {
        result = lines_of(plain);
    }
    free(plain);
    return result;
}

json_t *guard_recorded(const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s.json", GUARD_ANSWERS, name);
    json_t *answer = json_load_file(path, 0, NULL);
    cr_assert_not_null(answer, "%s has no recorded answer: tests/guard/record PROGRAM %s", name, name);
    const char *key;
    json_t *value;
    void *safe;
    json_object_foreach_safe(answer, safe, key, value) {
        if (json_is_string(value)) {
            json_object_set_new(answer, key, guard_structured(json_string_value(value)));
        }
    }
    return answer;
}

// The text with every `from` replaced by the shorter `to`.
static void replace(char *text, const char *from, const char *to) {
    const size_t room = strlen(from), length = strlen(to);
    cr_assert_leq(length, room);
    for (char *at = text; (at = strstr(at, from)); at += length) {
        memcpy(at, to, length);
        memmove(at + length, at + room, strlen(at + room) + 1);
    }
}

static json_t *without_folder(char *text, const char *folder) {
    replace(text, folder, "DIR");
    return guard_structured(text);
}

void guard_store(const char *name, const char *folder) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", GUARD_STORES, name);
    FILE *from = fopen(path, "rb");
    cr_assert_not_null(from, "%s cannot be read", path);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = fopen(path, "wb");
    char bytes[1 << 16];
    for (size_t count; (count = fread(bytes, 1, sizeof bytes, from)) > 0;) {
        cr_assert_eq(fwrite(bytes, 1, count, to), count);
    }
    fclose(from);
    fclose(to);
}

// "{out}..." and "{NAME.db}" as paths in the folder, into which the store is copied.
static const char *with_paths(const char *word, const char *folder, char path[PATH_BYTES]) {
    const char *end = strchr(word, '}');
    if (word[0] != '{' || !end) {
        return word;
    }
    char name[80];
    snprintf(name, sizeof name, "%.*s", (int)(end - word - 1), word + 1);
    if (strcmp(name, "out") != 0) {
        guard_store(name, folder);
    }
    snprintf(path, PATH_BYTES, "%s/%s%s", folder, name, end + 1);
    return path;
}

json_t *guard_answer(const char *program, const GuardRequest *request) {
    cr_assert_eq(chdir(NDTUNE_SOURCE_DIR), 0);
    char *folder = temp_dir_make(), data[PATH_BYTES], out[PATH_BYTES];
    snprintf(data, sizeof data, "XDG_DATA_HOME=%s", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    const char *line[GUARD_MAX_WORDS + 1] = {program};
    char paths[GUARD_MAX_WORDS][PATH_BYTES];
    for (int i = 0; request->words[i]; i++) {
        line[i + 1] = with_paths(request->words[i], folder, paths[i]);
    }
    ProgramRun run = program_run(line, (const char *const[]){data, "LC_ALL=C", NULL}, 120);
    json_t *answer = json_pack("{s:i, s:o, s:o}", "exit", run.exit_code, "out", without_folder(run.out, folder), "err",
                               without_folder(run.err, folder));
    char *file = read_file(out);
    if (file) {
        json_object_set_new(answer, "file", without_folder(file, folder));
        free(file);
    }
    program_run_free(&run);
    temp_dir_remove(folder);
    return answer;
}

// --------------------------------------------------------------------------------------------------- the difference

typedef struct Comparison {
    GuardDiffers *differs;
    void *context;
} Comparison;

static void compare(const Comparison *comparison, const json_t *recorded, const json_t *now, const char *path);

// The element of this name; elements without names have none.
static const json_t *named(const json_t *array, const char *name) {
    size_t i;
    const json_t *element;
    json_array_foreach(array, i, element) {
        const char *its = json_string_value(json_object_get(element, "name"));
        if (its && strcmp(its, name) == 0) {
            return element;
        }
    }
    return NULL;
}

static void compare_arrays(const Comparison *comparison, const json_t *recorded, const json_t *now, const char *path) {
    char below[PATH_BYTES];
    size_t i;
    const json_t *element;
    bool names = json_array_size(recorded) > 0;
    json_array_foreach(recorded, i, element) {
        const char *name = json_string_value(json_object_get(element, "name"));
        names = names && name && named(recorded, name) == element;
    }
    if (!names && json_array_size(recorded) != json_array_size(now)) {
        snprintf(below, sizeof below, "%s.length", path);
        json_t *lengths[] = {json_integer((json_int_t)json_array_size(recorded)),
                             json_integer((json_int_t)json_array_size(now))};
        comparison->differs(comparison->context, below, lengths[0], lengths[1]);
        json_decref(lengths[0]);
        json_decref(lengths[1]);
    }
    json_array_foreach(recorded, i, element) {
        if (names) {
            const char *name = json_string_value(json_object_get(element, "name"));
            snprintf(below, sizeof below, "%s.%s", path, name);
            compare(comparison, element, named(now, name), below);
        } else if (i < json_array_size(now)) {
            snprintf(below, sizeof below, "%s.%zu", path, i);
            compare(comparison, element, json_array_get(now, i), below);
        }
    }
}

static void compare(const Comparison *comparison, const json_t *recorded, const json_t *now, const char *path) {
    if (now && json_is_object(recorded) && json_is_object(now)) {
        const char *key;
        json_t *value;
        json_object_foreach((json_t *)recorded, key, value) {
            char below[PATH_BYTES];
            snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
            compare(comparison, value, json_object_get(now, key), below);
        }
    } else if (now && json_is_array(recorded) && json_is_array(now)) {
        compare_arrays(comparison, recorded, now, path);
    } else if (!now || !json_equal(recorded, now)) {
        comparison->differs(comparison->context, path, recorded, now);
    }
}

void guard_compare(const json_t *recorded, const json_t *now, GuardDiffers *differs, void *context) {
    compare(&(Comparison){.differs = differs, .context = context}, recorded, now, "");
}
