// Writes what follows from the folders when the project is built, so that nothing is left to do, or to hold, at run
// time: `rows` the rows of all versions as one constant table in C, settings applied to their bases; `words` a header
// with names of frameworks for constant texts.

#include <stdio.h>
#include <string.h>

#include "sim/frameworks/framework.h"

static void write_text(const char *name, const char *text) {
    if (text) {
        printf("        .%s = \"%s\",\n", name, text);
    }
}

#define AXIS_SYMBOL_TEXT(symbol, name, role, lenders) [AXIS_##symbol] = #symbol,
static const char *const axis_symbols[AXIS_COUNT] = {AXIS_LIST(AXIS_SYMBOL_TEXT)};

// By name: the compiling code has its own place for each.
static void write_axes(const char *name, AxisMask axes) {
    printf("        .%s = 0", name);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (axes & AXIS_BIT(axis)) {
            printf(" | AXIS_BIT(AXIS_%s)", axis_symbols[axis]);
        }
    }
    printf(",\n");
}

static void write_field(const Target *target, const TargetField *field) {
    const char *text = NULL;
    const double number = target_field_number(target, field);
    if (field->kind == FIELD_TEXT) {
        memcpy(&text, (const char *)target + field->at, sizeof text);
        write_text(field->name, text);
    } else if (field->kind == FIELD_AXES) {
        write_axes(field->name, (AxisMask)number);
    } else if (number != 0) {
        printf(field->kind == FIELD_REAL ? "        .%s = %a,\n" : "        .%s = %.0f,\n", field->name, number);
    }
}

static void write_row(const Framework *framework, const TargetVersion *version) {
    const Target target = target_of_version(framework, version);
    int count = 0;
    const TargetField *fields = target_fields(&count);
    printf("    {\n");
    write_text("name", target.name);
    write_text("version", target.version);
    write_text("until", target.until);
    write_text("evidence", target.evidence);
    for (int i = 0; i < count; i++) {
        write_field(&target, &fields[i]);
    }
    printf("    },\n");
}

static void write_rows(const Framework *const *frameworks, int count) {
    printf("#include \"sim/frameworks/target.h\"\n\nstatic const Target rows[] = {\n");
    for (int i = 0; i < count; i++) {
        for (const TargetVersion *const *version = frameworks[i]->versions; *version; version++) {
            write_row(frameworks[i], *version);
        }
    }
    printf("};\n\nconst Target *target_table(int *count) {\n    *count = (int)(sizeof rows / sizeof rows[0]);\n"
           "    return rows;\n}\n");
}

static void write_words(const Framework *const *frameworks, int count) {
    const ExportFormat *usual = frameworks[0]->formats[0];
    printf("#define FRAMEWORK_DEFAULT \"%s\"\n#define FRAMEWORK_DEFAULT_FILE \"%s\"\n"
           "#define FRAMEWORK_DEFAULT_FORMAT \"%s\"\n",
           frameworks[0]->name, usual->file_name, usual->name);
    printf("#define FRAMEWORK_CONFIGS \"");
    const char *separator = "";
    for (int i = 0; i < count; i++) {
        if (frameworks[i]->config) {
            printf("%s%s", separator, frameworks[i]->name);
            separator = "|";
        }
    }
    printf("\"\n#define FRAMEWORK_FORMATS \"");
    separator = "";
    for (int i = 0; i < count; i++) {
        for (const ExportFormat *const *format = frameworks[i]->formats; format && *format; format++) {
            printf("%s%s", separator, (*format)->name);
            separator = "|";
        }
    }
    printf("\"\n#define FRAMEWORK_BATCH_WORDS \"");
    for (int i = 0; i < count; i++) {
        if (frameworks[i]->micro_batch) {
            printf("  %-11s %s, %s\\n", frameworks[i]->name, frameworks[i]->micro_batch, frameworks[i]->accumulation);
        }
    }
    printf("\"\n");
}

int main(int argc, char **argv) {
    int count = 0;
    const Framework *const *frameworks = framework_list(&count);
    if (argc == 2 && strcmp(argv[1], "rows") == 0) {
        write_rows(frameworks, count);
    } else if (argc == 2 && strcmp(argv[1], "words") == 0) {
        write_words(frameworks, count);
    } else {
        return 1;
    }
    return ferror(stdout) ? 1 : 0;
}
