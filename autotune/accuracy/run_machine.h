// Whose machine recorded a golden file of Megatron-LM's tests, where it is not the one that its row names.

#pragma once

#include "autotune/accuracy/run_file.h"

const char *row_machine(const RunRow *row);  // a cluster's name
const char *row_drive(const RunRow *row);    // what it reads data from, as an override of that cluster
