// The fields of a Target as data: what a version may set, what is hashed.

#include <string.h>

#include "sim/base/error.h"
#include "sim/frameworks/framework.h"

#define KIND(member)                                                                                                   \
    _Generic(((Target *)0)->member, bool : FIELD_BOOL, double : FIELD_REAL, const char * : FIELD_TEXT,                 \
             default : FIELD_INT)
#define FIELD(member)                                                                                                  \
    { #member, offsetof(Target, member), KIND(member), true, NULL }
// The word is what stored hashes call it, no more: its first name.
#define HASHED_AS(member, word)                                                                                        \
    { #member, offsetof(Target, member), KIND(member), true, word }
#define NEWER(member) HASHED_AS(member, #member)
#define AXES(member)                                                                                                   \
    { #member, offsetof(Target, member), FIELD_AXES, true, NULL }  // to _Generic a mask is as a number
#define WORDS(member)                                                                                                  \
    { #member, offsetof(Target, member), KIND(member), false, NULL }

// Stored hashes rest on the order.
static const TargetField fields[] = {
    FIELD(tp_flavour),
    FIELD(recompute_flavour),
    FIELD(selective_flavour),
    FIELD(recompute_whole),
    FIELD(zigzag),
    FIELD(cp_ring),
    FIELD(cp_allgather),
    FIELD(cp_half_gradients),
    FIELD(cp_scatters),
    FIELD(half_gradients),
    FIELD(reduce_dtype_bf16),
    FIELD(reduces_fp32_only),
    FIELD(fused_projections),
    FIELD(deferred_reduce),
    FIELD(gradient_buffer),
    FIELD(late_reduce),
    FIELD(replicas_each_step),
    FIELD(shared_shard_lane),
    FIELD(shard_copies),
    FIELD(backward_prefetch),
    FIELD(root_unit),
    FIELD(root_kept),
    FIELD(tp_reduce_overlaps),
    FIELD(sp_switch),
    FIELD(tp_copies),
    FIELD(tp_regathers),
    FIELD(stages_regather),
    NEWER(gather_buffers),
    NEWER(gathers_flat),
    WORDS(replays_stages),
    WORDS(runtime.ahead_bytes),
    NEWER(packed_kept),
    NEWER(gate_kept),
    FIELD(fused_softmax),
    FIELD(fused_norms),
    NEWER(aten_norms),
    NEWER(shards_wait),
    FIELD(fuses_passes),
    FIELD(own_kernels),
    FIELD(master_fp32),
    FIELD(fp8_flavour),
    FIELD(allocator),
    NEWER(replayed_slack),
    FIELD(replicate_rule),
    FIELD(rank_order_rule),
    AXES(axes),
    FIELD(shard_needs_fsdp),
    FIELD(max_zero),
    FIELD(always_reshards),
    FIELD(vocab_multiple),
    FIELD(default_attention),
    FIELD(default_fused),
    FIELD(loss_fp32_copies[FUSED_FUSED]),
    FIELD(loss_fp32_copies[FUSED_EAGER]),
    FIELD(loss_fp32_copies[FUSED_COMPILED]),
    FIELD(split_loss_fp32_copies),
    FIELD(runtime.host_s_per_op),
    FIELD(runtime.lost_lead),
    FIELD(runtime.check_message_s),
    FIELD(runtime.other_share),
    FIELD(runtime.step_fixed_s),
    FIELD(runtime.collective_share),
    FIELD(runtime.crowding_share),
    FIELD(runtime.memory_passes),
    FIELD(runtime.loss_bytes_per_logit),
    FIELD(tp_overlap_exposed),
    FIELD(runtime.bucket_parameters),
    FIELD(runtime.bucket_parameters_per_rank),
    FIELD(runtime.gathers_beside_forward),
    FIELD(runtime.optimizer_bytes_per_parameter),
    FIELD(bf16_optimizer_bytes_per_parameter),
    FIELD(optimizer_temporary_bytes_per_parameter),
    FIELD(runtime.context_bytes),
    FIELD(runtime.communicator_bytes),
    FIELD(runtime.reduce_buffer),
    FIELD(runtime.allocator_slack),
    FIELD(runtime.stage_slack),
    FIELD(runtime.relative_uncertainty),
    NEWER(bf16_weights),
    NEWER(tp_overlap_bytes),
    NEWER(tp_overlap_fp8_bytes),
    NEWER(tp_overlap_part_bytes),
    NEWER(cp_full_attention),
    NEWER(serial_stages),
    NEWER(runtime.scatters_by_all_reduce),
    NEWER(runtime.whole_bytes_per_parameter),
    NEWER(runtime.bucket_stop_operations),
    NEWER(runtime.copies_buckets),
    NEWER(runtime.part_copy_s),
    NEWER(runtime.gathers_fp8),
    NEWER(tp_splits_head),
    NEWER(tp_splits_embedding),
    NEWER(tp_shards_itself),
    NEWER(own_loss),
    NEWER(loss_remakes_logits),
    NEWER(loss_regathers),
    NEWER(cp_keeps_gathered),
    NEWER(cp_gathers_first),
    NEWER(cp_compiled_waits),
    NEWER(repeats_keys),
    NEWER(shares_keys),
    NEWER(ep_overlap_keeps),
    NEWER(own_graphs),
    NEWER(finetunes),
    NEWER(upcasts_frozen),
    NEWER(upcasts_norms),
    NEWER(graphs_hold_gradients),
    NEWER(frozen_held),
    NEWER(adapters_cast),
    NEWER(adapters_drop),
    NEWER(logits_kept),
    NEWER(halves_drop),
    HASHED_AS(attention_dropout, "attention_drops"),
    NEWER(fills_masked),
    NEWER(runtime.blas_workspace_bytes),
    NEWER(runtime.engine_workspace_bytes),
    NEWER(runtime.module_operations),
    NEWER(runtime.torch_linears),
    NEWER(runtime.plain_gelu),
    NEWER(runtime.engine_release),
    NEWER(runtime.hooks_modules),
    NEWER(runtime.shard_hooks),
    NEWER(runtime.autocasts),
    NEWER(runtime.autocasts_shards),
    NEWER(runtime.checks_loss),
    NEWER(runtime.fills_results),
    NEWER(runtime.routes_apart),
    NEWER(runtime.experts_one_by_one),
    HASHED_AS(adds_gradients, "runtime.adds_gradients"),
    NEWER(runtime.balances_nothing),
    NEWER(runtime.sinkhorn_rounds),
    NEWER(runtime.router_rope_apart),
    NEWER(runtime.routes_in_fp32),
    NEWER(runtime.scatters_rows),
    NEWER(runtime.indexes_rows),
    NEWER(runtime.sums_sorted),
    NEWER(runtime.pads_alone),
    NEWER(activation_apart),
    NEWER(stages_recompute_whole),
    NEWER(runtime.messages_stop_host),
    NEWER(runtime.messages_announced),
    HASHED_AS(runtime.message_sleep_s, "runtime.message_host_s"),
    NEWER(runtime.sums_apart),
    NEWER(runtime.launches_wait),
    NEWER(runtime.checks_collectives),
    NEWER(runtime.check_s),
    NEWER(runtime.check_message_between_s),
    NEWER(runtime.fp8_one_layout),
    NEWER(runtime.cuda_13),
    NEWER(runtime.stalls_from_nodes),
    NEWER(runtime.stalls_from_tp_nodes),
    NEWER(adapter_units),
    NEWER(adapters_of_core),
    NEWER(adapters_exchange),
    NEWER(fused_qkv),
    NEWER(experts_at_once),
    NEWER(biases_by_expert),
    NEWER(routes_eagerly),
    NEWER(sums_by_product),
    NEWER(reference_attention),
    NEWER(fp8_attention),
    NEWER(fp8_head),
    NEWER(slices_messages),
    NEWER(buffers_each_message),
    NEWER(runtime.strided_rotary),
    NEWER(runtime.pads_rows),
    NEWER(runtime.joins_apart),
    NEWER(runtime.loss_by_row),
    NEWER(half_sums),
    NEWER(tp_apart),
    NEWER(norms_keep),
    NEWER(weighs_in_fp32),
    NEWER(casts_half_states),
    NEWER(logits_held),
    NEWER(runtime.host_s_per_token),
    NEWER(runtime.host_s_per_tensor),
    NEWER(runtime.update_host_s_per_tensor),
    NEWER(runtime.hashed_s_per_parameter),
    NEWER(experts_recompute_whole),
    HASHED_AS(dummy_gradients, "gradient_placeholders"),
    // How its runs are published, what it takes and may be asked for, and words.
    WORDS(runtime.cudnn_since),
    WORDS(runtime.masks_since),
    WORDS(runtime.masked_tokens),
    WORDS(runtime.follows_processor),  // the cluster's hash has its pace
    WORDS(runtime.host_pace),          // and a target of a cluster that one
    WORDS(expert_flavour),             // of models with experts only
    WORDS(runtime.indexes_experts),    // the same, whose tasks say it
    WORDS(runtime.repeats_biases),     // of models with biases of experts, whose tasks say it
    WORDS(runtime.casts_loss_sums),    // of one form of the loss, whose tasks say it
    WORDS(own_dispatch),               // of experts
    WORDS(experts_apart),
    WORDS(reduces_often_bf16),
    WORDS(fp16_sums),      // of fp16 only, whose buffers say it
    WORDS(scores_buffer),  // of eager attention only, a buffer
    WORDS(vocab_uneven),
    WORDS(seq_by_tp),
    WORDS(cp_block),
    // What a plan may choose: its hash has it.
    WORDS(ep_overlap_exposed),
    WORDS(dispatchers),
    WORDS(recompute_other_unit),
    WORDS(recompute_counts),
    WORDS(offloads),
    WORDS(offloads_saved),
    WORDS(recompute_modules),
    WORDS(update_copies),
    WORDS(overlap_stages),
    WORDS(zero_stages),
    WORDS(reshards_near),
    WORDS(rank_order_note),
    WORDS(grad_syncs),
    WORDS(graph_switch),
    WORDS(graph_parts),
    WORDS(graphs_note),
    WORDS(pp_schedules),
    WORDS(group_rule),
    WORDS(group_switch),
    WORDS(messages_in_turn),
    WORDS(p2p_switch),
    WORDS(pp_keeps_gathered),
    WORDS(pp_rounds),
    WORDS(layer_rule),
    WORDS(splits),
    WORDS(edges_weigh_one),
    WORDS(ties_stages),
    WORDS(compiles),
    WORDS(engine_attention),  // default_attention has it
    WORDS(cudnn_first),
    WORDS(cudnn_here),
    WORDS(losses),
    WORDS(loss_chunks),
    WORDS(loss_note),
    WORDS(stages_note),
    WORDS(axes_unmodelled),
    WORDS(stages_max_zero),
    WORDS(grad_sync_note),
    WORDS(pack_flavour),
    WORDS(own_optimizer),  // and its states: in no hash, name and version have it
    WORDS(fp8_recipes),
    WORDS(optimizers),
    WORDS(deals_matrices),
    WORDS(unsharded_optimizers),
    WORDS(masters_beside_remainders),
    WORDS(tiles_mlp),
    WORDS(updates_in_backward),
    WORDS(cuts_experts),
    WORDS(predicts_further),
    WORDS(fp8_parameters),
    WORDS(fp8_activation),
    WORDS(op_fuser),
    WORDS(qkv_rope),
    WORDS(losses_by_call),
    WORDS(loss_collects_half),
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

const TargetField *target_fields(int *count) {
    *count = FIELDS;
    return fields;
}

const TargetField *target_field_at(size_t at) {
    for (int i = 0; i < FIELDS; i++) {
        if (fields[i].at == at) {
            return &fields[i];
        }
    }
    return NULL;
}

double target_field_number(const Target *target, const TargetField *field) {
    const char *at = (const char *)target + field->at;
    bool truth;
    int number;
    double real;
    AxisMask axes;
    switch (field->kind) {
    case FIELD_BOOL:
        memcpy(&truth, at, sizeof truth);
        return truth;
    case FIELD_INT:
        memcpy(&number, at, sizeof number);
        return number;
    case FIELD_REAL:
        memcpy(&real, at, sizeof real);
        return real;
    case FIELD_AXES:
        memcpy(&axes, at, sizeof axes);
        return (double)axes;
    case FIELD_TEXT:
        break;
    }
    return 0;
}

static void set(Target *target, const TargetSetting *setting) {
    const TargetField *field = target_field_at(setting->at);
    char *at = (char *)target + setting->at;
    ASSERT(field && "a member of Target that a version sets has its line in this table");
    switch (field->kind) {
    case FIELD_BOOL:
        memcpy(at, &(bool){setting->number != 0}, sizeof(bool));
        break;
    case FIELD_INT:
        memcpy(at, &(int){(int)setting->number}, sizeof(int));
        break;
    case FIELD_REAL:
        memcpy(at, &setting->number, sizeof(double));
        break;
    case FIELD_AXES:
        memcpy(at, &(AxisMask){(AxisMask)setting->number}, sizeof(AxisMask));
        break;
    case FIELD_TEXT:
        memcpy(at, &setting->text, sizeof setting->text);
    }
}

void target_set(Target *target, const TargetSetting *settings) {
    for (const TargetSetting *setting = settings; setting->at != 0; setting++) {
        set(target, setting);
    }
}

static Target build(const TargetVersion *version) {
    Target target = version->extends ? build(version->extends) : (Target){0};
    target_set(&target, version->settings);
    return target;
}

Target target_of_version(const Framework *framework, const TargetVersion *version) {
    Target target = build(version);
    target.name = framework->name;
    target.version = version->version;
    target.until = version->until;
    target.evidence = version->evidence;
    return target;
}

// What was hashed when every row had dp and only tp and cp were asked for; then what is otherwise. A target that has
// stages, sp or ep runs a plan without them as before.
static void axes_hash(AxisMask axes, Hash *hash) {
    hash_int(hash, (axes & AXES_TP) != 0);
    hash_int(hash, (axes & AXES_CP) != 0);
    const AxisMask otherwise = (axes ^ AXES_DP) & ~(AXES_TP | AXES_CP | AXES_SP | AXES_STAGE | AXES_EP);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (otherwise & AXIS_BIT(axis)) {
            hash_int(hash, axis_rows[axis]->number);
        }
    }
}

void target_hash(const Target *target, Hash *hash) {
    hash_text(hash, target->name);
    hash_text(hash, target->version);
    for (int i = 0; i < FIELDS; i++) {
        const double number = target_field_number(target, &fields[i]);
        if (!fields[i].hashed || (fields[i].hashed_as && number == 0)) {
            continue;
        }
        if (fields[i].hashed_as) {
            hash_text(hash, fields[i].hashed_as);
        }
        if (fields[i].kind == FIELD_REAL) {
            hash_double(hash, number);
        } else if (fields[i].kind == FIELD_AXES) {
            axes_hash(target->axes, hash);
        } else {
            hash_int(hash, (int64_t)number);
        }
    }
}

void target_hash_all(const Target *target, Hash *hash) {
    target_hash(target, hash);
    for (int i = 0; i < FIELDS; i++) {
        const char *text = "";
        if (fields[i].kind == FIELD_TEXT) {
            memcpy(&text, (const char *)target + fields[i].at, sizeof text);
        }
        hash_text(hash, text ? text : "");
        hash_double(hash, target_field_number(target, &fields[i]));
    }
}
