// A user's training config file as a plan. How each format is read is in the folders of sim/frameworks.

#pragma once

#include "autotune/explain/advice.h"
#include "autotune/request/asked.h"
#include "sim/frameworks/import.h"

// A file as a tree; of a script that only writes the config file and starts the program, that file.
Status import_load_tree(const char *path, Arena *arena, ConfigNode **root, Error *error);

// Reads the file; format NULL or "auto" = detected from its keys. Texts in the arena.
Status import_load(const char *path, const char *format, Arena *arena, Import *import, Error *error);
Status import_tree(ConfigNode *root, const char *path, const char *format, Arena *arena, Import *import, Error *error);

// Takes from `given` what the file does not set; where both set it and differ, `given` wins and a finding is reported.
// Then resolves world, mesh and batch: import->said is complete except for what depends on model and target, or
// import->refusal gives the reason.
void import_settle(Import *import, const ImportChoices *given);

// Reports it where the model named in the file differs in size from the predicted one, `asked`.
void import_compare_model(Import *import, const char *asked, double parameters);

// The plan of a settled import without refusal, canonical; what neither file nor command line sets is taken from
// `usual`, whose mesh and batch are ignored.
void import_plan(const Import *import, const TrainPlan *usual, TrainPlan *plan);

// A file is settled with the options given along with it, which become what the file says, but for a shape's own
// choices: they are left to a search. An error where no world follows.
Status import_ask(Import *import, Asked *asked, Error *error);

// No plan follows where the target has none with what the file says, whether that has an effect there or not.
void import_refuse_choices(Import *import, const TuneRequest *request);

// The plan of such an import without refusal under the request that was asked.
void import_plan_of(const Import *import, const TuneRequest *request, TrainPlan *plan);

// Where the file, or the user's script, sets what a change affects.
const char *import_key_of(const Import *import, AdviceKind kind);

// The first of those keys present in the file, and the lines of all of them; key NULL = it has none.
typedef struct ImportPlace {
    const char *key;
    int first, last;
} ImportPlace;
ImportPlace import_place_of(const Import *import, AdviceKind kind);
