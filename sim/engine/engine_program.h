// The program as the engine's inner loop wants it: times in picoseconds, event references as plain slot arithmetic,
// per loop what repetition needs to know. Private to sim/engine.

#pragma once

#include "sim/cost/interference.h"
#include "sim/engine/engine.h"
#include "sim/step/slots.h"

// Upper limit; lane 0 computes. Lanes beyond ENGINE_RATED occupy nothing: receives, whose sends do.
enum { ENGINE_LANES = 9, ENGINE_RATED = 8 };

// One wait or record, of an event recorded on `lane`: slot first_slot + (layer index) mod slots, and where the
// micro-step has slots of its own + slots * (micro-step index mod micro_steps).
typedef struct EventSite {
    int32_t event;
    int32_t first_slot, slots;
    int32_t micro_steps;  // 0: the slot is the same in every micro-step
    SlotIndex index;
    int32_t lane;
} EventSite;

enum { ENGINE_ALONE = -1, ENGINE_SEND = -2, ENGINE_RECEIVE = -3 };  // belongs to no group

typedef struct EngineTask {
    int64_t duration_ps, host_ps;
    int32_t first_wait, wait_count;  // sites; waits on the task's own lane are dropped, the lane orders them
    int32_t first_record, record_count;
    int16_t lane, guard, group;  // group: below 0 when not a collective
    uint16_t demand;             // index into demands; 0 = occupies nothing
    HostStop host_stop;
    uint64_t waits, records;  // events of its sites, a bit each: of several events the same
} EngineTask;

// Sets of lanes, for a stretch that is being walked: when one of them has nothing queued, (lookahead.c)
typedef struct WalkNeeds {
    uint32_t eager;                     // the walk goes on: its next task might start before the stretch is walked
    uint32_t held;                      // it goes on in the stretch's last iteration
    uint32_t early;                     // tasks beyond the stretch are queued before the walk is there,
    uint8_t early_tasks[ENGINE_LANES];  // how many
} WalkNeeds;

// What a loop's iterations have in common.
typedef struct LoopShape {
    uint32_t lanes;      // that the body (or the stretch of tasks) uses
    uint32_t joined;     // of them, those with collectives
    uint64_t records;    // events that the tasks record, as given by the tasks
    WalkNeeds needs[2];  // [1] where the micro-step loop around it is in its last iteration, or there is none
    bool last_differs;   // the loop's last iteration needs more or less of the walk than the others
    int32_t margin;      // iterations at either end that may differ: guards and look-ahead
    // Iterations after which no slot of a ring, of layers or micro-steps, holds an event from before the loop.
    int32_t ring_iterations;
    bool uniform;  // iterations between the margins are shifts of each other
} LoopShape;

typedef struct PathStep PathStep;  // walk_path.h

typedef struct EngineProgram {
    const StepProgram *step;
    EngineTask *tasks;
    EventSite *sites;
    int32_t slot_count;
    LoopShape *shapes;          // per segment
    const PathStep *path;       // what is issued, from the program's start to its end
    const int32_t *path_first;  // by segment outside of loops: its first step; [segment_count] is their number
    const int32_t *path_next;   // by lane and step (one more than there are): the first from there on with the lane
    ShareDemand *demands;
    int32_t demand_count;
    int32_t lane_count;
    uint32_t stopping;                // lanes with tasks that stop the host
    uint32_t siblings[ENGINE_LANES];  // lanes with the same communicator, without the lane itself
    Interference interference;
} EngineProgram;

int64_t engine_picoseconds(double seconds);

Status engine_compile(const StepProgram *program, const EngineCosts *costs, Arena *arena, EngineProgram *compiled,
                      Error *error);

// Fills the needs of every segment that is a stretch.
void engine_find_needs(EngineProgram *compiled, Arena *arena);

static inline int32_t event_site_slot(const EventSite *site, int32_t layer, int32_t micro_step) {
    int32_t index = site->index.layer_scale * layer + site->index.layer_offset;
    if ((uint32_t)index >= (uint32_t)site->slots) {
        index = slot_modulo(index, site->slots);
    }
    if (site->micro_steps > 0) {
        index += site->slots * slot_modulo(micro_step + site->index.micro_offset, site->micro_steps);
    }
    return site->first_slot + index;
}
