// The hand-made answer.

#include "tests/unit/reports/fixture.h"
#include "tests/support/sizes.h"

#include <criterion/criterion.h>

static Prediction prediction(Mesh mesh, double step_s) {
    return (Prediction){.plan = {.mesh = mesh,
                                 .seq = 4096,
                                 .micro_batch = 2,
                                 .grad_accum = 4,
                                 .zero = 3,
                                 .precision = DTYPE_BF16,
                                 .virtual_stages = 1},
                        .origin = ORIGIN_ENGINE,
                        .step_s = step_s,
                        .step_low_s = 0.8 * step_s,
                        .step_high_s = 1.45 * step_s,
                        .compute_s = 0.7 * step_s,
                        .exposed_s = {[AXIS_DP_SHARD] = 0.125 * step_s, [AXIS_TP] = 0.025 * step_s},
                        .optimizer_s = 0.05 * step_s,
                        .overhead_s = 0.1 * step_s,
                        .tokens_per_s = 1e6 / step_s,
                        .model_flop_per_s_per_gpu = 4e14,
                        .mfu = 0.4,
                        .hfu = 0.5,
                        .memory = {.parameters = 10,
                                   .gradients = 20,
                                   .optimizer = 30,
                                   .activations = 40,
                                   .logits = 50,
                                   .gathered_parameters = 60,
                                   .communication = 70,
                                   .runtime = 80,
                                   .peak_bytes = 360,
                                   .reserved_bytes = 400,
                                   .peak_phase = "loss",
                                   .top_name = "logits",
                                   .top_bytes = 50},
                        .fits = true};
}

void fixture_fill(Fixture *fixture) {
    *fixture = (Fixture){.assumptions = {"sequences of 4096 tokens"}};
    Error error = {0};
    Arena none = {0};
    TuneRequest *request = &fixture->request;
    *request = (TuneRequest){.command = "ndtune --world 8 --model 7b",
                             .world = 8,
                             .model_asked = "7b",
                             .seq = 4096,
                             .memory_limit_bytes = 1000,
                             .assumptions = fixture->assumptions,
                             .assumption_count = 1};
    plan_fields_unsaid(request->asked);
    request->asked[PLAN_PRECISION] = DTYPE_BF16;
    cr_assert_eq(model_find("7b", &none, &request->model, &error), STATUS_OK);
    cr_assert_eq(target_find("accelerate", &request->target, &error), STATUS_OK);
    snprintf(request->cluster.name, sizeof request->cluster.name, "box");
    snprintf(request->cluster.accelerator.name, sizeof request->cluster.accelerator.name, "chip, \"fast\"");
    request->cluster.node.accelerators = 4;
    request->cluster.price_usd_per_accelerator_hour = 2;
    fixture->entries[0] = prediction((Mesh){.size = SIZES(1, 4, 1, 2)}, 1.0);
    fixture->entries[1] = prediction((Mesh){.size = SIZES(1, 8, 1, 1)}, 1.25);
    fixture->rejected[0] = (Rejection){{.mesh = {SIZES(8, 1, 1, 1)}, .micro_batch = 1, .grad_accum = 1, .seq = 4096},
                                       "memory",
                                       "does not fit by 1 GiB, \"really\""};
    fixture->rejected[1] = (Rejection){
        {.mesh = {SIZES(1, 1, 1, 8)}, .micro_batch = 1, .grad_accum = 1, .seq = 4096}, "legality", "tp=8 is refused"};
    fixture->result = (TuneResult){
        .request = request,
        .entries = fixture->entries,
        .entry_count = 2,
        .rejected = fixture->rejected,
        .rejected_count = 2,
        .best_reason = "the fastest of the plans that fit",
        .search = {.shapes = 4, .candidates = 9, .pruned = 3, .estimated = 6, .simulated = 2, .elapsed_s = 0.25}};
    arena_free(&none);
}

char *fixture_printed(const Fixture *fixture, FixturePrint print) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    cr_assert_not_null(out);
    Error error = {0};
    cr_assert_eq(print(fixture, out, &error), STATUS_OK, "%s", error.message);
    fclose(out);
    return text;
}
