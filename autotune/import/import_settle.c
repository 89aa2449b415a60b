// Resolves an imported config: settings from the command line, the axis that takes the rest of the world, the batch.
// Contradictions are reported in one sentence, with the product that does not match.

#include <string.h>

#include "autotune/import/import.h"
#include "sim/frameworks/axis_rules.h"

static void merge_one(Import *import, const char *option, int unsaid, int asked, int *said) {
    if (asked == unsaid) {
        return;
    }
    FIND_IF(*said != unsaid && *said != asked, import, FINDING_ASSUMED, NULL, "--%s replaces what the file says",
            option);
    *said = asked;
}

static void merge(Import *import, const ImportChoices *given) {
    static const PlanFieldId first[] = {PLAN_ZERO,      PLAN_RESHARD, PLAN_RECOMPUTE,  PLAN_CP_ROTATE,   PLAN_PRECISION,
                                        PLAN_ATTENTION, PLAN_FUSED,   PLAN_FP8_RECIPE, PLAN_REDUCE_DTYPE};
    ImportChoices *said = &import->said;
    PlanFieldId order[PLAN_FIELD_COUNT];
    merge_one(import, "world", 0, given->world, &said->world);
    merge_one(import, "seq", 0, given->seq, &said->seq);
    merge_one(import, "micro-batch", 0, given->micro_batch, &said->micro_batch);
    merge_one(import, "grad-accum", 0, given->grad_accum, &said->grad_accum);
    plan_fields_from(first, sizeof first / sizeof first[0], order);
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = order[i];
        merge_one(import, plan_fields[id].option.name, IMPORT_UNSAID, given->choice[id], &said->choice[id]);
    }
    if (given->global_batch > 0) {
        import->said.global_batch = given->global_batch;
        import->said.grad_accum = given->grad_accum;  // derived, unless given as well
    }
}

static void refuse(Import *import, const char *sentence) {
    import->refusal = sentence;
    import_find(import, FINDING_REFUSED, NULL, "%s", sentence);
}

// In 64 bits: a file may state more ranks than are possible.
static int64_t ranks_along(const ImportChoices *said, AxisMask axes) {
    int64_t ranks = 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        ranks *= axes & AXIS_BIT(axis) ? said->size[axis] : 1;
    }
    return ranks;
}

static const char *product_text(const Import *import) {
    const int *size = import->said.size;
    const char *text = "";
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if ((AXES_OWN & AXIS_BIT(axis)) && ((AXES_FIRST & AXIS_BIT(axis)) || size[axis] > 1)) {
            text = arena_format(import->arena, "%s%s%s %d", text, text[0] ? " x " : "", axis_names[axis], size[axis]);
        }
    }
    return text;
}

// The world size from its batch, where the file has all three numbers needed.
static int64_t world_of_batch(const ImportChoices *said) {
    const int64_t each = (int64_t)said->micro_batch * (said->grad_accum > 0 ? said->grad_accum : said->round_steps);
    const bool known = said->global_batch > 0 && each > 0 && said->global_batch % each == 0;
    return known ? said->global_batch / each * ranks_along(said, AXES_OWN & ~AXES_BATCH) : 0;
}

// Ranks that micro-batch, accumulation and batch leave for each of their data ranks are stages, where the script,
// not the file, has these.
static void settle_stages(Import *import) {
    ImportChoices *said = &import->said;
    const int64_t each = (int64_t)said->micro_batch * said->grad_accum;
    const int64_t data = each > 0 && said->global_batch % each == 0 ? said->global_batch / each : 0;
    if (!import->stages_beside || said->size[AXIS_PP] != 0 || data == 0 || said->world <= 0) {
        return;
    }
    const int64_t ranks = data * (said->size[AXIS_TP] > 0 ? said->size[AXIS_TP] : 1);
    if (said->world > ranks && said->world % ranks == 0) {
        said->size[AXIS_PP] = (int)(said->world / ranks);
        import_find(import, FINDING_TRAP, NULL,
                    "micro-batch %d x accumulation %d make the batch of %lld on %lld data ranks: the %d ranks are "
                    "taken as pp=%d, by %s; without it that batch is refused",
                    said->micro_batch, said->grad_accum, (long long)said->global_batch, (long long)data, said->world,
                    said->size[AXIS_PP], import->stages_beside);
    }
}

// Of its batch, or of its axes, but for the one that takes the rest.
static void assume_world(Import *import, int64_t product, bool has_rest) {
    ImportChoices *said = &import->said;
    const int64_t found = has_rest ? world_of_batch(said) : product;
    said->world = found > 0 && found <= MESH_MAX_WORLD ? (int)found : 0;
    FIND_IF(said->world > 0 && has_rest && said->round_steps > 0 && said->grad_accum == 0, import, FINDING_ASSUMED,
            NULL,
            "neither the file nor --world says how many ranks train: %d are assumed, on which one schedule "
            "of %d micro-batches of %d on each data rank is the global batch of %lld; fewer ranks run "
            "several schedules a step",
            said->world, said->round_steps, said->micro_batch, (long long)said->global_batch);
}

static void settle_mesh(Import *import) {
    ImportChoices *said = &import->said;
    int64_t product = 1;
    int rest = -1;
    settle_stages(import);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        said->size[axis] = said->size[axis] == 0 ? 1 : said->size[axis];
        if (said->size[axis] < 0) {
            rest = axis;
        } else if ((AXES_OWN & AXIS_BIT(axis)) && product <= MESH_MAX_WORLD) {
            product *= said->size[axis];
        }
    }
    if (product > MESH_MAX_WORLD) {
        refuse(import, arena_format(import->arena, "the sizes make more than %d ranks", MESH_MAX_WORLD));
        return;
    }
    if (said->world == 0) {
        assume_world(import, product, rest >= 0);
    }
    if (said->world == 0) {
        refuse(import, "neither the file nor --world says how many ranks train");
        return;
    }
    if (rest >= 0 && said->world % product != 0) {
        refuse(import, arena_format(import->arena, "the axes with a size make %lld, which does not divide %d ranks",
                                    (long long)product, said->world));
        return;
    }
    if (rest >= 0) {
        said->size[rest] = (int)(said->world / product);
    } else if (product != said->world) {
        refuse(import, arena_format(import->arena, "%s = %lld, and the world has %d ranks", product_text(import),
                                    (long long)product, said->world));
    }
}

static void assume_one(Import *import, int *number, const char *what, const char *option) {
    if (*number == 0) {
        *number = 1;
        import_find(import, FINDING_ASSUMED, NULL, "%s 1: the file does not hold it; say it with --%s", what, option);
    }
}

// The largest local batch of whole micro-batches, no larger than the file's, that divides a rank's part of the batch.
static int64_t local_batch_below(int64_t part, int micro_batch, int round_steps) {
    int64_t steps = round_steps;
    while (steps > 0 && part % (steps * micro_batch) != 0) {
        steps--;
    }
    return steps * micro_batch;
}

// A schedule has as many micro-steps as the file says: it runs as often as makes the batch.
static bool runs_schedules(const ImportChoices *said) {
    return said->round_steps > 0 && said->choice[PLAN_PP_ROUNDS] == IMPORT_UNSAID;
}

static void refuse_rounds(Import *import, int64_t ranks) {
    const ImportChoices *said = &import->said;
    const int64_t local = (int64_t)said->micro_batch * said->round_steps, batch = said->global_batch;
    const int64_t less =
        batch % ranks == 0 ? local_batch_below(batch / ranks, said->micro_batch, said->round_steps) : 0;
    const char *also = less > 0 ? arena_format(import->arena, ", or a local batch of %lld", (long long)less) : "";
    refuse(import, arena_format(import->arena,
                                "a global batch of %lld is no multiple of %lld, the local batch of %lld (a schedule of "
                                "%d micro-batches of %d) on each of %lld data ranks: use a global batch of %s%s",
                                (long long)batch, (long long)(local * ranks), (long long)local, said->round_steps,
                                said->micro_batch, (long long)ranks,
                                multiples_around(batch, local * ranks, import->arena), also));
}

static void settle_rounds(Import *import) {
    ImportChoices *said = &import->said;
    if (import->refusal || !runs_schedules(said)) {
        return;
    }
    const int64_t ranks = ranks_along(said, AXES_BATCH);
    const int rounds = said->grad_accum / said->round_steps, most = (int)plan_fields[PLAN_PP_ROUNDS].high;
    if (said->grad_accum % said->round_steps != 0) {
        refuse_rounds(import, ranks);
        return;
    }
    if (rounds > most) {
        const int64_t local = (int64_t)said->micro_batch * said->round_steps;
        import_refuse(import, NULL,
                      "a global batch of %lld runs the schedule %d times a step, and a plan holds 1 to %d of them: use "
                      "a global batch of %lld or less, or a larger local batch than %lld",
                      (long long)said->global_batch, rounds, most, (long long)(local * ranks * most), (long long)local);
        return;
    }
    said->choice[PLAN_PP_ROUNDS] = rounds;
}

static void refuse_batch(Import *import, int64_t each, bool derived) {
    const ImportChoices *said = &import->said;
    const int64_t batch = each * said->grad_accum, asked = said->global_batch;
    const char *use = derived             ? multiples_around(asked, each, import->arena)
                      : asked % each == 0 ? arena_format(import->arena, "%lld, or accumulation %lld", (long long)batch,
                                                         (long long)(asked / each))
                                          : arena_format(import->arena, "%lld", (long long)batch);
    refuse(import, arena_format(import->arena,
                                "micro-batch %d x dp_replicate %d x dp_shard %d x accumulation %d = %lld sequences, "
                                "and the global batch is %lld: use a global batch of %s",
                                said->micro_batch, said->size[AXIS_DP_REPLICATE], said->size[AXIS_DP_SHARD],
                                said->grad_accum, (long long)batch, (long long)asked, use));
}

// micro_batch x dp_replicate x dp_shard x grad_accum = global_batch: two of micro-batch, accumulation and batch give
// the third.
static void settle_batch(Import *import) {
    ImportChoices *said = &import->said;
    const int64_t ranks = ranks_along(said, AXES_BATCH);
    if (said->global_batch > 0 && said->micro_batch == 0 && said->grad_accum > 0) {
        const int64_t micro = said->global_batch / (ranks * said->grad_accum);
        said->micro_batch = micro > 0 ? (int)micro : 1;
    }
    assume_one(import, &said->micro_batch, "micro-batch", "micro-batch");
    const int64_t each = ranks * said->micro_batch;
    const bool derived = said->global_batch > 0 && said->grad_accum == 0;
    if (derived) {
        said->grad_accum = said->global_batch >= each ? (int)(said->global_batch / each) : 1;
    }
    assume_one(import, &said->grad_accum, "accumulation", "grad-accum");
    const int64_t batch = each * said->grad_accum;
    if (said->global_batch > 0 && said->global_batch != batch && derived && runs_schedules(said)) {
        refuse_rounds(import, ranks);
    } else if (said->global_batch > 0 && said->global_batch != batch) {
        refuse_batch(import, each, derived);
    }
    said->global_batch = batch;
    const int sharing = (int)ranks_along(said, AXES_OWN & ~AXES_BATCH);
    FIND_IF(sharing > 1, import, FINDING_TRAP, NULL,
            "the %d ranks of %scp x tp work on the same sequences: a step has %lld sequences, not the %lld of "
            "micro-batch x accumulation x world",
            sharing, ranks_along(said, AXES_STAGE) > 1 ? "pp x " : "", (long long)batch, (long long)batch * sharing);
}

// Accumulating with replicas reduced on every micro-step, or after each run of a schedule, pays for the all-reduce each
// time.
static void say_reductions(Import *import) {
    const Target *target = NULL;
    Error none = {0};
    const ImportChoices *said = &import->said;
    const bool each = said->choice[PLAN_GRAD_SYNC] == GRAD_SYNC_EACH;
    if (target_find(import->target, &target, &none) != STATUS_OK || (!each && !target->replicas_each_step) ||
        said->size[AXIS_DP_REPLICATE] == 1) {
        return;
    }
    const bool in_rounds = ranks_along(said, AXES_STAGE) > 1 && target->pp_rounds;
    const int times = in_rounds ? said->choice[PLAN_PP_ROUNDS] : said->grad_accum;
    FIND_IF(times > 1, import, FINDING_TRAP, NULL,
            "gradients are reduced over dp_replicate %d on every one of the %d %s, not once a step",
            said->size[AXIS_DP_REPLICATE], times, in_rounds ? "schedules" : "micro-steps");
}

void import_settle(Import *import, const ImportChoices *given) {
    merge(import, given);
    settle_mesh(import);
    if (!import->refusal) {
        settle_batch(import);
        settle_rounds(import);
        say_reductions(import);
    }
}

void import_plan(const Import *import, const TrainPlan *usual, TrainPlan *plan) {
    const ImportChoices *said = &import->said;
    *plan = *usual;
    memset(&plan->mesh.order, 0, sizeof plan->mesh.order);
    memcpy(plan->mesh.size, said->size, sizeof plan->mesh.size);
    plan->micro_batch = said->micro_batch;
    plan->grad_accum = said->grad_accum;
    plan->seq = said->seq > 0 ? said->seq : usual->seq;
    plan->pp_order = import->pp_order ? import->pp_order : usual->pp_order;
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (said->choice[id] != IMPORT_UNSAID) {
            plan_set(plan, (PlanFieldId)id, said->choice[id]);
        }
    }
    plan_canonical(plan);
}
