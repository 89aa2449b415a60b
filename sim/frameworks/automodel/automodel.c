// NVIDIA's NeMo Automodel trains by accelerate's modules and sharding: no versions of its own, a file of its own.

#include "sim/frameworks/automodel/automodel_files.h"
#include "sim/frameworks/framework.h"

static const FrameworkSynonym synonyms[] = {
    {"automodel", "its file is that of ndtune export --as automodel"},
    {"nemo", "Automodel's file is export --as automodel"},
    {NULL, NULL},
};

const Framework framework_automodel = {
    .name = "automodel",
    .versions = (const TargetVersion *const[]){NULL},
    .formats = (const ExportFormat *const[]){&export_automodel_yaml, NULL},
    .synonyms = synonyms,
};
