// At each position of the order, takes the body that leaves the fewest actions to list, of equal ones the shortest; if
// none repeats, the stretch of one micro-step. So all stages of an interleaved pipeline take a group of micro-steps
// through all chunks per iteration, which the engine needs to skip what repeats, rather than each a few of one chunk.
// In-flight state is kept in rings of slots indexed by micro-step: where a file's micro-steps come out of order, the
// ring spans the oldest to the latest of them.

#include "sim/step/schedules/micro_loops.h"

#include <stdbool.h>

typedef struct Finder {
    const ScheduleAction *actions;
    const MicroKind *kinds;  // of each action, where the micro-step does not determine it; NULL
    int32_t count, micro_steps, round_steps;
    int32_t in_turn;  // actions of a micro-step, where each kind of work takes micro-steps in ascending order; else 0
    MicroLoops *loops;
} Finder;

MicroKind micro_kind(int32_t micro_step, int32_t round_steps) {
    const bool adds = micro_step >= round_steps;
    const int32_t at = micro_step % round_steps;
    return round_steps == 1        ? adds ? MICRO_ADD_ONLY : MICRO_ONLY
           : at == 0               ? adds ? MICRO_ADD_FIRST : MICRO_FIRST
           : at == round_steps - 1 ? adds ? MICRO_ADD_LAST : MICRO_LAST
                                   : MICRO_MIDDLE;
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

static MicroKind kind_of(const Finder *finder, int32_t at) {
    return finder->kinds ? finder->kinds[at] : micro_kind(finder->actions[at].micro_step, finder->round_steps);
}

// Whether the action equals the one a body earlier, `step` micro-steps further.
static bool follows(const Finder *finder, int32_t at, int32_t before, int32_t step) {
    const ScheduleAction *a = &finder->actions[at], *b = &finder->actions[before];
    return a->work == b->work && a->chunk == b->chunk && a->micro_step == b->micro_step + step &&
           kind_of(finder, at) == kind_of(finder, before);
}

static int32_t step_of(const Finder *finder, int32_t from, int32_t length) {
    const int32_t next = from + length;
    return next < finder->count ? finder->actions[next].micro_step - finder->actions[from].micro_step : 1;
}

// How many times the next `length` actions repeat, back to back.
static int32_t repeats(const Finder *finder, int32_t from, int32_t length) {
    const int32_t step = step_of(finder, from, length);
    int32_t at = from + length;
    while (at < finder->count && step > 0 && follows(finder, at, at - length, step)) {
        at++;
    }
    return (at - from) / length;
}

// The body to repeat from here on; 0: none does. A longer body within what one repeats through would be several of it.
static int32_t body_at(const Finder *finder, int32_t from, int32_t longest) {
    int32_t best = 0, saved = 0;
    for (int32_t length = 1; length <= longest; length = larger(length, saved) + 1) {
        const int32_t more = (repeats(finder, from, length) - 1) * length;
        if (more > saved) {
            best = length;
            saved = more;
        }
    }
    return best;
}

// Number of actions from here on that belong to one micro-step.
static int32_t stretch(const Finder *finder, int32_t from) {
    int32_t at = from + 1;
    while (at < finder->count && finder->actions[at].micro_step == finder->actions[from].micro_step) {
        at++;
    }
    return at - from;
}

static void add_loop(const Finder *finder, int32_t from, int32_t length, int32_t count) {
    MicroLoops *loops = finder->loops;
    const int32_t base = finder->actions[from].micro_step;
    const int32_t step = count > 1 ? step_of(finder, from, length) : 1;
    loops->loops[loops->count++] = (MicroLoop){.kind = kind_of(finder, from),
                                               .first = base,
                                               .count = count,
                                               .step = step,
                                               .steady = length == step * finder->in_turn,
                                               .first_work = loops->work_count,
                                               .work_count = length};
    for (int32_t i = from; i < from + length; i++) {
        const ScheduleAction *action = &finder->actions[i];
        loops->works[loops->work_count++] = (MicroWork){.work = action->work,
                                                        .chunk = action->chunk,
                                                        .kind = kind_of(finder, i),
                                                        .micro_offset = action->micro_step - base};
    }
}

typedef int32_t WorksDone[WORK_COUNT];

static void raise_to(int32_t *most, int32_t value) {
    *most = value > *most ? value : *most;
}

// From the latest input gradient of any chunk to the oldest pending weight gradient.
static int32_t spread_of(const WorksDone *done, int32_t chunks) {
    int32_t latest = 0, oldest = INT32_MAX;
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        latest = done[chunk][WORK_BACKWARD] > latest ? done[chunk][WORK_BACKWARD] : latest;
        oldest = done[chunk][WORK_WEIGHTS] < oldest ? done[chunk][WORK_WEIGHTS] : oldest;
    }
    return latest - oldest;
}

static void count_flying(const Finder *finder, bool splits, int32_t chunks, Arena *arena) {
    MicroLoops *loops = finder->loops;
    WorksDone *done = arena_array(arena, (size_t)chunks, sizeof *done);
    loops->held = loops->spread = 1;
    for (int32_t i = 0; i < finder->count; i++) {
        int32_t *here = done[finder->actions[i].chunk];
        here[finder->actions[i].work]++;
        raise_to(&loops->in_flight, here[WORK_FORWARD] - here[WORK_BACKWARD]);
        if (splits) {
            raise_to(&loops->until_weights, here[WORK_FORWARD] - here[WORK_WEIGHTS]);
            raise_to(&loops->held, here[WORK_BACKWARD] - here[WORK_WEIGHTS]);
            raise_to(&loops->spread, spread_of(done, chunks));
        }
    }
}

// ---- micro-steps in any order

// For each kind of work of a chunk, its first item starts the gradients and its last one reduces them.
static MicroKind *kinds_in_turn(const Finder *finder, int32_t chunks, Arena *arena) {
    MicroKind *kinds = ARENA_ARRAY(arena, MicroKind, finder->count);
    WorksDone *done = arena_array(arena, (size_t)chunks, sizeof *done);
    for (int32_t i = 0; i < finder->count; i++) {
        const ScheduleAction *action = &finder->actions[i];
        kinds[i] = micro_kind(done[action->chunk][action->work]++, finder->round_steps);
    }
    return kinds;
}

#define DONE(work) (1u << (work))

// Span from the oldest to the latest micro-step that has done one kind of work and not the other.
static int32_t window(const uint8_t *done, int32_t micro_steps, unsigned begun, unsigned ended) {
    int32_t oldest = micro_steps, latest = -1;
    for (int32_t i = 0; i < micro_steps; i++) {
        if ((done[i] & begun) && !(done[i] & ended)) {
            oldest = i < oldest ? i : oldest;
            latest = i;
        }
    }
    return latest < 0 ? 0 : latest - oldest + 1;
}

static void count_windows(const Finder *finder, const Schedule *schedule, int32_t chunks, Arena *arena) {
    MicroLoops *loops = finder->loops;
    const int32_t all = finder->micro_steps;
    const Work last = (Work)(schedule_works(schedule) - 1);
    uint8_t *done = ARENA_ARRAY(arena, uint8_t, all * chunks), *any = ARENA_ARRAY(arena, uint8_t, all);
    int32_t *ended = ARENA_ARRAY(arena, int32_t, all);  // number of chunks
    loops->held = loops->spread = 1;
    for (int32_t i = 0; i < finder->count; i++) {
        const ScheduleAction *action = &finder->actions[i];
        uint8_t *here = &done[action->chunk * all];
        here[action->micro_step] |= (uint8_t)DONE(action->work);
        ended[action->micro_step] += action->work == last;
        any[action->micro_step] |= here[action->micro_step];
        if (ended[action->micro_step] == chunks) {
            any[action->micro_step] = 0;
        }
        raise_to(&loops->in_flight, window(here, all, DONE(WORK_FORWARD), DONE(WORK_BACKWARD)));
        if (schedule->splits) {
            raise_to(&loops->until_weights, window(here, all, DONE(WORK_FORWARD), DONE(WORK_WEIGHTS)));
            raise_to(&loops->held, window(here, all, DONE(WORK_BACKWARD), DONE(WORK_WEIGHTS)));
        }
        if (schedule->splits || schedule->folded) {
            raise_to(&loops->spread, window(any, all, DONE(WORK_BACKWARD), 0));
        }
    }
}

// A body longer than forward and backward of every chunk in turn repeats nothing that a shorter one does not, unless
// it is a round.
static int32_t longest_body(const Schedule *schedule, const ScheduleShape *shape) {
    const int32_t group = shape->group > shape->stages ? shape->group : shape->stages;
    const int32_t rounds = schedule_rounds(shape), works = schedule_works(schedule) * shape->chunks;
    const int32_t round = rounds > 2 ? shape->micro_steps / rounds : 0;
    return works * (round > group ? round : group);
}

MicroLoops micro_loops_find(const Schedule *schedule, const ScheduleShape *shape, Arena *arena) {
    const int32_t count = schedule_action_count(schedule, shape), longest = longest_body(schedule, shape);
    ScheduleAction *actions = ARENA_ARRAY(arena, ScheduleAction, count);
    schedule_order(schedule, shape, actions);
    MicroLoops loops = {.loops = ARENA_ARRAY(arena, MicroLoop, count), .works = ARENA_ARRAY(arena, MicroWork, count)};
    Finder finder = {.actions = actions,
                     .count = count,
                     .micro_steps = shape->micro_steps,
                     .round_steps = shape->micro_steps / schedule_rounds(shape),
                     .in_turn = schedule->written ? 0 : schedule_works(schedule) * shape->chunks,
                     .loops = &loops};
    finder.kinds = schedule->written ? kinds_in_turn(&finder, shape->chunks, arena) : NULL;
    for (int32_t at = 0; at < count;) {
        const int32_t body = body_at(&finder, at, longest);
        const int32_t length = body > 0 ? body : stretch(&finder, at);
        const int32_t times = body > 0 ? repeats(&finder, at, length) : 1;
        add_loop(&finder, at, length, times);
        at += length * times;
    }
    if (schedule->written) {
        count_windows(&finder, schedule, shape->chunks, arena);
    } else {
        count_flying(&finder, schedule->splits, shape->chunks, arena);
    }
    return loops;
}
