// What is guessed of a model with experts, in words.

#pragma once

#include "autotune/cli/cli.h"

// Words that go with experts only.
Status request_check_experts(Cli *cli, const TuneRequest *request, Error *error);

// Sentences in the arena, their number: none of a model without experts. `plan` has what the job said.
enum { EXPERT_TEXTS = 5 };
int request_expert_texts(const TuneRequest *request, const TrainPlan *plan, Arena *arena,
                         const char *texts[EXPERT_TEXTS]);
