// The config files of this folder.

#pragma once

#include "sim/frameworks/accelerate/accelerate_files.h"
#include "sim/frameworks/config_keys.h"

extern const ExportFormat export_trainer;
extern const ImportFormat import_trainer;

// What the file of another class has in common with it: arguments of `config`, a class of `package`; write_more adds
// its own, NULL = none.
void trainer_write(const ConfigJob *job, const char *package, const char *config,
                   void (*write_more)(const ConfigJob *job, FILE *out), FILE *out);

// By the layers of the model themselves, not by FSDP?
bool trainer_recomputes_by_model(const ConfigJob *job);

// What a class of arguments says where its file does not.
typedef struct TrainerDefaults {
    const char *flavour;
    const char *unknown;          // how a key that is not one of its arguments is treated
    const char *const *sequence;  // keys of the sequence length; NULL at the end
    bool bf16, recomputes;
    bool own_loss;  // Liger's is disabled with it
} TrainerDefaults;

// What the model is loaded in; the arguments that a trainer loads it with count as the script's own.
Loaded trainer_model_is(Import *import);
void trainer_take_init_kwargs(Import *import);

// What a script's module says in addition (trainer_module.c); nothing of a file of arguments alone.
Status trainer_read_module(Import *import, Error *error);

// FSDP that a script switches on as accelerate launch does, by the environment, before transformers 5: true where it
// does, whose variables are then `fsdp` and `fsdp_config`; and whose plans they are.
bool trainer_takes_environment(Import *import);
void trainer_is_of_environment(Import *import);

// Arguments of LLaMA-Factory, which has more than those of the Trainer: what they say in the words of these.
bool llama_factory_is(Import *import);
Status llama_factory_read(Import *import, Error *error);

// Everything but what the class adds.
Status trainer_read_arguments(Import *import, const TrainerDefaults *defaults, Error *error);

#define TRAINER_KEYS                                                                                                   \
    {                                                                                                                  \
        .mesh = "parallelism_config of your script", .micro_batch = "per_device_train_batch_size",                     \
        .reshard = "fsdp_config.reshard_after_forward", .recompute = "gradient_checkpointing",                         \
        .rotate = "parallelism_config of your script", .zero = "fsdp",                                                 \
        .sync = "accelerator_config.gradient_accumulation_kwargs.sync_each_batch", .kernels = "torch_compile",         \
        .overlap = "fsdp", .loss = "use_liger_kernel"                                                                  \
    }
