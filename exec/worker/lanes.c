// Every thread walks the whole program, replays its events (sim/step/event_replay.h) and runs the instances of its own
// lanes: each waits until as many instances of the other lanes have ended as the replay requires, and is woken by the
// last of them. Lanes that share a communicator share a thread, which runs them in issue order. Injected waits come
// from a per-thread seeded generator.

#include "exec/worker/lanes.h"

#include <pthread.h>

#include "exec/worker/interpreter.h"
#include "sim/base/clock.h"
#include "sim/step/event_replay.h"

enum { LANES_MAX_THREADS = 16, JITTER_MOST_NS = 300 * 1000 };

typedef struct LaneThread {
    Session *session;
    pthread_t thread;
    int index;
    EventReplay replay;
    int32_t *need;    // by lane: for the current instance
    uint64_t random;  // jitter state; 0 = off
    Error error;
    pthread_cond_t reached;  // what is awaited has ended, or a thread has failed
    int awaited;             // lane whose need[lane] instances it waits for, -1 = none; guarded by the mutex
} LaneThread;

struct Lanes {
    LaneThread threads[LANES_MAX_THREADS];
    int thread_count;
    int16_t *thread_of_lane;
    pthread_mutex_t mutex;
    pthread_cond_t changed;  // a step begins or ends, or lanes close
    // guarded by the mutex:
    int32_t *ended;  // instances, by lane, this step
    int64_t steps_begun;
    int threads_busy;
    int failed;  // index of the first thread that failed; -1 = none
    bool closing;
};

// ---------------------------------------------------------------------------------------------- one instance

// xorshift64* (Vigna 2016): good enough to shuffle a schedule.
static void jitter_wait(LaneThread *self) {
    if (self->random == 0) {
        return;
    }
    self->random ^= self->random >> 12;
    self->random ^= self->random << 25;
    self->random ^= self->random >> 27;
    const uint64_t draw = self->random * UINT64_C(2685821657736338717) >> 33;
    if (draw % 4 == 0) {  // one task in four is delayed, so that lanes overtake each other by many tasks at times
        clock_nap(1e-9 * (double)(draw % JITTER_MOST_NS));
    }
}

// False if another thread has failed.
static bool lanes_wait(LaneThread *self) {
    Lanes *lanes = self->session->lanes;
    const int lane_count = self->session->program.lane_count;
    pthread_mutex_lock(&lanes->mutex);
    for (int lane = 0; lane < lane_count; lane++) {
        while (lanes->ended[lane] < self->need[lane] && lanes->failed < 0) {
            self->awaited = lane;
            pthread_cond_wait(&self->reached, &lanes->mutex);
        }
    }
    self->awaited = -1;
    const bool well = lanes->failed < 0;
    pthread_mutex_unlock(&lanes->mutex);
    return well;
}

static void lane_advance(Lanes *lanes, int lane) {
    pthread_mutex_lock(&lanes->mutex);
    const int32_t ended = ++lanes->ended[lane];
    for (int i = 0; i < lanes->thread_count; i++) {
        LaneThread *other = &lanes->threads[i];
        if (other->awaited == lane && ended >= other->need[lane]) {
            pthread_cond_signal(&other->reached);
        }
    }
    pthread_mutex_unlock(&lanes->mutex);
}

static Status thread_step(LaneThread *self) {
    Session *session = self->session;
    Lanes *lanes = session->lanes;
    event_replay_restart(&self->replay);
    StepCursor cursor = step_cursor_begin(&session->program);
    StepInstance instance;
    for (int64_t ordinal = 0; step_cursor_next(&cursor, &instance); ordinal++) {
        const int lane = session->program.tasks[instance.task].lane;
        event_replay_issue(&self->replay, &instance, self->need);
        if (lanes->thread_of_lane[lane] == self->index) {
            if (!lanes_wait(self)) {
                return STATUS_OK;  // the thread that failed reports the reason
            }
            jitter_wait(self);
            TRY(interpreter_run_instance(session, &instance, ordinal, &self->error));
            jitter_wait(self);
            lane_advance(lanes, lane);
        }
    }
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- threads

static bool step_wait_begin(Lanes *lanes, int64_t seen) {
    pthread_mutex_lock(&lanes->mutex);
    while (lanes->steps_begun == seen && !lanes->closing) {
        pthread_cond_wait(&lanes->changed, &lanes->mutex);
    }
    const bool go_on = !lanes->closing;
    pthread_mutex_unlock(&lanes->mutex);
    return go_on;
}

static void *thread_main(void *argument) {
    LaneThread *self = argument;
    Lanes *lanes = self->session->lanes;
    for (int64_t seen = 0; step_wait_begin(lanes, seen); seen++) {
        const Status status = thread_step(self);
        pthread_mutex_lock(&lanes->mutex);
        if (status != STATUS_OK && lanes->failed < 0) {
            lanes->failed = self->index;
            for (int i = 0; i < lanes->thread_count; i++) {
                pthread_cond_signal(&lanes->threads[i].reached);
            }
        }
        lanes->threads_busy--;
        pthread_cond_broadcast(&lanes->changed);
        pthread_mutex_unlock(&lanes->mutex);
    }
    return NULL;
}

Status lanes_run_step(Session *session, Error *error) {
    Lanes *lanes = session->lanes;
    pthread_mutex_lock(&lanes->mutex);
    for (int lane = 0; lane < session->program.lane_count; lane++) {
        lanes->ended[lane] = 0;
    }
    lanes->threads_busy = lanes->thread_count;
    lanes->steps_begun++;
    pthread_cond_broadcast(&lanes->changed);
    while (lanes->threads_busy > 0) {
        pthread_cond_wait(&lanes->changed, &lanes->mutex);
    }
    const int failed = lanes->failed;
    pthread_mutex_unlock(&lanes->mutex);
    if (failed >= 0) {
        *error = lanes->threads[failed].error;
        return error->status;
    }
    return STATUS_OK;
}

// Thread of a lane: lanes of one communicator share one, compute and messages have one each.
static Status lanes_assign(Lanes *lanes, const StepProgram *program, Error *error) {
    for (int lane = 0; lane < program->lane_count; lane++) {
        int thread = -1;
        for (int other = 0; other < lane; other++) {
            if (program->lanes[lane].communicator >= 0 &&
                program->lanes[other].communicator == program->lanes[lane].communicator) {
                thread = lanes->thread_of_lane[other];
            }
        }
        FAIL_IF(thread < 0 && lanes->thread_count == LANES_MAX_THREADS, error, STATUS_INTERNAL,
                "the program has more than %d lanes", LANES_MAX_THREADS);
        lanes->thread_of_lane[lane] = (int16_t)(thread < 0 ? lanes->thread_count++ : thread);
    }
    return STATUS_OK;
}

static Status thread_start(Session *session, int index, Arena *arena, Error *error) {
    Lanes *lanes = session->lanes;
    const uint64_t jitter_seed = session->request->options.jitter_seed;
    LaneThread *thread = &lanes->threads[index];
    const uint64_t spread = UINT64_C(0x9E3779B97F4A7C15);  // golden ratio: different states for neighbouring threads
    *thread = (LaneThread){.session = session,
                           .index = index,
                           .replay = event_replay_new(&session->program, arena),
                           .need = ARENA_ARRAY(arena, int32_t, session->program.lane_count),
                           .awaited = -1};
    pthread_cond_init(&thread->reached, NULL);
    thread->random =
        jitter_seed ? (jitter_seed + (uint64_t)(session->rank * LANES_MAX_THREADS + index + 1)) * spread : 0;
    FAIL_IF(pthread_create(&thread->thread, NULL, thread_main, thread) != 0, error, STATUS_ENVIRONMENT,
            "cannot start a thread for a lane");
    return STATUS_OK;
}

Status lanes_open(Session *session, Arena *arena, Error *error) {
    const StepProgram *program = &session->program;
    Lanes *lanes = ARENA_NEW(arena, Lanes);
    lanes->failed = -1;
    lanes->thread_of_lane = ARENA_ARRAY(arena, int16_t, program->lane_count);
    lanes->ended = ARENA_ARRAY(arena, int32_t, program->lane_count);
    TRY(lanes_assign(lanes, program, error));
    pthread_mutex_init(&lanes->mutex, NULL);
    pthread_cond_init(&lanes->changed, NULL);
    session->lanes = lanes;
    const int wanted = lanes->thread_count;
    for (lanes->thread_count = 0; lanes->thread_count < wanted; lanes->thread_count++) {
        TRY(thread_start(session, lanes->thread_count, arena, error));
    }
    return STATUS_OK;
}

void lanes_close(Session *session) {
    Lanes *lanes = session->lanes;
    if (!lanes) {
        return;
    }
    pthread_mutex_lock(&lanes->mutex);
    lanes->closing = true;
    pthread_cond_broadcast(&lanes->changed);
    pthread_mutex_unlock(&lanes->mutex);
    for (int i = 0; i < lanes->thread_count; i++) {
        pthread_join(lanes->threads[i].thread, NULL);
        pthread_cond_destroy(&lanes->threads[i].reached);
    }
    pthread_cond_destroy(&lanes->changed);
    pthread_mutex_destroy(&lanes->mutex);
    session->lanes = NULL;
}
