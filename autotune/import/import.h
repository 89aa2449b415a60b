// A config file that somebody trains with, as a plan. How each format is read is in the folders of sim/frameworks.

#pragma once

#include "autotune/explain/advice.h"
#include "sim/frameworks/import.h"

// Reads the file; format NULL or "auto" = by its keys. Texts in the arena.
Status import_load(const char *path, const char *format, Arena *arena, Import *import, Error *error);
Status import_tree(ConfigNode *root, const char *path, const char *format, Arena *arena, Import *import, Error *error);

// Takes from `given` what the file does not say; where both say it and differ, `given` wins and a finding says so. Then
// the arithmetic of world, mesh and batch: import->said is complete but for what only model and target decide, or
// import->refusal says why it cannot be.
void import_settle(Import *import, const ImportChoices *given);

// Says so where the model that the file names has another size than the one that is predicted, `asked`.
void import_compare_model(Import *import, const char *asked, double parameters);

// The plan of a settled import without refusal, canonical; what neither file nor command line says is taken from
// `usual`, whose mesh and batch do not count.
void import_plan(const Import *import, const TrainPlan *usual, TrainPlan *plan);

// Where the file, or the user's script, holds what a change touches.
const char *import_key_of(const Import *import, AdviceKind kind);

// The first of those keys that the file has, and the lines of all of them; key NULL = it has none.
typedef struct ImportPlace {
    const char *key;
    int first, last;
} ImportPlace;
ImportPlace import_place_of(const Import *import, AdviceKind kind);
