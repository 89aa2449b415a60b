// A pipeline's layers as Megatron-LM's layout string says them, chunk after chunk, "Et*3|(tt|)*29,m|L": E and L are
// embedding and loss, t is a layer, m one that predicts a further token, ( |)*6 six chunks
// (PipelineParallelLayerLayout, transformer/pipeline_parallel_layer_layout.py of core 0.19).

#pragma once

#include <stdbool.h>

#include "sim/base/arena.h"
#include "sim/frameworks/target.h"

enum { LAYOUT_MOST_CHUNKS = 4096, LAYOUT_MOST_SIGNS = 65536, PP_LAYOUT_SIGN = '|' };

extern const char pp_layout_such_as[];

typedef struct PpLayout {
    int layers[LAYOUT_MOST_CHUNKS];
    int count;
    int signs;                // read so far, each as often as it is repeated
    int further, further_at;  // layers that predict further tokens, and the chunk of the last one
    int embeddings, losses;
    char first, last;   // signs
    const char *wrong;  // why it is none; NULL
} PpLayout;

// Answers false, and layout->wrong says why, where the text is none.
bool pp_layout_read(const char *text, PpLayout *layout);

int pp_layout_layers(const PpLayout *layout);

typedef struct PpLayoutSplit {
    PpSplit split;
    int first, last;  // of its ends; 0 where it has none
} PpLayoutSplit;

// The split of plans that holds these layers on so many stages, where `rule` is the target's own; false: none does.
bool pp_layout_split(const PpLayout *layout, int stages, LayerRule rule, PpLayoutSplit *split);

// Why none does, after "the layout"; arena text.
const char *pp_layout_unheld(const PpLayout *layout, Arena *arena);

// "pp 2, 4 or 8": the numbers of stages that it has chunks for.
const char *pp_layout_stages(const PpLayout *layout, Arena *arena);

// Why Megatron takes no such layout of a model, in its words, arena text; NULL. layers 0: not known.
const char *pp_layout_refuse(const PpLayout *layout, int layers, int further, Arena *arena);
