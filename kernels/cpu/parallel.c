// One thread pool for the process. A job is split into parts that the caller and the helpers claim by counting down one
// number; the caller claims too and waits only for parts that a thread is working on. So a helper that sleeps, or whose
// core is taken by another process, costs nothing: other threads do its parts. (OpenMP's join waits for every thread of
// the team; on a machine shared with other ranks that was measured to cost a time slice, 4 to 8 ms, per kernel, and
// each thread that calls kernels would own its own team.) A second caller while a job runs works alone. The pool is
// process state because kernel_set_threads applies to every kernel of the process.

#include "kernels/cpu/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Job {
    RangeBody *body;
    const void *context;
    int64_t count, part_size;
    uint32_t parts;
} Job;

typedef struct Pool {
    atomic_int threads;      // including the caller
    atomic_flag busy;        // a job is running
    Job job;                 // written only between jobs
    atomic_ullong claims;    // job number << 32 | parts not yet claimed
    atomic_uint unfinished;  // parts of the job not yet done
    atomic_int asleep;       // helpers that need a wake-up call
    atomic_bool caller_waits;
    int helpers;  // started so far; only parallel_set_threads touches it
    pthread_mutex_t lock;
    pthread_cond_t work, done;
} Pool;

static Pool pool = {.threads = 1,
                    .busy = ATOMIC_FLAG_INIT,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .work = PTHREAD_COND_INITIALIZER,
                    .done = PTHREAD_COND_INITIALIZER};

// Polls before going to sleep: 20 to 60 us, longer than the gap between two kernels, shorter than a time slice.
enum { SPINS = 2000, PARTS_PER_THREAD = 4 };

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static bool may_work(int helper) {
    return (uint32_t)atomic_load(&pool.claims) != 0 && helper < atomic_load(&pool.threads) - 1;
}

// Claims one part of the job and runs it; false when none is left.
static bool do_part(void) {
    unsigned long long claims = atomic_load(&pool.claims);
    do {
        if ((uint32_t)claims == 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&pool.claims, &claims, claims - 1));
    const Job *job = &pool.job;  // valid until this part is done
    const int64_t begin = (int64_t)(job->parts - (uint32_t)claims) * job->part_size, end = begin + job->part_size;
    job->body(job->context, begin, end < job->count ? end : job->count);
    if (atomic_fetch_sub(&pool.unfinished, 1) == 1 && atomic_load(&pool.caller_waits)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
    }
    return true;
}

static void wait_for_work(int helper) {
    for (int i = 0; i < SPINS; i++) {
        if (may_work(helper)) {
            return;
        }
        pause_briefly();
    }
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.asleep, 1);
    while (!may_work(helper)) {
        pthread_cond_wait(&pool.work, &pool.lock);
    }
    atomic_fetch_sub(&pool.asleep, 1);
    pthread_mutex_unlock(&pool.lock);
}

static void *helper_main(void *number) {
    const int helper = (int)(ptrdiff_t)number;
    for (;;) {
        wait_for_work(helper);
        while (may_work(helper) && do_part()) {
        }
    }
    return NULL;
}

static void wait_until_done(void) {
    for (int i = 0; i < SPINS && atomic_load(&pool.unfinished) != 0; i++) {
        pause_briefly();
    }
    if (atomic_load(&pool.unfinished) == 0) {
        return;
    }
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.caller_waits, true);
    while (atomic_load(&pool.unfinished) != 0) {
        pthread_cond_wait(&pool.done, &pool.lock);
    }
    atomic_store(&pool.caller_waits, false);
    pthread_mutex_unlock(&pool.lock);
}

static void run_job(Job job) {
    if (job.parts <= 1 || parallel_threads() == 1 || atomic_flag_test_and_set(&pool.busy)) {
        if (job.count > 0) {
            job.body(job.context, 0, job.count);
        }
        return;
    }
    pool.job = job;
    atomic_store(&pool.unfinished, job.parts);
    atomic_store(&pool.claims, ((atomic_load(&pool.claims) >> 32) + 1) << 32 | job.parts);
    if (atomic_load(&pool.asleep) > 0) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.work);
        pthread_mutex_unlock(&pool.lock);
    }
    while (do_part()) {
    }
    wait_until_done();
    atomic_flag_clear(&pool.busy);
}

void parallel_ranges(int64_t count, int64_t unit, int64_t grain, RangeBody *body, const void *context) {
    const int64_t most = (int64_t)parallel_threads() * PARTS_PER_THREAD, fit = count / (grain > 0 ? grain : 1);
    const int64_t wanted = fit < 1 ? 1 : fit < most ? fit : most;
    const int64_t part_size = ((count + wanted - 1) / wanted + unit - 1) / unit * unit;
    const int64_t parts = part_size > 0 ? (count + part_size - 1) / part_size : 0;
    run_job((Job){body, context, count, part_size, (uint32_t)parts});
}

void parallel_rows(int64_t rows, int64_t cols, RangeBody *body, const void *context) {
    parallel_ranges(rows, 1, PARALLEL_GRAIN / (cols > 0 ? cols : 1) + 1, body, context);
}

void parallel_items(int64_t count, RangeBody *body, const void *context) {
    run_job((Job){body, context, count, 1, (uint32_t)count});
}

int parallel_threads(void) {
    return atomic_load_explicit(&pool.threads, memory_order_relaxed);
}

// Helpers live as long as the process; those above the current number sleep. If one cannot be started, the others do
// its share.
void parallel_set_threads(int threads) {
    atomic_store(&pool.threads, threads < 1 ? 1 : threads);
    for (; pool.helpers < threads - 1; pool.helpers++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, helper_main, (void *)(ptrdiff_t)pool.helpers) != 0) {
            return;
        }
        pthread_detach(thread);
    }
}
