// Completion scripts, generated from the tables of commands, options and targets. bash and zsh share all but their
// query and reply syntax; fish has a declaration per option. To add a shell: a function, a row, a word of --completion.

#include <string.h>

#include "autotune/cli/manual.h"
#include "autotune/cli/topics.h"
#include "sim/frameworks/target.h"

static const char model_names[] = "(ndtune models --format csv 2>/dev/null | tail -n +2 | cut -d, -f1)";
static const char cluster_names_call[] = "(ndtune clusters --format csv 2>/dev/null | tail -n +2 | cut -d, -f1)";

static void write_separated(FILE *out, const char *words) {
    for (; *words && !(*words == '|' && option_stands_for_others(words + 1)); words++) {
        fputc(*words == '|' ? ' ' : *words, out);
    }
}

static void write_targets(FILE *out) {
    int count = 0;
    const Target *targets = target_table(&count);
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s%s@%s", i > 0 ? " " : "", targets[i].name, targets[i].version);
    }
}

static bool has_choices(OptionId id) {
    return option_row(id).type == VALUE_WORD || option_row(id).type == VALUE_SET || id == OPTION_MODEL ||
           id == OPTION_CLUSTER || id == OPTION_TARGET;
}

// What may stand for the value; names that grow are asked of the program when they are needed.
static void write_choices(FILE *out, OptionId id, const char *call) {
    switch (id) {
    case OPTION_MODEL:
        fprintf(out, "%s%s", call, model_names);
        break;
    case OPTION_CLUSTER:
        fprintf(out, "%s%s", call, cluster_names_call);
        break;
    case OPTION_TARGET:
        write_targets(out);
        break;
    default:
        write_separated(out, option_row(id).value);
    }
}

static bool is_file(const OptionRow *row) {
    return row->value && (strncmp(row->value, "FILE", 4) == 0 || strstr(row->value, "|FILE"));
}

static void write_command_names(FILE *out, char separator) {
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, "%.*s%s", i > 0, &separator, command_names[i]);
    }
}

static void write_values(FILE *out) {
    fputs("    case $previous in\n", out);
    for (int id = 0; id < OPTION_COUNT; id++) {
        const OptionRow row = option_row((OptionId)id);
        if (!has_choices((OptionId)id) && !is_file(&row)) {
            continue;
        }
        fprintf(out, "        --%s)", row.name);
        if (has_choices((OptionId)id)) {
            fputs(" choices=\"", out);
            write_choices(out, (OptionId)id, "$");
            fputc('"', out);
        }
        fputs(is_file(&row) ? (has_choices((OptionId)id) ? "; files=1 ;;\n" : " files=1 ;;\n") : " ;;\n", out);
    }
    fputs("    esac\n", out);
}

static void write_options(FILE *out) {
    fputs("        case $command in\n", out);
    for (int command = 0; command < COMMAND_COUNT; command++) {
        fprintf(out, "            %s) choices=\"", command_names[command]);
        const char *space = "";
        for (int i = 0; i < OPTION_COUNT; i++) {
            const OptionRow row = option_row((OptionId)i);
            if (row.commands & COMMAND_BIT(command)) {
                fprintf(out, "%s--%s", space, row.name);
                space = " ";
            }
        }
        fputs("\" ;;\n", out);
    }
    fputs("        esac\n", out);
}

// Where a command or its word may stand.
static void write_words(FILE *out) {
    int count = 0;
    const Topic *table = topics(&count);
    fputs("        case $position,$command in\n            1,*) choices=\"$choices ", out);
    write_command_names(out, ' ');
    fputs("\" ;;\n            2,help) choices=\"$choices ", out);
    write_command_names(out, ' ');
    for (int i = 0; i < count; i++) {
        fprintf(out, " %s", table[i].name);
    }
    fprintf(out, "\" ;;\n            2,models) choices=\"$choices $%s\"; files=1 ;;\n", model_names);
    fprintf(out, "            2,clusters) choices=\"$choices $%s\"; files=1 ;;\n        esac\n", cluster_names_call);
}

// From $first, $previous and $position to $choices and $files.
static void write_shared(FILE *out) {
    fputs("    case $first in\n        ", out);
    write_command_names(out, '|');
    fputs(") command=$first ;;\n    esac\n", out);
    write_values(out);
    fputs("    if [ -z \"$choices$files\" ]; then\n", out);
    write_options(out);
    write_words(out);
    fputs("    fi\n", out);
}

static void write_bash(FILE *out) {
    fputs("# bash completion of ndtune; written by: ndtune help --completion bash\n"
          "_ndtune() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} first=${COMP_WORDS[1]}\n"
          "    local position=$COMP_CWORD command=plan choices= files=\n",
          out);
    write_shared(out);
    fputs("    COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
          "    if [ -n \"$files\" ]; then\n"
          "        COMPREPLY+=($(compgen -f -- \"$current\"))\n"
          "    fi\n"
          "}\n"
          "complete -F _ndtune ndtune\n",
          out);
}

static void write_zsh(FILE *out) {
    fputs("#compdef ndtune\n"
          "# zsh completion of ndtune; written by: ndtune help --completion zsh\n"
          "_ndtune() {\n"
          "    local previous=${words[CURRENT-1]} first=${words[2]} command=plan choices= files=\n"
          "    local position=$((CURRENT - 1))\n",
          out);
    write_shared(out);
    fputs("    compadd -- ${=choices}\n"
          "    if [ -n \"$files\" ]; then\n"
          "        _files\n"
          "    fi\n"
          "}\n"
          "if [ \"${funcstack[1]}\" = _ndtune ]; then\n"
          "    _ndtune \"$@\"\n"
          "else\n"
          "    compdef _ndtune ndtune\n"
          "fi\n",
          out);
}

static void write_quoted(FILE *out, const char *text) {
    fputc('\'', out);
    for (; *text; text++) {
        fprintf(out, "%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
    }
    fputc('\'', out);
}

static void write_fish_option(FILE *out, OptionId id) {
    const OptionRow row = option_row(id);
    fputs("complete -c ndtune -n '__ndtune_in", out);
    for (int command = 0; command < COMMAND_COUNT; command++) {
        if (row.commands & COMMAND_BIT(command)) {
            fprintf(out, " %s", command_names[command]);
        }
    }
    fprintf(out, "' -l %s%s", row.name, row.type == VALUE_FLAG ? "" : is_file(&row) ? " -r -F" : " -x");
    if (has_choices(id)) {
        fputs(" -a '", out);
        write_choices(out, id, "");
        fputc('\'', out);
    }
    fputs(" -d ", out);
    write_quoted(out, row.help);
    fputc('\n', out);
}

static void write_fish(FILE *out) {
    fputs("# fish completion of ndtune; written by: ndtune help --completion fish\n"
          "function __ndtune_in\n"
          "    set -l said (commandline -opc)\n"
          "    set -l command plan\n"
          "    if set -q said[2]; and contains -- $said[2] ",
          out);
    write_command_names(out, ' ');
    fputs("\n        set command $said[2]\n    end\n    contains -- $command $argv\nend\n"
          "complete -c ndtune -f\n",
          out);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, "complete -c ndtune -n __fish_use_subcommand -a %s -d ", command_names[i]);
        write_quoted(out, command_table[i].summary);
        fputc('\n', out);
    }
    int count = 0;
    const Topic *table = topics(&count);
    for (int i = 0; i < count; i++) {
        fprintf(out, "complete -c ndtune -n '__ndtune_in help' -a %s -d ", table[i].name);
        write_quoted(out, table[i].title);
        fputc('\n', out);
    }
    fprintf(out, "complete -c ndtune -n '__ndtune_in models' -F -a '%s'\n", model_names);
    fprintf(out, "complete -c ndtune -n '__ndtune_in clusters' -F -a '%s'\n", cluster_names_call);
    for (int id = 0; id < OPTION_COUNT; id++) {
        write_fish_option(out, (OptionId)id);
    }
}

Status completion_script(int shell, FILE *out, Error *error) {
    static void (*const shells[])(FILE * out) = {write_bash, write_zsh, write_fish};
    ASSERT(shell >= 0 && shell < (int)(sizeof shells / sizeof shells[0]));
    shells[shell](out);
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the completion could not be written") : STATUS_OK;
}
