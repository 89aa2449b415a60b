// A program with its loops cut short, for readers that only need one of each kind of moment: first, typical and last
// layers and micro-steps. Layers in the middle are left out, the others keep their distance from their end.

#pragma once

#include "sim/step/step.h"

// Layers kept: reach_factor * (farthest layer offset of any access) + base_layers, or a few more.
typedef struct CutOptions {
    int reach_factor, base_layers;
    int max_micro_steps;  // iterations of a micro-step loop; more where several micro-steps have slots of their own
    bool any_slots;       // those are interchangeable: a steady loop is cut to max_micro_steps too
} CutOptions;

typedef struct ProgramCut {
    StepProgram program;     // shares what did not change with the original
    int32_t removed_layers;  // 0 = layer loops are whole
    int32_t reach;           // farthest |layer_offset| of an access or event that follows the layer
    const bool *per_layer;   // of each buffer: its slots follow the layers, removed_layers of them are missing
} ProgramCut;

// Iterations of a micro-step loop that stay if it is steady and any slots do; else all.
static inline int32_t cut_steady_loop(const Segment *loop, const CutOptions *options) {
    const bool cut = options->any_slots && loop->steady && loop->count > options->max_micro_steps;
    return cut ? options->max_micro_steps : loop->count;
}

// Layers stay whole where the program is short or its loops and slots do not have the regular form.
void program_cut(const StepProgram *program, const CutOptions *options, Arena *arena, ProgramCut *cut);
