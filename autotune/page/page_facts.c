// What an answer's page shows in addition to the answer: what would change it, a simulated step of the best plan, and
// from the store the runs of the ranked plans and the recorded step of the best.

#include "autotune/page/page_facts.h"

#include "autotune/explain/explain.h"
#include "autotune/predict/predict_timeline.h"
#include "reports/format.h"

enum { ASKED_CANDIDATES = 20000 };  // beyond, explain's further searches take longer than anybody waits for a page

const char *page_unasked(const HtmlReport *report) {
    const int candidates = report->result->candidate_count;
    return report->one_plan
               ? "One plan was predicted, nothing was searched: ndtune explain --world N asks what would change the "
                 "answer."
           : report->result->entry_count == 0
               ? "Nothing runs; a larger world, more memory or shorter sequences would be needed."
           : candidates > ASKED_CANDIDATES
               ? arena_format(report->arena,
                              "With %d candidates this takes its time and was not asked: ndtune explain answers it.",
                              candidates)
               : NULL;
}

Status page_explain(HtmlReport *report, const Progress *progress, Error *error) {
    Explanation *explanation = ARENA_NEW(report->arena, Explanation);
    report->explanation = explanation;
    return explain_run(report->result, progress, explanation, error);
}

static Status simulate(const HtmlReport *report, const TrainPlan *plan, HtmlTimeline *step, Error *error) {
    StepProgram *program = ARENA_NEW(report->arena, StepProgram);
    Timeline *timeline = ARENA_NEW(report->arena, Timeline);
    *step = (HtmlTimeline){.program = program, .timeline = timeline};
    return predict_timeline(report->result->request, plan, report->arena, program, timeline, &step->rank, error);
}

static Status gather_timelines(HtmlReport *report, const PageRuns *runs, Error *error) {
    if (report->result->entry_count == 0) {
        return STATUS_OK;
    }
    const Prediction *best = &report->result->entries[0];
    const TrainPlan short_plan = memory_step_plan(&best->plan);
    TRY(simulate(report, &best->plan, &report->simulated, error));
    TRY(simulate(report, &short_plan, &report->memory_step, error));
    Timeline *measured = ARENA_NEW(report->arena, Timeline);
    const TimelineQuery query = {.run_id = runs->named.id,
                                 .content_hash = best->content_hash,
                                 .measurement_hash = measuring_hash(runs->measuring, &best->plan)};
    bool found = false;
    const StepProgram *program = report->simulated.program;
    TRY(store_timeline(runs->measuring->store, &query, program, report->arena, measured, &found, error));
    if (found) {
        report->measured = (HtmlTimeline){program, measured, report->simulated.rank};
    }
    return STATUS_OK;
}

// What the charts divide further: the compute of the fastest shapes, the stages of the best.
static Status gather_parts(HtmlReport *report, Error *error) {
    const TuneResult *result = report->result;
    if (result->entry_count == 0) {
        return STATUS_OK;
    }
    report->split_count = result->entry_count < HTML_SPLIT ? result->entry_count : HTML_SPLIT;
    ComputeSplit *splits = ARENA_ARRAY(report->arena, ComputeSplit, report->split_count);
    for (int i = 0; i < report->split_count; i++) {
        TRY(compute_split(result->request, &result->entries[i], &splits[i], error));
    }
    report->splits = splits;
    return predict_stages(result->request, &result->entries[0].plan, report->arena, &report->stages, error);
}

// What the store has of the answer.
static Status recall(HtmlReport *report, const PageRuns *runs, Error *error) {
    const TuneResult *result = report->result;
    Store *store = runs->measuring->store;
    char best[FORMAT_BYTES] = "";
    if (result->entry_count > 0) {
        format_layout(&result->entries[0].plan.mesh, best);
    }
    if (!report->validation) {
        TRY(recall_validation(runs->measuring, result, &runs->named, &report->validation, error));
    }
    TRY(recall_failures(store, result->request, report->arena, &report->failed, &report->failed_count, error));
    return recall_preflight(store, result->request, best, report->arena, &report->preflight, &report->preflight_of_best,
                            error);
}

Status page_gather(HtmlReport *report, const PageRuns *runs, Error *error) {
    TRY(recall(report, runs, error));
    TRY(gather_timelines(report, runs, error));
    return gather_parts(report, error);
}
