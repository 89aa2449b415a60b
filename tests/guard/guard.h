// Requests to the program and their recorded answers, and how an answer differs from its recording.

#pragma once

#include <jansson.h>

enum { GUARD_MAX_WORDS = 32, GUARD_MAX_REQUESTS = 400 };

typedef struct GuardRequest {
    char *name;
    char *line;  // its words, split at spaces
    const char *words[GUARD_MAX_WORDS];
} GuardRequest;

typedef struct GuardRequests {
    GuardRequest requests[GUARD_MAX_REQUESTS];
    int count;
} GuardRequests;

// The requests of requests.txt in order; fails the test if the file is malformed.
GuardRequests *guard_requests(void);
void guard_requests_free(GuardRequests *requests);

// What changed.txt accepts: a request and a path (shell patterns both), and why.
typedef struct GuardChange {
    char request[80], path[160], reason[400];
} GuardChange;

enum { GUARD_MAX_CHANGES = 500 };
typedef struct GuardChanges {
    GuardChange changes[GUARD_MAX_CHANGES];
    int count;
} GuardChanges;

GuardChanges *guard_changes(const char *more);  // plus those of another file in this folder; NULL = none

// The recorded answer, or that of the program now: {exit, out, err, file}, where a text that is JSON is its value, one
// that is CSV an array of objects, any other an array of lines. Versions of the program and seconds that the wall clock
// gave are masked. The caller frees them.
json_t *guard_recorded(const char *name);
json_t *guard_answer(const char *program, const GuardRequest *request);
json_t *guard_structured(const char *text);

// Copies a store of stores.tar.xz ("asked.db") into the folder.
void guard_store(const char *name, const char *folder);

// Calls `differs` with the path of everything in `recorded` that `now` has not, or has otherwise. What `now` has more
// is no difference: keys of objects, columns of CSV, elements of an array whose elements have names.
typedef void GuardDiffers(void *context, const char *path, const json_t *recorded, const json_t *now);
void guard_compare(const json_t *recorded, const json_t *now, GuardDiffers *differs, void *context);
