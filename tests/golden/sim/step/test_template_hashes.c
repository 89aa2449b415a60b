// Programs as they were on 22 November 2026: models, frameworks and plans drawn at random from what the frameworks
// accept, each with the hash of its template. Some rows have changed since, and have the hashes of that day: axolotl,
// because it trains in bf16 without fp32 masters, keeps the root whole, recomputes whole layers and from 0.19 on splits
// the head over tp; DeepSpeed, because stages 0 to 2 reduce on the stream of the kernels, and stage 3 of 0.19.8 copies
// gradients to fp32 one sub-group at a time; nanotron, because act(gate) is kept for backward, without ZeRO replicas
// hold DDP's buckets, and its code holds more than its operations need (gathered inputs, packed products, flat copies);
// Megatron, because dummy gradients of each weight's shape are kept, and because replicas of 2022 reduce behind
// backward without ZeRO. So have sliding windows shorter than the sequence (mistral, phi-3), whose attention became
// one, and recomputed layers over cp of all but our own target, whose backward packs anew. Workers refuse a request
// with another hash, and measurements are stored under it. A line is "model target hash plan".

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/step/step.h"

static const char recorded[] = NDTUNE_SOURCE_DIR "/tests/golden/sim/step/template_hashes.txt";
enum { LINES = 528, WORD_BYTES = 64 };

static uint64_t hash_now(const char *model_name, const char *target_name, const char *plan_words, Arena *arena) {
    Error error = {0};
    ModelSpec model;
    TrainPlan plan;
    const Target *target = NULL;
    StepProgram program;
    cr_assert_eq(model_find(model_name, arena, &model, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(target_find(target_name, &target, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(plan_parse(plan_words, &plan, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(step_lower(&model, &plan, target, arena, &program, &error), STATUS_OK, "%s", error.message);
    return step_template_hash(&program);
}

Test(template_hashes, programs_are_the_recorded_ones) {
    FILE *file = fopen(recorded, "r");
    char model[WORD_BYTES], target[WORD_BYTES], plan[PLAN_TEXT_BYTES];
    uint64_t hash;
    int lines = 0;
    cr_assert_not_null(file, "cannot open %s", recorded);
    while (fscanf(file, "%63s %63s %" SCNx64 " %319[^\n]", model, target, &hash, plan) == 4) {
        Arena arena = {0};
        const uint64_t now = hash_now(model, target, plan, &arena);
        cr_expect_eq(now, hash, "%s %s %016" PRIx64 " %s: recorded %016" PRIx64, model, target, now, plan, hash);
        arena_free(&arena);
        lines++;
    }
    fclose(file);
    cr_assert_eq(lines, LINES);
}
