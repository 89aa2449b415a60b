// Commands that go on with what was asked last: where neither --world nor --model is given, both and what goes with them
// come from the last request in the store. What trains (target) and on what (cluster) comes along only from a request
// for our own executor: a ranking for a GPU cluster names what to run here, not where.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/quote.h"
#include "autotune/cli/request.h"

static const OptionId what[] = {OPTION_WORLD,        OPTION_MODEL,       OPTION_LAYERS,   OPTION_SEQ,
                                OPTION_GLOBAL_BATCH, OPTION_ZERO,        OPTION_RESHARD,  OPTION_RECOMPUTE,
                                OPTION_MAX_TP,       OPTION_MICRO_BATCH, OPTION_CP_ROTATE};
static const OptionId where[] = {OPTION_CLUSTER, OPTION_PRECISION, OPTION_MEMORY_LIMIT};

static void take(Cli *cli, const Options *old, const OptionId *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        OptionValue *own = &cli->options.values[ids[i]];
        if (!own->given && old->values[ids[i]].given) {
            *own = old->values[ids[i]];
            own->argument = -1;  // not on this command line
        }
    }
}

// A file is written of what was asked, with all of its choices. What goes to the output is this call's own.
static void take_everything(Cli *cli, const Options *old) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionId id = (OptionId)i;
        if (option_table[i].group != GROUP_OUTPUT && option_table[i].commands & COMMAND_BIT(cli->command)) {
            take(cli, old, &id, 1);
        }
    }
    if (cli->options.set_count == 0) {
        cli->options.set_count = old->set_count;
        for (int i = 0; i < old->set_count; i++) {
            cli->options.sets[i] = old->sets[i];
            cli->options.set_argument[i] = -1;
        }
    }
}

static Status parse_old(const char *line, Arena *arena, Options *old, Error *error) {
    int argc = 0;
    char **argv = quote_split(line, &argc, arena);
    ParseContext context = {.argc = argc, .argv = argv, .first = 1, .command = COMMAND_PLAN};
    for (int i = 0; argc > 1 && i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], command_names[i]) == 0) {
            context.command = (CommandId)i;
            context.first = 2;
        }
    }
    if (options_parse(&context, old, error) != STATUS_OK) {
        return error_wrap(error, "the last request, %s", line);
    }
    return STATUS_OK;
}

Status last_request_take(Cli *cli, Store *store, Error *error) {
    if (cli_given(cli, OPTION_WORLD) || cli_given(cli, OPTION_MODEL)) {
        return STATUS_OK;
    }
    const char *line = NULL;
    TRY(store_last_request(store, &cli->arena, &line, error));
    if (!line) {
        error_set(error, STATUS_USAGE, "the store has no request to go on with: name --world and --model");
        return error_hint(error, "ndtune %s --world 2 --model tiny", command_names[cli->command]);
    }
    Options *old = ARENA_NEW(&cli->arena, Options);
    TRY(parse_old(line, &cli->arena, old, error));
    take(cli, old, what, sizeof what / sizeof what[0]);
    if (cli->command == COMMAND_EXPORT) {
        take_everything(cli, old);
    }
    if (old->list_count > 0 && cli->options.list_count == 0) {
        cli->options.list[0] = old->list[0];
        cli->options.list_count = 1;
        cli->options.values[OPTION_WORLD].integer = old->list[0];
    }
    const OptionValue *target = &old->values[OPTION_TARGET];
    if (target->given && strncmp(target->text, run_defaults.target, strlen(run_defaults.target)) == 0) {
        take(cli, old, where, sizeof where / sizeof where[0]);
    }
    fprintf(stderr, "ndtune: going on with the last request: %s\n", line);
    return STATUS_OK;
}
