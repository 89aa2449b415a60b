// Values of fields as words and numbers, and what is said of them.

#include "sim/plan/plan_fields.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/text.h"

const char *plan_field_key(PlanFieldId id) {
    return plan_fields[id].key ? plan_fields[id].key : plan_fields[id].name;
}

int plan_told(const TrainPlan *plan, PlanFieldId id) {
    const bool told = plan_fields[id].printed != PLAN_PRINTED_WHERE_IT_MATTERS || plan_field_matters(plan, id);
    return told ? plan_get(plan, id) : PLAN_ANY;
}

// The members of a set in any order, also as a list in brackets.
static int set_value(const PlanField *field, const char *word) {
    static const char between[] = "+, []";
    int value = 0;
    for (const char *at = word + strspn(word, between); *at; at += strspn(at, between)) {
        char member[PLAN_VALUE_BYTES] = "";
        const size_t length = strcspn(at, between);
        int bit = 1;
        snprintf(member, sizeof member, "%.*s", (int)length, at);
        while (field->no_bits + bit <= field->high && !text_same_word(member, field->words[field->no_bits + bit])) {
            bit <<= 1;
        }
        if (field->no_bits + bit > field->high || length >= sizeof member) {
            return PLAN_ANY;
        }
        value |= bit;
        at += length;
    }
    return value > 0 ? field->no_bits + value : PLAN_ANY;
}

int plan_field_value(PlanFieldId id, const char *word) {
    const PlanField *field = &plan_fields[id];
    int64_t number = PLAN_ANY;
    if (!field->words) {
        return text_parse_int(word, &number) && number >= field->low && number <= field->high ? (int)number : PLAN_ANY;
    }
    for (int value = field->is_set ? field->no_bits : field->high; value >= 0; value--) {
        if (text_same_word(word, field->words[value])) {
            return value;
        }
    }
    return field->is_set ? set_value(field, word) : PLAN_ANY;
}

int plan_field_unsaid(PlanFieldId id) {
    const bool may_be_auto = strncmp(plan_fields[id].option.value, "auto|", 5) == 0;
    return may_be_auto ? plan_field_value(id, "auto") : plan_fields[id].usual;
}

void plan_fields_unsaid(int values[PLAN_FIELD_COUNT]) {
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        values[id] = plan_field_unsaid((PlanFieldId)id);
    }
}

const char *plan_value_text(PlanFieldId id, int value, char out[PLAN_VALUE_BYTES]) {
    if (plan_fields[id].words) {
        return plan_fields[id].words[value];
    }
    snprintf(out, PLAN_VALUE_BYTES, "%d", value);
    return out;
}

const char *plan_refuse_others(const TrainPlan *plan, uint64_t known, const char *whose, Arena *arena) {
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanField *field = &plan_fields[i];
        const int value = plan_get(plan, (PlanFieldId)i);
        if (!(known & PLAN_BIT(i)) && value != field->usual) {
            return arena_format(arena, "%s %s=%s: use %s=%s", whose, field->name,
                                plan_value_text((PlanFieldId)i, value, VALUE_BUFFER), field->name,
                                plan_value_text((PlanFieldId)i, field->usual, VALUE_BUFFER));
        }
    }
    return NULL;
}
