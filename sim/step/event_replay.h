// The event protocol of step.h, replayed in issue order: how many instances of every lane must have ended before an
// instance starts. Lanes run in order, so a count per lane is enough. Shared by all that order tasks by events.

#pragma once

#include "sim/step/step.h"

typedef struct EventReplay {
    const StepProgram *program;
    const int32_t *first_slot;  // where each event's slots begin in recorded
    int32_t *recorded;          // by event slot: instances of its lane issued at its latest record; 0 = never recorded
    int32_t *issued;            // by lane
    int32_t *collectives;       // by lane: instances issued up to its latest collective
} EventReplay;

EventReplay event_replay_new(const StepProgram *program, Arena *arena);
void event_replay_restart(EventReplay *replay);  // nothing is issued yet
// Issues the next instance. need[lane]: instances of each other lane that must have ended before it may start.
void event_replay_issue(EventReplay *replay, const StepInstance *instance, int32_t *need);
