// Commands that continue from the last request: where neither --world nor --model is given, both and the related
// options come from the last request in the store. The target and the cluster are taken over only from a request for
// our own executor: a ranking for a GPU cluster says what to run here, not where. The command line is rewritten to
// state all this, so that a stored one can be typed again and continued from.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/quote.h"
#include "autotune/cli/request.h"
#include "sim/base/text.h"

static const OptionId what[] = {OPTION_WORLD,     OPTION_NODES,        OPTION_GPUS_PER_NODE, OPTION_MODEL,
                                OPTION_LAYERS,    OPTION_SEQ,          OPTION_GLOBAL_BATCH,  OPTION_ZERO,
                                OPTION_RESHARD,   OPTION_RECOMPUTE,    OPTION_MAX_TP,        OPTION_MICRO_BATCH,
                                OPTION_CP_ROTATE, OPTION_REDUCE_DTYPE, OPTION_RANK_ORDER,    OPTION_OBJECTIVE};
static const OptionId where[] = {OPTION_CLUSTER,        OPTION_PRECISION, OPTION_MEMORY_LIMIT, OPTION_FP8_RECIPE,
                                 OPTION_MASTER_WEIGHTS, OPTION_ATTENTION, OPTION_FUSED,        OPTION_TP_OVERLAP};

static bool is_listed(const OptionId *ids, size_t count, OptionId id) {
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

// Words for the command line.
typedef struct Taken {
    char *words[2 * (OPTION_COUNT + OPTIONS_MAX_SETS)];
    int count;
} Taken;

static void take_word(Cli *cli, OptionId id, const char *text, Taken *taken) {
    taken->words[taken->count++] = arena_format(&cli->arena, "--%s", option_row(id).name);
    taken->words[taken->count++] = arena_text(&cli->arena, text);
}

static void take(Cli *cli, const Options *old, const OptionId *ids, size_t count, Taken *taken) {
    for (size_t i = 0; i < count; i++) {
        OptionValue *own = &cli->options.values[ids[i]];
        const bool takes = option_row(ids[i]).commands & COMMAND_BIT(cli->command);
        if (takes && !own->given && old->values[ids[i]].given) {
            *own = old->values[ids[i]];
            own->argument = -1;  // not on this command line
            if (ids[i] == OPTION_WORLD) {
                own->text = arena_format(&cli->arena, "%lld", (long long)own->integer);  // the first of a list
            }
            take_word(cli, ids[i], own->text, taken);
        }
    }
}

// Fields of the plan that neither list names.
static void take_fields(Cli *cli, const Options *old, PlanScope scope, Taken *taken) {
    for (int field = 0; field < PLAN_FIELD_COUNT; field++) {
        const OptionId id = option_of((PlanFieldId)field);
        if (plan_fields[field].scope == scope && !is_listed(what, sizeof what / sizeof what[0], id) &&
            !is_listed(where, sizeof where / sizeof where[0], id)) {
            take(cli, old, &id, 1, taken);
        }
    }
}

// What --set changed in the cluster that comes along, before what this command line changes in it.
static void take_sets(Cli *cli, const Options *old, Taken *taken) {
    Options *own = &cli->options;
    const int room = OPTIONS_MAX_SETS - own->set_count;
    const int count = old->set_count < room ? old->set_count : room;
    memmove(own->sets + count, own->sets, (size_t)own->set_count * sizeof *own->sets);
    memmove(own->set_argument + count, own->set_argument, (size_t)own->set_count * sizeof *own->set_argument);
    own->set_count += count;
    for (int i = 0; i < count; i++) {
        own->sets[i] = old->sets[i];
        own->set_argument[i] = -1;
        take_word(cli, OPTION_SET, own->sets[i], taken);
    }
}

// A file is written of what was asked, with all of its choices. What goes to the output is this call's own.
static void take_everything(Cli *cli, const Options *old, Taken *taken) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionId id = (OptionId)i;
        const OptionRow row = option_row(id);
        if (row.group != GROUP_OUTPUT && row.type != VALUE_LIST) {
            take(cli, old, &id, 1, taken);
        }
    }
}

// The command, what was taken, and the rest as typed.
static void complete_line(Cli *cli, const Taken *taken) {
    char **argv = ARENA_ARRAY(&cli->arena, char *, cli->argc + taken->count);
    int count = 0;
    for (int i = 0; i < cli->argc; i++) {
        argv[count++] = cli->argv[i];
        for (int t = 0; i == 1 && t < taken->count; t++) {
            argv[count++] = taken->words[t];
        }
    }
    cli->line = quote_line(count, argv, &cli->arena);
}

static Status parse_old(const char *line, Arena *arena, Options *old, CommandId *command, Error *error) {
    int argc = 0;
    char **argv = quote_split(line, &argc, arena);
    ParseContext context = {.argc = argc, .argv = argv, .first = 1, .command = COMMAND_PLAN};
    const int named = argc > 1 ? text_index(command_names, COMMAND_COUNT, argv[1]) : -1;
    if (named >= 0) {
        context.command = (CommandId)named;
        context.first = 2;
    }
    *command = context.command;
    FAIL_WITH(options_parse(&context, old, error) != STATUS_OK, error_wrap(error, "the last request, %s", line));
    return STATUS_OK;
}

// By default validate runs our own executor.
static bool is_for_executor(const Options *old, CommandId command) {
    const OptionValue *target = &old->values[OPTION_TARGET];
    return target->given ? strncmp(target->text, run_defaults.target, strlen(run_defaults.target)) == 0
                         : (command == COMMAND_VALIDATE || command == COMMAND_TUNE) && !old->values[OPTION_WITH].given;
}

Status last_request_take(Cli *cli, Error *error) {
    if (cli_given(cli, OPTION_WORLD) || cli_given(cli, OPTION_MODEL)) {
        return STATUS_OK;
    }
    const bool everything = cli->command == COMMAND_EXPORT || cli->command == COMMAND_EXPLAIN;
    const char *line = NULL;  // a file is for somebody else's framework: what was run here in between is not meant
    TRY(store_last_request(cli->store, everything ? run_defaults.target : NULL, &cli->arena, &line, error));
    if (!line) {
        error_set(error, STATUS_USAGE, "the store has no request to go on with: name --world and --model");
        return error_hint(error, "ndtune %s --world 2 --model tiny", command_names[cli->command]);
    }
    Options *old = ARENA_NEW(&cli->arena, Options);
    Taken *taken = ARENA_NEW(&cli->arena, Taken);
    CommandId command;
    TRY(parse_old(line, &cli->arena, old, &command, error));
    take(cli, old, what, sizeof what / sizeof what[0], taken);
    take_fields(cli, old, PLAN_OF_SHAPE, taken);
    if (old->list_count > 0 && cli->options.list_count == 0) {
        cli->options.list[0] = old->list[0];
        cli->options.list_count = 1;
        cli->options.values[OPTION_WORLD].integer = old->list[0];
    }
    const bool own_cluster = cli_given(cli, OPTION_CLUSTER);
    const bool same_place = everything || is_for_executor(old, command);
    if (everything) {
        take_everything(cli, old, taken);
    } else if (same_place) {
        take(cli, old, where, sizeof where / sizeof where[0], taken);
        take_fields(cli, old, PLAN_OF_JOB, taken);
    }
    if (same_place && !own_cluster) {
        take_sets(cli, old, taken);
    }
    complete_line(cli, taken);
    fprintf(stderr, "ndtune: going on with the last request: %s\n", line);
    return STATUS_OK;
}

// Options that only affect the report, not the answer: these may be added to the old line.
static bool is_addition(int id) {
    return id == OPTION_TOKENS || id == OPTION_BASELINE;
}

// The old command line says what was asked; additional options on this one must not be dropped silently.
static Status refuse_changes(Cli *cli, Error *error) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        const bool given = cli->options.values[i].given || (i == OPTION_SET && cli->options.set_count > 0);
        const OptionRow row = option_row((OptionId)i);
        if (given && row.group != GROUP_OUTPUT) {
            cli_refuse(cli, (OptionId)i, error, "--%s would change what was asked", row.name);
            return error_hint(error, "ask anew: name --world and --model");
        }
    }
    return STATUS_OK;
}

Status last_request_read(Cli *cli, const char *line, CommandId *command, Error *error) {
    Options *old = ARENA_NEW(&cli->arena, Options);
    TRY(refuse_changes(cli, error));
    TRY(parse_old(line, &cli->arena, old, command, error));
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionValue *own = &cli->options.values[i];
        if (own->given || (option_row((OptionId)i).group == GROUP_OUTPUT && !is_addition(i))) {
            old->values[i] = *own;
        } else {
            old->values[i].argument = -1;  // not on this command line
        }
    }
    for (int i = 0; i < old->set_count; i++) {
        old->set_argument[i] = -1;
    }
    cli->options = *old;
    cli->line = line;
    return STATUS_OK;
}

Status last_request_become(Cli *cli, CommandId *command, Error *error) {
    const char *line = NULL;
    TRY(store_last_request(cli->store, NULL, &cli->arena, &line, error));
    if (!line) {
        error_set(error, STATUS_USAGE, "the store has no request to go on with: name --world and --model");
        return error_hint(error, "ndtune %s --world 32 --model 7b", command_names[cli->command]);
    }
    fprintf(stderr, "ndtune: of the last request: %s\n", line);
    return last_request_read(cli, line, command, error);
}
