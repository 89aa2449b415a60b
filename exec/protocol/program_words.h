// Describes a place in the program, for messages of ranks and of the launcher that watches them.

#pragma once

#include "exec/transport/transport.h"
#include "sim/step/stages.h"

TransportWords program_words(const StepPrograms *programs);  // which must outlive them

// Bytes of the collective as its call counts them: the small side of gathers and scatters, else the data.
int64_t program_collective_bytes(const StepProgram *program, const Task *task);
