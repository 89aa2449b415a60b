// What ndtune blame found, for people and programs.

#pragma once

#include "autotune/blame/verdict.h"
#include "reports/answer.h"

typedef struct BlameReport {
    const Job *job;
    const Verdict *verdict;
    const char
        *program;  // what the collectives were matched against: "dp_shard=4,tp=2 of llama-3-8b for ..."; NULL = nothing
    int matched, compared;  // collectives that match the program, out of those compared
} BlameReport;

// The verdict in one sentence.
char *blame_sentence(const BlameReport *report, Arena *arena);

char *blame_ranks(const Job *job, const int *ranks, int count, Arena *arena);  // "rank 3 on node2", "ranks 0 to 3, 5"
char *blame_group(const JobGroup *group, Arena *arena);  // "mesh_tp of ranks 0, 1", "rank 0 to rank 1 in mesh_pp"

char *blame_heading(const BlameReport *report, Arena *arena);  // "rank 3 skipped a collective"
const char *blame_state(const BlameReport *report, int rank);  // "in", "after", "no dump"
const char *blame_group_name(const JobGroup *group);           // "mesh_tp"
bool blame_is_blamed(const BlameReport *report, int rank);
bool blame_is_inside(const BlameReport *report, int rank, int group, int64_t seq);  // it is in it, waiting

extern const Answer answer_blame;  // BlameReport; ndtune.blame/1
