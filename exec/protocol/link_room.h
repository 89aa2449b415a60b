// How many messages a link must buffer so that stages that run their programs in issue order, one task at a time,
// cannot deadlock.

#pragma once

#include "exec/transport/transport.h"
#include "sim/step/stages.h"

enum { EXACT_SUM_BYTES = 4 };  // of a bitwise run, for each byte of floats (device.h, DEVICE_SUM_BYTES)

typedef struct LinkMessages {
    const StepPrograms *programs;
    const int16_t *const *of_task;  // by stage and task: index of its link
    bool exact;                     // a bitwise run: exact sums along with each message
} LinkMessages;

// Fills in message_bytes and ahead of the links among the communicators. INTERNAL where no buffer size suffices: the
// programs do not match.
Status link_room_find(const LinkMessages *messages, Communicator *communicators, Arena *arena, Error *error);
