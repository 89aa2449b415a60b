// What was asked about pipelines, whatever the shape: a choice that no pipeline of the target has, or that goes with
// another one, would be dropped in silence where the shape has no stages.

#include "autotune/request/request_internal.h"
#include "sim/base/text.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/target_choices.h"

static bool is_said(const Builder *builder, PlanFieldId id) {
    return builder->asked->choices[id] && builder->request->asked[id] != TUNE_ANY;
}

static Error *about_choice(Builder *builder, PlanFieldId id, Error *error) {
    return about(builder->asked, ASKED_CHOICE + (int)id, error);
}

static bool has_pipelines(const Framework *framework) {
    return framework->has_pipelines;
}

static Status refuse_without(Builder *builder, PlanFieldId id, Error *error) {
    const Target *target = builder->request->target;
    char names[ERROR_HINT_BYTES];
    error_set(about_choice(builder, id, error), STATUS_USAGE,
              "--%s is of pipelines, and %s@%s is not predicted with any%s%s", plan_fields[id].option.name,
              target->name, target->version, target->stages_note ? ": " : " here",
              target->stages_note ? target->stages_note : "");
    return error_hint(error, "leave it out, or --target %s", framework_names(has_pipelines, names, sizeof names));
}

// A file of actions is refused with its plan.
static Status check_schedule(Builder *builder, Error *error) {
    const Target *target = builder->request->target;
    const int schedule = builder->request->asked[PLAN_PP_SCHEDULE];
    if (!is_said(builder, PLAN_PP_SCHEDULE) || schedule == PP_FILE || target->pp_schedules & PP_BIT(schedule)) {
        return STATUS_OK;
    }
    error_set(about_choice(builder, PLAN_PP_SCHEDULE, error), STATUS_USAGE,
              "%s has no pipelines with the schedule %s: it has %s", target->name, pp_schedule_names[schedule],
              text_of_bits(pp_schedule_names, target->pp_schedules & ~PP_BIT(PP_FILE), builder->arena));
    return error_hint(error, "--pp-schedule %s",
                      text_of_bits(pp_schedule_names, target->pp_schedules & ~PP_BIT(PP_FILE), builder->arena));
}

// The smallest pipeline, by 1F1B and as asked: refused by the framework as asked alone, no shape can have the schedule.
static Status check_kernels(Builder *builder, Error *error) {
    const TuneRequest *request = builder->request;
    const Framework *framework = framework_of(request->target->name);
    if (builder->defaults->single_plan || !is_said(builder, PLAN_PP_SCHEDULE) || !framework || !framework->refuse ||
        request->asked[PLAN_FUSED] == TUNE_ANY) {
        return STATUS_OK;
    }
    Mesh mesh = mesh_of_one();
    TrainPlan plan, other;
    mesh.size[AXIS_PP] = 2;
    request_plan(request, &mesh, &plan);
    other = plan;
    other.pp_schedule = PP_1F1B;
    const char *reason = framework->refuse(request->target, &request->model, &plan, builder->arena);
    const bool own = reason && !framework->refuse(request->target, &request->model, &other, builder->arena);
    FAIL_IF(own, about_choice(builder, PLAN_PP_SCHEDULE, error), STATUS_USAGE, "%s", reason);
    return STATUS_OK;
}

static Status check_chunks(Builder *builder, Error *error) {
    const TuneRequest *request = builder->request;
    const unsigned has = request->target->pp_schedules & (PP_BIT(PP_INTERLEAVED) | PP_BIT(PP_ZERO_BUBBLE));
    const int chunks = request->asked[PLAN_VIRTUAL_STAGES], schedule = request->asked[PLAN_PP_SCHEDULE];
    const bool open = schedule == TUNE_ANY && !builder->defaults->single_plan;
    if (!is_said(builder, PLAN_VIRTUAL_STAGES)) {
        return STATUS_OK;
    }
    FAIL_IF(schedule == PP_INTERLEAVED && chunks < 2, about_choice(builder, PLAN_VIRTUAL_STAGES, error), STATUS_USAGE,
            "the interleaved schedule has several chunks of layers on each stage: use --virtual-stages 2 or more");
    const int own = pp_own_chunks(schedule == TUNE_ANY ? PP_1F1B : (PpSchedule)schedule);
    const bool some = open && chunks > 1 && has;
    if (own == 0 || chunks == own || some) {
        return STATUS_OK;
    }
    about_choice(builder, PLAN_VIRTUAL_STAGES, error);
    FAIL_IF(!has, error, STATUS_USAGE, "%s has one chunk of layers on each stage, not %d: leave out --virtual-stages",
            request->target->name, chunks);
    error_set(error, STATUS_USAGE, "--virtual-stages %d goes with --pp-schedule %s: %s has %d chunk%s on each stage",
              chunks, text_of_bits(pp_schedule_names, has, builder->arena),
              pp_schedule_names[schedule == TUNE_ANY ? PP_1F1B : schedule], own, own == 1 ? "" : "s");
    return error_hint(error, "--pp-schedule %s", text_of_bits(pp_schedule_names, has, builder->arena));
}

static Status check_split(Builder *builder, Error *error) {
    const TuneRequest *request = builder->request;
    const Target *target = request->target;
    const int split = request->asked[PLAN_PP_SPLIT];
    const bool first = is_said(builder, PLAN_PP_FIRST), last = is_said(builder, PLAN_PP_LAST);
    const PlanFieldId said = first ? PLAN_PP_FIRST : PLAN_PP_LAST;
    const unsigned has = target->splits | PP_BIT(SPLIT_TARGET);
    FAIL_IF(split != TUNE_ANY && !(has & PP_BIT(split)), about_choice(builder, PLAN_PP_SPLIT, error), STATUS_USAGE,
            "%s has no pipelines with the split %s: use --pp-split %s", target->name, pp_split_names[split],
            text_of_bits(pp_split_names, has, builder->arena));
    const unsigned counted = has & (PP_BIT(SPLIT_WEIGHTED) | PP_BIT(SPLIT_ENDS) | PP_BIT(SPLIT_CHUNKS));
    if (first || last) {
        about_choice(builder, said, error);
        FAIL_IF(!counted, error, STATUS_USAGE, "--%s is of splits by numbers, which %s has none of: leave it out",
                plan_fields[said].option.name, target->name);
        FAIL_IF(split == TUNE_ANY || split < SPLIT_WEIGHTED, error, STATUS_USAGE,
                "--%s goes with --pp-split %s, which says what it counts", plan_fields[said].option.name,
                text_of_bits(pp_split_names, counted, builder->arena));
    }
    const bool whole = split == SPLIT_ENDS || split == SPLIT_CHUNKS;
    const bool alone = whole && (builder->defaults->single_plan ? !first || !last : first != last);
    FAIL_IF(alone, about_choice(builder, PLAN_PP_SPLIT, error), STATUS_USAGE,
            "--pp-split %s needs both numbers, the layers of the first and of the last %s: give --pp-first N and "
            "--pp-last N",
            pp_split_names[split], split == SPLIT_ENDS ? "stage" : "chunk");
    FAIL_IF(split == SPLIT_WEIGHTED && builder->defaults->single_plan && !first && !last,
            about_choice(builder, PLAN_PP_SPLIT, error), STATUS_USAGE,
            "--pp-split weighted needs a number, as how many layers the embedding or the head counts: give --pp-first "
            "N or --pp-last N");
    return STATUS_OK;
}

// ---- numbers of layers that no pipeline can have

// Why no number of chunks lets this many stages have the plan's numbers; NULL: one does.
static const char *refuse_stages(const TuneRequest *request, TrainPlan plan, int stages, Arena *arena) {
    const int asked = request->asked[PLAN_VIRTUAL_STAGES], schedule = request->asked[PLAN_PP_SCHEDULE];
    const bool open = schedule == TUNE_ANY, looped = request->target->pp_schedules & PP_BIT(PP_INTERLEAVED);
    const int own = open ? !looped : pp_own_chunks((PpSchedule)schedule);  // 0: any number
    const int least = asked != TUNE_ANY ? asked : own > 0 ? own : open ? 1 : 2;
    const int most = asked != TUNE_ANY || own > 0 ? least : request->model.layers / stages;
    const char *first = NULL;
    plan.mesh.size[AXIS_PP] = stages;
    for (int chunks = least; chunks == least || chunks <= most; chunks++) {
        plan.virtual_stages = chunks;
        plan.pp_schedule = !open ? (PpSchedule)schedule : chunks > 1 ? PP_INTERLEAVED : PP_1F1B;
        const char *reason = target_refuse_split(request->target, &request->model, &plan, arena);
        if (!reason) {
            return NULL;
        }
        first = first ? first : reason;
    }
    return first;
}

// The same of all numbers of stages that divide `ranks`; 0: of all.
static const char *refuse_numbers(const TuneRequest *request, const TrainPlan *plan, int ranks, Arena *arena) {
    const char *first = NULL;
    for (int stages = 2; stages <= request->model.layers; stages++) {
        const char *reason = ranks == 0 || ranks % stages == 0 ? refuse_stages(request, *plan, stages, arena) : first;
        if (!reason && (ranks == 0 || ranks % stages == 0)) {
            return NULL;
        }
        first = first ? first : reason;
    }
    return first;
}

// The numbers next to the plan's that some pipeline can have; false: there are none.
static bool find_numbers(const TuneRequest *request, TrainPlan *plan) {
    const int layers = request->model.layers, first = plan->pp_first, last = plan->pp_last;
    Arena tried = {0};
    bool found = false;
    for (int away = 1; away <= first + last + layers && !found; away++) {
        for (int i = -away; i <= away && !found; i++) {
            const int rest = away - (i < 0 ? -i : i);
            for (int sign = -1; sign <= 1 && !found; sign += 2) {
                plan->pp_first = first + sign * rest;
                plan->pp_last = last + i;
                found = plan->pp_first >= 0 && plan->pp_last >= 0 && plan->pp_first + plan->pp_last <= layers &&
                        !refuse_numbers(request, plan, request->world, &tried);
            }
        }
    }
    arena_free(&tried);
    return found;
}

// Else no shape would have stages, without a word.
static Status check_numbers(Builder *builder, Error *error) {
    const TuneRequest *request = builder->request;
    const int split = request->asked[PLAN_PP_SPLIT], *asked = request->asked;
    if (builder->defaults->single_plan || split == TUNE_ANY || split < SPLIT_WEIGHTED ||
        (!is_said(builder, PLAN_PP_FIRST) && !is_said(builder, PLAN_PP_LAST))) {
        return STATUS_OK;
    }
    TrainPlan plan = {.mesh = mesh_of_one(), .pp_split = (PpSplit)split, .grad_accum = 1};
    plan.pp_first = asked[PLAN_PP_FIRST] == TUNE_ANY ? 0 : asked[PLAN_PP_FIRST];
    plan.pp_last = asked[PLAN_PP_LAST] == TUNE_ANY ? 0 : asked[PLAN_PP_LAST];
    const char *never = refuse_numbers(request, &plan, 0, builder->arena);
    const char *here = never ? never : refuse_numbers(request, &plan, request->world, builder->arena);
    if (!never && here) {
        assume(builder, "no shape of %d ranks has stages: %s", request->world, here);
    }
    if (!never) {
        return STATUS_OK;
    }
    about_choice(builder, is_said(builder, PLAN_PP_FIRST) ? PLAN_PP_FIRST : PLAN_PP_LAST, error);
    error_set(error, STATUS_USAGE, "no pipeline has --pp-split %s with these numbers: %s", pp_split_names[split],
              never);
    return find_numbers(request, &plan) ? error_hint(error, "--pp-first %d --pp-last %d", plan.pp_first, plan.pp_last)
                                        : STATUS_USAGE;
}

// As said, or as a search may choose.
static bool may_interleave(const Builder *builder) {
    const int schedule = builder->request->asked[PLAN_PP_SCHEDULE];
    return schedule == PP_INTERLEAVED || (schedule == TUNE_ANY && !builder->defaults->single_plan);
}

static Status check_group(Builder *builder, Error *error) {
    const TuneRequest *request = builder->request;
    if (!is_said(builder, PLAN_PP_GROUP) || request->asked[PLAN_PP_GROUP] == 0) {
        return STATUS_OK;
    }
    about_choice(builder, PLAN_PP_GROUP, error);
    FAIL_IF(!(request->target->pp_schedules & PP_BIT(PP_INTERLEAVED)), error, STATUS_USAGE,
            "--pp-group is of the interleaved schedule, which %s has not: leave it out", request->target->name);
    const bool chosen = builder->defaults->single_plan || target_has_choice(request->target, PLAN_PP_GROUP);
    FAIL_IF(!chosen, error, STATUS_USAGE,  // one plan may say the target's own, as an answer does
            "%s has groups of micro-steps of its own size: leave out --pp-group", request->target->name);
    FAIL_IF(!may_interleave(builder), error, STATUS_USAGE, "--pp-group goes with --pp-schedule interleaved");
    return STATUS_OK;
}

static Status check_messages(Builder *builder, Error *error) {
    const TuneRequest *request = builder->request;
    if (!is_said(builder, PLAN_P2P_OVERLAP) || !request->asked[PLAN_P2P_OVERLAP]) {
        return STATUS_OK;
    }
    about_choice(builder, PLAN_P2P_OVERLAP, error);
    FAIL_IF(!target_has_choice(request->target, PLAN_P2P_OVERLAP), error, STATUS_USAGE,
            "%s has no switch for messages between stages: leave out --p2p-overlap", request->target->name);
    FAIL_IF(!may_interleave(builder), error, STATUS_USAGE,
            "--p2p-overlap goes with --pp-schedule interleaved: others always wait");
    return STATUS_OK;
}

static Status check_rounds(Builder *builder, Error *error) {
    const TuneRequest *request = builder->request;
    if (!is_said(builder, PLAN_PP_ROUNDS) || request->asked[PLAN_PP_ROUNDS] <= 1 || request->target->pp_rounds) {
        return STATUS_OK;
    }
    about_choice(builder, PLAN_PP_ROUNDS, error);
    return error_set(error, STATUS_USAGE,
                     "%s takes all micro-steps of a step through one schedule: leave out --pp-rounds",
                     request->target->name);
}

Status check_stages(Builder *builder, Error *error) {
    static const PlanFieldId of_stages[] = {PLAN_PP_SCHEDULE, PLAN_VIRTUAL_STAGES, PLAN_PP_SPLIT,  PLAN_PP_FIRST,
                                            PLAN_PP_LAST,     PLAN_PP_GROUP,       PLAN_PP_ROUNDS, PLAN_P2P_OVERLAP};
    for (size_t i = 0; i < sizeof of_stages / sizeof of_stages[0]; i++) {
        if (is_said(builder, of_stages[i]) && !(builder->request->target->axes & AXES_STAGE)) {
            return refuse_without(builder, of_stages[i], error);
        }
        if (is_said(builder, of_stages[i]) && builder->defaults->single_plan &&
            !mesh_has_stages(&builder->request->mesh)) {
            assume(builder, "--%s changes nothing: it is of pipelines, and pp is 1",
                   plan_fields[of_stages[i]].option.name);
        }
    }
    TRY(check_schedule(builder, error));
    TRY(check_chunks(builder, error));
    TRY(check_group(builder, error));
    TRY(check_rounds(builder, error));
    TRY(check_messages(builder, error));
    TRY(check_kernels(builder, error));
    TRY(check_split(builder, error));
    return check_numbers(builder, error);
}
