// Arbitrary lines as command-line arguments: the first one names the command, the rest follow it. A refusal is one
// sentence and blames an argument that is present; an accepted number is in the range of its row of the option table;
// meshes, orders and settings are accepted as something positive or refused in one sentence.

#include <math.h>
#include <string.h>

#include "autotune/cli/options.h"
#include "autotune/predict/handicap.h"
#include "sim/cluster/cluster.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_WORDS = 64 };

static void check_value(const OptionRow *row, const OptionValue *value) {
    const bool chosen = strncmp(row->value ? row->value : "", "auto|", 5) == 0 && strcmp(value->text, "auto") == 0;
    if (row->type == VALUE_INT || row->type == VALUE_INTS) {
        ASSERT(chosen || (value->integer >= row->low && value->integer <= row->high));
    } else if (row->type == VALUE_NUMBER || row->type == VALUE_ABOVE || row->type == VALUE_COUNT) {
        ASSERT(isfinite(value->number));
    } else if (row->type == VALUE_BYTES) {
        ASSERT(value->integer > 0);
    }
}

static void check_mesh(const char *text) {
    Mesh mesh;
    Error error = {0};
    if (mesh_parse(text, &mesh, &error) == STATUS_OK) {
        ASSERT(mesh_world(&mesh) > 0);
    } else {
        fuzz_refused(&error);
    }
}

static void check_order(const char *text) {
    AxisOrder order;
    Error error = {0};
    if (axis_order_parse(text, &order, &error) != STATUS_OK) {
        fuzz_refused(&error);
    }
}

static void check_setting(const char *text, Arena *arena) {
    ClusterProfile profile;
    Handicap handicap;
    Error error = {0};
    if (handicap_named(text)) {
        if (handicap_parse(text, &handicap, &error) != STATUS_OK) {
            fuzz_refused(&error);
        }
        return;
    }
    ASSERT(cluster_find("dgx-h100", arena, &profile, &error) == STATUS_OK);
    if (cluster_set(&profile, text, arena, &error) != STATUS_OK) {
        fuzz_refused(&error);
    }
}

static void check_options(const Options *options, Arena *arena) {
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (options->values[id].given) {
            const OptionRow row = option_row((OptionId)id);
            check_value(&row, &options->values[id]);
        }
    }
    for (int i = 0; i < options->set_count; i++) {
        check_setting(options->sets[i], arena);
    }
    static const OptionId meshes[] = {OPTION_MESH, OPTION_BASELINE};
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        if (options->values[meshes[i]].given) {
            check_mesh(options->values[meshes[i]].text);
        }
    }
    if (options->values[OPTION_RANK_ORDER].given) {
        check_order(options->values[OPTION_RANK_ORDER].text);
    }
}

// Lines become words; argv[0] is the command's.
static int split(char *text, char *argv[MOST_WORDS]) {
    int argc = 0;
    for (char *line = text; line && argc < MOST_WORDS;) {
        char *end = strchr(line, '\n');
        argv[argc++] = line;
        if (end) {
            *end = '\0';
        }
        line = end ? end + 1 : NULL;
    }
    return argc;
}

static CommandId command_of(const char *word) {
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(command_names[i], word) == 0) {
            return (CommandId)i;
        }
    }
    return COMMAND_PLAN;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena arena = {0};
    char *text = arena_alloc(&arena, size + 1);
    memcpy(text, data, size);
    char *argv[MOST_WORDS];
    const int argc = split(text, argv);
    ParseContext context = {.argc = argc, .argv = argv, .first = 1, .command = command_of(argv[0]), .blame = -1};
    Options *options = ARENA_NEW(&arena, Options);
    Error error = {0};
    if (options_parse(&context, options, &error) == STATUS_OK) {
        check_options(options, &arena);
    } else {
        fuzz_refused(&error);
        ASSERT(context.blame >= -1 && context.blame < argc);
    }
    arena_free(&arena);
    return 0;
}
