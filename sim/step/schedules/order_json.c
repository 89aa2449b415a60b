// One line per rank, as in the file.

#include "sim/step/schedules/order_json.h"

#include "sim/step/schedules/order_file.h"

json_t *order_json(const TrainPlan *plan) {
    if (plan->pp_schedule != PP_FILE || !plan->pp_order) {
        return json_null();
    }
    json_t *lines = json_array();
    for (int32_t rank = 0; rank < plan->pp_order->stages; rank++) {
        json_array_append_new(lines, json_string(plan->pp_order->lines[rank]));
    }
    return lines;
}

Status order_json_read(const json_t *lines, Arena *arena, TrainPlan *plan, Error *error) {
    plan->pp_order = NULL;
    if (plan->pp_schedule != PP_FILE || json_is_null(lines)) {
        return STATUS_OK;
    }
    const char *text = "";
    for (size_t rank = 0; rank < json_array_size(lines); rank++) {
        const char *line = json_string_value(json_array_get(lines, rank));
        text = arena_format(arena, "%s%s\n", text, line ? line : "");
    }
    PpOrder *order = ARENA_NEW(arena, PpOrder);
    plan->pp_order = order;
    return order_text_read("the plan's order", text, arena, order, error);
}
