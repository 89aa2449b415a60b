// Sentences about a plan. Every product is written out, because that is where users go wrong.

#include "reports/format.h"

#include <string.h>

#include "autotune/explain/scaling.h"
#include "reports/memory_terms.h"
#include "sim/base/text.h"
#include "sim/frameworks/framework.h"
#include "sim/frameworks/target_choices.h"
#include "sim/step/held.h"

static const double MUCH_OF_THE_CORES = 0.15;  // below this, a step of twice the time has another cause

void format_case(const TuneRequest *request, FILE *out) {
    fprintf(out, "%s on %d x %s (%s), for %s %s", request->model.name, request->world,
            request->cluster.accelerator.name, request->cluster.name, request->target->name, request->target->version);
}

char *format_mesh(const Mesh *mesh, char out[FORMAT_BYTES]) {
    snprintf(out, FORMAT_BYTES, "%s", mesh_short_text(mesh, MESH_BUFFER));
    return out;
}

char *format_layout(const Mesh *mesh, char out[FORMAT_BYTES]) {
    format_mesh(mesh, out);
    if (!mesh_has_default_order(mesh)) {
        const size_t used = strlen(out);
        snprintf(out + used, FORMAT_BYTES - used, " by %s", mesh_order_text(mesh, MESH_BUFFER));
    }
    return out;
}

char *format_mesh_options(const Mesh *mesh, char out[FORMAT_BYTES]) {
    const bool usual = mesh_has_default_order(mesh);
    snprintf(out, FORMAT_BYTES, "--mesh %s%s%s", mesh_short_text(mesh, MESH_BUFFER), usual ? "" : " --rank-order ",
             usual ? "" : mesh_order_text(mesh, MESH_BUFFER));
    return out;
}

// Decided by the search along with what it tries.
static const uint64_t settled = PLAN_BIT(PLAN_RECOMPUTE_LAYERS) | PLAN_BIT(PLAN_RECOMPUTE_EVERY) |
                                PLAN_BIT(PLAN_RECOMPUTE_MODULES) | PLAN_BIT(PLAN_PP_FIRST) | PLAN_BIT(PLAN_PP_LAST) |
                                PLAN_BIT(PLAN_ETP);

// What tables, and those of the page, have columns for.
static const uint64_t in_tables = PLAN_BIT(PLAN_RECOMPUTE) | PLAN_BIT(PLAN_RECOMPUTE_LAYERS) |
                                  PLAN_BIT(PLAN_RECOMPUTE_EVERY) | PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_CP_ROTATE);
static const uint64_t in_page = PLAN_BIT(PLAN_RECOMPUTE) | PLAN_BIT(PLAN_RESHARD) | PLAN_BIT(PLAN_CP_ROTATE);

// Splits by both ends are said by both numbers, 0 too.
static bool is_unusual(const Target *target, const TrainPlan *plan, PlanFieldId id) {
    const bool end = id == PLAN_PP_FIRST || id == PLAN_PP_LAST, by_both = plan->pp_split > SPLIT_WEIGHTED;
    return (plan_fields[id].searched || (settled & PLAN_BIT(id))) && plan_field_matters(plan, id) &&
           (plan_get(plan, id) != target_usual(target, plan, id) || (end && by_both));
}

static char *unusual_choices(const Target *target, const TrainPlan *plan, uint64_t without, bool options,
                             char out[FORMAT_BYTES]) {
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        if (!(without & PLAN_BIT(id)) && is_unusual(target, plan, id) && used < FORMAT_BYTES) {
            used += (size_t)snprintf(out + used, FORMAT_BYTES - used, "%s%s %s",
                                     options     ? " --"
                                     : used == 0 ? ""
                                                 : ", ",
                                     options ? plan_fields[id].option.name : plan_field_key(id),
                                     plan_value_text(id, plan_get(plan, id), VALUE_BUFFER));
        }
    }
    return out;
}

char *format_choices(const Target *target, const TrainPlan *plan, char out[FORMAT_BYTES]) {
    return unusual_choices(target, plan, in_tables, false, out);
}

char *format_page_choices(const Target *target, const TrainPlan *plan, char out[FORMAT_BYTES]) {
    return unusual_choices(target, plan, in_page, true, out);
}

char *format_choice_options(const Target *target, const TrainPlan *plan, char out[FORMAT_BYTES]) {
    return unusual_choices(target, plan, 0, true, out);
}

static bool is_otherwise(const Target *target, const TrainPlan *from, const TrainPlan *to, PlanFieldId id) {
    const bool apart = id == PLAN_RECOMPUTE || id == PLAN_RECOMPUTE_LAYERS || id == PLAN_RECOMPUTE_EVERY;
    return !apart && plan_get(from, id) != plan_get(to, id) &&
           (id == PLAN_MICRO_BATCH || is_unusual(target, from, id) || is_unusual(target, to, id));
}

char *format_changes(const Target *target, const TrainPlan *from, const TrainPlan *to, char out[FORMAT_BYTES]) {
    char layout[FORMAT_BYTES], recompute[PLAN_RECOMPUTE_BYTES];
    size_t used = 0;
    out[0] = '\0';
    if (strcmp(format_layout(&from->mesh, FORMAT_BUFFER), format_layout(&to->mesh, layout)) != 0) {
        used += (size_t)snprintf(out, FORMAT_BYTES, "%s", layout);
    }
    if (strcmp(plan_recompute_text(from, RECOMPUTE_BUFFER), plan_recompute_text(to, recompute)) != 0) {
        used += (size_t)snprintf(out + used, FORMAT_BYTES - used, "%srecompute %s", used > 0 ? ", " : "", recompute);
    }
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        const PlanFieldId id = (PlanFieldId)i;
        if (is_otherwise(target, from, to, id) && used < FORMAT_BYTES) {
            const PlanField *field = &plan_fields[id];
            used += (size_t)snprintf(out + used, FORMAT_BYTES - used, "%s%s %s", used > 0 ? ", " : "",
                                     id == PLAN_MICRO_BATCH ? field->label : plan_field_key(id),
                                     plan_value_text(id, plan_get(to, id), VALUE_BUFFER));
        }
    }
    return out;
}

static const double near = 0.05;  // relative to the best's tokens per second

// By memory nothing is a tie: predicted bytes have no interval.
double tie_share(const TuneResult *result) {
    const Prediction *best = &result->entries[0];
    return result->request->objective != OBJECTIVE_MEMORY && best->step_high_s - best->step_low_s > near * best->step_s
               ? near
               : 0;
}

char *format_search(const SearchCounts *search, char out[FORMAT_BYTES]) {
    snprintf(out, FORMAT_BYTES,
             "%d choices: %d rejected, %d left; %d estimates, %d simulations and %d known from the store, in %.3f s",
             search->candidates, search->pruned, search->candidates - search->pruned, search->estimated,
             search->simulated, search->cached, search->elapsed_s);
    return out;
}

char *format_close_shapes(const TuneResult *result, char out[FORMAT_BYTES]) {
    const Prediction *best = &result->entries[0];
    const bool by_speed = result->request->objective != OBJECTIVE_MEMORY;
    int close = 0;
    for (int i = 1; i < result->entry_count && by_speed; i++) {
        close += result->entries[i].tokens_per_s > (1 - near) * best->tokens_per_s;
    }
    snprintf(out, FORMAT_BYTES, "%d other%s within 5 %%%s", close, close == 1 ? " is" : "s are",
             tie_share(result) > 0 ? ", too close to call" : "");
    out[0] = close > 0 ? out[0] : '\0';
    return out;
}

// The first entry without cp and tp, where the best has some: the cost of doing without them.
static void words_plainest(const TuneResult *result, FILE *out) {
    const TrainPlan *best = &result->entries[0].plan;
    for (int i = 1; i < result->entry_count && best->mesh.size[AXIS_CP] * best->mesh.size[AXIS_TP] > 1; i++) {
        const Prediction *entry = &result->entries[i];
        if (entry->plan.mesh.size[AXIS_CP] * entry->plan.mesh.size[AXIS_TP] == 1) {
            fprintf(out, "  without cp and tp: %s, place %d, %.1f %% fewer tokens per second\n",
                    format_mesh(&entry->plan.mesh, FORMAT_BUFFER), i + 1,
                    100 * (1 - entry->tokens_per_s / result->entries[0].tokens_per_s));
            return;
        }
    }
}

// Where the best fills the memory: the first entry that does not.
static void words_roomier(const TuneResult *result, FILE *out) {
    const double full = 0.95, roomy = 0.9, limit = result->request->memory_limit_bytes;
    for (int i = 1; i < result->entry_count && result->entries[0].memory.reserved_bytes > full * limit; i++) {
        const Prediction *entry = &result->entries[i];
        if (entry->memory.reserved_bytes <= roomy * limit) {
            fprintf(out, "  with a margin: %s, place %d, %.1f %% fewer tokens per second in %.0f %% of the memory\n",
                    format_mesh(&entry->plan.mesh, FORMAT_BUFFER), i + 1,
                    100 * (1 - entry->tokens_per_s / result->entries[0].tokens_per_s),
                    100 * entry->memory.reserved_bytes / limit);
            return;
        }
    }
}

void format_rivals(const TuneResult *result, FILE *out) {
    if (result->request->objective != OBJECTIVE_MEMORY) {
        words_plainest(result, out);
        words_roomier(result, out);
    }
}

const char *format_peak(const TrainPlan *plan) {
    return plan->precision == DTYPE_FP8 ? " of the peak in fp8" : "";
}

char *format_between(double middle_s, double low_s, double high_s, char out[FORMAT_BYTES]) {
    snprintf(out, FORMAT_BYTES, "%s (%s .. %s)", text_seconds(UNIT_BUFFER, middle_s), text_seconds(UNIT_BUFFER, low_s),
             text_seconds(UNIT_BUFFER, high_s));
    return out;
}

char *format_interval(const Prediction *prediction, char out[FORMAT_BYTES]) {
    return format_between(prediction->step_s, prediction->step_low_s, prediction->step_high_s, out);
}

char *format_rounds(const TrainPlan *plan, char out[FORMAT_BYTES]) {
    out[0] = '\0';
    if (plan_rounds(plan) > 1) {
        snprintf(out, FORMAT_BYTES, " (%d schedules of %d)", plan_rounds(plan), plan_round_steps(plan));
    }
    return out;
}

char *format_batch_in(const Target *target, const TrainPlan *plan, char out[FORMAT_BYTES]) {
    const Framework *framework = framework_of(target->name);
    out[0] = '\0';
    if (!framework || !framework->micro_batch) {
        return out;
    }
    const bool cut = plan_has_stages(plan) && framework->of_stages[0];
    const long long last = framework->accumulation_is_batch ? plan_global_batch(plan) : plan->grad_accum;
    int used = snprintf(out, FORMAT_BYTES, "in %s: %s %d, ", target->name,
                        cut ? framework->of_stages[0] : framework->micro_batch, plan->micro_batch);
    if (cut) {
        used += snprintf(out + used, (size_t)(FORMAT_BYTES - used), "%s %lld, ", framework->of_stages[1],
                         (long long)plan->micro_batch * plan_round_steps(plan));
    }
    snprintf(out + used, (size_t)(FORMAT_BYTES - used), "%s %lld", framework->accumulation, last);
    return out;
}

static void words_batch_keys(const Target *target, const TrainPlan *plan, FILE *out) {
    const Framework *framework = framework_of(target->name);
    char batch[FORMAT_BYTES];
    if (format_batch_in(target, plan, batch)[0]) {
        fprintf(out, "  %s\n", batch);
    }
    if (plan->fused == FUSED_COMPILED && target->compiles && framework && framework->compile) {
        fprintf(out, "  the layers are compiled: %s\n", framework->compile);
    }
    if (plan->loss == LOSS_FUSED && framework && framework->fuse_loss) {
        fprintf(out, "  head and loss are one kernel, so that no logits are kept: %s\n", framework->fuse_loss);
    }
    if (plan->grad_sync == GRAD_SYNC_EACH && framework && framework->sync_each) {
        fprintf(out, "  gradients are reduced on every micro-step, so that none is kept whole: %s\n",
                framework->sync_each);
    }
}

void format_batch(const Target *target, const TrainPlan *plan, FILE *out) {
    const AxisMask named = mesh_named_axes(&plan->mesh);
    const int sharing = mesh_group_size(&plan->mesh, AXES_OWN & ~AXES_BATCH);
    fprintf(out, "  global batch %lld sequences (%s tokens) = micro-batch %d", (long long)plan_global_batch(plan),
            text_count(UNIT_BUFFER, (double)plan_tokens_per_step(plan)), plan->micro_batch);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (named & AXES_BATCH & AXIS_BIT(axis)) {
            fprintf(out, " x %d %s", plan->mesh.size[axis], axis_names[axis]);
        }
    }
    fprintf(out, " x %d accumulation%s\n", plan->grad_accum, format_rounds(plan, FORMAT_BUFFER));
    if (sharing == 1) {
        fprintf(out, "  every rank works on its own sequences\n");
    } else {
        fprintf(out, "  the %d ranks that share a (%s) coordinate", sharing,
                axes_text(named & AXES_BATCH, ", ", AXES_BUFFER));
        const char *before = " (";
        for (int axis = 0; axis < AXIS_COUNT; axis++) {
            if (named & AXES_OWN & ~AXES_BATCH & AXIS_BIT(axis)) {
                fprintf(out, "%s%s %d", before, axis_names[axis], plan->mesh.size[axis]);
                before = " x ";
            }
        }
        fprintf(out, ") work on the same sequences: micro-batch x accumulation x world, %lld, is not the batch\n",
                (long long)plan_global_batch(plan) * sharing);
    }
    words_batch_keys(target, plan, out);
}

// Whose traffic the axis carries. Expert shards travel as far as these.
static AxisMask traffic_ranks(const TrainPlan *plan, Axis axis) {
    const bool shards = AXES_SHARD & AXIS_BIT(axis);
    const int cut = plan_expert_tp(plan);
    return axis == AXIS_EP && plan->mesh.size[AXIS_EP] > 1 && cut > 1
               ? axes_nearest(AXES_STAGE_RANKS, cut * plan->mesh.size[AXIS_EP])
               : AXIS_BIT(axis) | (shards ? mesh_real_axes(&plan->mesh, AXES_SEQUENCE) : 0);
}

void format_network(const TrainPlan *plan, int ranks_per_node, FILE *out) {
    const Mesh *mesh = &plan->mesh;
    for (int axis = AXIS_COUNT - 1; axis >= 0; axis--) {
        const AxisMask axes = traffic_ranks(plan, (Axis)axis);
        const GroupPlacement group = mesh_group_placement(mesh, axes, ranks_per_node);
        if (group.size == 1) {
            continue;
        }
        char name[AXES_TEXT_BYTES];
        axes_text(axes_nearest_ranks(axes) > 0 ? AXIS_BIT(axis) : axes, " x ", name);
        const char *cut = axes_nearest_ranks(axes) > 0 ? "etp x " : "";
        if (group.nodes > 1) {
            fprintf(out, "  %s%s groups (%d ranks) cross node borders: each touches %d nodes\n", cut, name, group.size,
                    group.nodes);
        } else {
            fprintf(out, "  %s%s groups (%d ranks) stay inside a node\n", cut, name, group.size);
        }
    }
    if (mesh_world(mesh) == 1) {
        fprintf(out, "  one rank, no communication\n");
    }
}

void format_exposed(const double exposed_s[AXIS_COUNT], FILE *out) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (exposed_s[axis] > 0) {
            fprintf(out, ", exposed %s %s", axis_names[axis], text_seconds(UNIT_BUFFER, exposed_s[axis]));
        }
    }
}

void format_time(const Prediction *prediction, FILE *out) {
    fprintf(out, "  compute %s", text_seconds(UNIT_BUFFER, prediction->compute_s));
    format_exposed(prediction->exposed_s, out);
    fprintf(out, ", optimizer %s", text_seconds(UNIT_BUFFER, prediction->optimizer_s));
    if (prediction->bubble_s > 0) {
        fprintf(out, ", bubble %s", text_seconds(UNIT_BUFFER, prediction->bubble_s));
    }
    fprintf(out, ", overhead %s\n", text_seconds(UNIT_BUFFER, prediction->overhead_s));
}

// Where the target allocates buffers for it: part of reserved memory, in addition to live bytes.
static void words_reduced_by(const TuneRequest *request, const TrainPlan *plan, FILE *out) {
    const double each = target_reduce_bucket(request->target, &request->model, plan);
    const double all = target_reduce_buffers(request->target, &request->model, plan);
    if (each > 0) {
        fprintf(out, "  of it %s hold gradients on their way to be reduced: %.0f x %.0f elements\n",
                text_bytes(UNIT_BUFFER, all * dtype_bytes(plan_activation_dtype(plan))), all / each, each);
    }
}

// "0..14: 8, 15: 6": adjacent stages that have the same text share an entry.
static void words_by_stage(const char *const *texts, int stages, const char *unit, FILE *out) {
    for (int from = 0, end; from < stages; from = end) {
        for (end = from + 1; end < stages && strcmp(texts[end], texts[from]) == 0; end++) {
        }
        fputs(from == 0 ? " " : ", ", out);
        fprintf(out, "%d", from);
        if (end > from + 1) {
            fprintf(out, "..%d", end - 1);
        }
        fprintf(out, ": %s%s", texts[from], from == 0 ? unit : "");
    }
    fputc('\n', out);
}

static void words_stages(const Prediction *prediction, const TuneRequest *request, FILE *out) {
    const MemoryBreakdown *memory = &prediction->memory;
    const TrainPlan *plan = &prediction->plan;
    Arena arena = {0};
    const char **layers = ARENA_ARRAY(&arena, const char *, memory->stages);
    const char **bytes = ARENA_ARRAY(&arena, const char *, memory->stages);
    for (int stage = 0; stage < memory->stages; stage++) {
        const StageLayers held =
            stage_layers(&request->model, plan, request->target, plan_is_folded(plan), stage, &arena);
        layers[stage] = arena_format(&arena, "%d", held.layers);
        bytes[stage] = arena_text(&arena, text_bytes(UNIT_BUFFER, memory->by_stage[stage]));
    }
    if (memory->stages > 0) {
        fputs("  stages", out);
        words_by_stage(layers, memory->stages, " layers", out);
        fputs("  reserved by stage", out);
        words_by_stage(bytes, memory->stages, "", out);
    }
    arena_free(&arena);
}

void format_memory(const Prediction *prediction, const TuneRequest *request, FILE *out) {
    const MemoryBreakdown *memory = &prediction->memory;
    MemoryTerm terms[MEMORY_TERMS];
    memory_terms(memory, terms);
    fprintf(out, "  peak %s (%s) = ", text_bytes(UNIT_BUFFER, memory->peak_bytes), memory->peak_phase);
    const char *plus = "";
    for (int i = 0; i < MEMORY_TERMS; i++) {
        if (terms[i].bytes > 0) {
            fprintf(out, "%s%s %s", plus, terms[i].words, text_bytes(UNIT_BUFFER, terms[i].bytes));
            plus = " + ";
        }
    }
    fprintf(out, "\n  reserved %s", text_bytes(UNIT_BUFFER, memory->reserved_bytes));
    fprintf(out, " of %s%s; largest buffer at the peak: %s", text_bytes(UNIT_BUFFER, request->memory_limit_bytes),
            memory->reserved_bytes > request->memory_limit_bytes ? ", does not fit" : "", memory->top_name);
    fprintf(out, " %s\n", text_bytes(UNIT_BUFFER, memory->top_bytes));
    words_reduced_by(request, &prediction->plan, out);
    words_stages(prediction, request, out);
    if (memory->host_bytes > 0) {
        fprintf(out, "  on the host %s per accelerator (offload %s)\n", text_bytes(UNIT_BUFFER, memory->host_bytes),
                offload_names[prediction->plan.offload]);
    }
}

void format_assumptions(const TuneRequest *request, FILE *out) {
    fprintf(out, "\nAssumed\n");
    for (int i = 0; i < request->assumption_count; i++) {
        fprintf(out, "  %s\n", request->assumptions[i]);
    }
}

void format_far_off(double measured_s, double predicted_s, const char *profile, const CoreUse *use, FILE *out) {
    if (predicted_s <= 0 || measured_s <= 2 * predicted_s) {
        return;
    }
    fprintf(out, "%.1f times the prediction: ", measured_s / predicted_s);
    if (use->others > MUCH_OF_THE_CORES) {
        fprintf(out, "others used %.0f %% of this machine's %d cores meanwhile; measure again when they are idle\n",
                100 * use->others, use->cores);
    } else if (use->ranks > use->cores && use->cores > 0) {
        fprintf(out,
                "%d ranks share the %d cores of this machine (ndtune probe --world %d --out here.json, then --cluster "
                "here.json)\n",
                use->ranks, use->cores, use->ranks);
    } else {
        fprintf(out,
                "this machine is not the one of profile %s (ndtune probe --out here.json, then --cluster here.json)\n",
                profile);
    }
}

char *format_duration(double seconds, char out[FORMAT_BYTES]) {
    const double hour = 3600, day = 24 * hour;
    if (seconds >= day) {
        snprintf(out, FORMAT_BYTES, "%.1f days", seconds / day);
    } else if (seconds >= hour) {
        snprintf(out, FORMAT_BYTES, "%.1f hours", seconds / hour);
    } else {
        snprintf(out, FORMAT_BYTES, "%.0f s", seconds);
    }
    return out;
}

char *format_training_text(const TuneRequest *request, const Prediction *prediction, char out[FORMAT_BYTES]) {
    out[0] = '\0';
    if (request->tokens <= 0 || prediction->tokens_per_s <= 0) {
        return out;
    }
    char tokens[TEXT_UNIT_BYTES], time[FORMAT_BYTES];
    const double usd = scaling_usd(request, prediction, request->tokens);
    format_duration(scaling_seconds(prediction, request->tokens), time);
    text_count(tokens, request->tokens);
    if (usd > 0) {
        snprintf(out, FORMAT_BYTES, "%s tokens take %.32s and $%.0f", tokens, time, usd);
    } else {
        snprintf(out, FORMAT_BYTES,
                 "%s tokens take %.32s; no price is known for %s: --set price=USD_PER_ACCELERATOR_HOUR", tokens, time,
                 request->cluster.name);
    }
    return out;
}

void format_training(const TuneRequest *request, const Prediction *prediction, FILE *out) {
    char text[FORMAT_BYTES];
    if (*format_training_text(request, prediction, text)) {
        fprintf(out, "  %s\n", text);
    }
}

Baseline baseline_rival(const TuneResult *result, const Mesh *wanted) {
    for (int i = 0; i < result->entry_count; i++) {
        const Prediction *entry = &result->entries[i];
        if (mesh_same_shape(&entry->plan.mesh, wanted)) {
            return (Baseline){entry, i + 1, result->entries[0].tokens_per_s / entry->tokens_per_s - 1, NULL};
        }
    }
    for (int i = 0; i < result->rejected_count; i++) {
        if (mesh_same_shape(&result->rejected[i].plan.mesh, wanted)) {
            return (Baseline){.reason = result->rejected[i].reason};
        }
    }
    return (Baseline){0};
}

Baseline baseline_chosen(const TuneResult *result) {
    return baseline_rival(result, &result->request->baseline);
}
