// Live bytes by role over a step of at most two micro-batches (later ones repeat the second), counted as in
// memory_breakdown: from the first write of each slot to its last use, in issue order. MOST_POINTS samples, each the
// maximum of its time interval, so that the peak is among them.

#include "sim/memory/lifetimes.h"

#include <math.h>

#include "reports/html/sections.h"
#include "reports/memory_terms.h"

enum { MOST_POINTS = 300 };

typedef struct Curve {
    const StepProgram *program;
    StepInstance *instances;
    int32_t count;
    double *start_s;
    double (*change)[ROLE_COUNT];  // of live bytes when an instance begins; the last row: after the step
    double live[ROLE_COUNT];
} Curve;

static double total_of(const double live[ROLE_COUNT]) {
    double total = 0;
    for (int role = 0; role < ROLE_COUNT; role++) {
        total += live[role];
    }
    return total;
}

// False where the timeline lacks a span for some instance.
static bool list_instances(Curve *curve, const HtmlTimeline *shown, Arena *arena) {
    curve->program = shown->program;
    curve->count = (int32_t)step_instance_count(shown->program);
    curve->instances = ARENA_ARRAY(arena, StepInstance, curve->count);
    curve->start_s = ARENA_ARRAY(arena, double, curve->count);
    StepCursor cursor = step_cursor_begin(shown->program);
    int32_t count = 0;
    for (int64_t i = 0; i < shown->timeline->span_count; i++) {
        const Span *span = &shown->timeline->spans[i];
        if (span->rank == shown->rank && count < curve->count && step_cursor_next(&cursor, &curve->instances[count])) {
            curve->start_s[count++] = span->start_s;
        }
    }
    return count == curve->count;
}

static Status find_changes(Curve *curve, Arena *arena, Error *error) {
    const StepProgram *program = curve->program;
    Lifetimes lifetimes;
    TRY(lifetimes_find(program, curve->instances, curve->count, arena, &lifetimes, error));
    curve->change = arena_array(arena, (size_t)curve->count + 1, sizeof *curve->change);
    for (int32_t i = 0; i < program->buffer_count; i++) {
        const Buffer *buffer = &program->buffers[i];
        if (buffer->persistent) {
            curve->change[0][buffer->role] += (double)buffer->slots * (double)buffer->slot_bytes;
        }
    }
    for (int32_t i = 0; i < lifetimes.count; i++) {
        const SlotLifetime *row = &lifetimes.rows[i];
        const Buffer *buffer = &program->buffers[row->buffer];
        curve->change[row->first][buffer->role] += (double)buffer->slot_bytes;
        curve->change[row->last + 1][buffer->role] -= (double)buffer->slot_bytes;
    }
    return STATUS_OK;
}

// The maximum within a time interval.
typedef struct Moment {
    int32_t instance;  // -1 = none yet
    double total, live[ROLE_COUNT];
} Moment;

static void put_moment(const Curve *curve, const Moment *moment, json_t *times, json_t *bytes) {
    if (moment->instance < 0) {
        return;
    }
    json_array_append_new(times, json_real(1e3 * curve->start_s[moment->instance]));
    for (int role = 0; role < ROLE_COUNT; role++) {
        json_array_append_new(json_array_get(bytes, (size_t)role),
                              json_integer((json_int_t)llround(moment->live[role])));
    }
}

static json_t *peak_object(const Curve *curve, const Moment *peak) {
    const StepInstance *at = &curve->instances[peak->instance];
    return json_pack("{s:s, s:i, s:i, s:f, s:f}", "task", curve->program->tasks[at->task].name, "layer", at->layer,
                     "micro_batch", at->micro_step, "ms", 1e3 * curve->start_s[peak->instance], "bytes", peak->total);
}

static json_t *curve_object(Curve *curve, double step_s) {
    json_t *times = json_array(), *bytes = json_array(), *names = json_array();
    for (int role = 0; role < ROLE_COUNT; role++) {
        json_array_append_new(bytes, json_array());
        json_array_append_new(names, json_string(memory_role_words[role]));
    }
    Moment highest = {.instance = -1}, peak = {.instance = 0};
    int stretch = 0;
    for (int32_t i = 0; i < curve->count; i++) {
        for (int role = 0; role < ROLE_COUNT; role++) {
            curve->live[role] += curve->change[i][role];
        }
        const int here = (int)(MOST_POINTS * curve->start_s[i] / step_s);
        if (here > stretch) {
            put_moment(curve, &highest, times, bytes);
            highest.instance = -1;
            stretch = here;
        }
        const double total = total_of(curve->live);
        if (highest.instance < 0 || total > highest.total) {
            highest = (Moment){.instance = i, .total = total};
            for (int role = 0; role < ROLE_COUNT; role++) {
                highest.live[role] = curve->live[role];
            }
        }
        peak = total > peak.total ? highest : peak;
    }
    put_moment(curve, &highest, times, bytes);
    return json_pack("{s:o, s:o, s:o, s:o}", "roles", names, "ms", times, "bytes", bytes, "peak",
                     peak_object(curve, &peak));
}

json_t *memory_curve(const HtmlReport *report) {
    const HtmlTimeline *shown = &report->memory_step;
    Curve curve = {0};
    if (!shown->program || !list_instances(&curve, shown, report->arena) || curve.count == 0 ||
        find_changes(&curve, report->arena, NULL) != STATUS_OK) {
        return json_null();
    }
    return curve_object(&curve, shown->timeline->step_s);
}
