// What is assumed about a model with experts, as sentences.

#pragma once

#include "autotune/cli/cli.h"

// Options that apply to models with experts only.
Status request_check_experts(Cli *cli, const TuneRequest *request, Error *error);

// Sentences in the arena, their number: none for a model without experts. `plan` has what the job specified.
enum { EXPERT_TEXTS = 5 };
int request_expert_texts(const TuneRequest *request, const TrainPlan *plan, Arena *arena,
                         const char *texts[EXPERT_TEXTS]);
