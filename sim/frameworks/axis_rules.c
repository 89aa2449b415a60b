// The rules of the axes, each with its numbers in one sentence (sim/SOURCES.md P1 and P3).

#include "sim/frameworks/axis_rules.h"

#include "sim/base/integer.h"
#include "sim/base/text.h"
#include "sim/frameworks/pp_groups.h"

// "1, 2, 4 or 8": the divisors of number up to the first sixteen.
static const char *divisors_text(Arena *arena, int64_t number) {
    enum { MAX_DIVISORS = 16, DIVISOR_BYTES = sizeof " or 2147483648" };
    char text[MAX_DIVISORS * DIVISOR_BYTES] = "";
    int divisors[MAX_DIVISORS];
    int count = 0;
    for (int divisor = 1; divisor <= number && count < MAX_DIVISORS; divisor++) {
        if (number % divisor == 0) {
            divisors[count++] = divisor;
        }
    }
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        used = text_put(text, sizeof text, used, i == 0 ? "" : i == count - 1 ? " or " : ", ");
        used = text_put_int(text, sizeof text, used, divisors[i]);
    }
    return arena_text(arena, text);
}

typedef struct Divisible {
    int size;
    const char *what;
} Divisible;

// Embedding and head are split over the vocabulary, except in Hugging Face's plan.
static bool splits_vocabulary_evenly(const Target *target) {
    return target->tp_flavour != TP_HF && !target->vocab_uneven;
}

// Of a layer: of each expert, unless ep spreads them whole, and of the shared ones.
static int feed_forward_columns(const ModelSpec *model, const TrainPlan *plan) {
    const Experts *experts = &model->experts;
    return experts->count == 0            ? model->ffn
           : plan->mesh.size[AXIS_EP] > 1 ? experts->shared_ffn
                                          : (int)gcd(experts->ffn, experts->shared_ffn);
}

static const char *check_tp(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int tp = plan->mesh.size[AXIS_TP];
    const bool shares = target->shares_keys && tp > model->kv_heads && tp % model->kv_heads == 0;
    const Divisible sizes[] = {{shares ? tp : model->kv_heads, "key-value heads"},
                               {model->heads, "attention heads"},
                               {feed_forward_columns(model, plan), "feed-forward columns"},
                               {target_vocab(target, model, tp), "vocabulary entries"}};
    const size_t count = splits_vocabulary_evenly(target) ? 4 : 3;
    size_t uneven = 0;
    while (uneven < count && sizes[uneven].size % tp == 0) {
        uneven++;
    }
    if (uneven == count) {
        return NULL;
    }
    int64_t common = 0;
    for (size_t i = 0; i < count; i++) {
        common = gcd(sizes[i].size, common);
    }
    return arena_format(arena, "tp=%d does not divide the model's %d %s: use tp %s", tp, sizes[uneven].size,
                        sizes[uneven].what, divisors_text(arena, common));
}

const char *multiples_around(int64_t number, int64_t step, Arena *arena) {
    const long long below = number - number % step, above = below + step;
    return below > 0 ? arena_format(arena, "%lld or %lld", below, above) : arena_format(arena, "%lld", above);
}

static const char *check_cp(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int cp = plan->mesh.size[AXIS_CP];
    const int seq = plan->seq;
    REFUSE_IF(arena, target->cp_full_attention && model->window > 0,
              "%s refuses cp=%d for %s, whose attention slides over %d tokens: its context parallelism has full causal "
              "attention only; use cp=1",
              target->name, cp, model->name, model->window);
    const int chunks = target->zigzag ? 2 * cp : cp;
    if (seq % chunks == 0) {
        return NULL;
    }
    const int64_t step = (int64_t)chunks * (target->seq_by_tp ? plan->mesh.size[AXIS_TP] : 1);
    return arena_format(arena, "seq=%d cannot be cut into the %d equal chunks of cp=%d: use seq %s, or a smaller cp",
                        seq, chunks, cp, multiples_around(seq, step, arena));
}

static const char *check_sp(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int sp = plan->mesh.size[AXIS_SP], tp = plan->mesh.size[AXIS_TP], cp = plan->mesh.size[AXIS_CP];
    const bool sinks = model->sinks && target->fp8_flavour != FP8_TRANSFORMER_ENGINE;  // its cuDNN has them in a2a
    REFUSE_IF(arena, sinks || (model->latent.kv_rank > 0 && !target->own_kernels),
              "sp=%d of %s (%s) is not predicted yet: use sp=1", sp,
              sinks ? "attention with sinks" : "latent attention", model->name);
    REFUSE_IF(arena, plan->precision == DTYPE_FP8 && target->fp8_flavour != FP8_TRANSFORMER_ENGINE,
              "sp=%d in fp8 of %s is not predicted yet: use precision bf16, or sp=1", sp, target->name);
    const int64_t heads = gcd(model->heads, model->kv_heads);
    REFUSE_IF(arena, heads % ((int64_t)sp * tp) != 0,
              "sp x tp = %lld does not divide the model's %d attention and %d key-value heads: use sp %s",
              (long long)sp * tp, model->heads, model->kv_heads,
              divisors_text(arena, heads % tp == 0 ? heads / tp : 1));
    REFUSE_IF(arena, plan->seq % ((int64_t)sp * cp * (cp > 1 ? 2 : 1)) != 0,
              "seq=%d cannot be cut into equal parts for sp x cp = %lld ranks: use seq %s", plan->seq,
              (long long)sp * cp, multiples_around(plan->seq, (int64_t)sp * cp * (cp > 1 ? 2 : 1), arena));
    return NULL;
}

// More chunks of layers than layers: fewer stages, or fewer chunks where no two stages could have as many.
static const char *refuse_few_layers(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int pp = plan->mesh.size[AXIS_PP], chunks = plan_chunks(plan), layers = model->layers;
    const char *each = chunks > 1 ? arena_format(arena, " with %d chunks of layers each", chunks) : "";
    const char *use = layers / chunks >= 2                   ? arena_format(arena, "pp %d or less", layers / chunks)
                      : pp_own_chunks(plan->pp_schedule) > 0 ? "pp=1"
                      : layers / pp >= 2 ? arena_format(arena, "virtual_stages %d or less", layers / pp)
                                         : "fewer of both";
    return arena_format(arena, "pp=%d%s needs %lld layers, %s has %d: use %s", pp, each, (long long)pp * chunks,
                        model->name, layers, use);
}

// An order that a file says is of one size.
static const char *check_order(const TrainPlan *plan, Arena *arena) {
    const PpOrder *order = plan->pp_order;
    if (plan->pp_schedule != PP_FILE) {
        return NULL;
    }
    REFUSE_IF(arena, !order, "pp_schedule=file is the order of a file of actions: use --pp-schedule FILE.csv");
    REFUSE_IF(arena,
              order->stages != plan->mesh.size[AXIS_PP] || order->chunks != plan->virtual_stages ||
                  order->micro_steps != plan_round_steps(plan),
              "%s is the order of %d ranks with %d chunks of layers each and %d micro-steps: use pp=%d, virtual_stages "
              "%d and grad_accum %d",
              order->path, order->stages, order->chunks, order->micro_steps, order->stages, order->chunks,
              order->micro_steps * plan_rounds(plan));
    return NULL;
}

// Each round reduces the gradients that its micro-steps have summed.
static const char *check_rounds(const ModelSpec *model, const TrainPlan *plan, const Target *target, Arena *arena) {
    const int rounds = plan_rounds(plan);
    REFUSE_IF(arena, rounds > 1 && !target->pp_rounds,
              "%s takes all micro-steps of a step through one schedule, pp_rounds=%d does not exist there: use "
              "pp_rounds 1",
              target->name, rounds);
    REFUSE_IF(arena, plan->grad_accum % rounds != 0,
              "pp_rounds=%d schedules have as many micro-steps each, and grad_accum=%d is no multiple of that: use "
              "grad_accum %s",
              rounds, plan->grad_accum, multiples_around(plan->grad_accum, rounds, arena));
    REFUSE_IF(arena, rounds > 1 && target_grad_sync(target, plan) != GRAD_SYNC_LAST,
              "pp_rounds=%d reduces gradients at the end of each schedule, grad_sync=%s on every micro-step: use "
              "grad_sync last",
              rounds, grad_sync_names[target_grad_sync(target, plan)]);
    REFUSE_IF(arena, rounds > 1 && target_reduces_late(target, plan),
              "pp_rounds=%d reduces gradients while the last backward of each schedule runs: use reduce_overlap on",
              rounds);
    REFUSE_IF(arena, rounds > 1 && target->ties_stages && model->tied_embeddings && !plan_is_folded(plan),
              "one table for embedding and head of two stages is reduced once a step, not after each of pp_rounds=%d "
              "schedules: use pp_rounds 1",
              rounds);
    REFUSE_IF(arena, rounds > 1 && target->gradient_buffer,
              "%s sums gradients in one buffer, which is reduced once a step: use pp_rounds 1", target->name);
    return NULL;
}

// Two stages are each other's next and previous one (Megatron-LM's arguments.py).
static const char *check_messages(const TrainPlan *plan, const Target *target, Arena *arena) {
    const bool waits = plan->p2p_waits && plan->pp_schedule == PP_INTERLEAVED;
    REFUSE_IF(arena, waits && !target->p2p_switch,
              "%s@%s has no switch for messages between stages: use p2p_overlap on", target->name, target->version);
    REFUSE_IF(arena, waits && mesh_stages(&plan->mesh) <= 2,
              "When interleaved schedule is used and p2p communication overlap is disabled, pipeline-model-parallel "
              "size should be greater than 2 to avoid having multiple p2p sends and recvs between same 2 ranks per "
              "communication batch: use p2p_overlap on, or pp 3 or more");
    return NULL;
}

// Folded, embedding and head are on one stage, and their gradients are due at different times.
static const char *check_schedule(const ModelSpec *model, const TrainPlan *plan, const Target *target, Arena *arena) {
    const int pp = plan->mesh.size[AXIS_PP], micro_steps = plan_round_steps(plan);
    const char *schedule = pp_schedule_names[plan->pp_schedule];
    REFUSE_IF(arena, plan_splits_backward(plan) && plan->precision == DTYPE_FP8,
              "pp_schedule=%s has gradients of weights apart, which is not predicted in fp8: use precision bf16",
              schedule);
    REFUSE_IF(arena,
              plan_is_folded(plan) && (model->tied_embeddings || target->root_unit) && micro_steps > 1 &&
                  target_grad_sync(target, plan) != GRAD_SYNC_LAST,
              "pp_schedule=%s has embedding and head, one unit here, at different times, and gradients are reduced on "
              "every micro-step: use grad_sync last",
              schedule);
    const char *word = plan_rounds(plan) > 1 ? "grad_accum / pp_rounds" : "grad_accum";
    const bool too_few = plan->pp_schedule == PP_DUALPIPEV && micro_steps < 2 * pp;
    REFUSE_IF(arena, too_few, "pp_schedule=%s needs at least 2 pp = %d micro-steps, %s is %d", schedule, 2 * pp, word,
              micro_steps);
    const char *messages = check_messages(plan, target, arena);
    return messages ? messages : target_refuse_group(target, plan, arena);
}

static const char *check_pp(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int pp = plan->mesh.size[AXIS_PP], chunks = plan_chunks(plan);
    REFUSE_IF(arena, !(target->pp_schedules & PP_BIT(plan->pp_schedule)),
              "%s has no pipelines with pp_schedule=%s: use pp_schedule %s", target->name,
              pp_schedule_names[plan->pp_schedule],
              target->pp_schedules & PP_BIT(PP_INTERLEAVED) ? "1f1b or interleaved" : "1f1b");
    const char *rounds = check_rounds(model, plan, target, arena);
    if (rounds) {
        return rounds;
    }
    const char *order = check_order(plan, arena);
    if (order) {
        return order;
    }
    REFUSE_IF(arena, model->tied_embeddings && !target->ties_stages,
              "%s has one table for embedding and head, and pp=%d would put them on different stages: use pp=1",
              model->name, pp);
    REFUSE_IF(arena, plan->pp_schedule == PP_INTERLEAVED && chunks < 2,
              "the interleaved schedule needs several chunks of layers on each stage: use virtual_stages 2 or more");
    const char *split = target_refuse_split(target, model, plan, arena);
    if (split) {
        return split;
    }
    const LayerRule rule = target_layer_rule(target, plan);
    const bool edges_count =
        rule >= LAYERS_WEIGHTED || (rule == LAYERS_EDGES_IF_UNEVEN && pp * chunks == model->layers + 2);
    if ((int64_t)pp * chunks > model->layers && !edges_count) {
        return refuse_few_layers(model, plan, arena);
    }
    const int ends = plan->pp_first < plan->pp_last ? plan->pp_first : plan->pp_last, even = model->layers / pp;
    const int fewest = (rule == LAYERS_BY_ENDS && ends < even ? ends : even) / chunks;
    REFUSE_IF(arena,
              plan->recompute == RECOMPUTE_FULL && plan->recompute_layers > 0 && plan->recompute_layers >= fewest,
              "recompute_layers=%d does not fit the %d layers of a %s: use less, or 0 for all", plan->recompute_layers,
              fewest, chunks > 1 ? "virtual stage" : "stage");
    return check_schedule(model, plan, target, arena);
}

// All that have both (Megatron-LM's arguments.py asserts it): tp ranks share out the tokens that go to experts.
static const char *check_ep_beside_tp(const Target *target, const ModelSpec *model, const TrainPlan *plan,
                                      Arena *arena) {
    const int ep = plan->mesh.size[AXIS_EP], tp = plan->mesh.size[AXIS_TP];
    REFUSE_IF(arena, target->own_kernels && model->experts.shared_gate,
              "ep=%d beside tp=%d with a gate on the shared expert (%s) is not run by %s yet: use tp=1, or ep=1", ep,
              tp, model->name, target->name);
    REFUSE_IF(arena, target_tp_flavour(target, plan) != TP_SP,
              "when using expert parallelism (ep=%d) and tensor parallelism (tp=%d), sequence parallelism must be "
              "used: use sequence_parallel target, tp=1 or ep=1",
              ep, tp);
    return NULL;
}

// Which axes ep takes its ranks from, and what is not predicted with it.
static const char *check_ep(const Target *target, const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    const int ep = plan->mesh.size[AXIS_EP], lent = mesh_group_size(&plan->mesh, axis_lenders[AXIS_EP]);
    const int experts = model->experts.count;
    REFUSE_IF(arena, experts == 0, "ep=%d spreads experts over ranks, and %s has none: use ep=1", ep, model->name);
    REFUSE_IF(arena, experts % ep != 0, "ep=%d does not divide the model's %d experts: use ep %s", ep, experts,
              divisors_text(arena, gcd(experts, lent)));
    REFUSE_IF(arena, !mesh_lends_evenly(&plan->mesh),
              "ep=%d takes its ranks from dp_shard x cp x tp, and does not divide their %d evenly: use ep %s", ep, lent,
              divisors_text(arena, gcd(experts, lent)));
    if (plan->mesh.size[AXIS_TP] > 1) {
        const char *reason = check_ep_beside_tp(target, model, plan, arena);
        if (reason) {
            return reason;
        }
    }
    REFUSE_IF(arena, plan->zero == 0 && target->shard_needs_fsdp,
              "ep=%d of whole replicas is not predicted of %s, whose FSDP shards experts over what ep leaves: use "
              "dp_shard or cp",
              ep, target->name);
    REFUSE_IF(arena, plan_has_adapters(plan),
              "adapters beside experts on other ranks are not predicted yet: use ep=1 for ep=%d", ep);
    return NULL;
}

const AxisRule axis_rules[AXIS_COUNT] = {
    [AXIS_PP] = check_pp, [AXIS_CP] = check_cp, [AXIS_SP] = check_sp, [AXIS_TP] = check_tp, [AXIS_EP] = check_ep};
