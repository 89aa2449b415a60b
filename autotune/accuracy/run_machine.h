// Whose machine a row is of, where its source says more than the cluster that the row names: golden files of
// Megatron-LM's tests, Hugging Face's Playbooks.

#pragma once

#include "autotune/accuracy/run_file.h"

const char *row_machine(const RunRow *row);  // a cluster's name
const char *row_drive(const RunRow *row);    // what it reads data from, as an override of that cluster
