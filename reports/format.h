// Phrases that several tables use.

#pragma once

#include <stdio.h>

#include "autotune/result.h"
#include "autotune/run_record.h"

enum { FORMAT_BYTES = 512 };
#define FORMAT_BUFFER ((char[FORMAT_BYTES]){0})  // room for one text: lives as long as the block around it

// "MODEL on N x CHIP (CLUSTER), for TARGET VERSION": what an answer is about.
void format_case(const TuneRequest *request, FILE *out);

// "dp_shard=16,tp=2": the axes that are not 1, as --mesh takes them; "dp_shard=1" for one rank.
char *format_mesh(const Mesh *mesh, char out[FORMAT_BYTES]);

// The same, with " by tp,dp_shard" where the ranks are not in the default order; and as options of the command line.
char *format_layout(const Mesh *mesh, char out[FORMAT_BYTES]);
char *format_mesh_options(const Mesh *mesh, char out[FORMAT_BYTES]);

// "sync each": the searched choices that differ from the target's own, except those with a column of their own in every
// table; "" if none. As options of the command line, " --grad-sync each": all of them, or those without a column in the
// page's table of candidates.
char *format_choices(const Target *target, const TrainPlan *plan, char out[FORMAT_BYTES]);
char *format_choice_options(const Target *target, const TrainPlan *plan, char out[FORMAT_BYTES]);
char *format_page_choices(const Target *target, const TrainPlan *plan, char out[FORMAT_BYTES]);

// "micro-batch 2, reshard never": the mesh, micro-batch and searched choices of `to`, where not those of `from`.
char *format_changes(const Target *target, const TrainPlan *from, const TrainPlan *to, char out[FORMAT_BYTES]);

// Shapes that prediction alone cannot tell from the best: "3 others are within 5 %, too close to call"; "" if none. The
// last words only where the interval of the best is that wide.
char *format_close_shapes(const TuneResult *result, char out[FORMAT_BYTES]);
double tie_share(const TuneResult *result);  // slowdown relative to the best that counts as a tie; 0 = none does

// "96 choices: 80 rejected, 16 left; 16 estimates, 5 simulations and 0 known from the store, in 0.010 s"
char *format_search(const SearchCounts *search, char out[FORMAT_BYTES]);

// The cost of doing without cp and tp, and of leaving a memory margin, where the best does neither.
void format_rivals(const TuneResult *result, FILE *out);

// "11.2 s (8.96 to 16.2)"
char *format_interval(const Prediction *prediction, char out[FORMAT_BYTES]);

// "95.1 ms (88.0 ms .. 103 ms)"
char *format_between(double middle_s, double low_s, double high_s, char out[FORMAT_BYTES]);

// What follows an MFU: " of the peak in fp8", where others divide by that of bf16 too; empty in other formats.
const char *format_peak(const TrainPlan *plan);

// What follows accumulation: " (2 schedules of 8)", empty of one.
char *format_rounds(const TrainPlan *plan, char out[FORMAT_BYTES]);

// "in its name: micro_batch_size 1, gradient_accumulation_steps 8": the target's names for the batch; empty where it
// has none of its own.
char *format_batch_in(const Target *target, const TrainPlan *plan, char out[FORMAT_BYTES]);

// The batch arithmetic of a plan, in sentences, and the target's names for its parts.
void format_batch(const Target *target, const TrainPlan *plan, FILE *out);

// Which groups of the mesh cross node boundaries, and which stay inside.
void format_network(const TrainPlan *plan, int ranks_per_node, FILE *out);

// ", exposed tp 1.2 ms" for each axis that has some.
void format_exposed(const double exposed_s[AXIS_COUNT], FILE *out);

// Where the time of a step goes, and what memory holds at the peak, one line each.
void format_time(const Prediction *prediction, FILE *out);
void format_memory(const Prediction *prediction, const TuneRequest *request, FILE *out);

void format_assumptions(const TuneRequest *request, FILE *out);

// The most common reason why a step takes more than twice its prediction.
void format_far_off(double measured_s, double predicted_s, const char *profile, const CoreUse *use, FILE *out);

// "3.2 days", "5.0 hours", "40 s"
char *format_duration(double seconds, char out[FORMAT_BYTES]);

// How long the requested number of tokens takes, and what it costs; nothing where none was requested.
char *format_training_text(const TuneRequest *request, const Prediction *prediction, char out[FORMAT_BYTES]);
void format_training(const TuneRequest *request, const Prediction *prediction, FILE *out);

// Where a shape ranked.
typedef struct Baseline {
    const Prediction *entry;  // NULL = it does not run, or is not part of the search
    int place;                // rank among the shapes, from 1
    double gain;              // tokens/s of the best relative to its own, minus one
    const char *reason;       // why it does not run
} Baseline;

Baseline baseline_rival(const TuneResult *result, const Mesh *wanted);
Baseline baseline_chosen(const TuneResult *result);  // the one chosen by the user
