// The state of one call of ndtune, passed to its commands, and the table of commands.

#pragma once

#include <signal.h>
#include <stdio.h>

#include "autotune/cli/options.h"
#include "autotune/result.h"
#include "autotune/search/one_plan.h"
#include "autotune/search/search.h"
#include "autotune/store/store.h"
#include "reports/answer.h"
#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/progress.h"

typedef struct Cli {
    int argc;
    char *const *argv;
    Options options;
    CommandId command;
    int blame;                                 // the argument that an error points at; -1 = none
    Arena arena;                               // everything that lives as long as the call
    const char *line;                          // the command line, quoted for a shell
    const volatile sig_atomic_t *interrupted;  // the signal that requested termination; 0 = none
    void (*listen)(void);                      // from here on a signal requests termination; until then it terminates
    bool interactive;                          // standard error is a terminal
    bool drawn;                                // a progress line is on the terminal
    double drawn_s;                            // when it was last drawn
    bool launch_said;                          // the launcher has been announced (done once)
    Store *store;                              // opened on first use, until the end of the call
    bool store_is_copy;                        // an in-memory copy of one that cannot be written; this is reported
} Cli;

typedef struct CommandRow {
    const char *name;
    const char *summary;
    const char *usage;     // after "ndtune "
    const char *examples;  // lines
    Status (*run)(Cli *cli, Error *error);
} CommandRow;

extern const CommandRow command_table[COMMAND_COUNT];  // in the order of CommandId

// Selects the command, parses its options and runs it.
Status cli_run(Cli *cli, Error *error);

Status cmd_plan(Cli *cli, Error *error);
Status cmd_predict(Cli *cli, Error *error);
Status cmd_explain(Cli *cli, Error *error);
Status cmd_runs(Cli *cli, Error *error);
Status cmd_run(Cli *cli, Error *error);
Status cmd_validate(Cli *cli, Error *error);
Status cmd_calibrate(Cli *cli, Error *error);
Status cmd_tune(Cli *cli, Error *error);
Status cmd_export(Cli *cli, Error *error);
Status cmd_report(Cli *cli, Error *error);
Status cmd_probe(Cli *cli, Error *error);
Status cmd_preflight(Cli *cli, Error *error);
Status cmd_blame(Cli *cli, Error *error);
Status cmd_check(Cli *cli, Error *error);
Status cmd_models(Cli *cli, Error *error);
Status cmd_clusters(Cli *cli, Error *error);
Status cmd_accuracy(Cli *cli, Error *error);
Status cmd_help(Cli *cli, Error *error);

// ---- parsing options

static inline bool cli_given(const Cli *cli, OptionId id) {
    return cli->options.values[id].given;
}

static inline const OptionValue *cli_value(const Cli *cli, OptionId id) {
    return &cli->options.values[id];
}

static inline int cli_integer_or(const Cli *cli, OptionId id, int usual) {
    return cli_given(cli, id) ? (int)cli_value(cli, id)->integer : usual;
}

static inline double cli_number_or(const Cli *cli, OptionId id, double usual) {
    return cli_given(cli, id) ? cli_value(cli, id)->number : usual;
}

static inline const char *cli_text_or(const Cli *cli, OptionId id, const char *usual) {
    return cli_given(cli, id) ? cli_value(cli, id)->text : usual;
}

// --device cuda, the second of the option's words.
static inline bool cli_on_gpu(const Cli *cli) {
    return cli_given(cli, OPTION_DEVICE) && cli_value(cli, OPTION_DEVICE)->integer == 1;
}

// Points an error at an option's arguments and returns status.
Status cli_blame(Cli *cli, OptionId id, Status status);
// A usage error that points at them.
#define cli_refuse(cli, id, error, ...) cli_blame(cli, id, error_set(error, STATUS_USAGE, __VA_ARGS__))

typedef enum { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV } Format;
Format cli_format(const Cli *cli);
// To standard output in the requested format; github is for check only.
Status cli_answer(const Cli *cli, const Answer *answer, const void *what, Error *error);

// ---- what commands share

// Opens cli->store, --db or the default one, for results that must be kept.
Status cli_open_store(Cli *cli, Error *error);
bool cli_store_exists(const Cli *cli);
// For an answer that can be recomputed: where the store is not writable, an in-memory copy, which is reported.
Status cli_open_store_to_ask(Cli *cli, Error *error);
// As cli_open_store_to_ask, for a command that only reads: a missing --db is an error, not a new store.
Status cli_open_existing_store(Cli *cli, Error *error);
// Ends a nested call; its arena is handed over to the outer call's.
void cli_end_inner(Cli *cli, Cli *inner);

// A line on standard error during long operations; silent unless that is a terminal. Cancels after Ctrl-C.
Progress cli_progress(Cli *cli);
void cli_progress_clear(Cli *cli);
void cli_draw(Cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));  // draws such a line

// Prints "ndtune: error: ..." in the style of bfs: the command line, the words underlined, the sentence, a hint.
void cli_complain(const Cli *cli, const Error *error);

// A search with progress and cache, restricted to the neighbourhood of a plan where `near` is not NULL; `keeping`: what
// it learns, or NULL. The second is of all and saves what it finds. They and cli_predict open the store.
Status cli_search_near(Cli *cli, const TuneRequest *request, const SearchNear *near, SearchKnown *keeping,
                       TuneResult *result, Error *error);
Status cli_search(Cli *cli, const TuneRequest *request, TuneResult *result, Error *error);

// A plan by the rules of a search, or, the user's `own`, by prune_given; predicted where it is legal, from the cache on
// a hit.
Status cli_predict(Cli *cli, const TuneRequest *request, const TrainPlan *plan, bool own, OnePlan *one, Error *error);

// Fills in the options that name what is trained from the last request in the store, and reports it, where this command
// line names neither --world nor --model. Export and explain take over the choices and the cluster, too.
Status last_request_take(Cli *cli, Error *error);

// Replaces this call's options with those of the last request, and reports which; *command is what was asked. This
// command line adds the output options, --tokens and --baseline; anything else is refused.
Status last_request_become(Cli *cli, CommandId *command, Error *error);
// The same for any command line in the store.
Status last_request_read(Cli *cli, const char *line, CommandId *command, Error *error);

// A line on standard error when others use this machine during a measurement.
void cli_warn_if_busy(const char *consequence);
// Warns where taskset or a batch system leaves this machine's runs fewer cores than their prediction assumes.
void cli_warn_if_bound(const ClusterProfile *profile);

// Why no shape of a result can run: always fails.
Status cli_nothing_feasible(const TuneResult *result, Error *error);

// Refuses a list of worlds.
Status cli_one_world(Cli *cli, Error *error);

// The sentence of cli_nothing_feasible, with the nearest cure as the hint.
Status cli_say_what_fits(Cli *cli, TuneResult *result, Error *error);

// When a search's global batch excluded shapes: the nearby batch that is faster, on standard output below the table.
// Where the last node is partially filled and full nodes alone are faster.
Status cli_say_idle(Cli *cli, const TuneResult *result, Error *error);
Status cli_say_better_batch(Cli *cli, const TuneResult *result, const SearchKnown *known, Error *error);

// What the best plan would gain from number formats that were not requested: the result's line.
Status cli_find_formats(Cli *cli, TuneResult *result, Error *error);

// Writes a file atomically.
Status cli_write_file(Cli *cli, const char *path, Renderer writer, const void *what, Error *error);
// The file given with that option, if any.
Status cli_write_option(Cli *cli, OptionId id, Renderer writer, const void *what, Error *error);
// Is that option's file writable? Checked before long work; true when not given.
Status cli_check_output(Cli *cli, OptionId id, Error *error);

// Writes a fitted profile to `path`; its text in the arena.
Status cli_write_profile(Cli *cli, const char *path, const ClusterProfile *profile, const char **text, Error *error);
const char *cli_today(Cli *cli);  // 2026-11-20
