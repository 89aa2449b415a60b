// The manual page and OPTIONS.md, generated from the tables of commands and options, so they cannot disagree with the
// program.

#include "autotune/cli/manual.h"

#include <string.h>

#include "autotune/cli/manual_csv.h"
#include "autotune/cli/manual_ending.h"
#include "autotune/cli/manual_export.h"
#include "autotune/cli/manual_json.h"
#include "autotune/cli/manual_tune.h"
#include "autotune/cli/manual_with.h"
#include "autotune/cli/page_text.h"
#include "autotune/cli/topics.h"
#include "autotune/validate/step_log.h"
#include "reports/export/export.h"

// Text of a page: a line must not begin with a control character, and a dash is a minus.
static void troff_text(FILE *out, const char *text) {
    for (const char *at = text; *at; at++) {
        const bool starts_line = at == text || at[-1] == '\n';
        if (starts_line && (*at == '.' || *at == '\'')) {
            fputs("\\&", out);
        }
        if (*at == '\\') {
            fputs("\\e", out);
        } else if (*at == '-') {
            fputs("\\-", out);
        } else {
            fputc(*at, out);
        }
    }
}

static void troff_line(FILE *out, const char *before, const char *text) {
    fputs(before, out);
    troff_text(out, text);
    fputc('\n', out);
}

static void man_commands(FILE *out) {
    fprintf(out, ".SH COMMANDS\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const CommandRow *row = &command_table[i];
        fprintf(out, ".TP\n");
        troff_line(out, ".B ndtune ", row->usage);
        troff_line(out, "", row->summary);
    }
}

static void man_option(FILE *out, const OptionRow *row) {
    fprintf(out, ".TP\n.na\n");  // nothing to stretch in a list of words
    fprintf(out, ".BR \\-\\-");
    troff_text(out, row->name);
    if (row->value) {
        fputs(" \" ", out);
        for (const char *at = row->value; *at;) {  // a list of words may be broken after each
            char word[128];
            const size_t length = strcspn(at, "|") + 1, rest = strlen(at);
            snprintf(word, sizeof word, "%.*s", (int)(length < rest ? length : rest), at);
            troff_text(out, word);
            fputs(length < rest ? "\\:" : "", out);
            at += length < rest ? length : rest;
        }
        fputs("\"", out);
    }
    fputc('\n', out);
    troff_text(out, row->help);
    if (row->fallback) {
        fputs(". Default: ", out);
        troff_text(out, row->fallback);
    }
    fprintf(out, ". Taken by %s.\n", command_names_of(row->commands, COMMANDS_BUFFER));
}

static void man_options(FILE *out) {
    for (int group = 0; group < GROUP_COUNT; group++) {
        fprintf(out, ".SH OPTIONS: ");
        for (const char *at = option_groups[group]; *at; at++) {
            fputc(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at, out);
        }
        fputc('\n', out);
        for (int i = 0; i < OPTION_COUNT; i++) {
            const OptionRow row = option_row((OptionId)i);
            if ((int)row.group == group) {
                man_option(out, &row);
            }
        }
    }
}

// What export writes, from the table of formats.
static void man_formats(FILE *out) {
    fputs(manual_export, out);
    const ExportFormat *format;
    for (int i = 0; (format = export_format_at(i)); i++) {
        fputs(".TP\n", out);
        troff_line(out, ".B ", format->name);
        troff_text(out, format->file_name);
        fputs(", for ", out);
        troff_text(out, format->versions);
        fputs(format->target ? "; plans of " : "; plans of any target with a format", out);
        troff_text(out, format->target ? format->target : "");
        fputs(".\n", out);
    }
}

static void man_topics(FILE *out) {
    int count = 0;
    const Topic *table = topics(&count);
    for (int i = 0; i < count; i++) {
        troff_line(out, ".SH ", table[i].title);
        fprintf(out, ".nf\n");
        topic_write(&table[i], troff_text, out);
        fprintf(out, ".fi\n");
    }
}

// A section that says names of the program.
static void man_text(FILE *out, const char *page) {
    Arena arena = {0};
    fputs(page_text(page, &arena), out);
    arena_free(&arena);
}

Status manual_page(FILE *out, const char *version, Error *error) {
    fprintf(out, ".TH NDTUNE 1 \"\" \"ndtune %s\" \"User commands\"\n", version);
    fprintf(out, ".SH NAME\nndtune \\- which mesh shape to train a large transformer with\n");
    fprintf(out, ".SH SYNOPSIS\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        troff_line(out, i > 0 ? ".br\n.B ndtune " : ".B ndtune ", command_table[i].usage);
    }
    fprintf(out, ".SH DESCRIPTION\n"
                 "Predicts memory and step time of every pp x dp_replicate x dp_shard x cp x sp x tp shape of a world, "
                 "with experts over ep of its ranks and every choice that goes with a shape, ranks them "
                 "with reasons, and runs them for real.\n");
    man_commands(out);
    man_topics(out);
    man_options(out);
    fputs(manual_json, out);
    man_text(out, manual_csv);
    fputs(manual_tune, out);
    char formats[STEP_LOG_FORMATS_BYTES];
    man_text(out, manual_with);
    troff_text(out, step_log_formats(formats));
    fputs(". ndtune calibrate \\-\\-log reads the same formats. Let one rank print them. A command that fails, or "
          "prints none, is stored with that reason.\n",
          out);
    man_formats(out);
    fputs(manual_ending, out);
    fprintf(out, ".SH EXAMPLES\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, ".nf\n");
        troff_text(out, command_table[i].examples);
        fprintf(out, ".fi\n");
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the manual page could not be written") : STATUS_OK;
}

Status option_markdown(FILE *out, Error *error) {
    fputs("| option | value | default | what it is | taken by |\n|---|---|---|---|---|\n", out);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionRow row = option_row((OptionId)i);
        fprintf(out, "| `--%s` | ", row.name);
        for (const char *at = row.value ? row.value : ""; *at; at++) {
            fputs(*at == '|' ? "\\|" : (const char[]){*at, '\0'}, out);
        }
        fprintf(out, " | %s | %s | ", row.fallback ? row.fallback : "", row.help);
        const bool everybody = row.commands == EVERY_COMMAND;
        fprintf(out, "%s |\n", everybody ? "all" : command_names_of(row.commands, COMMANDS_BUFFER));
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the table could not be written") : STATUS_OK;
}
