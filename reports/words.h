// Words that several tables use.

#pragma once

#include <stdio.h>

#include "autotune/result.h"
#include "autotune/run_record.h"

enum { WORDS_BYTES = 256 };

// "dp_shard=16,tp=2": the axes that are not 1, as --mesh takes them; "dp_shard=1" for one rank.
char *words_mesh(const Mesh *mesh, char out[WORDS_BYTES]);

// The same, with " by tp,dp_shard" where the ranks are not in the default order; and as options of the command line.
char *words_layout(const Mesh *mesh, char out[WORDS_BYTES]);
char *words_mesh_options(const Mesh *mesh, char out[WORDS_BYTES]);

// "sync each": the searched choices that are otherwise than the target's own, beside those with a place of their own in
// every table; "" of none. The same as options of the command line: " --grad-sync each".
char *words_choices(const Target *target, const TrainPlan *plan, char out[WORDS_BYTES]);
char *words_choice_options(const Target *target, const TrainPlan *plan, char out[WORDS_BYTES]);

// Shapes that prediction alone cannot tell from the best: "3 others are within 5 %, too close to call"; "" of none. The
// last words only where the interval of the best is that wide.
char *words_close_shapes(const TuneResult *result, char out[WORDS_BYTES]);
double words_tie_share(const TuneResult *result);  // how much slower than the best is a tie; 0 = nothing is

// What it costs to do without cp and tp, and to leave a margin of memory, where the best does neither.
void words_rivals(const TuneResult *result, FILE *out);

// "11.2 s (8.96 to 16.2)"
char *words_interval(const Prediction *prediction, char out[WORDS_BYTES]);

// "95.1 ms (88.0 ms .. 103 ms)"
char *words_between(double middle_s, double low_s, double high_s, char out[WORDS_BYTES]);

// "in its name: micro_batch_size 1, gradient_accumulation_steps 8": what the target calls the batch; empty where it has
// no words of its own.
char *words_batch_in(const Target *target, const TrainPlan *plan, char out[WORDS_BYTES]);

// The batch arithmetic of a plan, in sentences, and what the target calls its parts.
void words_batch(const Target *target, const TrainPlan *plan, FILE *out);

// Which groups of the mesh cross node borders, and which stay inside.
void words_network(const TrainPlan *plan, int ranks_per_node, FILE *out);

// Where the time of a step goes, and what memory holds at the peak, one line each.
void words_time(const Prediction *prediction, FILE *out);
void words_memory(const Prediction *prediction, const TuneRequest *request, FILE *out);

void words_assumptions(const TuneRequest *request, FILE *out);

// Where a step took more than twice its prediction: what that is most often.
void words_far_off(double measured_s, double predicted_s, const char *profile, const CoreUse *use, FILE *out);

// "3.2 days", "5.0 hours", "40 s"
char *words_duration(double seconds, char out[WORDS_BYTES]);

// How long the wished number of tokens takes, and what it costs; nothing where none were wished.
char *words_training_text(const TuneRequest *request, const Prediction *prediction, char out[WORDS_BYTES]);
void words_training(const TuneRequest *request, const Prediction *prediction, FILE *out);

// Where a shape came out.
typedef struct Baseline {
    const Prediction *entry;  // NULL = it does not run, or is none of the search
    int place;                // among the ranked shapes, from 1
    double gain;              // tokens/s of the best over its own, minus one
    const char *reason;       // why it does not run
} Baseline;

Baseline words_rival(const TuneResult *result, const Mesh *wanted);
Baseline words_baseline(const TuneResult *result);  // the one that the user compares with
