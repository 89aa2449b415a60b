// Whole copies of the model, each with its own sequences: DDP, and the outer axis of HSDP.

#include "sim/axes/axes.h"

const AxisRow axis_dp_replicate = {
    .number = 0,
    .definition = "copies of the model, each with its own sequences; gradients are summed over them (DDP, HSDP)",
    .words = {{"ddp", "whole copies are dp_replicate", NULL}, {"replicate", "did you mean dp_replicate?", NULL}},
};
