// Waits for streams and for NCCL, which run asynchronously: polls the counters, the stop flag, NCCL's asynchronous
// errors and the clock. Communicators are non-blocking, so that no NCCL call blocks this thread, the only one that
// calls NCCL: an abort is safe then (sim/SOURCES.md X2). The other thread only copies counters to the progress table.

#include "exec/transport/nccl_state.h"
#include "exec/transport/shm.h"
#include "exec/transport/watchdog.h"
#include "sim/base/clock.h"

enum { YIELDS = 400, LOOKS_PER_CLOCK = 32, SHOW_EVERY_MS = 20 };
static const double NAP_S = 20e-6;

// ---------------------------------------------------------------------------------------------- words

void nccl_abort(Transport *nccl) {
    for (int i = 0; i < nccl->lane_count && !nccl->torn; i++) {
        if (nccl->lanes[i].comm) {
            nccl->nccl.comm_abort(nccl->lanes[i].comm);
        }
    }
    nccl->torn = true;
}

Status nccl_torn(const Transport *nccl, Error *error) {
    return nccl->torn ? error_set(error, STATUS_ENVIRONMENT, "transport nccl: its communicators were aborted before")
                      : STATUS_OK;
}

Status nccl_cuda_try(Transport *nccl, CUresult result, const char *what, Error *error) {
    if (result == CUDA_SUCCESS) {
        return STATUS_OK;
    }
    const char *text = NULL;
    nccl->cuda.get_error_string(result, &text);
    return error_set(error, STATUS_ENVIRONMENT, "transport nccl, %s: rank %d: CUDA says: %s", what, nccl->setup.rank,
                     text ? text : "no reason given");
}

Status nccl_try(Transport *nccl, const NcclLane *lane, ncclResult_t result, const char *what, Error *error) {
    if (result == ncclSuccess || result == ncclInProgress) {
        return STATUS_OK;
    }
    const char *last = nccl->nccl.get_last_error(lane ? lane->comm : NULL);
    const bool more = last && *last;
    error_set(error, STATUS_ENVIRONMENT, "%s%s, %s: rank %d: NCCL says: %s%s%s", lane ? "lane " : "transport nccl",
              lane ? lane->spec->name : "", what, nccl->setup.rank, nccl->nccl.get_error_string(result),
              more ? ": " : "", more ? last : "");
    return error->status;
}

// What this lane's stream has not finished, and which ranks it waits for as far as can be seen from here.
static Status late(Transport *nccl, NcclLane *lane, const char *what, double waited_s, Error *error) {
    const int communicator = (int)(lane - nccl->lanes);
    nccl_shower_stop(nccl);
    lane_watch_show(&lane->watch);
    const ProgressView call = progress_view(lane->watch.of.cell);
    FAIL_WITH(nccl->table.ranks && communicator < nccl->setup.communicator_count && call.inside,
              diagnose_late(&nccl->table, nccl->setup.rank, communicator, waited_s, error));
    return error_set(error, STATUS_ENVIRONMENT, "lane %s, %s: %s waited %.1f s for %s", lane->spec->name,
                     call.inside ? progress_call_words(&nccl->table, nccl->setup.rank, call).text : what,
                     progress_row_words(&nccl->table, nccl->setup.rank, false).text, waited_s,
                     lane->size > 1 ? "the others of its group" : "its GPU");
}

// ---------------------------------------------------------------------------------------------- waiting

// A wait in progress.
typedef struct StreamWait {
    Transport *nccl;
    NcclLane *lane;
    const char *what;
    int looks;
    Wait time;
} StreamWait;

// One more look that found nothing new: checks the clock, the stop flag and NCCL's errors.
static Status wait_more(StreamWait *wait, Error *error) {
    Transport *nccl = wait->nccl;
    wait->time.lane = wait->lane->spec->name;
    wait->time.limit_s = nccl->limit_s;
    wait->looks++;
    if (wait->looks % LOOKS_PER_CLOCK == 0) {
        ncclResult_t result = ncclSuccess;
        TRY(wait_look(&wait->time, !nccl_poll(nccl), error));
        if (wait->lane->comm) {
            TRY(nccl_try(nccl, wait->lane, nccl->nccl.comm_get_async_error(wait->lane->comm, &result), wait->what,
                         error));
            TRY(nccl_try(nccl, wait->lane, result, wait->what, error));
        }
        FAIL_WITH(wait_is_over(&wait->time), late(nccl, wait->lane, wait->what, wait->time.waited_s, error));
    }
    wait_pause(wait->looks, YIELDS, NAP_S);
    return STATUS_OK;
}

Status nccl_settle(Transport *nccl, NcclLane *lane, const char *what, Error *error) {
    StreamWait wait = {.nccl = nccl, .lane = lane, .what = what};
    for (;;) {
        ncclResult_t result = ncclSuccess;
        TRY(nccl_try(nccl, lane, nccl->nccl.comm_get_async_error(lane->comm, &result), what, error));
        TRY(nccl_try(nccl, lane, result, what, error));
        if (result == ncclSuccess) {
            return STATUS_OK;
        }
        TRY(wait_more(&wait, error));
    }
}

Status nccl_made(Transport *nccl, NcclLane *lane, const char *what, Error *error) {
    StreamWait wait = {.nccl = nccl, .lane = lane, .what = what};
    while (!__atomic_load_n(&lane->made, __ATOMIC_ACQUIRE)) {
        TRY(wait_more(&wait, error));
    }
    lane->comm = lane->made;
    return STATUS_OK;
}

Status nccl_ended(Transport *nccl, NcclLane *lane, unsigned number, Error *error) {
    StreamWait wait = {.nccl = nccl, .lane = lane, .what = "its own messages"};
    while ((int)(atomic_load(&lane->watch.counts->ended) - number) < 0) {
        TRY(wait_more(&wait, error));
    }
    return STATUS_OK;
}

Status nccl_stream_wait(Transport *nccl, NcclLane *lane, Error *error) {
    StreamWait wait = {.nccl = nccl, .lane = lane, .what = "its own stream"};
    for (;;) {
        const CUresult result = nccl->cuda.stream_query(lane->stream);
        if (result != CUDA_ERROR_NOT_READY) {
            return nccl_cuda_try(nccl, result, "a stream", error);
        }
        TRY(wait_more(&wait, error));
    }
}

// Among lanes that are not idle, one whose stream is inside a collective, else any.
static NcclLane *busy_lane(const Transport *nccl) {
    NcclLane *busy = NULL;
    for (int i = 0; i < nccl->lane_count; i++) {
        NcclLane *lane = &nccl->lanes[i];
        const bool idle = !lane->comm || lane_watch_idle(&lane->watch);
        const LaneCounts *counts = lane->watch.counts;
        if (!idle && (!busy || atomic_load(&counts->begun) != atomic_load(&counts->ended))) {
            busy = lane;
        }
    }
    return busy;
}

static unsigned all_ended(const Transport *nccl) {
    unsigned sum = 0;
    for (int i = 0; i < nccl->lane_count; i++) {
        sum += atomic_load(&nccl->lanes[i].watch.counts->ended);
    }
    return sum;
}

static bool device_moved(const Transport *nccl) {
    return nccl->setup.moved && nccl->setup.moved(nccl->setup.moved_context);
}

// Time counts from the last collective that finished, on any lane, or the last sign of life since then.
static Status finish(Transport *nccl, Error *error) {
    StreamWait wait = {.nccl = nccl, .what = "the end of the step"};
    unsigned ended = all_ended(nccl);
    for (wait.lane = busy_lane(nccl); wait.lane; wait.lane = busy_lane(nccl)) {
        if (all_ended(nccl) != ended || device_moved(nccl)) {
            ended = all_ended(nccl);
            wait.time.waited_s = 0;
        }
        TRY(wait_more(&wait, error));
    }
    return STATUS_OK;
}

Status nccl_finish(Transport *nccl, Error *error) {
    TRY(nccl_torn(nccl, error));
    const Status status = finish(nccl, error);
    if (status != STATUS_OK) {
        nccl_abort(nccl);
    }
    return status;
}

bool nccl_poll(const Transport *nccl) {
    return atomic_load_explicit(&((Transport *)(uintptr_t)nccl)->stopped, memory_order_relaxed) == 0 &&
           (!nccl->segment || transport_shm.poll(nccl->segment));
}

// ---------------------------------------------------------------------------------------------- the progress table

static void *shower_main(void *argument) {
    Transport *nccl = argument;
    while (!atomic_load(&nccl->closing)) {
        for (int i = 0; i < nccl->setup.communicator_count; i++) {
            if (nccl->lanes[i].comm) {
                lane_watch_show(&nccl->lanes[i].watch);
            }
        }
        clock_nap(1e-3 * SHOW_EVERY_MS);
    }
    return NULL;
}

Status nccl_shower_start(Transport *nccl, Error *error) {
    FAIL_IF(pthread_create(&nccl->shower, NULL, shower_main, nccl) != 0, error, STATUS_ENVIRONMENT,
            "transport nccl: cannot start the thread that keeps the table");
    nccl->showing = true;
    return STATUS_OK;
}

void nccl_shower_stop(Transport *nccl) {
    if (nccl->showing) {
        atomic_store(&nccl->closing, 1);
        pthread_join(nccl->shower, NULL);
        nccl->showing = false;
    }
}
