// The version of a target that a row ran.

#include "autotune/accuracy/run_target.h"

#include <string.h>

#include "autotune/accuracy/run_tests.h"
#include "sim/base/error.h"

static bool is_target(const Target *target, const char *name) {
    const size_t name_bytes = strcspn(name, "@");
    const bool named = strlen(target->name) == name_bytes && strncmp(target->name, name, name_bytes) == 0;
    return named && (name[name_bytes] == '\0' || strcmp(name + name_bytes + 1, target->version) == 0);
}

// Whether a run of that date used this version: an old one only while it was current, the others at any date.
static bool is_of_date(const Target *target, const char *date) {
    return !target->until || (date[0] != '\0' && strcmp(date, target->until) < 0);
}

// A recipe of fp8, where the row says one.
static bool has_recipe(const Target *target, const RunRow *row) {
    const char *word = row->plan_word[PLAN_FP8_RECIPE];
    const int recipe = word[0] ? plan_field_value(PLAN_FP8_RECIPE, word) : PLAN_ANY;
    return recipe == PLAN_ANY || strcmp(row->plan_word[PLAN_PRECISION], "fp8") != 0 ||
           (target->fp8_recipes & FP8_BIT(recipe)) != 0;
}

// Ranks with different experts, which no code with latent attention is without, and how far it shards: where the row is
// of the target's own code, as others are named after what is most like them.
static bool has_what_ran(const Target *target, const RunRow *row) {
    const bool spreads = row->mesh[AXIS_EP] > 1 || row->experts.kv_rank > 0;
    const int64_t zero = row->plan_number[PLAN_ZERO];
    const bool shards = !row_is_of_core(row) || zero == RUN_UNKNOWN || zero <= target->max_zero;
    return shards && has_recipe(target, row) && (!spreads || (target->axes & AXIS_BIT(AXIS_EP)) != 0);
}

// Rows seldom state the version: take the one current on the row's date, then the one whose default attention kernel is
// the row's, else the default one. A version that lacks what the row ran with is not the one that ran it, where another
// has that.
static const Target *find_able(const RunRow *row, bool able) {
    const bool versioned = strchr(row->target, '@') != NULL;
    int count = 0, best = -1;
    const Target *rows = target_table(&count), *found = NULL;
    for (int i = 0; i < count; i++) {
        if (!is_target(&rows[i], row->target) || (!versioned && !is_of_date(&rows[i], row->date)) ||
            (able && !has_what_ran(&rows[i], row))) {
            continue;
        }
        const bool runs_kernel = !row_is_of_core(row) && strcmp(attention_names[rows[i].default_attention],
                                                                row->plan_word[PLAN_ATTENTION]) == 0;
        const int fit = (rows[i].until ? 2 : 0) + (runs_kernel ? 1 : 0);
        const bool older = fit == best && rows[i].until && strcmp(rows[i].until, found->until) < 0;
        if (fit > best || older) {
            best = fit;
            found = &rows[i];
        }
    }
    return found;
}

const char *run_target_find(Arena *arena, const RunRow *row, const Target **target) {
    *target = find_able(row, true);
    *target = *target ? *target : find_able(row, false);
    if (*target) {
        return NULL;
    }
    if (row->target[0] == '\0' && row->source[0] != '\0') {
        return arena_format(arena, "no target is stated, and its source \"%s\" names none", row->source);
    }
    Error error = {0};
    const Target *known = NULL;
    target_find(row->target, &known, &error);
    return arena_format(arena, "target \"%s\" is not in this version%s%s", row->target, error.hint[0] ? ": " : "",
                        error.hint);
}
