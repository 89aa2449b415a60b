// A program resized from another micro-batch compared with the same plan lowered from scratch, over random plans of all
// targets. NDTUNE_SEED repeats a run.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "sim/plan/plan_fields.h"
#include "sim/step/resizable.h"
#include "tests/property/sim/engine/random_request.h"

enum { PLANS = 400 };

static bool same_task(const Task *a, const Task *b) {
    return a->key == b->key && a->m == b->m && a->n == b->n && a->k == b->k && a->rows == b->rows &&
           a->cols == b->cols && a->inner == b->inner && a->stride == b->stride && a->kv_stride == b->kv_stride &&
           a->sequences == b->sequences && a->replicated == b->replicated && !(a->flops < b->flops) &&
           !(a->flops > b->flops) && a->traffic_bytes == b->traffic_bytes && a->cast_bytes == b->cast_bytes &&
           a->payload_bytes == b->payload_bytes && a->unit == b->unit && a->phase == b->phase &&
           strcmp(a->name, b->name) == 0;
}

static void expect_same(const StepProgram *a, const StepProgram *b, const char *plan) {
    cr_assert_eq(a->task_count, b->task_count, "%s", plan);
    for (int32_t i = 0; i < a->task_count; i++) {
        cr_assert(same_task(&a->tasks[i], &b->tasks[i]), "%s: task %s", plan, a->tasks[i].name);
    }
    cr_assert_eq(a->buffer_count, b->buffer_count);
    for (int32_t i = 0; i < a->buffer_count; i++) {
        cr_assert_eq(a->buffers[i].bytes, b->buffers[i].bytes, "%s: %s", plan, a->buffers[i].name);
    }
    cr_assert_eq(a->unit_count, b->unit_count);
    for (int32_t i = 0; i < a->unit_count; i++) {
        cr_assert_eq(a->units[i].shard_elements, b->units[i].shard_elements);
    }
    const PlanKey of_a = plan_key(&a->plan, 0), of_b = plan_key(&b->plan, 0);
    cr_assert(plan_keys_equal(&of_a, &of_b));
    cr_assert_eq(a->plan.micro_batch, b->plan.micro_batch);
    cr_assert_eq(step_template_hash(a), step_template_hash(b), "%s", plan);
}

typedef struct Checked {
    int programs, resized;  // all programs; those not lowered from scratch
} Checked;

// Several sizes one after another, the first one again among them.
static void check_plan(Random *random, const RandomRequest *request, const TrainPlan *plan, Arena *arena,
                       Checked *checked) {
    Error error = {0};
    Arena scratch = {0};
    ResizableProgram *resizable;
    cr_assert_eq(resizable_lower(&request->model, plan, request->target, 0, arena, &scratch, &resizable, &error),
                 STATUS_OK, "%s", error.message);
    const int micro_batches[] = {plan->micro_batch, 1 + (int)(random_below(random, 64)), 16, plan->micro_batch, 1, 3};
    const StepProgram *own = NULL;
    for (size_t i = 0; i < sizeof micro_batches / sizeof micro_batches[0]; i++) {
        TrainPlan other = *plan;
        other.micro_batch = micro_batches[i];
        StepProgram anew, *sized;
        char text[PLAN_TEXT_BYTES];
        plan_text(&other, text);
        if (random_is_legal(request, &other, arena)) {
            cr_assert_eq(step_lower_alone(&request->model, &other, request->target, 0, arena, &anew, &error),
                         STATUS_OK);
            cr_assert_eq(resizable_at(resizable, other.micro_batch, &scratch, &sized, &error), STATUS_OK, "%s: %s",
                         text, error.message);
            expect_same(sized, &anew, text);
            own = i == 0 ? sized : own;
            checked->programs++;
            checked->resized += sized == own;
        }
        arena_reset(&scratch);
    }
    arena_free(&scratch);
}

// Any version of any target, any model, sequences that nothing divides evenly, and any choice that a plan has.
static bool draw(Random *random, Arena *arena, RandomRequest *request, TrainPlan *plan) {
    int targets, models;
    const Target *table = target_table(&targets);
    const ModelPreset *presets = model_presets(&models);
    *request = random_request(random, arena);
    request->target = &table[random_below(random, (uint32_t)targets)];
    if (random_below(random, 2)) {
        request->model = presets[random_below(random, (uint32_t)models)].spec;
    }
    request->seq = random_below(random, 2) ? request->seq : 24 * (1 + (int)random_below(random, 60));
    if (!random_plan(random, request, arena, plan)) {
        return false;
    }
    plan->micro_batch *= 1 + (int)random_below(random, 4);
    for (int change = 0; change < 3; change++) {
        const PlanFieldId id = (PlanFieldId)random_below(random, PLAN_FIELD_COUNT);
        const PlanField *field = &plan_fields[id];
        if (field->words || field->is_bool) {  // others are numbers, of the batch
            plan_set(plan, id, field->low + (int)random_below(random, (uint32_t)(field->high - field->low + 1)));
        }
    }
    plan_canonical(plan);
    return random_is_legal(request, plan, arena);
}

Test(resizable, a_program_sized_for_another_micro_batch_is_the_one_lowered_for_it) {
    Random random = random_begin("resizable");
    int plans = 0;
    Checked checked = {0};
    while (plans < PLANS) {
        Arena arena = {0};
        TrainPlan plan;
        RandomRequest request;
        if (draw(&random, &arena, &request, &plan)) {
            check_plan(&random, &request, &plan, &arena, &checked);
            plans++;
        }
        arena_free(&arena);
    }
    fprintf(stderr, "%d programs, %d lowered anew\n", checked.programs, checked.programs - checked.resized);
    cr_assert_gt(checked.programs, 3 * PLANS);
    cr_assert_gt(checked.resized, 0.95 * checked.programs);
}
