// The compute lane's spans follow each other, so those under a span are found by bisection.

#include "reports/open_time.h"

#include <math.h>
#include <string.h>

typedef struct OpenInterval {
    int64_t start_ns, end_ns;
} OpenInterval;

int64_t span_ns(double seconds) {
    return llround(1e9 * seconds);
}

int64_t span_rank_end(const Timeline *timeline, int64_t begin) {
    int64_t end = begin;
    while (end < timeline->span_count && timeline->spans[end].rank == timeline->spans[begin].rank) {
        end++;
    }
    return end;
}

OpenTime open_time_new(int64_t most_spans, Arena *arena) {
    return (OpenTime){.busy = ARENA_ARRAY(arena, OpenInterval, most_spans)};
}

void open_time_begin(OpenTime *open, const StepProgram *program, const Span *spans, int64_t count) {
    open->count = 0;
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(program->lanes[program->tasks[spans[i].task].lane].name, "compute") == 0) {
            open->busy[open->count++] = (OpenInterval){span_ns(spans[i].start_s), span_ns(spans[i].end_s)};
        }
    }
}

int64_t open_time_ns(const OpenTime *open, const Span *span) {
    const int64_t start_ns = span_ns(span->start_s), end_ns = span_ns(span->end_s);
    int64_t low = 0, high = open->count;
    while (low < high) {  // the first that ends after the start
        const int64_t middle = (low + high) / 2;
        if (open->busy[middle].end_ns > start_ns) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    int64_t covered = 0;
    for (int64_t i = low; i < open->count && open->busy[i].start_ns < end_ns; i++) {
        const int64_t from = open->busy[i].start_ns > start_ns ? open->busy[i].start_ns : start_ns;
        const int64_t to = open->busy[i].end_ns < end_ns ? open->busy[i].end_ns : end_ns;
        covered += to - from;
    }
    return end_ns - start_ns - covered;
}
