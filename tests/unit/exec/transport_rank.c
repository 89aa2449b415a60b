// One rank of transport mpi for test_transport_mpi, started by mpirun: a mesh in words; then "all" checks, or "lanes":
// two communicators from two threads. Ends with 1 and a word where anything is wrong.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/transport/board.h"
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

static Status rank_run(const char *mesh, bool lanes, CheckRank *rank, Arena *arena) {
    static BoardRank row;
    Communicator communicators[CHECK_COMMUNICATORS_MOST];
    rank->communicators = communicators;
    rank->communicator_count = check_communicators(communicators);
    TRY(mesh_parse(mesh, &rank->mesh, &rank->error));
    rank->table = transport_find("mpi", &rank->error);
    if (!rank->table) {
        return rank->error.status;
    }
    board_rank_begin(&row);
    const TransportSetup setup = {.mesh = rank->mesh,
                                  .rank = rank->rank,
                                  .communicators = communicators,
                                  .communicator_count = rank->communicator_count,
                                  .segment_fd = -1,
                                  .row = &row,
                                  .timeout_s = 60,
                                  .concurrent = lanes};
    TRY(rank->table->open(&setup, arena, &rank->transport, &rank->error));
    if (lanes) {
        two_lanes(rank);
    } else {
        check_all(rank);
        check_order(rank);
    }
    rank->table->close(rank->transport);
    return rank->error.status;
}

int main(int argc, char **argv) {
    const char *place = getenv("OMPI_COMM_WORLD_RANK");
    if (argc != 3 || !place) {
        fprintf(stderr, "usage: mpirun -n N transport_rank MESH all|lanes\n");
        return 2;
    }
    Arena arena = {0};
    CheckRank rank = {.rank = atoi(place)};
    const Status status = rank_run(argv[1], strcmp(argv[2], "lanes") == 0, &rank, &arena);
    arena_free(&arena);
    if (status != STATUS_OK || rank.faults > 0) {
        fprintf(stderr, "rank %d: %d faults; %s\n", rank.rank, rank.faults, rank.error.message);
        return 1;
    }
    return 0;
}
