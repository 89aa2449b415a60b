// A shared counter hands out the items; the caller also works, then joins the other threads. If a thread cannot be
// started, the others do its items.

#include "autotune/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

typedef struct Pool {
    const ParallelWork *work;
    atomic_int next, done;
    atomic_bool stop;
    pthread_mutex_t lock;
    int failed;  // lowest piece that failed; count = none
    Error error;
} Pool;

typedef struct Worker {
    Pool *pool;
    int number;
} Worker;

int parallel_workers(int wished) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const long workers = wished > 0 ? wished : processors;
    return workers < 1 ? 1 : workers > PARALLEL_MAX_WORKERS ? PARALLEL_MAX_WORKERS : (int)workers;
}

static void note_failure(Pool *pool, int index, const Error *error) {
    pthread_mutex_lock(&pool->lock);
    if (index < pool->failed) {
        pool->failed = index;
        pool->error = *error;
    }
    pthread_mutex_unlock(&pool->lock);
    atomic_store(&pool->stop, true);
}

static void *worker_run(void *argument) {
    const Worker *worker = argument;
    Pool *pool = worker->pool;
    const ParallelWork *work = pool->work;
    while (!atomic_load(&pool->stop)) {
        if (worker->number == 0 &&
            !progress_update(work->progress, work->label, atomic_load(&pool->done), work->count)) {
            Error interrupted = {0};
            error_set(&interrupted, STATUS_ENVIRONMENT, "interrupted while %s", work->label);
            note_failure(pool, -1, &interrupted);
            break;
        }
        const int index = atomic_fetch_add(&pool->next, 1);
        if (index >= work->count) {
            break;
        }
        Error error = {0};
        if (work->piece(work->context, worker->number, index, &error) != STATUS_OK) {
            note_failure(pool, index, &error);
        }
        atomic_fetch_add(&pool->done, 1);
    }
    return NULL;
}

Status parallel_run(const ParallelWork *work, Error *error) {
    Pool pool = {.work = work, .lock = PTHREAD_MUTEX_INITIALIZER, .failed = work->count};
    Worker workers[PARALLEL_MAX_WORKERS];
    pthread_t threads[PARALLEL_MAX_WORKERS];
    int started = 1;
    for (int i = 0; i < work->workers && i < PARALLEL_MAX_WORKERS; i++) {
        workers[i] = (Worker){&pool, i};
    }
    while (started < work->workers && started < work->count &&
           pthread_create(&threads[started], NULL, worker_run, &workers[started]) == 0) {
        started++;
    }
    worker_run(&workers[0]);
    for (int i = 1; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_mutex_destroy(&pool.lock);
    if (pool.failed == work->count) {
        return STATUS_OK;
    }
    *error = pool.error;
    return error->status;
}
