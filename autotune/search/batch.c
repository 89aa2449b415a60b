// Shapes differ in how many sequences a micro-step takes at least: data ranks times micro-batch, the unit of a shape. A
// multiple of all units is a batch that every shape can make. Shapes that no batch makes legal (rejected by a rule of
// prune.c other than the batch's) are ignored.

#include "autotune/search/batch.h"

#include <stdlib.h>

#include "autotune/search/prune.h"
#include "autotune/search/space.h"
#include "sim/base/integer.h"

enum { MOST_TIMES = 2, SMALL_MICRO_BATCHES = 8 };
static const double NEAR = 0.10;  // a guess: a tenth is acceptable when no batch was requested

typedef struct Units {
    int64_t *sizes;  // distinct
    int *shapes;     // that have it
    int count;
} Units;

int64_t batch_nearest_multiple(int64_t wanted, int64_t unit) {
    const int64_t below = wanted / unit * unit;
    const int64_t nearest = wanted - below <= below + unit - wanted ? below : below + unit;
    return nearest > 0 ? nearest : unit;
}

int batches_around(int64_t batch, int world, int64_t around[BATCHES_AROUND]) {
    const int64_t over = batch % world, below = over > 0 ? batch - over : 0, above = batch - over + world;
    const bool is_lower_first = below > 0 && 2 * over < world;
    around[0] = is_lower_first ? below : above;
    around[1] = is_lower_first ? above : below;
    return below > 0 ? 2 : 1;
}

int64_t batch_default(int seq) {
    const int64_t sequences = ((int64_t)TUNE_DEFAULT_TOKENS + seq / 2) / seq;
    return sequences > 0 ? sequences : 1;
}

static void add_unit(Units *units, int64_t size) {
    int at = 0;
    while (at < units->count && units->sizes[at] != size) {
        at++;
    }
    units->sizes[at] = size;
    units->shapes[at]++;
    units->count += at == units->count;
}

static void find_units(const TuneRequest *request, const Space *space, Arena *arena, Units *units) {
    *units = (Units){.sizes = ARENA_ARRAY(arena, int64_t, space->mesh_count),
                     .shapes = ARENA_ARRAY(arena, int, space->mesh_count)};
    for (int shape = 0; shape < space->mesh_count; shape++) {
        TrainPlan plan;
        const char *reason = NULL;
        space_plain_plan(request, &space->meshes[shape], &plan);
        if (!prune(request, &plan, NULL, arena, &reason)) {
            add_unit(units, plan_global_batch(&plan));
        }
    }
}

// A multiple of all units; 0 = there is none up to `most`.
static int64_t common_multiple(const Units *units, int64_t most) {
    int64_t common = 1;
    for (int i = 0; i < units->count; i++) {
        common = common / gcd(common, units->sizes[i]) * units->sizes[i];
        if (common > most) {
            return 0;
        }
    }
    return common;
}

static int reached(const Units *units, int64_t batch) {
    int shapes = 0;
    for (int i = 0; i < units->count; i++) {
        shapes += batch % units->sizes[i] == 0 ? units->shapes[i] : 0;
    }
    return shapes;
}

// Of the multiples of a unit nearest to what is wanted: the one that most shapes can make, of equals the nearest.
static int64_t most_reached(const Units *units, int64_t wanted) {
    int64_t best = 0;
    int best_reached = 0;
    int64_t least = INT64_MAX;
    for (int i = 0; i < units->count; i++) {
        const int64_t batch = batch_nearest_multiple(wanted, units->sizes[i]);
        const int shapes = reached(units, batch);
        least = units->sizes[i] < least ? units->sizes[i] : least;
        if (batch <= MOST_TIMES * wanted &&
            (shapes > best_reached || (shapes == best_reached && llabs(batch - wanted) < llabs(best - wanted)))) {
            best = batch;
            best_reached = shapes;
        }
    }
    return best > 0 ? best : units->count > 0 ? least : wanted;
}

// Where it stays near, also a multiple of small micro-batches of every shape: 1032 sequences leave 24 data ranks 43
// each, which no micro-batch but 1 divides.
static int64_t batch_for_all(const TuneRequest *request, Arena *arena) {
    const int64_t wanted = batch_default(request->seq);
    Space space;
    Units units;
    space_meshes(request, arena, &space);
    find_units(request, &space, arena, &units);
    const int64_t common = common_multiple(&units, MOST_TIMES * wanted);
    for (int micro_batch = SMALL_MICRO_BATCHES; common > 0 && micro_batch > 1; micro_batch /= 2) {
        const int64_t batch = batch_nearest_multiple(wanted, micro_batch * common);
        if ((double)llabs(batch - wanted) <= NEAR * (double)wanted) {
            return batch;
        }
    }
    return common > 0 ? batch_nearest_multiple(wanted, common) : most_reached(&units, wanted);
}

const TuneRequest *batch_settle(const TuneRequest *request, Arena *arena) {
    if (request->global_batch > 0 && !request->batch_assumed) {
        return request;
    }
    TuneRequest *settled = ARENA_NEW(arena, TuneRequest);
    *settled = *request;
    settled->global_batch = 0;  // for the rules of the batch: any will do
    settled->batch_assumed = true;
    settled->global_batch = batch_for_all(settled, arena);
    return settled;
}
