// How many messages a link must hold, so that stages which run their programs in issue order, one task after the other,
// never wait for each other in a circle.

#pragma once

#include "exec/transport/transport.h"
#include "sim/step/stages.h"

typedef struct LinkMessages {
    const StepPrograms *programs;
    const int16_t *const *of_task;  // by stage and task: index of its link
    bool exact;                     // a bitwise run: exact sums behind each message
} LinkMessages;

// Fills in message_bytes and ahead of the links among the communicators. INTERNAL where no room is enough: the programs
// do not go together.
Status link_room_find(const LinkMessages *messages, Communicator *communicators, Arena *arena, Error *error);
