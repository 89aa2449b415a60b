// The spans of a step as CSV, one line each, for every rank that was simulated or measured.

#include "reports/csv_lines.h"
#include "reports/open_time.h"
#include "reports/trace.h"

static void span_line(Csv *csv, const TraceStep *step, const OpenTime *open, const Span *span) {
    const Task *task = &step->program->tasks[span->task];
    const bool collective = task_is_collective(task);
    csv_row(csv, "sdssssddnnnIsnn.", trace_origin_names[step->timeline->origin], (int)span->rank,
            step->program->lanes[task->lane].name, task->name, task_kind_name(task->kind), phase_name(task->phase),
            (int)span->layer, (int)span->micro_step, span->start_s, span->end_s,
            csv_known(!collective, (double)task->flops),
            (int64_t)(collective ? task->payload_bytes : task->traffic_bytes),
            collective ? step->program->groups[task->group].name : NULL,
            collective ? (double)step->program->groups[task->group].size : NAN,
            csv_known(collective, 1e-9 * (double)open_time_ns(open, span)));
}

static void step_lines(Csv *csv, const TraceStep *step, Arena *arena) {
    const Timeline *timeline = step->timeline;
    OpenTime open = open_time_new(timeline->span_count, arena);
    for (int64_t begin = 0, end; begin < timeline->span_count; begin = end) {
        end = span_rank_end(timeline, begin);
        open_time_begin(&open, step->program, &timeline->spans[begin], end - begin);
        for (int64_t i = begin; i < end; i++) {
            span_line(csv, step, &open, &timeline->spans[i]);
        }
    }
}

Status csv_spans(const void *trace, FILE *out, Error *error) {
    const TraceFile *file = trace;
    Csv csv = {.out = out};
    csv_header(&csv,
               "origin,rank,lane,task,kind,phase,layer,micro_batch,start_s,end_s,flops,bytes,group,ranks,exposed_s");
    for (int i = 0; i < file->step_count; i++) {
        step_lines(&csv, &file->steps[i], file->arena);
    }
    return csv_finish(&csv, error);
}
