// The spans of a step as columns, in whole nanoseconds. Steps of tens of thousands of spans are shown in blocks:
// consecutive spans on a lane within a layer, else a micro-batch, else a phase form one block, at the finest level that
// MOST_BLOCKS allows. The first micro-batch is included task by task.

#include <math.h>

#include "reports/html/sections.h"

enum { MOST_BLOCKS = 3000, MOST_WINDOW = 2500 };

typedef enum { LEVEL_TASKS, LEVEL_LAYERS, LEVEL_MICRO_BATCHES, LEVEL_PHASES, LEVEL_COUNT } Level;

static const char *const level_names[LEVEL_COUNT] = {"tasks", "layers", "micro-batches", "phases"};

typedef struct Block {
    const Span *first;
    int lane;
    Phase phase;
    int64_t tasks;
    double end_s, busy_s;
} Block;

static bool joins(const StepProgram *program, const Block *block, const Span *span, Level level) {
    const Phase phase = program->tasks[span->task].phase;
    return level != LEVEL_TASKS && block->phase == phase &&
           (level > LEVEL_LAYERS || block->first->layer == span->layer) &&
           (level > LEVEL_MICRO_BATCHES || block->first->micro_step == span->micro_step);
}

typedef struct Columns {
    json_t *object;
    bool named;  // blocks are tasks
    int most;
} Columns;

static void append(json_t *columns, const char *name, json_int_t value) {
    columns_append(columns, name, json_integer(value));
}

static json_int_t nanoseconds(double seconds) {
    return (json_int_t)llround(1e9 * seconds);
}

static void append_block(Columns *columns, const Block *block) {
    if (columns->most-- <= 0) {
        return;
    }
    append(columns->object, "lane", block->lane);
    append(columns->object, "phase", block->phase);
    append(columns->object, "layer", block->first->layer);
    append(columns->object, "micro_batch", block->first->micro_step);
    append(columns->object, "start_ns", nanoseconds(block->first->start_s));
    append(columns->object, "length_ns", nanoseconds(block->end_s - block->first->start_s));
    if (columns->named) {
        append(columns->object, "task", block->first->task);
    } else {
        append(columns->object, "tasks", block->tasks);
        append(columns->object, "busy_ns", nanoseconds(block->busy_s));
    }
}

// Blocks of one rank in order of their ends; only counts them where there are no columns.
static int64_t walk_blocks(const HtmlTimeline *shown, Level level, Columns *columns, Arena *arena) {
    const StepProgram *program = shown->program;
    Block *open = ARENA_ARRAY(arena, Block, program->lane_count);
    int64_t count = 0;
    for (int64_t i = 0; i <= shown->timeline->span_count; i++) {
        const bool end = i == shown->timeline->span_count;
        const Span *span = end ? NULL : &shown->timeline->spans[i];
        if (!end && span->rank != shown->rank) {
            continue;
        }
        for (int32_t lane = 0; lane < program->lane_count; lane++) {
            const bool here = !end && program->tasks[span->task].lane == lane;
            if (open[lane].first && (end || (here && !joins(program, &open[lane], span, level)))) {
                if (columns) {
                    append_block(columns, &open[lane]);
                }
                count++;
                open[lane].first = NULL;
            }
            if (here && !open[lane].first) {
                open[lane] = (Block){.first = span, .lane = lane, .phase = program->tasks[span->task].phase};
            }
            if (here) {
                open[lane].tasks++;
                open[lane].end_s = span->end_s;
                open[lane].busy_s += span->end_s - span->start_s;
            }
        }
    }
    return count;
}

static json_t *blocks_object(const HtmlTimeline *shown, Level level, Arena *arena) {
    Columns columns = {json_object(), level == LEVEL_TASKS, MOST_BLOCKS};
    walk_blocks(shown, level, &columns, arena);
    return columns.object;
}

// The first micro-batch, task by task.
static json_t *window_object(const HtmlTimeline *shown, Arena *arena) {
    const Timeline *whole = shown->timeline;
    Timeline first = *whole;
    first.spans = ARENA_ARRAY(arena, Span, MOST_WINDOW);
    first.span_count = 0;
    for (int64_t i = 0; i < whole->span_count && first.span_count < MOST_WINDOW; i++) {
        if (whole->spans[i].rank != shown->rank) {
            continue;
        }
        if (whole->spans[i].micro_step > 0) {
            break;  // spans after the micro-batches count with the first again
        }
        first.spans[first.span_count++] = whole->spans[i];
    }
    const HtmlTimeline cut = {shown->program, &first, shown->rank};
    return blocks_object(&cut, LEVEL_TASKS, arena);
}

static Level choose_level(const HtmlTimeline *shown, Arena *arena) {
    Level level = LEVEL_TASKS;
    while (level + 1 < LEVEL_COUNT && walk_blocks(shown, level, NULL, arena) > MOST_BLOCKS) {
        level++;
    }
    return level;
}

static json_t *one_timeline(const HtmlTimeline *shown, Arena *arena) {
    if (!shown->program) {
        return json_null();
    }
    const Level level = choose_level(shown, arena);
    json_t *lanes = json_array(), *tasks = json_array();
    for (int32_t i = 0; i < shown->program->lane_count; i++) {
        json_array_append_new(lanes, json_string(shown->program->lanes[i].name));
    }
    for (int32_t i = 0; i < shown->program->task_count; i++) {
        json_array_append_new(tasks, json_string(shown->program->tasks[i].name));
    }
    return json_pack("{s:f, s:i, s:b, s:s, s:o, s:o, s:o, s:o}", "step_s", shown->timeline->step_s, "rank", shown->rank,
                     "complete", shown->timeline->complete, "level", level_names[level], "lanes", lanes, "tasks", tasks,
                     "blocks", blocks_object(shown, level, arena), "window",
                     level == LEVEL_TASKS ? json_null() : window_object(shown, arena));
}

json_t *timeline_data(const HtmlReport *report) {
    json_t *phases = json_array();
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        json_array_append_new(phases, json_string(phase_name((Phase)phase)));
    }
    return json_pack("{s:o, s:o, s:o}", "phases", phases, "simulated", one_timeline(&report->simulated, report->arena),
                     "measured", one_timeline(&report->measured, report->arena));
}
