// The config files of this folder.

#pragma once

#include "sim/frameworks/config_keys.h"

extern const ExportFormat export_axolotl_yaml;
extern const ImportFormat import_axolotl;

// ---- the YAML: what is written is in axolotl_yaml.c, what is read in axolotl_read.c

enum {
    AXOLOTL_MODEL,
    AXOLOTL_SEQUENCE_LEN,
    AXOLOTL_MICRO_BATCH,
    AXOLOTL_ACCUMULATION,
    AXOLOTL_PACKING,
    AXOLOTL_PADDING,
    AXOLOTL_BF16,
    AXOLOTL_FP16,
    AXOLOTL_ATTENTION,
    AXOLOTL_COMPILE,
    AXOLOTL_REPLICATE,
    AXOLOTL_SHARD,
    AXOLOTL_CONTEXT,
    AXOLOTL_TENSOR,
    AXOLOTL_RING,
    AXOLOTL_STRIDE,
    AXOLOTL_VERSION,
    AXOLOTL_WRAP,
    AXOLOTL_LAYER,
    AXOLOTL_RESHARD,
    AXOLOTL_FSDP_CHECKPOINT,
    AXOLOTL_OFFLOAD,
    AXOLOTL_STATE_DICT,
    AXOLOTL_CHECKPOINT,
    AXOLOTL_KEYS
};
extern const ConfigKey axolotl_keys[AXOLOTL_KEYS + 1];
extern const ConfigKey axolotl_sync[];  // read only: its place is deeper than the table writes

// Of its schema, by what becomes of them (axolotl_keys.c).
extern const ImportLeftOut axolotl_left_out[], axolotl_other_training[], axolotl_gone[];
extern const char *const axolotl_of_no_matter[], *const axolotl_lists[];

Status axolotl_read(Import *import, Error *error);
Status axolotl_read_tiles(Import *import, Error *error);
void axolotl_write_tiles(const ConfigJob *job, FILE *out);

// ---- ranks of experts

const char *axolotl_refuse_experts(const TrainPlan *plan, Arena *arena);
const char *axolotl_shards_beside(const ConfigJob *job);  // dp_shard_size
void axolotl_write_plugins(const ConfigJob *job, FILE *out);
bool axolotl_has_plugin(Import *import, const char *name);
Status axolotl_read_experts(Import *import, bool sharded, bool *spread, Error *error);
