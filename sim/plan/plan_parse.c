// Reads back the line that plan_text writes: how stores and files record a plan. Of an order of actions it has only the
// hash: the caller finds the file.

#include <stdio.h>
#include <string.h>

#include "sim/plan/plan_fields.h"

static Status take(TrainPlan *plan, bool seen[PLAN_FIELD_COUNT], const char *key, const char *text, Error *error) {
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        if (strcmp(plan_field_key(id), key) != 0) {
            continue;
        }
        const int value = plan_field_value(id, text);
        FAIL_IF(value < 0 && plan_fields[id].words, error, STATUS_USAGE, "plan: %s=%.40s is not in this version", key,
                text);
        FAIL_IF(value < 0, error, STATUS_USAGE, "plan: %s=%.40s is no number from %d to %d", key, text,
                plan_fields[id].low, plan_fields[id].high);
        seen[id] = true;
        plan_set(plan, id, value);
        return STATUS_OK;
    }
    return error_set(error, STATUS_USAGE, "plan: %.40s is not in this version", key);
}

Status plan_parse(const char *text, TrainPlan *plan, Error *error) {
    char line[PLAN_TEXT_BYTES];
    bool seen[PLAN_FIELD_COUNT] = {false};
    memset(plan, 0, sizeof *plan);
    FAIL_IF(snprintf(line, sizeof line, "%s", text) >= (int)sizeof line, error, STATUS_USAGE,
            "plan: longer than a plan is");
    char *rest = NULL, *word = strtok_r(line, " ", &rest);
    TRY(mesh_parse(word ? word : "", &plan->mesh, error));
    while ((word = strtok_r(NULL, " ", &rest)) != NULL) {
        char *value = strchr(word, '=');
        FAIL_IF(!value, error, STATUS_USAGE, "plan: %.40s is no KEY=VALUE", word);
        *value++ = '\0';
        if (strcmp(word, "actions") == 0) {
            continue;
        }
        TRY(strcmp(word, "order") == 0 ? axis_order_parse(value, &plan->mesh.order, error)
                                       : take(plan, seen, word, value, error));
    }
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        FAIL_IF(!seen[i] && plan_fields[i].printed == PLAN_PRINTED_ALWAYS, error, STATUS_USAGE, "plan: %s is missing",
                plan_field_key(id));
        if (!seen[i]) {
            plan_set(plan, id, plan_fields[i].usual);
        }
    }
    plan_canonical(plan);
    return STATUS_OK;
}
