// What the rows of the answers are, a schema each.

#pragma once

#include "reports/record.h"

extern const RecordSchema schema_models;         // ModelPreset; for JSON a ModelSpec is enough
extern const RecordSchema schema_clusters;       // ClusterProfile
extern const RecordSchema schema_provenance;     // Provenance
extern const RecordSchema schema_requests;       // StoredRequest
extern const RecordSchema schema_runs;           // StoredRun
extern const RecordSchema schema_preflights;     // StoredPreflight
extern const RecordSchema schema_tasks;          // RunTask
extern const RecordSchema schema_stages;         // RunStage
extern const RecordSchema schema_kinds;          // ValidateKind
extern const RecordSchema schema_groups;         // StoredGroups
extern const RecordSchema schema_calibrated;     // CalibrationShape
extern const RecordSchema schema_measured_rows;  // ValidateRow, about its Validation
extern const RecordSchema schema_tune_shapes;    // TuneShape, about its Tuning
extern const RecordSchema schema_tune_steps;     // TuneStep, about its Tuning
extern const RecordSchema schema_step_scores;    // ScoreRow, about a word for what they score
extern const RecordSchema schema_memory_scores;  // the same without interval and baseline
extern const RecordSchema schema_left_out;       // LeftOutScore
extern const RecordSchema schema_fitted;         // LeftOutParameter
extern const RecordSchema schema_scaling;        // ScalingPoint
extern const RecordSchema schema_parameters;     // CalibrationCoordinate, about its CalibrationPosterior
extern const RecordSchema schema_sensitivities;  // Sensitivity
extern const RecordSchema schema_rejected;       // Rejection, about its TuneResult
extern const RecordSchema schema_entries;        // Prediction, about its TuneResult
