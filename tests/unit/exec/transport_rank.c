// One rank of transport mpi for test_transport_mpi, started by mpirun: a mesh as text; then "all" checks, or "lanes":
// two communicators from two threads; "links" and "link-lanes" the same with messages. Exits with 1 and a message if
// anything is wrong.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/transport/progress_table.h"
#include "tests/unit/exec/transport_checks.h"

static void *second_lane(void *argument) {
    check_some(argument, 1, 25);
    return NULL;
}

// The two threads share only the transport.
static void two_lanes(CheckRank *rank) {
    CheckRank other = *rank;
    pthread_t thread;
    pthread_create(&thread, NULL, second_lane, &other);
    check_some(rank, rank->communicator_count - 1, 25);
    pthread_join(thread, NULL);
    rank->faults += other.faults;
}

static void all_checks(CheckRank *rank) {
    check_all(rank);
    check_order(rank);
}

static void links(CheckRank *rank) {
    check_line(rank);
    check_messages_ahead(rank);
}

typedef struct Work {
    const char *name;
    bool concurrent, links;
    void (*run)(CheckRank *rank);
} Work;

static const Work works[] = {{"all", false, false, all_checks},
                             {"lanes", true, false, two_lanes},
                             {"links", false, true, links},
                             {"link-lanes", true, true, check_message_lanes}};

static const Work *work_find(const char *name) {
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(works[i].name, name) == 0) {
            return &works[i];
        }
    }
    return NULL;
}

static Status rank_run(const char *mesh, const Work *work, CheckRank *rank, Arena *arena) {
    static ProgressRow row;
    Communicator communicators[CHECK_COMMUNICATORS_MOST];
    rank->communicators = communicators;
    TRY(mesh_parse(mesh, &rank->mesh, &rank->error));
    rank->communicator_count = (work->links ? check_links : check_communicators)(&rank->mesh, communicators);
    rank->table = transport_find("mpi", &rank->error);
    if (!rank->table) {
        return rank->error.status;
    }
    progress_row_begin(&row);
    const TransportSetup setup = {.mesh = rank->mesh,
                                  .rank = rank->rank,
                                  .communicators = communicators,
                                  .communicator_count = rank->communicator_count,
                                  .segment_fd = -1,
                                  .row = &row,
                                  .timeout_s = 60,
                                  .concurrent = work->concurrent};
    TRY(rank->table->open(&setup, arena, &rank->transport, &rank->error));
    work->run(rank);
    rank->table->close(rank->transport);
    return rank->error.status;
}

int main(int argc, char **argv) {
    const char *place = getenv("OMPI_COMM_WORLD_RANK");
    const Work *work = argc == 3 ? work_find(argv[2]) : NULL;
    if (!work || !place) {
        fprintf(stderr, "usage: mpirun -n N transport_rank MESH all|lanes|links|link-lanes\n");
        return 2;
    }
    Arena arena = {0};
    CheckRank rank = {.rank = atoi(place)};
    const Status status = rank_run(argv[1], work, &rank, &arena);
    arena_free(&arena);
    if (status != STATUS_OK || rank.faults > 0) {
        fprintf(stderr, "rank %d: %d faults; %s\n", rank.rank, rank.faults, rank.error.message);
        return 1;
    }
    return 0;
}
