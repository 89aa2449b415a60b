// Help, generated from the tables of commands and options.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "autotune/cli/manual.h"
#include "autotune/cli/topics.h"
#include "sim/base/text.h"

static void write_plain(FILE *out, const char *text) {
    fputs(text, out);
}

static void print_examples(const char *examples) {
    printf("\nExamples:\n");
    while (*examples) {
        const int length = (int)strcspn(examples, "\n");
        printf("  %.*s\n", length, examples);
        examples += length + (examples[length] == '\n');
    }
}

static void print_option(const OptionRow *row, CommandId command) {
    char left[256], words[1024];
    snprintf(left, sizeof left, "--%s%s%s", row->name, row->value ? " " : "", row->value ? row->value : "");
    const char *gap = strlen(left) > 32 ? "\n                                    " : "";
    printf("  %-32s%s  %s", left, gap, option_words_of(row->help, command, words, sizeof words));
    if (row->fallback && option_words_of(row->fallback, command, words, sizeof words)[0]) {
        printf(" [%s]", words);
    }
    printf("\n");
}

static void print_options(CommandId command) {
    for (int group = 0; group < GROUP_COUNT; group++) {
        bool headed = false;
        for (int i = 0; i < OPTION_COUNT; i++) {
            const OptionRow row = option_row_of((OptionId)i, command);
            if ((int)row.group != group || !(row.commands & COMMAND_BIT(command))) {
                continue;
            }
            if (!headed) {
                printf("\n%s:\n", option_groups[group]);
                headed = true;
            }
            print_option(&row, command);
        }
    }
}

static void print_command(CommandId command) {
    const CommandRow *row = &command_table[command];
    printf("Usage: ndtune %s\n%s\n", row->usage, row->summary);
    print_options(command);
    print_examples(row->examples);
}

static void print_program(void) {
    printf("ndtune: which mesh shape should I train with? Predicts memory and step time of every\n"
           "pp x dp_replicate x dp_shard x cp x sp x tp shape of a world, with experts over ep of its\n"
           "ranks, ranks them, and runs them for real.\n\n"
           "Usage: ndtune COMMAND [options]\n\nCommands:\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        printf("  %-10s %s\n", command_table[i].name, command_table[i].summary);
    }
    int count = 0;
    const Topic *table = topics(&count);
    printf("\nndtune help COMMAND lists the options of one; ndtune help TOPIC answers:\n");
    for (int i = 0; i < count; i++) {
        printf("  %-10s %s\n", table[i].name, table[i].title);
    }
    print_examples("ndtune --world 32 --model 7b\n"
                   "ndtune predict --mesh dp_shard=16,tp=2 --model 7b --micro-batch 2\n"
                   "ndtune run --mesh dp_shard=2,tp=2 --model tiny\n");
    printf("\nExit codes: 0 ok, 1 usage, 2 nothing feasible (blame: somebody is blamed), 3 environment, "
           "4 internal.\n");
}

static bool print_topic(const char *name) {
    int count = 0;
    const Topic *table = topics(&count);
    const Topic *topic = TEXT_FIND(table, count, name, name);
    if (topic) {
        printf("%s\n\n", topic->title);
        topic_write(topic, write_plain, stdout);
    }
    return topic != NULL;
}

// What a word that names nothing may mean.
static Status refuse_word(const char *word, Error *error) {
    static const TextSynonym others[] = {
        {"slurm", "ndtune export --as sbatch writes a Slurm script; ndtune help logs reads what it wrote"},
        {"oom", "ndtune help memory"},
        {"mesh", "ndtune help shape"},
        {"nccl", "ndtune help hang"},
        {"glossary", "ndtune help words"},
        {"gpu", "ndtune help cluster"},
    };
    const char *other = text_synonym(word, others, sizeof others / sizeof others[0]);
    error_set(error, STATUS_USAGE,
              "there is no command or topic %s; there are the commands %s, and the topics that ndtune help lists", word,
              command_names_of(EVERY_COMMAND, COMMANDS_BUFFER));
    if (other) {
        return error_hint(error, "%s", other);
    }
    const char *nearest = text_nearest(word, command_names, COMMAND_COUNT);
    return nearest ? error_hint(error, "did you mean %s?", nearest) : STATUS_USAGE;
}

static Status help_on(Cli *cli, const char *word, Error *error) {
    const int command = text_index(command_names, COMMAND_COUNT, word);
    if (command >= 0) {
        print_command((CommandId)command);
        return STATUS_OK;
    }
    if (print_topic(word)) {
        return STATUS_OK;
    }
    cli->blame = cli->options.word_argument[0];
    return refuse_word(word, error);
}

Status cmd_help(Cli *cli, Error *error) {
    const bool named_command = cli->argc > 1 && cli->argv[1][0] != '-';
    if (cli->command != COMMAND_HELP && named_command) {  // ndtune plan --help
        print_command(cli->command);
        return STATUS_OK;
    }
    if (cli->command == COMMAND_HELP && cli_given(cli, OPTION_MAN)) {
        return manual_page(stdout, NDTUNE_VERSION, error);
    }
    if (cli->command == COMMAND_HELP && cli_given(cli, OPTION_MARKDOWN)) {
        return option_markdown(stdout, error);
    }
    if (cli->command == COMMAND_HELP && cli_given(cli, OPTION_COMPLETION)) {
        return completion_script((int)cli_value(cli, OPTION_COMPLETION)->integer, stdout, error);
    }
    if (cli->command != COMMAND_HELP || cli->options.word_count == 0) {
        print_program();
        return STATUS_OK;
    }
    return help_on(cli, cli->options.words[0], error);
}
