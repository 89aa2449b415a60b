// Keeps the progress of running tasks up to date. Rates depend only on which demands run together on a rank, so they
// are looked up in a small cache; a collective of several actors advances with the slowest member. Time left is kept
// in isolated picoseconds relative to now, never as an absolute time: a repeated iteration goes through exactly the
// same arithmetic. Not modelled: what a collective held back by one member leaves unused on the links of the others.

#include "sim/engine/simulation.h"

#include <math.h>
#include <string.h>

enum { CACHE_ROWS = 1024 };

typedef struct CacheRow {
    uint64_t demand[2];  // the key
    double rate[ENGINE_RATED];
} CacheRow;

typedef struct DueCollective {
    int32_t leader;
    int lane;
} DueCollective;

struct RateCache {
    uint16_t place[CACHE_ROWS];  // by hash: into rows, 0 = free
    CacheRow *rows;              // [0] is unused
    uint16_t count;
    DueCollective *due;
    size_t due_count, due_capacity;
};

RateCache *rate_cache_new(Arena *arena) {
    RateCache *cache = ARENA_NEW(arena, RateCache);
    cache->rows = ARENA_UNCLEARED(arena, CacheRow, CACHE_ROWS + 1);
    return cache;
}

static void fill_row(const EngineProgram *program, const uint16_t *demand, CacheRow *row) {
    const ShareDemand *active[ENGINE_RATED];
    double rates[ENGINE_RATED];
    int lanes[ENGINE_RATED];
    int count = 0;
    for (int lane = 0; lane < ENGINE_RATED; lane++) {
        if (demand[lane]) {
            active[count] = &program->demands[demand[lane]];
            lanes[count++] = lane;
        }
    }
    share_rates(active, count, &program->interference, rates);
    for (int i = 0; i < count; i++) {
        row->rate[lanes[i]] = rates[i];
    }
}

static const double *rates_of(Simulation *simulation, const uint16_t *demand) {
    RateCache *cache = simulation->rates;
    uint64_t half[2];
    memcpy(half, demand, sizeof half);
    const uint64_t mixed = (half[0] ^ half[1] * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    uint16_t *place = &cache->place[mixed >> 54];
    CacheRow *row = &cache->rows[*place];
    if (*place == 0 || half[0] != row->demand[0] || half[1] != row->demand[1]) {
        *place = *place == 0 ? ++cache->count : *place;
        row = &cache->rows[*place];
        memcpy(row->demand, half, sizeof half);
        fill_row(&simulation->program, demand, row);
    }
    return row->rate;
}

// Running at this rate from now on.
static void set_rate(Simulation *simulation, int32_t index, int lane, double rate) {
    Actor *actor = &simulation->actors[index];
    if (rate == actor->rate[lane]) {
        return;
    }
    const int64_t now = simulation->now_ps;
    actor->remaining_ps[lane] =
        fmax(0, actor->remaining_ps[lane] - (double)(now - actor->update_ps[lane]) * actor->rate[lane]);
    actor->update_ps[lane] = now;
    actor->rate[lane] = rate;
    actor->next_ps[lane] = now + (int64_t)ceil(actor->remaining_ps[lane] / rate);
}

static void note_due(Simulation *simulation, int32_t leader, int lane) {
    RateCache *cache = simulation->rates;
    ARENA_PUSH(simulation->arena, cache->due, cache->due_count, &cache->due_capacity) =
        (DueCollective){.leader = leader, .lane = lane};
}

static void update_actor(Simulation *simulation, int32_t index) {
    Actor *actor = &simulation->actors[index];
    const double *rates = rates_of(simulation, actor->demand);
    for (uint32_t left = simulation->lanes & ~actor->idle; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (!actor->demand[lane] || rates[lane] == actor->local_rate[lane]) {
            continue;
        }
        actor->local_rate[lane] = rates[lane];
        const int32_t group = simulation->program.tasks[actor->task[lane]].group;
        if (group < 0) {
            set_rate(simulation, index, lane, rates[lane]);
        } else if (simulation->classes.count[group * simulation->classes.actors + index] == 1) {
            set_rate(simulation, index, lane, rates[lane] / simulation->classes.link_slowdown[index]);
        } else {
            note_due(simulation, actor->leader[lane], lane);
        }
    }
}

// The slowest member sets the pace.
static void update_collective(Simulation *simulation, int32_t leader, int lane) {
    const RankClasses *classes = &simulation->classes;
    const int32_t task = simulation->actors[leader].task[lane];
    const int32_t entry = simulation->program.tasks[task].group * classes->actors + leader;
    double rate = 1;
    for (int32_t i = 0; i < classes->count[entry]; i++) {
        const int32_t member = classes->members[classes->first[entry] + i];
        rate = fmin(rate, simulation->actors[member].local_rate[lane] / classes->link_slowdown[member]);
    }
    set_rate(simulation, leader, lane, rate);
    actor_queue_update(&simulation->queue, leader, &simulation->actors[leader], simulation->lanes);
}

static int compare_due(const void *a, const void *b) {
    const DueCollective *x = a, *y = b;
    return x->leader != y->leader ? (x->leader > y->leader) - (x->leader < y->leader)
                                  : (x->lane > y->lane) - (x->lane < y->lane);
}

void rates_update(Simulation *simulation) {
    RateCache *cache = simulation->rates;
    for (int32_t i = 0; i < simulation->changed_count; i++) {
        const int32_t index = simulation->changed[i];
        simulation->actors[index].changed = false;
        update_actor(simulation, index);
        actor_queue_update(&simulation->queue, index, &simulation->actors[index], simulation->lanes);
    }
    simulation->changed_count = 0;
    if (cache->due_count > 1) {
        qsort(cache->due, cache->due_count, sizeof *cache->due, compare_due);
    }
    for (size_t i = 0; i < cache->due_count; i++) {
        if (i == 0 || compare_due(&cache->due[i - 1], &cache->due[i]) != 0) {
            update_collective(simulation, cache->due[i].leader, cache->due[i].lane);
        }
    }
    cache->due_count = 0;
}
