// How the simulations of several stages interact: messages, and collectives over stages. Each stage
// is a simulation of its own, all on one clock. Private to sim/engine.

#pragma once

#include "sim/engine/simulation.h"

// Messages from one peer and of one phase to one actor.
typedef struct Mailbox {
    int32_t sent, received;
    int64_t *began_ps;  // of each sent message: when it started
    size_t capacity;
    int16_t waiting;  // lane whose head waits for the next one; -1 = none
} Mailbox;

typedef struct MeetingStage {
    Simulation simulation;
    int32_t *box_of;  // by peer and phase: first of its mailboxes, one per actor; -1 = nothing is received
    Mailbox *boxes;
    bool woken;  // another stage has released something here
} MeetingStage;

struct Meeting {
    MeetingStage *stages;
    int32_t count;
    int64_t *next_ps;  // of each stage: its next instant
    bool any_woken;
    Arena *arena;
    int32_t *members;  // of the group of a rank: by group and the rank of its first member, how many actors
    int32_t *arrived;  // of them
    int32_t world;
    int32_t pending;                // arrived and not yet released, in all groups
    MeetingRepetition *repetition;  // NULL = everything is simulated
};

// The stages' simulations must be prepared.
void meeting_init(Meeting *meeting, Arena *arena);
Status meeting_run(Meeting *meeting, Error *error);
