// The config files of this folder.

#pragma once

#include "sim/frameworks/export.h"
#include "sim/frameworks/import.h"

extern const ExportFormat export_torchtitan_toml;
extern const ExportFormat export_torchtitan_python;
extern const ImportFormat import_torchtitan;

const char *torchtitan_refuse(const ConfigJob *job);
void torchtitan_notes(const ConfigJob *job, FILE *out);

// ---- recipes of versions after 0.2 (torchtitan_recipe.c)

bool torchtitan_is_recipe(const Import *import);
Status torchtitan_recipe_moves(Import *import, Error *error);  // to where 0.2's TOML has it; before reading that
Status torchtitan_recipe_reads(Import *import, Error *error);  // what that has not; after it

// ---- pipelines (torchtitan_stages.c)

extern const ImportWord torchtitan_schedules[];  // pipeline_parallel_schedule
bool torchtitan_has_stages(const ConfigJob *job);
bool torchtitan_other_dispatcher(const ConfigJob *job);
const char *torchtitan_schedule_word(const TrainPlan *plan);
bool torchtitan_has_order(const ConfigJob *job);            // of a file of actions
const char *torchtitan_order(const ConfigJob *job);         // pipeline_parallel_schedule_csv
const char *torchtitan_local_batch(const ConfigJob *job);   // a pipeline cuts it into its micro-batches
bool torchtitan_counts_layers(const ConfigJob *job);        // stages follow from layers, or
bool torchtitan_names_modules(const ConfigJob *job);        // each is named with its modules
const char *torchtitan_first_less(const ConfigJob *job);    // layers that the embedding counts as
const char *torchtitan_last_less(const ConfigJob *job);     // and the head
const char *torchtitan_modules(const ConfigJob *job);       // module_fqns_per_model_part
const char *torchtitan_stage_layers(const ConfigJob *job);  // pipeline_parallel_layers_per_stage
const char *torchtitan_reshard(const ConfigJob *job);       // fsdp_reshard_after_forward
bool torchtitan_says_layers(const ConfigJob *job);          // else as many as it makes by itself
const char *torchtitan_refuse_stages(const ConfigJob *job);
// Stages that no number of layers makes (pipeline_parallel.py of v0.2.2).
const char *torchtitan_refuse_count(const ModelSpec *model, const TrainPlan *plan, Arena *arena);

// Schedule, chunks and micro-batches, after the degrees and the batch.
Status torchtitan_read_stages(Import *import, Error *error);
