// What the tensors of each unit are called: names decide which variants of a micro-step share one. What sections are
// called, which people see.

#include "sim/step/lower.h"

static const UnitNames edge_and_layer_names[UNIT_COUNT] = {
    {"embedding weights", "embedding gradients", "embedding half gradients", "embedding master",
     "embedding working shard", "embedding moment 1", "embedding moment 2", "embedding shard gradient",
     "embedding gather in", "embedding gather out", "embedding reduce in", "embedding reduce out",
     "embedding gradient copies", "embedding near shard"},
    {"layer weights", "layer gradients", "layer half gradients", "layer master", "layer working shard",
     "layer moment 1", "layer moment 2", "layer shard gradient", "layer gather in", "layer gather out",
     "layer reduce in", "layer reduce out", "layer gradient copies", "layer near shard"},
    {"head weights", "head gradients", "head half gradients", "head master", "head working shard", "head moment 1",
     "head moment 2", "head shard gradient", "head gather in", "head gather out", "head reduce in", "head reduce out",
     "head gradient copies", "head near shard"},
    {"experts weights", "experts gradients", "experts half gradients", "experts master", "experts working shard",
     "experts moment 1", "experts moment 2", "experts shard gradient", "experts gather in", "experts gather out",
     "experts reduce in", "experts reduce out", "experts gradient copies", "experts near shard"},
};

static const UnitNames root_names = {
    "root weights",   "root gradients",  "root half gradients",  "root master",    "root working shard",
    "root moment 1",  "root moment 2",   "root shard gradient",  "root gather in", "root gather out",
    "root reduce in", "root reduce out", "root gradient copies", "root near shard"};

static const UnitNames adapter_names = {
    "adapter weights",   "adapter gradients",  "adapter half gradients",  "adapter master",    "adapter working shard",
    "adapter moment 1",  "adapter moment 2",   "adapter shard gradient",  "adapter gather in", "adapter gather out",
    "adapter reduce in", "adapter reduce out", "adapter gradient copies", "adapter near shard"};

const UnitNames *unit_names(const Lowering *lowering, int u) {
    return u == UNIT_EMBEDDING && lowering->target->root_unit        ? &root_names
           : u == UNIT_ADAPTERS && lowering_adapters_apart(lowering) ? &adapter_names
                                                                     : &edge_and_layer_names[u];
}

const char *const section_names[SECTION_COUNT] = {
    [SECTION_BEGIN] = "embedding",
    [SECTION_LAYER_FORWARD] = "forward layers",
    [SECTION_TAIL] = "head and loss",
    [SECTION_LAYER_BACKWARD] = "backward layers",
    [SECTION_KEPT_BACKWARD] = "",
    [SECTION_END] = "embedding backward",
    [SECTION_TAIL_WEIGHTS] = "weights of head",
    [SECTION_LAYER_WEIGHTS] = "weights of layers",
    [SECTION_KEPT_WEIGHTS] = "",
    [SECTION_END_WEIGHTS] = "weights of embedding",
    [SECTION_NORM] = "norm",
    [SECTION_NORM_LAYER] = "norm layers",
    [SECTION_UPDATE] = "update",
    [SECTION_UPDATE_LAYER] = "update layers",
};
