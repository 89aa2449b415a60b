// The watchdog from the start: a rank that is stopped between its start and its first step ends the run within the
// timeout, not at the end of a long preparation, and is named with its host and its progress.

#define _GNU_SOURCE  // setenv, kill, gethostname

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/clock.h"
#include "tests/fault/exec/launched.h"
#include "tests/support/run_program.h"

static const double timeouts_s[] = {1, 6, 30};  // the next one if a crowded machine made another rank late
enum { TIMEOUTS = sizeof timeouts_s / sizeof *timeouts_s };

static char *directory;

static void begin(void) {
    directory = temp_dir_make();
    setenv("TMPDIR", directory, 1);
}

static void end(void) {
    cr_expect(launched_processes(getpid()) == 0, "processes stayed");
    temp_dir_remove(directory);
}

TestSuite(watchdog_start, .init = begin, .fini = end);

typedef struct Stop {
    Launched launched;
    double after_s;  // since the process was seen
    double seen_s;   // clock; 0 = not yet
    bool struck;
} Stop;

static bool stop_rank_1(void *context, const char *label, int64_t done, int64_t total) {
    (void)label;
    (void)done;
    (void)total;
    Stop *stop = context;
    const pid_t pid = stop->struck ? 0 : launched_rank(&stop->launched, 1);
    if (pid > 0) {
        stop->seen_s = stop->seen_s > 0 ? stop->seen_s : clock_s();
        stop->struck = clock_s() - stop->seen_s >= stop->after_s && kill(pid, SIGSTOP) == 0;
    }
    return true;
}

static bool has_phase(const char *message) {
    static const char *const phases[] = {"since mpirun started", "last seen in preparation", "last seen in step"};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        if (strstr(message, phases[i])) {
            return true;
        }
    }
    return false;
}

static bool is_named(const char *transport, double after_s, int try) {
    Arena arena = {0};
    Error error = {0};
    char host[65] = "", who[80];
    gethostname(host, sizeof host - 1);
    snprintf(who, sizeof who, "rank 1 on %s", host);
    Stop stop = {.after_s = after_s};
    const Progress progress = {.update = stop_rank_1, .context = &stop};
    stop.launched = (Launched){transport, NULL, timeouts_s[try], 1000000, &progress};
    cr_expect(launched_run(&stop.launched, &arena, &error) == STATUS_ENVIRONMENT, "%s", error.message);
    cr_expect(launched_processes(getpid()) == 0, "processes stayed");
    arena_free(&arena);
    const bool named = stop.struck && strstr(error.message, who) && has_phase(error.message);
    if (!named) {
        cr_log_warn("%s, %g s, timeout %g s: %s", transport, after_s, timeouts_s[try], error.message);
    }
    return named;
}

static void stopped_at(const char *transport, double after_s) {
    bool named = false;
    for (int try = 0; try < TIMEOUTS && !named; try++) {
        named = is_named(transport, after_s, try);
    }
    cr_expect(named, "%s, stopped %g s after its start", transport, after_s);
}

Test(watchdog_start, a_rank_over_mpi_that_is_stopped_before_it_reports_is_named) {
    stopped_at("mpi", 0);
}

Test(watchdog_start, a_rank_over_mpi_that_is_stopped_while_it_prepares_is_named) {
    stopped_at("mpi", 0.1);
    stopped_at("mpi", 0.25);
}

Test(watchdog_start, a_rank_over_shm_that_is_stopped_while_it_prepares_is_named) {
    stopped_at("shm", 0);
    stopped_at("shm", 0.05);
}
