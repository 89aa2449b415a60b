// How the layers of a pipeline lie on its stages; shared by the files of a pipeline's estimate only.

#pragma once

#include "sim/analytic/analytic_internal.h"

enum { STAGE_FULLEST, STAGE_LAST, STAGES_LOOKED_AT };

typedef struct StageSplit {
    int stage[STAGES_LOOKED_AT];
    int32_t layers[STAGES_LOOKED_AT];    // on them, as one chunk each
    int32_t first_layers;                // on the first one
    int32_t first_dense;                 // of these, dense ones of a model whose other layers are of experts
    int32_t *part_layers, *part_dense;   // of each chunk of all stages, and so many of them
    int32_t *chunk_layers, *chunk_kept;  // of one stage's chunks, and what they keep, for the current user
    double *part_s, *first_s, *last_s;   // of each, for the current user
    int32_t parts;
} StageSplit;

// What is known of the plan's split; times of its parts are written there.
StageSplit *stage_split(Analytic *analytic, const TrainPlan *plan);

// The layers of each chunk of a stage, until it is asked again, and of all of them.
const int32_t *stage_chunk_layers(const StageSplit *split, const PipelineShape *shape, int stage);
bool stages_are_alike(const StageSplit *split, const PipelineShape *shape, int stage, int other);  // chunk by chunk
int32_t stage_all_layers(const PipelineShape *shape, const int32_t *chunk_layers);

// The head is on the fullest stage only where that is the last one.
static inline bool stage_last_is_fullest(const StageSplit *split) {
    return split->stage[STAGE_FULLEST] == split->stage[STAGE_LAST];
}

// Are there both layers of experts and others?
bool stage_mixes_layers(const ModelSpec *model);

// Its schedule does not affect a stage alone, which has the micro-steps of one round.
TrainPlan stage_plan_alone(const Analytic *analytic, const TrainPlan *plan);

Status stage_shape(const Target *target, const TrainPlan *plan, PipelineShape *shape, Error *error);

// Head and loss of a micro-step where they were timed, else 0.
double stage_known_head_s(Analytic *analytic, const TrainPlan *plan);

// ---- stage_rounds.c

// Of a stage alone.
typedef struct StageTimes {
    Estimate step;  // of the plan's micro-steps
    double pace_s;  // of a further one
    double last_s;  // by which computing is longer in the first or last one, where that is not in the step's `once`
    double host_s;  // of the pace, in which the device waits for the host
    double lead_s;  // of the pace, which the host does not need to issue it
} StageTimes;

// Of the pace: where the device waits longer for the host, that may hide the head.
#define STAGE_WAIT_NO_MATTER 0.02

static inline bool stage_is_once(const Estimate *step) {
    return step->once.gather_s > 0;
}

// Takes off a stage alone what the schedule of the pipeline that it is of (NULL: none's) reduces behind other chunks.
void stage_reduce_behind_chunks(const Analytic *analytic, const TrainPlan *plan, StageTimes *times);

// Of a step whose rounds take so long from the first forward to the last backward.
double stage_rounds_s(const Analytic *analytic, const TrainPlan *plan, const StageTimes *fullest, double span_s);

// The terms of a stage alone, so many times.
void stage_repeat_rounds(const Analytic *analytic, const TrainPlan *plan, Estimate *step);

// ---- stage_message.c

// A message from one stage to another: its time, that of gathering its slices where it arrives; what its sender's
// layers lose to it, where they go on computing.
typedef struct StageMessage {
    double seconds, gather_s;
    double slowed_s[LAYER_PASSES];
} StageMessage;

// Chunks of a stage compute while those that are done send, unless they wait for that.
bool stage_sends_beside(const TrainPlan *plan);

// On average, from a stage to the next one. of: the sender alone.
Status stage_mean_message(Analytic *analytic, const AlonePlan *of, StageMessage *mean, Error *error);

// The host's time for the messages of a stage's chunks in a micro-step; the same on top of each part's.
double stage_issue_s(const StageSplit *split, const PipelineShape *shape, int stage, const ChunkHost *host);
void stage_add_issue(const StageSplit *split, const ChunkHost *host);

// ---- stage_bytes.c

// Of one stage, whose plan alone it is.
Status stage_add_bytes(Analytic *analytic, const TrainPlan *alone, const PipelineShape *shape, const StageSplit *split,
                       int stage, Estimate *estimate, Error *error);

// Of the first and the last stage, where they may hold more than the fullest one, which the estimate has.
Status stage_add_ends(Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape, const StageSplit *split,
                      Estimate *estimate, Error *error);

// ---- stage_tied.c

// Once a step, to sum the gradient of a table that two stages have.
double stage_tied_s(const Analytic *analytic, const TrainPlan *plan, const PipelineShape *shape);

// ---- stage_bound.c

// Of a micro-step, the forward.
double stage_forward_share(const TrainPlan *plan);

// Writes how long each part computes, with what its messages add to it.
void stage_time_parts(const StageSplit *split, double layer_s, double dense_s, double head_s, double slowed_s);

// What a stage gathers and reduces once a round, in addition to its micro-steps (stage_once.c). Writes by how much it
// makes each part's first forward and last backward longer. layer_s: of a layer, forward and backward of a micro-step.
void stage_time_once(const Analytic *analytic, const StageSplit *split, const OnceTimes *once, double layer_s,
                     double forward_share);

// Lower bound from the first forward to the last backward.
double stage_least_span_s(const StageSplit *split, const PipelineShape *shape, const PipelineTimes *times);

// What a pipeline's layers took, for the bounds of others.
Status stage_note_pace(Analytic *analytic, const TrainPlan *plan, const StageSplit *split, double layer_s,
                       Error *error);
