// Reading what Megatron-LM and Megatron-Bridge are started with: the same settings, by flags or by attributes of a
// configuration.

#pragma once

#include "sim/frameworks/config_keys.h"
#include "sim/frameworks/megatron/megatron_files.h"

typedef enum {
    M_TP,
    M_CP,
    M_PP,
    M_EP,
    M_ETP,
    M_SEQUENCE_PARALLEL,
    M_TP_OVERLAP,
    M_CP_TYPE,
    M_CP_SIZES,
    M_STRATEGY,
    M_FSDP,
    M_SHARDED_OPTIMIZER,
    M_INSTANCES,
    M_OVERLAP_REDUCE,
    M_OVERLAP_GATHER,
    M_SET_REDUCE,
    M_SET_GATHER,
    M_SEQ,
    M_MICRO_BATCH,
    M_BATCH,
    M_ATTENTION,
    M_GRANULARITY,
    M_METHOD,
    M_LAYERS_AGAIN,
    M_MODULES,
    M_OPTIMIZER,
    M_PRECISION_AWARE,
    M_AVERAGE_TYPE,
    M_SQUARE_TYPE,
    M_OFFLOAD,
    M_OFFLOADED,
    M_SAVED,
    M_SAVED_LAYERS,
    M_SAVED_WEIGHTS,
    M_FP8_ACTIVATION,
    M_OP_FUSER,
    M_QKV_ROPE,
    M_GRAPHS,
    M_LOSS_KERNEL,
    M_LOSS_OF,
    M_GRAPHED,
    M_GRAPHED_BEFORE,
    M_GRAPHS_LOCAL,
    M_GRAPHS_EXTERNAL,
    M_EXPERTS,
    M_DISPATCHER,
    M_BACKEND,
    M_EP_OVERLAP,
    M_CAPACITY,
    M_PAD,
    M_MTP,
    M_LAYERS,
    M_LAYOUT,
    M_FIRST,
    M_LAST,
    M_VIRTUAL,
    M_PER_VIRTUAL,
    M_GROUP,
    M_P2P_WAITS,
    M_P2P_OVERLAP,
    M_P2P_BATCH,
    M_COUNT_EMBEDDING,
    M_COUNT_LOSS,
    M_HIDDEN,
    M_FFN,
    M_HEADS,
    M_ROTARY_BASE,
    M_KEY_COUNT
} MegatronKey;

// Its path in the file that is read; "" where that has none.
const char *megatron_key(const Import *import, MegatronKey key);
bool megatron_is_bridge(const Import *import);
bool megatron_sets_overlap(const Import *import);  // has a CommOverlapConfig

extern const ImportLeftOut megatron_left_out[], megatron_bridge_left_out[];

// Not said: *value stays.
Status megatron_int(Import *import, MegatronKey key, int64_t low, int64_t high, int *value, Error *error);
Status megatron_number(Import *import, MegatronKey key, double low, double high, double *value, Error *error);
Status megatron_bool(Import *import, MegatronKey key, int *value, Error *error);
Status megatron_word(Import *import, MegatronKey key, const char **value, Error *error);
bool megatron_says(Import *import, MegatronKey key);

Status megatron_read_batch(Import *import, Error *error);  // and the ranks
Status megatron_read_muon(Import *import, Error *error);
bool megatron_are_state_types(Import *import, const char *average, const char *square);  // else finds which is none
Status megatron_read_stages(Import *import, Error *error);
Status megatron_read_precision(Import *import, Error *error);
Status megatron_read_adapters(Import *import, Error *error);
Status megatron_read_model(Import *import, Error *error);
void megatron_mark_known(Import *import);
