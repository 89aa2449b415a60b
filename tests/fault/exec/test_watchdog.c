// The watchdog over both transports: every kind of fault, injected by rank and task or done to a real process, is named
// with rank, host, task and collective; the next run succeeds; nothing is left over; nothing is made up.

#define _GNU_SOURCE  // setenv, kill, gethostname

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/exec/launched.h"
#include "tests/support/run_program.h"
#include "tests/support/sizes.h"

static const char *const transports[] = {"shm", "mpi"};
enum { TRANSPORTS = 2, WORDS_MOST = 6 };
// The watchdog's guarantee holds if no rank is descheduled for as long as the timeout. A wrong verdict at the shortest
// one is retried with a longer one: only an overloaded machine gets that far.
static const double timeouts_s[] = {1, 6, 30};
enum { TIMEOUTS = sizeof timeouts_s / sizeof *timeouts_s };
// Over mpi a rank's place is the one that it last posted: for a rank hit in its first steps that may be preparation.
static const char LAST_HEARD[] = "last seen in ";

static char *directory;

// Everything that a run creates goes below TMPDIR: our files, and Open MPI's session and shared memory.
static void begin(void) {
    directory = temp_dir_make();
    setenv("TMPDIR", directory, 1);
}

static int entries(void) {
    DIR *open = opendir(directory);
    int count = 0;
    for (const struct dirent *entry = readdir(open); entry; entry = readdir(open)) {
        if (entry->d_name[0] != '.') {
            cr_log_warn("left: %s", entry->d_name);
            count++;
        }
    }
    closedir(open);
    return count;
}

static void nothing_stays(void) {
    cr_expect(launched_processes(getpid()) == 0, "processes stayed");
    cr_expect(entries() == 0, "files stayed");
}

static void end(void) {
    nothing_stays();
    temp_dir_remove(directory);
}

TestSuite(watchdog, .init = begin, .fini = end);

// All of them and the host; the last try expects it.
static bool tells(const char *message, const char *const *words, const char *what, int try) {
    char host[65] = "";
    gethostname(host, sizeof host - 1);
    const char *missing = strstr(message, host) ? NULL : host;
    for (int i = 0; i < WORDS_MOST && words[i] && !missing; i++) {
        missing = strstr(message, words[i]) ? NULL : words[i];
    }
    if (missing) {
        cr_log_warn("%s within %g s: no '%s' in: %s", what, timeouts_s[try], missing, message);
        cr_expect(try < TIMEOUTS - 1, "%s: no '%s' in: %s", what, missing, message);
    }
    return !missing;
}

// ---------------------------------------------------------------------------------------------- injected

typedef struct Case {
    const char *fault;
    const char *words[WORDS_MOST];
} Case;

// Task names are those of a plan with dp_shard 2, tp 2; rank 2 shares tp with 3 and ag, rs with 0.
static const Case cases[] = {
    {"hang:2:mlp down", {"lane ", " on ", "s for rank 2 on", "task 'mlp down'"}},
    {"hang:2:gather weights", {"lane ", " of ", "s for rank 2 on", "task 'gather weights'"}},
    {"skip:2:mlp sum", {"lane tp", "rank 2 on", "skipped"}},
    {"skip:2:reduce gradients:2", {"lane rs", "rank 2 on", "skipped", "rank 0 on", "step 2"}},
    {"size:2:reduce gradients", {"lane rs: rank 2 on", "reduce-scatter of", "its size is wrong"}},
    {"exit:2:mlp down", {"rank 2 on", "code"}},
};

// Ranks 2 and 3 split their experts between them.
static const Case of_experts = {"hang:2:dispatch", {"lane ", "s for rank 2 on", "task 'dispatch'", "layer 0"}};

// Ranks 2 and 3 are the second stage.
static const Case of_stages = {
    "hang:2:send gradients",
    {"receive of", "from rank 2", "stage 0 waited", "s for rank 2", "stage 1 (last seen in", "'send gradients'"}};

typedef Status Launch(const Launched *launched, Arena *arena, Error *error);

static bool fault_is_named(Launch *launch, const char *transport, const Case *injected, int try) {
    Arena arena = {0};
    Error error = {0};
    const Launched launched = {transport, injected->fault, timeouts_s[try], 4, NULL};
    cr_expect(launch(&launched, &arena, &error) == STATUS_ENVIRONMENT, "%s: %s", injected->fault, error.message);
    arena_free(&arena);
    return tells(error.message, injected->words, injected->fault, try);
}

static void faults_are_named(const char *transport) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int try = 0; try < TIMEOUTS && !fault_is_named(launched_run, transport, &cases[i], try); try++) {
        }
    }
}

Test(watchdog, a_rank_that_hands_no_tokens_over_is_named) {
    for (int t = 0; t < TRANSPORTS; t++) {
        for (int try = 0; try < TIMEOUTS && !fault_is_named(launched_experts_run, transports[t], &of_experts, try);
             try++) {
        }
    }
}

Test(watchdog, a_stage_that_sends_no_gradients_is_named) {
    for (int t = 0; t < TRANSPORTS; t++) {
        for (int try = 0; try < TIMEOUTS && !fault_is_named(launched_stages_run, transports[t], &of_stages, try);
             try++) {
        }
    }
}

Test(watchdog, faults_over_shm_are_named_with_rank_task_and_collective) {
    faults_are_named("shm");
}

Test(watchdog, faults_over_mpi_are_named_with_rank_task_and_collective) {
    faults_are_named("mpi");
}

Test(watchdog, a_rank_that_is_late_within_the_timeout_is_no_fault_and_the_next_run_goes_well_after_a_failed_one) {
    for (int t = 0; t < TRANSPORTS; t++) {
        Arena arena = {0};
        Error error = {0};
        const Launched hangs = {transports[t], "hang:1:head", timeouts_s[0], 3, NULL};
        const Launched lags = {transports[t], "delay:1:mlp down:2:2", 30, 3, NULL};
        cr_expect(launched_run(&hangs, &arena, &error) == STATUS_ENVIRONMENT, "%s", error.message);
        cr_expect(launched_run(&lags, &arena, &error) == STATUS_OK, "%s: %s", transports[t], error.message);
        arena_free(&arena);
    }
}

// No other rank waits for a single rank.
static bool hang_of_one_is_seen(int try) {
    Arena arena = {0};
    Error error = {0};
    const TrainPlan plan = {.mesh = {.size = SIZES(1, 1, 1, 1)}, .seq = CASE_SEQ, .micro_batch = 1, .grad_accum = 1};
    RunOptions options = case_options();
    RunResult result;
    options.timeout_s = 0.5 * timeouts_s[try];
    setenv("NDTUNE_FAULT", "hang:0:swiglu", 1);
    cr_expect(case_try(&plan, &options, &arena, &result, &error) == STATUS_ENVIRONMENT, "%s", error.message);
    unsetenv("NDTUNE_FAULT");
    arena_free(&arena);
    return tells(error.message, (const char *[WORDS_MOST]){"rank 0 on", "task 'swiglu'", "stands still"}, "one rank",
                 try);
}

Test(watchdog, a_hang_in_compute_is_seen_where_nobody_waits) {
    for (int try = 0; try < TIMEOUTS && !hang_of_one_is_seen(try); try++) {
    }
}

Test(watchdog, a_fault_that_names_nothing_is_refused_in_words) {
    const char *const wrong[] = {"jump:0:head", "hang:9:head",   "hang:0:no such task",
                                 "hang:0",      "hang:0:head:0", "delay:0:head:1:1:1",
                                 "pace",        "pace:0",        "pace:0:head:1:0.1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Arena arena = {0};
        Error error = {0};
        const Launched launched = {"shm", wrong[i], timeouts_s[0], 1, NULL};
        cr_expect(launched_run(&launched, &arena, &error) == STATUS_USAGE && strstr(error.message, wrong[i]), "%s",
                  error.message);
        arena_free(&arena);
    }
}

// ---------------------------------------------------------------------------------------------- real processes

typedef struct Blow {
    Launched launched;
    int signal;  // to rank 1; 0: to this process, which runs the launcher
    bool struck;
} Blow;

static bool strike_after_2(void *context, const char *label, int64_t done, int64_t total) {
    (void)label;
    (void)total;
    Blow *blow = context;
    if (done <= 2 || blow->struck) {
        return true;
    }
    const pid_t pid = blow->signal ? launched_rank(&blow->launched, 1) : getpid();
    if (pid > 0) {
        kill(pid, blow->signal ? blow->signal : SIGINT);
        blow->struck = true;
    }
    return true;
}

static bool is_told(const char *transport, int number, const char *const *words, int try) {
    Arena arena = {0};
    Error error = {0};
    Blow blow = {.signal = number};
    const Progress progress = {.update = strike_after_2, .context = &blow};
    blow.launched = (Launched){transport, NULL, timeouts_s[try], 1000000, &progress};
    cr_expect(launched_run(&blow.launched, &arena, &error) == STATUS_ENVIRONMENT, "%s", error.message);
    nothing_stays();
    arena_free(&arena);
    cr_expect(blow.struck || try < TIMEOUTS - 1, "nobody was struck: %s", error.message);
    return blow.struck && tells(error.message, words, transport, try);
}

static void struck(const char *transport, int number, const char *const *words) {
    for (int try = 0; try < TIMEOUTS && !is_told(transport, number, words, try); try++) {
    }
}

Test(watchdog, a_killed_rank_is_named) {
    struck("shm", SIGKILL, (const char *[WORDS_MOST]){"rank 1 on", "was killed by signal 9", "in step"});
    struck("mpi", SIGKILL, (const char *[WORDS_MOST]){"rank 1 on", LAST_HEARD, "ended without a word"});
}

Test(watchdog, a_stopped_rank_is_named_and_ended) {
    struck("shm", SIGSTOP, (const char *[WORDS_MOST]){"rank 1 on", "in step", "waited"});
    struck("mpi", SIGSTOP, (const char *[WORDS_MOST]){"rank 1 on", LAST_HEARD, "was not heard of"});
}

// The launcher ends what mpirun leaves behind by the name that a rank gives itself, not by its file name.
Test(watchdog, a_stopped_rank_is_ended_whatever_its_program_is_called) {
    char path[4096];
    snprintf(path, sizeof path, "%s/rank", directory);
    cr_assert(symlink(NDTUNE_BIN_DIR "/ndtune-worker", path) == 0);
    setenv("NDTUNE_WORKER", path, 1);
    Arena arena = {0};
    Error error = {0};
    Blow blow = {.signal = SIGSTOP};
    const Progress progress = {.update = strike_after_2, .context = &blow};
    blow.launched = (Launched){"mpi", NULL, 5, 1000000, &progress};
    cr_expect(launched_run(&blow.launched, &arena, &error) == STATUS_ENVIRONMENT, "%s", error.message);
    cr_expect(blow.struck, "%s", error.message);
    unlink(path);
    unsetenv("NDTUNE_WORKER");
    arena_free(&arena);
}

static volatile sig_atomic_t interrupts;

static void count_interrupt(int number) {
    (void)number;
    interrupts++;
}

Test(watchdog, an_interrupt_ends_all_ranks_of_mpirun) {
    Arena arena = {0};
    Error error = {0};
    Blow blow = {.signal = 0};
    const Progress progress = {.update = strike_after_2, .context = &blow};
    blow.launched = (Launched){"mpi", NULL, 60, 1000000, &progress};
    signal(SIGINT, count_interrupt);
    cr_expect(launched_run(&blow.launched, &arena, &error) == STATUS_ENVIRONMENT, "%s", error.message);
    cr_expect(strstr(error.message, "interrupted"), "%s", error.message);
    cr_expect(interrupts == 1, "%d interrupts", (int)interrupts);
    arena_free(&arena);
}

static void wait_for(double wait_s) {
    const time_t whole_s = (time_t)wait_s;
    nanosleep(&(struct timespec){whole_s, (long)((wait_s - (double)whole_s) * 1e9)}, NULL);
}

static void sweep(void) {
    Arena arena = {0};
    Error error = {0};
    const Launched next = {"shm", NULL, 60, 1, NULL};
    cr_expect(launched_run(&next, &arena, &error) == STATUS_OK, "%s", error.message);
    arena_free(&arena);
}

Test(watchdog, a_killed_launcher_takes_mpirun_and_its_ranks_along) {
    const Crew crew = crew_start("mpi", 60);
    kill(crew.launcher, SIGKILL);
    waitpid(crew.launcher, NULL, 0);
    int alive = crew_alive(&crew);
    for (int i = 0; i < 1500 && alive > 0; i++) {
        wait_for(0.1);
        alive = crew_alive(&crew);
    }
    cr_expect(crew.count >= 4 && alive == 0, "%d of %d live on", alive, crew.count);
    sweep();
}

// The machine sleeps, or a debugger stops all ranks, for longer than the timeout: no rank is late.
static bool goes_on(const char *transport, double timeout_s) {
    const Crew crew = crew_start(transport, timeout_s);
    crew_signal(&crew, SIGSTOP);
    wait_for(3 * timeout_s);
    crew_signal(&crew, SIGCONT);
    wait_for(2 * timeout_s);
    const int alive = crew_alive(&crew);
    kill(crew.launcher, SIGTERM);
    waitpid(crew.launcher, NULL, 0);
    nothing_stays();
    if (alive < crew.count) {
        cr_log_warn("%s, timeout %g s: %d of %d live on", transport, timeout_s, alive, crew.count);
    }
    return alive == crew.count;
}

Test(watchdog, a_suspended_run_goes_on) {
    for (int t = 0; t < TRANSPORTS; t++) {
        bool alive = false;
        for (int try = 0; try < TIMEOUTS && !alive; try++) {
            alive = goes_on(transports[t], timeouts_s[try]);
        }
        cr_expect(alive, "%s", transports[t]);
    }
}
