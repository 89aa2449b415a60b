// One lowered program for every micro-batch. Plans that differ only in it lower to the same tasks, operands and events,
// and each size is affine in the micro-batch. So two programs determine all others, and another one takes a single pass
// over the sizes that grow.

#pragma once

#include "sim/step/step.h"

typedef struct ResizableProgram ResizableProgram;

// Lowers the plan's stage, alone; what is kept lives in `arena`. The model must outlive it.
Status resizable_lower(const ModelSpec *model, const TrainPlan *plan, const Target *target, int stage, Arena *arena,
                       Arena *scratch, ResizableProgram **made, Error *error);

// The program at a micro-batch that the plan is legal with, byte-identical to step_lower_alone's. Valid until the next
// call; its groups are as large as the last step_place made them. Where a size proves not to be affine, the program is
// lowered from scratch into `scratch`.
Status resizable_at(ResizableProgram *resizable, int micro_batch, Arena *scratch, StepProgram **program, Error *error);

// Gives a program the plan whose ranks it is for, one of the same structure: how large its groups are.
void step_place(StepProgram *program, const TrainPlan *plan);

// Whether it is the resizable program itself rather than one lowered from scratch.
bool resizable_owns(const ResizableProgram *resizable, const StepProgram *program);

// Whether two programs have the same tasks, operands and buffers except for sizes.
bool step_same_structure(const StepProgram *a, const StepProgram *b);
