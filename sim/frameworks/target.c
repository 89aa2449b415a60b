// Finding a row of the capability table by "name" or "name@version", and its defaults.

#include "sim/frameworks/framework.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/base/text.h"

enum { MAX_TARGETS = 64, NAME_BYTES = 64 };

// "one@1.14, one@1.13": every row of that name.
static void list_rows(const char *name, char *out, size_t bytes) {
    int count = 0;
    const Target *table = target_table(&count);
    out[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (text_same_word(name, table[i].name)) {
            const size_t used = strlen(out);
            snprintf(out + used, bytes - used, "%s%s@%s", used == 0 ? "" : ", ", table[i].name, table[i].version);
        }
    }
}

// "one, other": the rows of a name stand together.
static void list_names(char *out, size_t bytes) {
    int count = 0;
    const Target *table = target_table(&count);
    size_t used = 0;
    for (int i = 0; i < count && used < bytes; i++) {
        if (i == 0 || strcmp(table[i].name, table[i - 1].name) != 0) {
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used == 0 ? "" : ", ", table[i].name);
        }
    }
}

// But for case and what stands between the letters.
static bool is_spelled(const char *text, const char *word) {
    static const char between[] = "-_ ";
    text += strspn(text, between);
    word += strspn(word, between);
    while (*text && tolower((unsigned char)*text) == tolower((unsigned char)*word)) {
        text += 1 + strspn(text + 1, between);
        word += 1 + strspn(word + 1, between);
    }
    return *text == *word;
}

static const FrameworkSynonym *synonym_of(const Framework *framework, const char *word) {
    return framework_synonym(framework, word, is_spelled);
}

// What the frameworks from the i-th on say about the word, those that say the same as one: "FSDP version 2: --target
// this or that".
static void append_saying(int i, const char *word, char *out, size_t bytes) {
    int count = 0;
    const Framework *const *all = framework_list(&count);
    const char *sentence = synonym_of(all[i], word)->sentence, *separator = ": --target ";
    size_t used = strlen(out);
    used += (size_t)snprintf(out + used, bytes - used, "%s%s", used > 0 ? "; " : "", sentence);
    for (; i < count && used < bytes; i++) {
        const FrameworkSynonym *row = synonym_of(all[i], word);
        if (row && strcmp(row->sentence, sentence) == 0 && all[i]->versions[0]) {
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", separator, all[i]->name);
            separator = " or ";
        }
    }
}

static bool said_before(int i, const char *word) {
    const Framework *const *all = framework_list(&(int){0});
    const char *sentence = synonym_of(all[i], word)->sentence;
    bool said = false;
    for (int k = 0; k < i; k++) {
        const FrameworkSynonym *row = synonym_of(all[k], word);
        said |= row && strcmp(row->sentence, sentence) == 0;
    }
    return said;
}

// Aliases: tools built on a framework, and other spellings; false when the word is unknown.
static bool hint_synonym(const char *word, Error *error) {
    int count = 0;
    char hint[ERROR_HINT_BYTES] = "";
    const Framework *const *all = framework_list(&count);
    for (int i = 0; i < count; i++) {
        const FrameworkSynonym *row = synonym_of(all[i], word);
        if (row && !row->sentence) {
            snprintf(hint, sizeof hint, "did you mean %s?", all[i]->name);
            break;
        }
        if (row && !said_before(i, word)) {
            append_saying(i, word, hint, sizeof hint);
        }
    }
    if (hint[0]) {
        error_hint(error, "%s", hint);
    }
    return hint[0];
}

static Status unknown_name(const char *name, Error *error) {
    int count = 0;
    const Target *table = target_table(&count);
    const char *names[MAX_TARGETS];
    for (int i = 0; i < count && i < MAX_TARGETS; i++) {
        names[i] = table[i].name;
    }
    char known[ERROR_MESSAGE_BYTES];
    list_names(known, sizeof known);
    const Status status =
        error_set(error, STATUS_USAGE, "unknown target \"%s\"; known: %s (NAME@ lists its versions)", name, known);
    if (hint_synonym(name, error)) {
        return status;
    }
    const char *nearest = text_nearest(name, names, (size_t)count);
    return nearest ? error_hint(error, "did you mean %s?", nearest) : status;
}

Status target_find(const char *name_and_version, const Target **target, Error *error) {
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s", name_and_version);
    char *version = strchr(name, '@');
    if (version) {
        *version++ = '\0';
    }
    int count = 0;
    bool name_known = false;
    const Target *table = target_table(&count);
    for (int i = 0; i < count; i++) {
        const bool same = text_same_word(name, table[i].name);
        name_known = name_known || same;
        if (same && (!version || strcmp(version, table[i].version) == 0)) {
            *target = &table[i];
            return STATUS_OK;
        }
    }
    if (!name_known) {
        return unknown_name(name, error);
    }
    char rows[ERROR_HINT_BYTES];
    list_rows(name, rows, sizeof rows);
    return error_set(error, STATUS_USAGE, "target %s: version \"%s\" is not modelled; available: %s", name, version,
                     rows);
}

// Place of the axis from the slowest; -1 where it is 1 and moves nothing.
static int place_of(const Mesh *mesh, Axis axis) {
    for (int place = 0; place < AXIS_COUNT && mesh->size[axis] > 1; place++) {
        if (mesh_axis_at(mesh, place) == axis) {
            return place;
        }
    }
    return -1;
}

// Slices of a group of dp and cp are whole instances only where dp is its slow part; nothing lies inside dp.
static bool dp_is_one(const Mesh *mesh) {
    const int replicate = place_of(mesh, AXIS_DP_REPLICATE), shard = place_of(mesh, AXIS_DP_SHARD);
    const int cp = place_of(mesh, AXIS_CP), tp = place_of(mesh, AXIS_TP);
    if (replicate < 0) {
        return true;
    }
    const bool tp_between = (replicate < tp) && (tp < shard), cp_between = (replicate < cp) && (cp < shard);
    return (shard < 0 || replicate < shard) && (cp < 0 || replicate < cp) && !tp_between && !cp_between;
}

bool target_takes_order(const Target *target, const Mesh *mesh) {
    switch (target->rank_order_rule) {
    case RANK_ORDER_ANY:
        return true;
    case RANK_ORDER_DP_AS_ONE:
        return dp_is_one(mesh);
    case RANK_ORDER_FIXED:
        break;
    }
    return mesh_has_default_order(mesh);
}

int target_default_zero(const Target *target, const Mesh *mesh) {
    const bool bounded = mesh_has_stages(mesh) && target->stages_max_zero > 0;
    const int most = bounded ? target->stages_max_zero : target->max_zero;
    return mesh_group_size(mesh, AXES_SHARD_GROUP) > 1 ? most : 0;
}

CpRotate target_default_rotate(const Target *target) {
    return target->cp_allgather ? CP_ROTATE_ALLGATHER : CP_ROTATE_RING;
}

Fp8Recipe target_default_fp8(const Target *target) {
    const bool tensorwise = target->fp8_recipes & FP8_BIT(FP8_TENSORWISE);
    return target->fp8_flavour == FP8_TRANSFORMER_ENGINE ? FP8_DELAYED : tensorwise ? FP8_TENSORWISE : FP8_ROWWISE;
}

// At stage 0 (DDP) a single micro-step leaves nothing to choose.
GradSync target_own_sync(const Target *target, const TrainPlan *plan) {
    const bool replicas = plan->grad_accum > 1 && mesh_group_size(&plan->mesh, AXES_DATA_GROUP) > 1;
    if (target_shards_itself(target, plan) && mesh_group_size(&plan->mesh, AXES_REPLICATE) > 1 && plan->zero > 0) {
        return GRAD_SYNC_SHARDS;
    }
    const bool at_end = (target->pp_keeps_gathered && plan_has_stages(plan)) || plan_rounds(plan) > 1;
    if (at_end || target->deferred_reduce || plan->zero == 1 ||
        (plan->zero == 0 && !(target->replicas_each_step && replicas))) {
        return GRAD_SYNC_LAST;
    }
    return target->replicas_each_step ? GRAD_SYNC_EACH : GRAD_SYNC_SHARDS;
}

GradSync target_grad_sync(const Target *target, const TrainPlan *plan) {
    return plan->grad_sync == GRAD_SYNC_TARGET ? target_own_sync(target, plan) : plan->grad_sync;
}

GradSync target_plain_sync(const TrainPlan *plan, GradSync sync) {
    if (sync != GRAD_SYNC_SHARDS) {
        return sync;
    }
    return plan->zero == 0                                     ? GRAD_SYNC_LAST
           : mesh_group_size(&plan->mesh, AXES_REPLICATE) == 1 ? GRAD_SYNC_EACH
                                                               : GRAD_SYNC_SHARDS;
}

double target_moving_slack(const Target *target, const TrainPlan *plan) {
    return plan_has_stages(plan) ? target->runtime.stage_slack : 0;
}

double target_cached_bytes(const Target *target, const TrainPlan *plan, double peak_bytes, double resident_bytes) {
    return peak_bytes * (1 + target->runtime.allocator_slack) +
           (peak_bytes - resident_bytes) * target_moving_slack(target, plan);
}

double target_reduce_bucket(const Target *target, const ModelSpec *model, const TrainPlan *plan) {
    if (target->runtime.reduce_buffer == 0 || plan->zero == 0) {
        return 0;
    }
    return plan->reduce_bucket == REDUCE_BUCKET_HIDDEN ? (double)model->hidden * (double)model->hidden
           : plan->reduce_bucket > 0                   ? plan->reduce_bucket
                                                       : target->runtime.reduce_buffer;
}

// One is filled while the other is reduced, where that overlaps backward; after a pipeline's, and at stage 3, one is
// enough.
double target_reduce_buffers(const Target *target, const ModelSpec *model, const TrainPlan *plan) {
    const bool beside =
        plan->zero < 3 && !plan_has_stages(plan) && target_reduce_overlap(target, plan) == REDUCE_OVERLAP_ON;
    return target_reduce_bucket(target, model, plan) * (beside ? 2 : 1);
}

// Held throughout, outside the allocator: some bytes for each number that goes into a layer, of all tokens of
// the tp group, in fp8 where its products are, and some for each of a rank's own part of them.
double target_overlap_bytes(const Target *target, const ModelSpec *model, const TrainPlan *plan) {
    const bool in_fp8 = plan->precision == DTYPE_FP8;
    const double whole = in_fp8 ? target->tp_overlap_fp8_bytes : target->tp_overlap_bytes;
    const double part = target->tp_overlap_part_bytes / plan->mesh.size[AXIS_TP];
    const double tokens = (double)plan->micro_batch * plan->seq / mesh_group_size(&plan->mesh, AXES_SEQUENCE);
    return plan->tp_overlap ? (whole + part) * tokens * (double)model->hidden : 0;
}

int64_t target_message_bytes(const Target *target, const ModelSpec *model, const TrainPlan *plan) {
    const bool split = target_tp_flavour(target, plan) == TP_SP || target_slices_messages(target, plan);
    const int64_t elements = (int64_t)plan_local_tokens(plan) * model->hidden;
    return elements * dtype_bytes(plan_activation_dtype(plan)) / (split ? plan->mesh.size[AXIS_TP] : 1);
}

// Inputs of the nodes of a layer's schedule and their gradients stay until the chunk has ended. Attention and router
// keep both; what is dispatched, computed by experts and combined is freed in forward, its gradient is not. DeepEP
// dispatches whole tokens and keeps them (sim/SOURCES.md E6).
double target_kept_bytes(const Target *target, const ModelSpec *model, const TrainPlan *plan, int layers) {
    enum { TOKENS = 4, DISPATCHED = 3, DEEPEP_TOKENS = TOKENS + 2, DEEPEP_DISPATCHED = DISPATCHED - 1 };
    if (!target->ep_overlap_keeps || !plan->ep_overlap || plan->grad_accum == 1) {
        return 0;
    }
    const bool deep = plan->dispatch == DISPATCH_DEEPEP;
    const int each = (deep ? DEEPEP_TOKENS : TOKENS) + (deep ? DEEPEP_DISPATCHED : DISPATCHED) * model->experts.active;
    return (double)target_message_bytes(target, model, plan) * layers * each;
}

bool target_has_whole_logits(const Target *target) {
    return target->tp_flavour == TP_HF || target->tp_apart;
}

bool target_reduces_late(const Target *target, const TrainPlan *plan) {
    return (plan->zero == 1 && target->late_reduce) ||
           (plan->zero < 2 && target_reduce_overlap(target, plan) == REDUCE_OVERLAP_OFF);
}

LossForm target_own_loss(const Target *target) {
    return target->own_loss == LOSS_TARGET ? LOSS_WHOLE : target->own_loss;
}

LossForm target_loss(const Target *target, const TrainPlan *plan) {
    return plan->loss == LOSS_TARGET ? target_own_loss(target) : plan->loss;
}

// liger-kernel 0.8.5, ops/fused_linear_cross_entropy.py: a part of the logits is about as large as its input, its rows
// a power of two.
static int fused_chunks(const ModelSpec *model, const TrainPlan *plan) {
    const int most = (model->vocab + model->hidden - 1) / model->hidden;
    const int rows = plan->seq / mesh_group_size(&plan->mesh, AXES_SEQUENCE);
    int chunks = 1;
    while (2 * chunks <= most && rows % (2 * chunks) == 0) {
        chunks *= 2;
    }
    return chunks;
}

int target_loss_chunks(const Target *target, const ModelSpec *model, const TrainPlan *plan) {
    const LossForm form = target_loss(target, plan);
    return form == LOSS_CHUNKED ? target->loss_chunks : form == LOSS_FUSED ? fused_chunks(model, plan) : 1;
}

int target_vocab(const Target *target, const ModelSpec *model, int tp) {
    if (target->vocab_multiple == 0 && !target->vocab_uneven) {
        return model->vocab;
    }
    const int multiple = (target->vocab_uneven ? 1 : target->vocab_multiple) * tp;
    return (model->vocab + multiple - 1) / multiple * multiple;
}

const char *target_vocab_note(const Target *target, const ModelSpec *model, int tp, Arena *arena) {
    const int vocab = target_vocab(target, model, tp);
    return target->vocab_multiple == 0 || vocab == model->vocab
               ? NULL
               : arena_format(arena,
                              "%s pads the vocabulary from %d to %d entries, a multiple of %d x tp: the padded ones "
                              "take part in the loss",
                              target->name, model->vocab, vocab, target->vocab_multiple);
}

bool target_is_executor(const Target *target) {
    return strcmp(target->name, TARGET_EXECUTOR) == 0;
}

Target target_run_by(const Target *program, const Target *runner) {
    Target mixed = *program;
    mixed.evidence = runner->evidence;
    mixed.runtime = runner->runtime;
    return mixed;
}

const Target *target_executed(const Target *target, Arena *arena) {
    if (!target->repeats_keys) {
        return target;
    }
    Target *executed = ARENA_NEW(arena, Target);
    *executed = *target;
    executed->repeats_keys = false;
    return executed;
}

// Megatron's block method takes the first ones of each chunk of layers, a TransformerBlock of its own
// (checkpointed_forward of Megatron-core's recompute.py); every n-th of a stage is each n's first or last one.
bool target_recomputes(const Target *target, const TrainPlan *plan, int of_stage, int of_chunk) {
    if (!plan_keeps_layers(plan)) {
        return plan->recompute == RECOMPUTE_FULL;
    }
    const int behind = target->recompute_counts == RECOMPUTE_EVERY_LAST;
    return plan->recompute_layers > 0 ? of_chunk < plan->recompute_layers
                                      : (of_stage + behind) % plan->recompute_every == 0;
}

// Chunks are alike, as far as they can be.
int target_recomputed_layers(const Target *target, const TrainPlan *plan, int layers) {
    const int chunks = plan_chunks(plan), each = layers > chunks ? layers / chunks : 1;
    int count = 0;
    for (int layer = 0; layer < layers; layer++) {
        count += target_recomputes(target, plan, layer, layer % each);
    }
    return count;
}
