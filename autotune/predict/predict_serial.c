// Every instance of the step at the time that it takes alone; stages meet as in the engine (meeting.c): a message is
// there when its send has ended, a collective over stages starts when the last one is there. Not modelled: ranks of a
// stage that wait for each other because their work or their time slices on a core differ; and where ranks share cores,
// a stage that waits leaves its time slices to the others, which makes the bubble shorter than it is here.

#include "autotune/predict/predict_serial.h"

#include <math.h>
#include <string.h>

#include "autotune/predict/step_terms.h"

typedef struct Message {
    double began_s, ended_s;  // of its send
} Message;

typedef struct Inbox {
    Message *messages;
    int64_t sent, received;
    size_t capacity;
} Inbox;

typedef struct SerialStage {
    const StepProgram *program;
    const TaskCost *costs;
    StepCursor cursor;
    StepInstance instance;  // the one that it is at
    bool ended, arrived;    // arrived: it waits in a collective over stages
    int64_t instances;
    double now_s, bubble_s, terms[TERM_COUNT];
    Inbox *inboxes;  // by peer and phase
    TaskTotal *totals;
    Timeline timeline;  // spans NULL = they are not kept
} SerialStage;

typedef struct SerialReplay {
    SerialStage *stages;
    int count;
    Arena *arena;
} SerialReplay;

bool predict_is_serial(const TuneRequest *request, bool async_lanes) {
    return request->cluster.accelerator.device_class == DEVICE_CLASS_CPU && !async_lanes &&
           request->handicap_count == 0;  // who waits for a slow rank is the engine's to say
}

static void go_on(SerialStage *stage) {
    stage->ended = !step_cursor_next(&stage->cursor, &stage->instance);
}

static void begin_stage(SerialReplay *replay, SerialStage *stage, const StepProgram *program, const CostModel *cost,
                        bool keep_spans) {
    Arena *arena = replay->arena;
    *stage = (SerialStage){.program = program,
                           .costs = cost_program(cost, program, arena),
                           .cursor = step_cursor_begin(program),
                           .inboxes = ARENA_ARRAY(arena, Inbox, replay->count * PHASE_COUNT),
                           .totals = ARENA_ARRAY(arena, TaskTotal, program->task_count),
                           .timeline = {.origin = TIMELINE_SIMULATED, .complete = true}};
    if (keep_spans) {
        stage->timeline.spans = ARENA_ARRAY(arena, Span, step_instance_count(program));
    }
    go_on(stage);
}

// ---- meeting of stages

static void deliver(SerialReplay *replay, const SerialStage *from, const Task *task, double began_s) {
    Inbox *inbox = &replay->stages[task->peer].inboxes[from->program->stage * PHASE_COUNT + (int)task->phase];
    ARENA_PUSH(replay->arena, inbox->messages, inbox->sent, &inbox->capacity) =
        (Message){.began_s = began_s, .ended_s = from->now_s};
}

static void wait_until(SerialStage *stage, double at_s, double *term) {
    if (at_s > stage->now_s) {
        *term += at_s - stage->now_s;
        stage->now_s = at_s;
    }
}

// Until the message was sent it is bubble, then its axis's.
static bool receive(SerialStage *stage, const Task *task) {
    Inbox *inbox = &stage->inboxes[task->peer * PHASE_COUNT + (int)task->phase];
    if (inbox->received == inbox->sent) {
        return false;
    }
    const Message *message = &inbox->messages[inbox->received++];
    wait_until(stage, message->began_s, &stage->bubble_s);
    wait_until(stage, message->ended_s, &stage->terms[step_term(stage->program, task)]);
    return true;
}

// ---- one instance after another

static const Task *task_at(const SerialStage *stage) {
    return &stage->program->tasks[stage->instance.task];
}

static void run_instance(SerialReplay *replay, SerialStage *stage) {
    const int32_t index = stage->instance.task;
    const Task *task = &stage->program->tasks[index];
    const double seconds = stage->costs[index].seconds, began_s = stage->now_s;
    stage->now_s += seconds;
    stage->terms[step_term(stage->program, task)] += seconds;
    stage->totals[index].count++;
    stage->totals[index].seconds += seconds;
    stage->instances++;
    if (stage->timeline.spans) {
        stage->timeline.spans[stage->timeline.span_count++] = (Span){.task = index,
                                                                     .layer = stage->instance.layer,
                                                                     .micro_step = stage->instance.micro_step,
                                                                     .start_s = began_s,
                                                                     .end_s = stage->now_s};
    }
    if (task->kind == TASK_SEND && replay->count > 1) {
        deliver(replay, stage, task, began_s);
    }
    go_on(stage);
}

// As far as the other stages let it.
static bool advance(SerialReplay *replay, SerialStage *stage) {
    bool moved = false;
    while (!stage->ended && !stage->arrived) {
        const Task *task = task_at(stage);
        if (replay->count > 1 && task->kind == TASK_RECEIVE && !receive(stage, task)) {
            break;
        }
        stage->arrived = replay->count > 1 && task_is_collective(task) &&
                         (stage->program->groups[task->group].axes & AXES_STAGE) != 0;
        if (!stage->arrived) {
            run_instance(replay, stage);
        }
        moved = true;
    }
    return moved;
}

// All stages, in the same collective.
static bool meet(SerialReplay *replay) {
    const Task *first = task_at(&replay->stages[0]);
    double last_s = 0;
    for (int i = 0; i < replay->count; i++) {
        const Task *task = task_at(&replay->stages[i]);
        if (!replay->stages[i].arrived || task->group != first->group || task->kind != first->kind) {
            return false;
        }
        last_s = fmax(last_s, replay->stages[i].now_s);
    }
    for (int i = 0; i < replay->count; i++) {
        SerialStage *stage = &replay->stages[i];
        stage->arrived = false;
        wait_until(stage, last_s, &stage->bubble_s);
        run_instance(replay, stage);
    }
    return true;
}

static Status run(SerialReplay *replay, Error *error) {
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < replay->count; i++) {
            moved |= advance(replay, &replay->stages[i]);
        }
        moved |= meet(replay);
    }
    for (int i = 0; i < replay->count; i++) {
        const SerialStage *stage = &replay->stages[i];
        FAIL_IF(!stage->ended, error, STATUS_INTERNAL, "stage %d waits for other stages for ever, in %s", i,
                task_at(stage)->name);
    }
    return STATUS_OK;
}

// ---- what is reported

static const SerialStage *busiest_of(const SerialReplay *replay) {
    const SerialStage *most = &replay->stages[0];
    for (int i = 1; i < replay->count; i++) {
        most = replay->stages[i].terms[TERM_COMPUTE] > most->terms[TERM_COMPUTE] ? &replay->stages[i] : most;
    }
    return most;
}

static double sum_of_terms(const EngineResult *result) {
    double sum_s = result->compute_s + result->optimizer_s + result->overhead_s;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        sum_s += result->exposed_s[axis];
    }
    return sum_s + result->bubble_s;
}

// The step is over when the last stage is; what the busiest waits for then is bubble.
static void report(SerialReplay *replay, const SerialStage *stage, double fixed_s, EngineResult *result) {
    double end_s = 0;
    for (int i = 0; i < replay->count; i++) {
        end_s = fmax(end_s, replay->stages[i].now_s);
    }
    *result = (EngineResult){.compute_s = stage->terms[TERM_COMPUTE],
                             .optimizer_s = stage->terms[TERM_OPTIMIZER],
                             .bubble_s = stage->bubble_s + end_s - stage->now_s,
                             .overhead_s = stage->terms[TERM_OVERHEAD] + fixed_s,
                             .classes = replay->count,
                             .totals = stage->totals,
                             .timeline = stage->timeline};
    memcpy(result->exposed_s, stage->terms, sizeof result->exposed_s);
    result->step_s = sum_of_terms(result);
    result->timeline.step_s = end_s + fixed_s;
    result->stages = replay->count > 1 ? ARENA_ARRAY(replay->arena, Timeline, replay->count) : NULL;
    for (int i = 0; i < replay->count; i++) {
        result->events += replay->stages[i].instances;
        result->instances = result->events;
        if (result->stages) {
            result->stages[i] = replay->stages[i].timeline;
            result->stages[i].step_s = result->timeline.step_s;
        }
    }
}

Status predict_serial(const StepProgram *programs, int count, const CostModel *cost, bool keep_spans, Arena *arena,
                      const StepProgram **busiest, EngineResult *result, Error *error) {
    SerialReplay replay = {.count = count, .arena = arena};
    replay.stages = ARENA_ARRAY(arena, SerialStage, count);
    for (int i = 0; i < count; i++) {
        begin_stage(&replay, &replay.stages[i], &programs[i], cost, keep_spans);
    }
    TRY(run(&replay, error));
    const SerialStage *stage = busiest_of(&replay);
    *busiest = stage->program;
    report(&replay, stage, cost_step_fixed_s(cost, &programs->model, &programs->plan), result);
    engine_wait_for_data(cost, &programs->plan, result);
    return STATUS_OK;
}
