// What --finetune says of a request beside its plan's fields.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/cli/request_experts.h"

// Sequences of a step where nobody said: 64, as published recipes of adapters have it, or one per rank; 0 where all is
// trained.
int64_t request_finetune_batch(Cli *cli, int world);

// Words that go with adapters only.
Status request_check_finetune(Cli *cli, Error *error);

// What is trained and on what, where it is not all parameters with fp32 masters on whole documents, and what is guessed
// of experts: sentences in the arena, their number.
enum { TRAINING_TEXTS = 3 + EXPERT_TEXTS };
int request_training_texts(const TuneRequest *request, const TrainPlan *plan, Arena *arena,
                           const char *texts[TRAINING_TEXTS]);
