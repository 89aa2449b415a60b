// Collectives of both transports, one after the other in one run: microseconds per call on the slowest rank, the
// minimum of many, by operation and size. Ranks are processes: children sharing a segment, or started by mpirun.
//   bench_transport [RANKS [MOST_BYTES]]

#define _GNU_SOURCE  // setenv in strict C

#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/transport/shm.h"
#include "sim/base/clock.h"

enum { SEGMENT_FD = 3, CALLS_MOST = 2000, BYTES_MOST = 1 << 30 };  // calls of one case, and bytes in all of them

static const int64_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20};  // as in sim/SOURCES.md X1

enum { ALL, LINK, COMMUNICATORS };

extern char **environ;

typedef struct Rank {
    const TransportTable *table;
    Transport *transport;
    int rank, world;
    float *in, *out;
} Rank;

// A message from every even rank to the next odd one.
static Status hop(const Rank *rank, const TransportCall *call, Error *error) {
    TransportCall message = *call;
    message.communicator = LINK;
    if ((rank->rank ^ 1) >= rank->world) {
        return STATUS_OK;
    }
    const TransportKind kind = rank->rank % 2 == 0 ? TRANSPORT_SEND : TRANSPORT_RECEIVE;
    return rank->table->run(rank->transport, kind, &message, error);
}

static void must(Status status, const Error *error) {
    if (status != STATUS_OK) {
        fprintf(stderr, "bench_transport: %s\n", error->message);
        _exit(1);
    }
}

// Seconds of one call, begun together: on the slowest rank, least of many. TRANSPORT_SEND: a message.
static double call_s(const Rank *rank, TransportKind kind, int64_t bytes) {
    const TransportCall call = {.in = rank->in, .out = rank->out, .bytes = bytes};
    float seconds[CALLS_MOST], least_s = INFINITY;
    Error error = {0};
    const int calls = (int)fmax(5, fmin(CALLS_MOST, (double)BYTES_MOST / (double)(bytes + 1)));
    for (int i = 0; i < calls; i++) {
        must(rank->table->run(rank->transport, TRANSPORT_BARRIER, &call, &error), &error);
        const double begin_s = clock_s();
        must(kind == TRANSPORT_SEND ? hop(rank, &call, &error) : rank->table->run(rank->transport, kind, &call, &error),
             &error);
        seconds[i] = (float)(clock_s() - begin_s);
    }
    const TransportCall slowest = {
        .in = seconds, .out = seconds, .bytes = calls * (int64_t)sizeof *seconds, .op = REDUCE_MAX};
    must(rank->table->run(rank->transport, TRANSPORT_ALL_REDUCE, &slowest, &error), &error);
    for (int i = 0; i < calls; i++) {
        least_s = fminf(least_s, seconds[i]);
    }
    return least_s;
}

static void rank_measure(const Rank *rank, int64_t most_bytes) {
    const TransportTable *table = rank->table;
    struct {
        const char *name;
        TransportKind kind;
        int parts;  // the total is what sizes says; a call counts one part
    } const operations[] = {{"all-reduce", TRANSPORT_ALL_REDUCE, 1},
                            {"all-gather (total)", TRANSPORT_ALL_GATHER, rank->world},
                            {"reduce-scatter (total)", TRANSPORT_REDUCE_SCATTER, rank->world},
                            {"send-receive", TRANSPORT_SEND_RECV, 1},
                            {"message to the next", TRANSPORT_SEND, 1}};
    const double barrier_s = call_s(rank, TRANSPORT_BARRIER, 0);
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
        if (rank->rank == 0) {
            printf("| %s | %d | %s |", table->name, rank->world, operations[o].name);
        }
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= most_bytes; i++) {
            const double seconds = call_s(rank, operations[o].kind, sizes[i] / operations[o].parts);
            if (rank->rank == 0) {
                printf(" %.1f |", 1e6 * seconds);
                fflush(stdout);
            }
        }
        if (rank->rank == 0) {
            printf("\n");
        }
    }
    if (rank->rank == 0) {
        printf("| %s | %d | barrier | %.1f |\n", table->name, rank->world, 1e6 * barrier_s);
        fflush(stdout);
    }
}

static void bench_communicators(int64_t most_bytes, Communicator communicators[COMMUNICATORS]) {
    communicators[ALL] = (Communicator){.name = "bench", .axes = AXIS_ALL};
    communicators[LINK] =
        (Communicator){.name = "link", .axes = AXIS_ALL, .link = {.step = 1}, .message_bytes = most_bytes, .ahead = 1};
}

static int rank_main(const char *transport, int rank, int world, int64_t most_bytes) {
    static ProgressRow row;
    Arena arena = {0};
    Error error = {0};
    Rank self = {.rank = rank, .world = world, .table = transport_find(transport, &error)};
    Communicator communicators[COMMUNICATORS];
    bench_communicators(most_bytes, communicators);
    char words[32];
    TransportSetup setup = {.rank = rank,
                            .communicators = communicators,
                            .communicator_count = COMMUNICATORS,
                            .segment_fd = SEGMENT_FD,
                            .row = &row,
                            .timeout_s = 60,
                            .spins = world <= sysconf(_SC_NPROCESSORS_ONLN) ? 2000 : 0};
    must(self.table ? STATUS_OK : error.status, &error);
    snprintf(words, sizeof words, "dp_shard=%d", world);
    must(mesh_parse(words, &setup.mesh, &error), &error);
    progress_row_begin(&row);
    must(self.table->open(&setup, &arena, &self.transport, &error), &error);
    self.in = calloc(1, (size_t)most_bytes);
    self.out = calloc(1, (size_t)most_bytes);
    memset(self.in, 0, (size_t)most_bytes);
    memset(self.out, 0, (size_t)most_bytes);
    rank_measure(&self, most_bytes);
    self.table->close(self.transport);
    free(self.in);
    free(self.out);
    arena_free(&arena);
    return 0;
}

// ---------------------------------------------------------------------------------------------- starting ranks

static void shm_run(char *self, char *ranks, char *most) {
    const int world = (int)strtol(ranks, NULL, 10);
    Error error = {0};
    ShmSegment segment;
    pid_t pids[TRANSPORT_MAX_WORLD];
    Mesh mesh;
    char words[32];
    snprintf(words, sizeof words, "dp_shard=%d", world);
    must(mesh_parse(words, &mesh, &error), &error);
    Communicator communicators[COMMUNICATORS];
    bench_communicators(strtoll(most, NULL, 10), communicators);
    must(shm_segment_create(&mesh, communicators, COMMUNICATORS, &segment, &error), &error);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, segment.fd, SEGMENT_FD);
    for (int rank = 0; rank < world; rank++) {
        char number[16];
        snprintf(number, sizeof number, "%d", rank);
        char *const argv[] = {self, "shm", number, ranks, most, NULL};
        posix_spawn(&pids[rank], self, &actions, NULL, argv, environ);
    }
    for (int rank = 0; rank < world; rank++) {
        waitpid(pids[rank], NULL, 0);
    }
    posix_spawn_file_actions_destroy(&actions);
    shm_segment_destroy(&segment);
}

static void mpi_run(char *self, char *ranks, char *most) {
    char *const argv[] = {"mpirun", "-n", ranks, "--oversubscribe", "--bind-to", "none", self, "mpi", "-",
                          ranks,    most, NULL};
    pid_t pid;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    if (posix_spawnp(&pid, "mpirun", NULL, NULL, argv, environ) == 0) {
        waitpid(pid, NULL, 0);
    }
}

int main(int argc, char **argv) {
    if (argc == 5) {
        const char *place = strcmp(argv[2], "-") == 0 ? getenv("OMPI_COMM_WORLD_RANK") : argv[2];
        return rank_main(argv[1], (int)strtol(place, NULL, 10), (int)strtol(argv[3], NULL, 10),
                         strtoll(argv[4], NULL, 10));
    }
    char self[4096], two[] = "2", all[] = "67108864";
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *ranks = argc > 1 ? argv[1] : two, *most = argc > 2 ? argv[2] : all;
    printf("| transport | ranks | microseconds | 4 KiB | 64 KiB | 1 MiB | 8 MiB | 64 MiB |\n");
    printf("|---|---|---|---|---|---|---|---|\n");
    fflush(stdout);
    shm_run(self, ranks, most);
    mpi_run(self, ranks, most);
    return 0;
}
