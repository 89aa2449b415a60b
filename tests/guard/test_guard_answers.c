// Every request of requests.txt is answered as recorded: digits, words, exit codes. Keys may be added; intended
// differences are listed in changed.txt with their reason.

#include <criterion/criterion.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/guard/guard.h"
#include "tests/support/rounds.h"

enum { MOST_SAID = 5 };  // differences of one request that are told

typedef struct Told {
    const char *request;
    const GuardChanges *changes;
    int differences;
} Told;

static bool is_accepted(const Told *told, const char *path) {
    for (int i = 0; i < told->changes->count; i++) {
        const GuardChange *change = &told->changes->changes[i];
        if (fnmatch(change->request, told->request, 0) == 0 && fnmatch(change->path, path, 0) == 0) {
            return true;
        }
    }
    return false;
}

static void tell(void *context, const char *path, const json_t *recorded, const json_t *now) {
    Told *told = context;
    if (is_accepted(told, path)) {
        return;
    }
    if (++told->differences <= MOST_SAID) {
        const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT;
        char *was = json_dumps(recorded, flags), *is = now ? json_dumps(now, flags) : NULL;
        cr_log_error("%s: %s was %.300s, is %.300s", told->request, path, was, is ? is : "not there");
        free(was);
        free(is);
    }
}

static void check_request(const GuardRequest *request, const GuardChanges *changes) {
    json_t *recorded = guard_recorded(request->name), *now = guard_answer(GUARD_PROGRAM, request);
    Told told = {.request = request->name, .changes = changes};
    guard_compare(recorded, now, tell, &told);
    cr_expect_eq(told.differences, 0,
                 "%s differs from its recording in %d places; what is meant is a line of tests/guard/changed.txt",
                 request->name, told.differences);
    json_decref(recorded);
    json_decref(now);
}

static void check_requests(const char *pattern) {
    GuardRequests *requests = guard_requests();
    GuardChanges *changes = guard_changes(GUARD_MORE_CHANGES);
    int asked = 0;
    for (int i = 0; i < requests->count; i++) {
        if (fnmatch(pattern, requests->requests[i].name, 0) == 0) {
            if (asked++ % GUARD_STRIDE == 0) {
                check_request(&requests->requests[i], changes);
            }
        }
    }
    cr_expect_gt(asked, 0, "no request is named %s", pattern);
    free(changes);
    guard_requests_free(requests);
}

Test(guard_answers, every_plan_is_as_recorded) {
    check_requests("plan-*");
}

Test(guard_answers, every_prediction_is_as_recorded) {
    check_requests("predict-*");
}

Test(guard_answers, every_explanation_is_as_recorded) {
    check_requests("explain-*");
}

Test(guard_answers, every_exported_file_is_as_recorded) {
    check_requests("export-*");
}

Test(guard_answers, every_list_and_help_page_is_as_recorded) {
    check_requests("list-*");
}

Test(guard_answers, every_scored_run_is_as_recorded) {
    check_requests("accuracy-*");
}

Test(guard_answers, every_refusal_is_as_recorded) {
    check_requests("refuse-*");
}

Test(guard_answers, an_old_store_is_listed_exported_reported_and_fitted_as_recorded) {
    check_requests("store-*");
}

Test(guard_answers, every_request_is_of_one_of_these_kinds) {
    GuardRequests *requests = guard_requests();
    static const char *const kinds[] = {"plan-", "predict-",  "explain-", "export-",
                                        "list-", "accuracy-", "refuse-",  "store-"};
    for (int i = 0; i < requests->count; i++) {
        bool found = false;
        for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
            found = found || strncmp(requests->requests[i].name, kinds[kind], strlen(kinds[kind])) == 0;
        }
        cr_expect(found, "%s is asked by no test", requests->requests[i].name);
    }
    guard_requests_free(requests);
}

static void count_difference(void *context, const char *path, const json_t *recorded, const json_t *now) {
    (void)path;
    (void)recorded;
    (void)now;
    ++*(int *)context;
}

static int differences(const char *recorded, const char *now) {
    json_t *was = guard_structured(recorded), *is = guard_structured(now);
    int count = 0;
    guard_compare(was, is, count_difference, &count);
    json_decref(was);
    json_decref(is);
    return count;
}

Test(guard_answers, an_added_key_or_column_is_no_difference) {
    cr_expect_eq(differences("{\"a\": 1}", "{\"a\": 1, \"b\": 2}"), 0);
    cr_expect_eq(differences("a,b\r\n1,2\r\n", "a,c,b\r\n1,9,2\r\n"), 0);
}

Test(guard_answers, a_removed_key_or_a_changed_digit_is_a_difference) {
    cr_expect_eq(differences("{\"a\": 1, \"b\": 2}", "{\"a\": 1}"), 1);
    cr_expect_eq(differences("{\"a\": [1.5, 2]}", "{\"a\": [1.5000000000000002, 2]}"), 1);
    cr_expect_eq(differences("a,b\r\n1,2\r\n", "a,b\r\n1,3\r\n"), 1);
    cr_expect_eq(differences("one\ntwo\n", "one\n"), 1);
}

Test(guard_answers, a_list_of_names_may_grow_but_not_lose_one) {
    cr_expect_eq(differences("[{\"name\": \"a\", \"x\": 1}]", "[{\"name\": \"b\"}, {\"name\": \"a\", \"x\": 1}]"), 0);
    cr_expect_eq(differences("[{\"name\": \"a\"}]", "[{\"name\": \"b\"}]"), 1);
}
