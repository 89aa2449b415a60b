// The loop that watches a run. It sleeps in sigtimedwait where the ranks are children of this process, in the
// rendezvous where a launcher started them, and reduces any failure to one sentence: what a rank reported, else how its
// process ended, else what the progress table shows.

#define _GNU_SOURCE  // gethostname in strict C

#include <string.h>
#include <unistd.h>

#include "exec/launch/run.h"
#include "exec/protocol/result.h"
#include "sim/base/clock.h"
#include "sim/base/log.h"
#include "sim/base/open.h"

static const double LOOK_S = 0.02;  // progress is shown this often; a worker's end wakes the watch at once
static const double SETTLE_S = 3;   // after a rank was lost, to receive its launcher's output

// ---------------------------------------------------------------------------------------------- words

static bool worth_reading(const char *line) {
    return line[strspn(line, "-=* \t\n")] != '\0';
}

// The last line that a worker or launcher wrote; "" if there is none.
static const char *last_line(const Run *run, int number) {
    FILE *file = fopen(arena_format(run->arena, "%s/rank-%d.err", run->directory.path, number), "r");
    char line[256], last[256] = "";
    while (line_next(file, line, sizeof line)) {
        if (worth_reading(line)) {
            snprintf(last, sizeof last, "%s", line);
        }
    }
    last[strcspn(last, "\n")] = '\0';
    return arena_text(run->arena, last + strspn(last, " \t"));
}

void run_notes_pass(const Run *run) {
    FILE *file = fopen(arena_format(run->arena, "%s/rank-0.err", run->directory.path), "r");
    const size_t mark = strlen(LOG_NOTE);
    char line[1024];
    while (line_next(file, line, sizeof line)) {
        if (strncmp(line, LOG_NOTE, mark) == 0) {
            line[strcspn(line, "\n")] = '\0';
            log_warn_once(line + mark);  // a command may start many runs
        }
    }
}

static const char *last_words(const Run *run, int number) {
    const char *line = last_line(run, number);
    return *line ? arena_format(run->arena, "; its last words: %s", line) : "";
}

static void add_words(char *text, size_t bytes, const char *line) {
    const size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s%.*s", used ? " " : "", (int)strcspn(line, "\r\n"),
             line + strspn(line, " \t"));
    text[strcspn(text, "\r\n")] = '\0';
}

// After this mpirun continues: Open MPI 4's orte/mca/plm/rsh warns when the agent started before its parent had set its
// process group.
static bool warns(const char *line) {
    return strstr(line, "Warning:") || strstr(line, "WARNING:");
}

// Why a launcher gave up: the last line that is no warning and not inside mpirun's boxes, which end in advice; else the
// beginning of its first box.
static const char *launcher_words(const Run *run) {
    FILE *file = fopen(arena_format(run->arena, "%s/rank-0.err", run->directory.path), "r");
    char line[256], outside[256] = "", box[256] = "";
    bool in_box = false, box_read = false;
    while (line_next(file, line, sizeof line)) {
        const bool edge = strncmp(line, "-----", 5) == 0, words = worth_reading(line);
        box_read = box_read || (box[0] != '\0' && !words);
        in_box = edge ? !in_box : in_box;
        if (words && in_box && !box_read) {
            add_words(box, sizeof box, line);
        } else if (words && !in_box && !warns(line)) {
            outside[0] = '\0';
            add_words(outside, sizeof outside, line);
        }
    }
    const char *said = outside[0] ? outside : box;
    return *said ? arena_format(run->arena, "; it said: %s", said) : "";
}

static const char *place_words(const Run *run, int rank) {
    const TransportPlace place = progress_place(&run->watch.table, rank);
    char text[160];
    const TransportWords *words = &run->watch.table.words;
    return arena_format(run->arena, "in %s", words->describe(words->context, rank, &place, text, sizeof text));
}

// ---------------------------------------------------------------------------------------------- own children

static Status children_check(Run *run, Error *error) {
    for (int rank = 0; rank < run->workers.count; rank++) {
        const Worker *worker = &run->workers.of_rank[rank];
        RankWatch *seen = &run->watch.ranks[rank];
        seen->came = true;
        seen->done = worker->pid == 0;
        seen->heard = !worker->stopped;
    }
    const int rank = run->workers.first_failed;
    if (rank < 0) {
        return STATUS_OK;
    }
    shm_segment_stop(&run->segment);
    workers_kill(&run->workers);
    if (run_failure_load(run->request.failure_path, error)) {
        return error->status;
    }
    return error_set(error, STATUS_ENVIRONMENT, "%s %s %s%s", progress_row_words(&run->watch.table, rank, false).text,
                     process_end_words(run->workers.of_rank[rank].wait_status, run->arena), place_words(run, rank),
                     last_words(run, rank));
}

// ---------------------------------------------------------------------------------------------- ranks of a launcher

static Status missing(const Run *run, double waited_s, Error *error) {
    char whom[320] = "";
    const int world = mesh_world(&run->request.plan.mesh);
    const char *hosts = run->options->launch.hosts;
    for (int rank = 0; rank < world; rank++) {
        if (!run->watch.ranks[rank].came) {
            progress_list_add(whom, sizeof whom, progress_row_words(&run->watch.table, rank, false).text);
        }
    }
    return error_set(error, STATUS_ENVIRONMENT, "%s%s%s: not heard of since %s started, for %.1f s%s", whom,
                     hosts ? ", on one of " : "", hosts ? hosts : "", run->launcher->program, waited_s,
                     launcher_words(run));
}

// mpirun knows which process ended first, and reports it in one of two ways; the rendezvous may see several end at
// once.
static int rank_lost(const Run *run) {
    FILE *file = fopen(arena_format(run->arena, "%s/rank-0.err", run->directory.path), "r");
    char line[256];
    int rank = -1;
    while (line_next(file, line, sizeof line)) {
        const char *killed = strstr(line, "process rank "), *ended = strstr(line, "Process name: [[");
        int named = -1;
        if ((killed && sscanf(killed, "process rank %d", &named) == 1) ||
            (ended && sscanf(ended, "Process name: [[%*d,%*d],%d]", &named) == 1)) {
            rank = rank < 0 ? named : rank;
        }
    }
    return rank >= 0 && rank < mesh_world(&run->request.plan.mesh) ? rank : run->rendezvous->first_lost;
}

// The reason a rank reported, if one did.
static Status failure_take(const Run *run, Error *error) {
    return run->rendezvous->failure ? run_failure_parse(run->rendezvous->failure, error) : STATUS_OK;
}

static Status lost(Run *run, Error *error) {
    const double end_s = clock_s() + SETTLE_S;
    while (run->workers.running > 0 && clock_s() < end_s) {
        rendezvous_serve(run->rendezvous, LOOK_S);
        workers_poll(&run->workers);
    }
    TRY(failure_take(run, error));
    const char *line = last_line(run, 0);
    return error_set(error, STATUS_ENVIRONMENT, "%s ended without a word%s%s%s%s",
                     progress_row_words(&run->watch.table, rank_lost(run), true).text, *line ? "; " : "",
                     *line ? run->launcher->program : "", *line ? ": " : "", line);
}

static Status group_check(Run *run, Error *error) {
    TRY(failure_take(run, error));
    if (run->rendezvous->first_lost >= 0) {
        return lost(run, error);
    }
    const Worker *launcher = &run->workers.of_rank[0];
    if (launcher->pid > 0) {
        return STATUS_OK;
    }
    rendezvous_serve(run->rendezvous, 0);
    TRY(failure_take(run, error));
    FAIL_IF(run->workers.first_failed >= 0 || !run->rendezvous->result, error, STATUS_ENVIRONMENT,
            "%s %s before the ranks had a result%s", run->launcher->program,
            process_end_words(launcher->wait_status, run->arena), launcher_words(run));
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- the loop

// Returns the signal that ends the run; 0 = none.
static int wait_a_little(Run *run, const HeldSignals *held) {
    if (run->rendezvous) {
        rendezvous_serve(run->rendezvous, LOOK_S);
    }
    return signals_wait(held, run->rendezvous ? 0 : LOOK_S);
}

Status run_watch(Run *run, const HeldSignals *held, Error *error) {
    while (run->workers.running > 0 && !watchdog_over(&run->watch)) {
        run->caught = wait_a_little(run, held);
        FAIL_IF(run->caught, error, STATUS_ENVIRONMENT, "interrupted by signal %d", run->caught);
        workers_poll(&run->workers);
        TRY(run->rendezvous ? group_check(run, error) : children_check(run, error));
        TRY(watchdog_look(&run->watch, error));
        const double missing_s = watchdog_missing_s(&run->watch);
        if (missing_s > 0) {
            return missing(run, missing_s, error);
        }
        const TransportPlace place = progress_place(&run->watch.table, 0);
        FAIL_IF(!progress_update(run->options->progress, "step", place.step < 0 ? 0 : place.step,
                                 run->request.options.steps),
                error, STATUS_ENVIRONMENT, "the run was cancelled");
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- the end

// The process name shows that the process id still belongs to a rank.
static bool is_worker(pid_t pid) {
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    FILE *file = fopen(path, "r");
    while (line_next(file, name, sizeof name)) {
        // it is one line
    }
    return strncmp(name, WORKER_PROCESS_NAME, strlen(WORKER_PROCESS_NAME)) == 0;
}

void run_ranks_end(const Run *run) {
    char host[PROGRESS_HOST_BYTES] = "";
    if (!run->rendezvous || gethostname(host, sizeof host - 1) != 0) {
        return;
    }
    for (int rank = 0; run->watch.table.ranks && rank < mesh_world(&run->watch.table.mesh); rank++) {
        ProgressRow *row = &run->watch.table.ranks[rank];
        const pid_t pid = (pid_t)atomic_load(&row->process);
        if (pid > 0 && strcmp(row->host, host) == 0 && is_worker(pid)) {
            kill(pid, SIGKILL);
        }
    }
}
