// Scores of sets of predicted rows.

#pragma once

#include "autotune/accuracy/accuracy.h"

// Which rows are scored together: rows with equal text in all selected columns.
typedef struct ScoreSplit {
    bool target, cluster, source, software, kind, half, class;
} ScoreSplit;

ErrorScore score_step(const RunCase *const *runs, int count);
ErrorScore score_memory(const RunCase *const *runs, int count);

// One row per combination that occurs, largest first.
ScoreTable score_table(const RunCase *const *runs, int count, ScoreSplit split, bool memory, Arena *arena);

typedef bool (*RunTest)(const RunCase *run);

// By the rows that `counts` holds for.
void score_ranking(const RunCase *cases, const RunGroups *groups, RunTest counts, Arena *arena, RankingScore *score);
