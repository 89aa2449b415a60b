// Hugging Face peft's adapters in config files: the keys that frameworks above it share, and the LoraConfig that a
// training module makes.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

typedef struct PeftKeys {
    const char *rank, *modules;
    const char *all;     // a switch: every linear layer of the blocks; NULL
    LoraTargets unsaid;  // where the file names no modules
    int rank_unsaid;
} PeftKeys;

// Rank and layers into import->said, with `finetune`; modules that no plan holds become findings.
Status peft_read(Import *import, const PeftKeys *keys, Finetune finetune, Error *error);

// lora, on a base that is loaded in 4 or 8 bits or as it is.
Finetune peft_finetune(bool in_4bit, bool in_8bit);

// The modules of a plan's adapters, comma-separated in `quote`s: q_proj, v_proj.
void peft_write_modules(const ConfigJob *job, const char *quote, FILE *out);

// def peft_config(): return LoraConfig(...); nothing where all is trained.
void peft_write_python(const ConfigJob *job, FILE *out);
