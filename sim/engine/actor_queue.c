// Binary heap of actors by (next event, actor), with their places, so that a key can change in either direction.

#include "sim/engine/simulation.h"

enum { MOST_SCANNED = 32 };

void actor_queue_init(ActorQueue *queue, int32_t actors, Arena *arena) {
    queue->key = ARENA_ARRAY(arena, int64_t, actors);
    queue->heap = ARENA_ARRAY(arena, int32_t, actors);
    queue->at = ARENA_ARRAY(arena, int32_t, actors);
    queue->count = actors;
    queue->scanned = actors <= MOST_SCANNED;
    for (int32_t i = 0; i < actors; i++) {
        queue->key[i] = INT64_MAX;
        queue->heap[i] = i;
        queue->at[i] = i;
    }
}

static bool before(const ActorQueue *queue, int32_t a, int32_t b) {
    return queue->key[a] < queue->key[b] || (queue->key[a] == queue->key[b] && a < b);
}

static void place(ActorQueue *queue, int32_t at, int32_t actor) {
    queue->heap[at] = actor;
    queue->at[actor] = at;
}

void actor_queue_sift(ActorQueue *queue, int32_t actor) {
    int32_t at = queue->at[actor];
    while (at > 0 && before(queue, actor, queue->heap[(at - 1) / 2])) {
        place(queue, at, queue->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child + 1 < queue->count && before(queue, queue->heap[child + 1], queue->heap[child])) {
            child++;
        }
        if (child >= queue->count || !before(queue, queue->heap[child], actor)) {
            break;
        }
        place(queue, at, queue->heap[child]);
        at = child;
    }
    place(queue, at, actor);
}
