// The names that transformers gives optimizers (OptimizerNames of 5.23), and the additions of trainers built on it.

#pragma once

#include "sim/frameworks/import.h"

// What the file says at `path` into import->said; it says nothing where it has no such key. Names that no plan holds,
// and what a plan does not say of one that it holds, become findings.
Status hf_optimizer_read(Import *import, const char *path, Error *error);

// "adamw_torch_8bit"; NULL where it has none.
const char *hf_optimizer_name(Optimizer optimizer);
