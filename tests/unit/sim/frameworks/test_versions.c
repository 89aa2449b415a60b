// Versions of frameworks extend one another: a row changes exactly what it states.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/frameworks/framework.h"

static const char *text_of(const Target *target, const TargetField *field) {
    const char *text = NULL;
    memcpy(&text, (const char *)target + field->at, sizeof text);
    return text;
}

// Prints what the row changes; the number of its settings that say what its base says, or say it twice.
static int print_changes(const Framework *framework, const TargetVersion *version) {
    const Target none = {0};
    const Target base = version->extends ? target_of_version(framework, version->extends) : none;
    int idle = 0;
    for (const TargetSetting *setting = version->settings; setting->at != 0; setting++) {
        const TargetField *field = target_field_at(setting->at);
        cr_assert_not_null(field, "a setting of no field at %zu", setting->at);
        bool repeats = false;
        for (const TargetSetting *earlier = version->settings; earlier != setting; earlier++) {
            repeats |= earlier->at == setting->at;
        }
        if (field->kind == FIELD_TEXT) {
            repeats |= text_same(setting->text, text_of(&base, field));
            printf("    %s: %s%s\n", field->name, setting->text, repeats ? "  <- its base says so" : "");
        } else {
            const double before = target_field_number(&base, field);
            repeats |= setting->number == before;
            printf("    %s: %g -> %g%s\n", field->name, before, setting->number,
                   repeats ? "  <- its base says so" : "");
        }
        idle += repeats;
    }
    return idle;
}

Test(versions, a_row_says_nothing_that_its_base_says) {
    int count = 0, idle = 0;
    const Framework *const *frameworks = framework_list(&count);
    for (int i = 0; i < count; i++) {
        for (const TargetVersion *const *version = frameworks[i]->versions; *version; version++) {
            printf("%s@%s\n", frameworks[i]->name, (*version)->version);
            idle += print_changes(frameworks[i], *version);
            for (const TargetVersion *base = (*version)->extends; base && !base->version; base = base->extends) {
                printf("  from what frameworks have in common:\n");
                idle += print_changes(frameworks[i], base);
            }
        }
    }
    fflush(stdout);
    cr_assert_eq(idle, 0, "%d settings repeat their base", idle);
}

Test(versions, a_number_of_a_field_that_counts_is_whole) {
    int count = 0;
    const Framework *const *frameworks = framework_list(&count);
    for (int i = 0; i < count; i++) {
        for (const TargetVersion *const *version = frameworks[i]->versions; *version; version++) {
            for (const TargetSetting *setting = (*version)->settings; setting->at != 0; setting++) {
                const TargetField *field = target_field_at(setting->at);
                cr_assert(field->kind == FIELD_REAL || setting->number == (double)(int)setting->number, "%s@%s: %s",
                          frameworks[i]->name, (*version)->version, field->name);
                cr_assert(field->kind != FIELD_BOOL || setting->number == 0 || setting->number == 1, "%s@%s: %s",
                          frameworks[i]->name, (*version)->version, field->name);
            }
        }
    }
}

Test(versions, a_row_has_its_bases_values_where_it_says_nothing) {
    const Target *old = NULL, *later = NULL;
    Error error = {0};
    cr_assert_eq(target_find("accelerate@1.13", &old, &error), STATUS_OK);
    cr_assert_eq(target_find("accelerate@1.14", &later, &error), STATUS_OK);
    int count = 0, different = 0;
    const TargetField *fields = target_fields(&count);
    for (int i = 0; i < count; i++) {
        different += target_field_number(old, &fields[i]) != target_field_number(later, &fields[i]);
    }
    cr_assert(old->root_unit && !later->root_unit);
    cr_assert_eq(different, 1);
}

Test(versions, transformers_beside_an_older_accelerate_gathers_embedding_and_head_as_one_unit) {
    const Target *old = NULL, *later = NULL;
    Error error = {0};
    cr_assert_eq(target_find("trainer@5.16", &old, &error), STATUS_OK);
    cr_assert_eq(target_find("trainer@5.23", &later, &error), STATUS_OK);
    cr_assert(old->root_unit && !later->root_unit);
}
