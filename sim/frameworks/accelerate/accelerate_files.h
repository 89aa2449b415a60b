// The config files of this folder.

#pragma once

#include "sim/frameworks/config_keys.h"
#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_accelerate_yaml;
extern const ExportFormat export_accelerate_python;
extern const ExportFormat export_accelerate_deepspeed;
extern const ExportFormat export_hf_trainer;
extern const ImportFormat import_accelerate;

// Of all that train by accelerate with FSDP. Which kernel SDPA runs is PyTorch's choice: flash or cuDNN's.
#define EXPORT_OF_ACCELERATE                                                                                           \
    .comment = "# ", EXPORT_HAS(EXPORT_BF16 | EXPORT_FP16 | EXPORT_FP32, EXPORT_NONE | EXPORT_FULL,                    \
                                EXPORT_OF_TRANSFORMERS, EXPORT_EAGER | EXPORT_COMPILED)

// Of all three.
const char *accelerate_python_refuse(const ConfigJob *job);
// Of TrainingArguments and its like: the constants of its module; batch and precision; what its kernels are.
void training_constants_write(const ConfigJob *job, FILE *out);
void training_arguments_begin(const ConfigJob *job, const char *config, FILE *out);
void kernel_arguments_write(const ConfigJob *job, FILE *out);
void collator_comment_write(const ConfigJob *job, FILE *out);  // what packs documents
void accelerate_notes(const ConfigJob *job, FILE *out);
void parallelism_config_write(const ConfigJob *job, FILE *out);  // its object of the mesh

// ---- what the model is loaded in, and what is trained of that (loaded_model.c)

typedef enum { LOADED_UNREAD, LOADED_FP32, LOADED_FP16, LOADED_BF16, LOADED_AS_STORED } Loaded;

Loaded loaded_read(Import *import, const char *path, Loaded unsaid);  // a dtype; `unsaid` where none is known
bool loaded_is_half(Loaded loaded);                                   // bf16, or stored in it as most are
// Precision and masters, once the former, sharding and adapters are read; `upcasts`: what shards is made fp32 if mixed.
void loaded_take(Import *import, Loaded loaded, bool upcasts);

bool export_mixes(const ConfigJob *job);                   // precisions: else all is in that of the weights
const char *export_mixed_precision(const ConfigJob *job);  // "bf16", "no"
const char *export_loaded_dtype(const ConfigJob *job);     // "float32"
void model_arguments_begin(const ConfigJob *job, const char *parameters, FILE *out);

// ---- a script: its environment, and the objects that it makes

// The variable of accelerate launch that asks for FSDP.
#define BY_FSDP "ACCELERATE_USE_FSDP"

typedef struct MeshKey {
    const char *path;
    Axis axis;
} MeshKey;
Status mesh_keys_read(Import *import, const MeshKey *keys, size_t count, Error *error);  // the other axes are 1
Status parallelism_config_read(Import *import, const char *path, Error *error);
Status attention_read(Import *import, const char *path, Error *error);  // attn_implementation of from_pretrained
void environment_name_unread(Import *import);                           // variables that are set in vain
// A mesh at path has ranks that shard, while no `sharder` of the script says that they do.
void mesh_refuse_unasked(Import *import, const char *path, const char *sharder);
Status accelerate_read_module(Import *import, Error *error);  // an Accelerator and what it is given

// ---- the launcher's file for either backend

extern const ConfigKey accelerate_top[];                     // what is above the maps
bool accelerate_by_deepspeed(const ConfigJob *job);          // the plan is DeepSpeed's
Status accelerate_read_sizes(Import *import, Error *error);  // parallelism_config
// FSDP version 1 by its sharding strategy; 0 machines: nobody says how many.
Status accelerate_read_strategy(Import *import, const char *path, int machines, Error *error);
Status accelerate_read_deepspeed(Import *import, Error *error);
void accelerate_launch(const ConfigJob *job, const char *program, FILE *out);
