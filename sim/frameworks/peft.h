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

// The same in words, for a script that the file does not hold.
void peft_write_note(const ConfigJob *job, FILE *out);

// Of frozen weights, which stay in the numbers that forward reads: "bfloat16".
const char *peft_base_dtype(const ConfigJob *job);

// arguments["quantization_config"] = ... of a function that makes from_pretrained's; nothing where no bits are less.
void peft_write_bits(const ConfigJob *job, FILE *out);

// Of a script: the LoraConfig under peft_config, on the base that model_arguments load; *adapters: there is one.
Status peft_read_script(Import *import, bool *adapters, Error *error);
