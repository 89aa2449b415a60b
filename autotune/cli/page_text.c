// Placeholders in pages that are filled from the program's tables: its axes, the columns of a plan, the frameworks.

#include "autotune/cli/page_text.h"

#include <string.h>

#include "reports/reports.h"
#include "sim/axes/axes.h"
#include "sim/base/error.h"
#include "sim/frameworks/words.h"

#define NAMED(symbol, name, role, lenders) ", " #name
#define EXPOSED(symbol, name, role, lenders) ", exposed_" #name "_s"
#define PLACE(symbol, name, role, lenders) " {" #name "}"

static const char *listed(const char *const *names, int count, Arena *arena) {
    const char *text = "";
    for (int i = 0; i < count; i++) {
        text = arena_format(arena, "%s%s%s", text, i > 0 ? ", " : "", names[i]);
    }
    return text;
}

static const char *axes_defined(Arena *arena) {
    const char *text = "";
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        text = arena_format(arena, "%s  %-13s %s\n", text, axis_names[axis], axis_rows[axis]->definition);
    }
    return text;
}

static const char *word_text(const char *word, size_t length, Arena *arena) {
    const char *names[CSV_PLAN_COLUMNS], *later[CSV_PLAN_COLUMNS];
    const struct {
        const char *word, *text;
    } words[] = {{"axes", AXIS_LIST(NAMED)},
                 {"exposed", AXIS_LIST(EXPOSED)},
                 {"places", AXIS_LIST(PLACE)},
                 {"plan", listed(names, csv_plan_names(names), arena)},
                 {"later", listed(later, csv_later_names(later), arena)},
                 {"definitions", axes_defined(arena)},
                 {"framework", FRAMEWORK_DEFAULT},
                 {"format", FRAMEWORK_DEFAULT_FORMAT},
                 {"configs", FRAMEWORK_CONFIGS},
                 {"batches", FRAMEWORK_BATCH_WORDS}};
    const char *text = NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !text; i++) {
        text = strlen(words[i].word) == length && strncmp(words[i].word, word, length) == 0 ? words[i].text : NULL;
    }
    ASSERT(text);
    return text;
}

// What stands for a word of its own line ends that line itself.
const char *page_text(const char *page, Arena *arena) {
    const char *text = "";
    for (const char *at; (at = strstr(page, "{{"));) {
        const char *word = at + 2, *end = strstr(word, "}}");
        const char *meant = word_text(word, (size_t)(end - word), arena);
        text = arena_format(arena, "%s%.*s%s", text, (int)(at - page), page, meant);
        page = end + 2;
        page += page[0] == '\n' && meant[strlen(meant) - 1] == '\n';
    }
    return arena_format(arena, "%s%s", text, page);
}
