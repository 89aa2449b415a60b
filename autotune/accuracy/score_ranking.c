// Rankings: within a group, the plan predicted fastest against the plan measured fastest, by time per token. Repeats of
// a plan count once, with their mean; plans predicted equal share first place, with their mean. Memory is not
// considered: a plan that ran is a plan that fits.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/accuracy/score.h"
#include "autotune/accuracy/statistics.h"

typedef struct PlanTime {
    uint64_t plan;
    const char *id;              // of the first row
    double predicted, measured;  // seconds per token
    int repeats;
} PlanTime;

static double per_token(const RunCase *run, double step_s) {
    return step_s / (double)plan_tokens_per_step(&run->plan);
}

// The distinct plans of a group; returns how many.
static int plans_of(const RunCase *cases, const RunGroup *group, RunTest counts, PlanTime *plans) {
    int count = 0;
    for (int i = 0; i < group->row_count; i++) {
        const RunCase *run = &cases[group->rows[i]];
        if (!counts(run)) {
            continue;
        }
        int at = 0;
        while (at < count && plans[at].plan != run->prediction.content_hash) {
            at++;
        }
        if (at == count) {
            plans[count++] = (PlanTime){.plan = run->prediction.content_hash,
                                        .id = run->row->id,
                                        .predicted = per_token(run, run->prediction.step_s)};
        }
        plans[at].measured += per_token(run, run->measured_step_s);
        plans[at].repeats++;
    }
    for (int i = 0; i < count; i++) {
        plans[i].measured /= plans[i].repeats;
    }
    return count;
}

static RankedGroup score_group(const PlanTime *plans, int count, double *predicted, double *measured,
                               double *blind_regret) {
    const PlanTime *best = &plans[0], *chosen = &plans[0];
    double sum = 0, chosen_sum = 0;
    int chosen_count = 0;
    for (int i = 0; i < count; i++) {
        predicted[i] = plans[i].predicted;
        measured[i] = plans[i].measured;
        best = measured[i] < best->measured ? &plans[i] : best;
        chosen = predicted[i] < chosen->predicted ? &plans[i] : chosen;
        sum += measured[i];
    }
    for (int i = 0; i < count; i++) {
        if (predicted[i] <= chosen->predicted) {
            chosen_sum += measured[i];
            chosen_count++;
        }
    }
    *blind_regret = sum / count / best->measured;
    return (RankedGroup){.plans = count,
                         .regret = chosen_sum / chosen_count / best->measured,
                         .kendall_tau = statistics_kendall_tau(predicted, measured, count),
                         .picked = chosen->id,
                         .best = best->id};
}

static int by_regret(const void *left, const void *right) {
    const RankedGroup *a = left, *b = right;
    return a->regret != b->regret ? (a->regret < b->regret) - (a->regret > b->regret) : strcmp(a->name, b->name);
}

static int largest_group(const RunGroups *groups) {
    int largest = 0;
    for (int i = 0; i < groups->count; i++) {
        largest = groups->groups[i].row_count > largest ? groups->groups[i].row_count : largest;
    }
    return largest;
}

void score_ranking(const RunCase *cases, const RunGroups *groups, RunTest counts, Arena *arena, RankingScore *score) {
    *score = (RankingScore){.each = ARENA_ARRAY(arena, RankedGroup, groups->count), .worst_regret = 1};
    const int largest = largest_group(groups);
    PlanTime *plans = ARENA_ARRAY(arena, PlanTime, largest);
    double *predicted = ARENA_ARRAY(arena, double, largest), *measured = ARENA_ARRAY(arena, double, largest);
    double *regrets = ARENA_ARRAY(arena, double, groups->count), *blind = ARENA_ARRAY(arena, double, groups->count);
    double *taus = ARENA_ARRAY(arena, double, groups->count);
    int tau_count = 0;
    for (int i = 0; i < groups->count; i++) {
        score->unknown_ids += groups->groups[i].unknown_ids;
        const int count = plans_of(cases, &groups->groups[i], counts, plans);
        if (count < 2) {
            score->not_scored++;
            continue;
        }
        RankedGroup *group = &score->each[score->groups];
        *group = score_group(plans, count, predicted, measured, &blind[score->groups]);
        group->name = groups->groups[i].name;
        if (group->regret > score->worst_regret) {
            score->worst_regret = group->regret;
            score->worst_group = group->name;
        }
        regrets[score->groups++] = group->regret;
        if (isfinite(group->kendall_tau)) {
            taus[tau_count++] = group->kendall_tau;
        }
    }
    qsort(score->each, (size_t)score->groups, sizeof *score->each, by_regret);
    score->median_regret = statistics_median(regrets, score->groups);
    score->p90_regret = statistics_quantile(regrets, score->groups, 0.9);
    score->baseline_median_regret = statistics_median(blind, score->groups);
    score->baseline_p90_regret = statistics_quantile(blind, score->groups, 0.9);
    score->median_kendall_tau = statistics_median(taus, tau_count);
}
