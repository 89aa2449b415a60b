// A word that a column has by itself always wins; then the first row of its table that the text contains. What no row
// knows stays, so that its run is left out with the word; so does a part beside which the text denies something
// ("bf16, fp8 off"): what it denies is not read.

#include "autotune/accuracy/run_words.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "autotune/accuracy/run_word_tables.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster.h"
#include "sim/frameworks/framework.h"
#include "sim/plan/plan_fields.h"

// Without blanks around it, in lower case.
static char *plain(const char *text, Arena *arena) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    char *word = arena_text(arena, text);
    size_t length = strlen(word);
    while (length > 0 && isspace((unsigned char)word[length - 1])) {
        word[--length] = '\0';
    }
    for (size_t i = 0; i < length; i++) {
        word[i] = (char)tolower((unsigned char)word[i]);
    }
    return word;
}

static bool is_own(const char *column, const char *word) {
    int64_t number = 0;
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].column && strcmp(plan_fields[id].column, column) == 0) {
            return plan_fields[id].column_is_number ? text_parse_int(word, &number)
                                                    : plan_field_value((PlanFieldId)id, word) != PLAN_ANY;
        }
    }
    return text_parse_int(word, &number);
}

// ---- frameworks

enum { NAME_LETTERS = 5 };  // shorter ones are parts of other words and names of their makers

static bool has_word(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = text; length >= NAME_LETTERS && *at; at++) {
        if (word_begins(text, at) && strncasecmp(at, word, length) == 0 && !isalnum((unsigned char)at[length])) {
            return true;
        }
    }
    return false;
}

static bool is_named(const Framework *framework, const char *text, bool whole) {
    bool (*const matches)(const char *, const char *) = whole ? text_same_word : has_word;
    const bool by_name = (whole || !framework->name_is_word) && matches(text, framework->name);
    return by_name || framework_synonym(framework, text, matches) != NULL;
}

// How many train under a name in the text, and the last of them.
static int frameworks_in(const char *text, bool whole, const char **name) {
    int count = 0, found = 0;
    const Framework *const *all = framework_list(&count);
    for (int i = 0; i < count; i++) {
        if (all[i]->versions[0] && is_named(all[i], text, whole)) {
            *name = all[i]->name;
            found++;
        }
    }
    return found;
}

static const char *target_word(const char *text, Arena *arena) {
    const char *word = plain(text, arena), *version = strchr(word, '@');
    const char *name = version ? arena_format(arena, "%.*s", (int)(version - word), word) : word;
    const char *known = NULL;
    return frameworks_in(name, true, &known) == 1 ? arena_format(arena, "%s%s", known, version ? version : "") : text;
}

// The framework with the longest name of runs, or of its maker, in a text: the text itself = denied there, NULL = none.
static const char *source_in(const char *text, bool maker) {
    int count = 0;
    const Framework *const *all = framework_list(&count);
    const char *longest = NULL;
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        for (const SourceName *row = all[i]->sources; row && row->name; row++) {
            const WordPart part = {row->name, all[i]->name, row->whole};
            size_t bytes = 0;
            const char *at = row->maker == maker ? word_part_at(text, &part, &bytes) : NULL;
            if (at && strlen(row->name) > most) {
                most = strlen(row->name);
                longest = word_denies(text, at, bytes) ? text : all[i]->name;
            }
        }
    }
    return longest;
}

static bool is_unread(const char *text) {
    static const WordPart others[] = {
        {"jax", NULL, false}, {"paxml", NULL, false}, {"maxtext", NULL, false}, {NULL, NULL, false}};
    return word_part_in(others, text, true) != NULL;
}

// What a source trains by; "" = it does not say, or it has several names.
static const char *source_target(const char *word) {
    const char *named = NULL;
    const int count = frameworks_in(word, false, &named);
    const char *said = source_in(word, false);
    said = said ? said : count == 1 ? named : source_in(word, true);
    return said && said != word && count <= 1 && !is_unread(word) ? said : "";
}

// ---- what is read

// "4096 packed": full documents of that many tokens, as where nothing is said of them.
static const char *packed_length(const char *text, Arena *arena) {
    const char *word = plain(text, arena), *rest = strchr(word, ' ');
    return rest && strcmp(rest, " packed") == 0 ? arena_format(arena, "%.*s", (int)(rest - word), word) : word;
}

const char *run_word(const char *name, const char *text, Arena *arena) {
    if (text[0] == '\0') {
        return text;
    }
    if (strcmp(name, "seq_len") == 0) {
        return packed_length(text, arena);
    }
    const WordColumn *column = run_word_column(name);
    if (!column) {
        return text;
    }
    if (!column->parts) {
        return target_word(text, arena);
    }
    const char *word = plain(text, arena);
    const char *said = is_own(name, word) ? NULL : word_part_in(column->parts, word, true);
    return is_own(name, word) ? word : said && said != word ? said : text;
}

const char *run_word_source(const char *name, int index) {
    const WordColumn *column = run_word_column(name);
    if (!column) {
        return index == 0 && strcmp(name, "cluster") == 0 ? "gpu" : NULL;
    }
    return index < (int)(sizeof column->from / sizeof column->from[0]) ? column->from[index] : NULL;
}

// What no row knows: is it of the column's own subject?
static bool is_kept(const WordColumn *column, const char *word) {
    const bool speaks = !column->of_same || word_part_in(column->of_same, word, true) != NULL;
    return column->same && speaks && (!column->of_same || strstr(word, UNSAID) == NULL);
}

const char *run_word_from(const char *name, const char *other, Arena *arena) {
    const WordColumn *column = run_word_column(name);
    const char *word = plain(other, arena);
    if (!column || word[0] == '\0') {
        return "";
    }
    if (column->same && is_own(name, word)) {
        return word;
    }
    if (!column->parts) {
        return source_target(word);
    }
    const char *said = word_part_in(column->parts, word, column->same);
    return said && said != word ? said : said || is_kept(column, word) ? other : "";
}

const char *run_word_cluster(const char *chip, const char *memory_gb, bool usual, Arena *arena) {
    const char *plain_node = cluster_usual_node(chip);
    const char *sized = cluster_usual_node(arena_format(arena, "%s %sGB", chip, memory_gb));
    if (sized && (usual || (plain_node && strcmp(sized, plain_node) != 0))) {
        return sized;
    }
    return usual && plain_node ? plain_node : chip;
}
