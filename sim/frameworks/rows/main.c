// Writes the rows of all versions as one constant table in C, when the project is built: settings applied to their
// bases, so that nothing is left to do, or to hold, at run time.

#include <stdio.h>
#include <string.h>

#include "sim/frameworks/framework.h"

static void write_text(const char *name, const char *text) {
    if (text) {
        printf("        .%s = \"%s\",\n", name, text);
    }
}

static void write_field(const Target *target, const TargetField *field) {
    const char *text = NULL;
    const double number = target_field_number(target, field);
    if (field->kind == FIELD_TEXT) {
        memcpy(&text, (const char *)target + field->at, sizeof text);
        write_text(field->name, text);
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

int main(void) {
    int count = 0;
    const Framework *const *frameworks = framework_list(&count);
    printf("#include \"sim/frameworks/target.h\"\n\nstatic const Target rows[] = {\n");
    for (int i = 0; i < count; i++) {
        for (const TargetVersion *const *version = frameworks[i]->versions; *version; version++) {
            write_row(frameworks[i], *version);
        }
    }
    printf("};\n\nconst Target *target_table(int *count) {\n    *count = (int)(sizeof rows / sizeof rows[0]);\n"
           "    return rows;\n}\n");
    return ferror(stdout) ? 1 : 0;
}
