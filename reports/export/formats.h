// The functions behind the rows of export_table.c, a file per format.

#pragma once

#include "reports/export/export.h"

const char *accelerate_yaml_refuse(const ExportJob *job);
void accelerate_yaml_write(const ExportJob *job, FILE *out);
void accelerate_notes(const ExportJob *job, FILE *out);

const char *accelerate_python_refuse(const ExportJob *job);
void accelerate_python_write(const ExportJob *job, FILE *out);
void parallelism_config_write(const ExportJob *job, FILE *out);  // accelerate's object of the mesh

void hf_trainer_write(const ExportJob *job, FILE *out);

const char *axolotl_refuse(const ExportJob *job);
void axolotl_write(const ExportJob *job, FILE *out);

const char *torchtitan_refuse(const ExportJob *job);
void torchtitan_notes(const ExportJob *job, FILE *out);
void torchtitan_toml_write(const ExportJob *job, FILE *out);
void torchtitan_python_write(const ExportJob *job, FILE *out);

const char *megatron_refuse(const ExportJob *job);
void megatron_write(const ExportJob *job, FILE *out);

const char *automodel_refuse(const ExportJob *job);
void automodel_notes(const ExportJob *job, FILE *out);
void automodel_write(const ExportJob *job, FILE *out);

const char *nanotron_refuse(const ExportJob *job);
void nanotron_write(const ExportJob *job, FILE *out);

const char *deepspeed_refuse(const ExportJob *job);
void deepspeed_notes(const ExportJob *job, FILE *out);
void deepspeed_write(const ExportJob *job, FILE *out);

// The batch script holds the usual file of the plan's target.
const char *sbatch_refuse(const ExportJob *job);
void sbatch_write(const ExportJob *job, FILE *out);
