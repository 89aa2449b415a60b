// What --finetune implies for a request in addition to its plan's fields.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/cli/request_experts.h"

// Default sequences per step: 64, as in published adapter recipes, or one per rank; 0 where all parameters are trained.
int64_t request_finetune_batch(Cli *cli, int world);

// Options that apply to adapters only.
Status request_check_finetune(Cli *cli, Error *error);

// What is trained and on what, unless it is all parameters with fp32 masters on whole documents, and what is assumed
// about experts: sentences in the arena, their number.
enum { TRAINING_TEXTS = 3 + EXPERT_TEXTS };
int request_training_texts(const TuneRequest *request, const TrainPlan *plan, Arena *arena,
                           const char *texts[TRAINING_TEXTS]);
