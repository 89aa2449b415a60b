// Simulates the stages' sends and receives: each stage goes on until its next message finds no room or has not arrived.
// When all are blocked, each full link gets room for one more.

#include "exec/protocol/link_room.h"

enum { LEAST_AHEAD = 2 };  // a sender may start its next message

// The messages of a stage, in issue order.
typedef struct StageMessages {
    int16_t *links;
    bool *sends;
    int64_t count, next;
} StageMessages;

typedef struct Play {
    StageMessages *stages;
    int count;
    Communicator *links;
    int64_t waiting[TRANSPORT_MAX_COMMUNICATORS][TRANSPORT_MAX_WORLD];  // by link and the stage that sent
} Play;

static StageMessages stage_messages(const LinkMessages *messages, int stage, Arena *arena) {
    const StepProgram *program = &messages->programs->of[stage];
    const int64_t most = step_instance_count(program);
    StageMessages of = {.links = ARENA_ARRAY(arena, int16_t, most), .sends = ARENA_ARRAY(arena, bool, most)};
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        if (task_is_message(task)) {
            of.links[of.count] = messages->of_task[stage][instance.task];
            of.sends[of.count++] = task->kind == TASK_SEND;
        }
    }
    return of;
}

static void sizes_find(const LinkMessages *messages, Communicator *links) {
    for (int stage = 0; stage < messages->programs->count; stage++) {
        const StepProgram *program = &messages->programs->of[stage];
        for (int32_t t = 0; t < program->task_count; t++) {
            const Task *task = &program->tasks[t];
            if (!task_is_message(task)) {
                continue;
            }
            Communicator *link = &links[messages->of_task[stage][t]];
            const int64_t bytes = task_operand(program, task, AT_MESSAGE)->ref.bytes;
            link->message_bytes = bytes > link->message_bytes ? bytes : link->message_bytes;
            link->ahead = LEAST_AHEAD;
        }
    }
}

// The stage at the sending end of a link, seen from the other end.
static int sender_of(const Play *play, const Link *link, int receiver) {
    return (receiver - link->step + play->count) % play->count;
}

// Runs until its next message cannot proceed; true if at least one did.
static bool stage_go(Play *play, int stage) {
    StageMessages *of = &play->stages[stage];
    const int64_t before = of->next;
    for (bool goes = true; goes && of->next < of->count; of->next += goes) {
        const int16_t number = of->links[of->next];
        const Communicator *link = &play->links[number];
        const int sender = of->sends[of->next] ? stage : sender_of(play, &link->link, stage);
        int64_t *waiting = &play->waiting[number][sender];
        goes = of->sends[of->next] ? *waiting < link->ahead : *waiting > 0;
        *waiting += !goes ? 0 : of->sends[of->next] ? 1 : -1;
    }
    return of->next > before;
}

// False: no stage waits for room.
static bool make_room(Play *play) {
    bool made = false;
    for (int stage = 0; stage < play->count; stage++) {
        const StageMessages *of = &play->stages[stage];
        if (of->next < of->count && of->sends[of->next]) {
            play->links[of->links[of->next]].ahead++;
            made = true;
        }
    }
    return made;
}

static bool is_played(const Play *play) {
    for (int stage = 0; stage < play->count; stage++) {
        if (play->stages[stage].next < play->stages[stage].count) {
            return false;
        }
    }
    return true;
}

Status link_room_find(const LinkMessages *messages, Communicator *communicators, Arena *arena, Error *error) {
    const int stages = messages->programs->count;
    if (stages == 1) {
        return STATUS_OK;
    }
    Play *play = ARENA_NEW(arena, Play);
    play->stages = ARENA_ARRAY(arena, StageMessages, stages);
    play->count = stages;
    play->links = communicators;
    sizes_find(messages, communicators);
    for (int stage = 0; stage < stages; stage++) {
        play->stages[stage] = stage_messages(messages, stage, arena);
    }
    while (!is_played(play)) {
        bool went = false;
        for (int stage = 0; stage < stages; stage++) {
            went = stage_go(play, stage) || went;
        }
        FAIL_IF(!went && !make_room(play), error, STATUS_INTERNAL,
                "the programs of the stages wait for messages that nobody sends");
    }
    for (int i = 0; messages->exact && i < TRANSPORT_MAX_COMMUNICATORS; i++) {
        communicators[i].message_bytes *= EXACT_SUM_BYTES;
        communicators[i].ahead *= 2;
    }
    return STATUS_OK;
}
