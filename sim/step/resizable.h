// One lowered program for every micro-batch. Plans that differ in nothing else lower to the same tasks, operands and
// events; each of their sizes is affine in the micro-batch, so two programs say what all the others are, and a further
// one is a pass over the sizes that rise.

#pragma once

#include "sim/step/step.h"

typedef struct ResizableProgram ResizableProgram;

// Lowers the plan's stage, alone; what is kept lives in `arena`. The model must outlive it.
Status resizable_lower(const ModelSpec *model, const TrainPlan *plan, const Target *target, int stage, Arena *arena,
                       Arena *scratch, ResizableProgram **made, Error *error);

// The program at a micro-batch that the plan is legal with, as step_lower_alone makes it, byte for byte. Valid until
// the next call; the caller may change its plan and the sizes of its groups. Where a size turns out not to be affine it
// is lowered anew, into the scratch.
Status resizable_at(ResizableProgram *resizable, int micro_batch, Arena *scratch, StepProgram **program, Error *error);

// Whether it is the resizable one itself, not one that was lowered anew.
bool resizable_owns(const ResizableProgram *resizable, const StepProgram *program);

// Whether two programs have the same tasks, operands and buffers but for sizes.
bool step_same_structure(const StepProgram *a, const StepProgram *b);
