// The rendezvous of the ranks: a client that connects and stays silent blocks no other, and it listens no more widely
// than its hosts need.

#define _GNU_SOURCE  // gethostname

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/launch/rendezvous.h"
#include "exec/launch/rendezvous_address.h"
#include "exec/worker/rendezvous_client.h"
#include "sim/base/clock.h"

enum { STRANGERS = 200, WORLD = 2 };

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(rendezvous, .fini = end);

static Rendezvous *rendezvous_here(void) {
    Rendezvous *rendezvous;
    Error error = {0};
    cr_assert(rendezvous_open(WORLD, rendezvous_address(""), "{\"request\": 1}", &arena, &rendezvous, &error) ==
                  STATUS_OK,
              "%s", error.message);
    return rendezvous;
}

static int stranger(const Rendezvous *rendezvous) {
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)strtol(rendezvous->setting, NULL, 10)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

typedef struct Joining {
    const Rendezvous *rendezvous;
    int rank;
    char *request;
} Joining;

static void *join(void *context) {
    Joining *joining = context;
    RendezvousClient client;
    Error error = {0};
    if (rendezvous_join(&client, joining->rendezvous->setting, joining->rank, &joining->request, &error) == STATUS_OK) {
        rendezvous_leave(&client);
    }
    return NULL;
}

static bool serve_until_done(Rendezvous *rendezvous) {
    const double end_s = clock_s() + 30;
    while (clock_s() < end_s && !(rendezvous->ranks[0].done && rendezvous->ranks[1].done)) {
        rendezvous_serve(rendezvous, 0.02);
    }
    return rendezvous->ranks[0].done && rendezvous->ranks[1].done;
}

Test(rendezvous, strangers_that_connect_first_and_stay_silent_keep_no_rank_out) {
    Rendezvous *rendezvous = rendezvous_here();
    int strangers[STRANGERS];
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = stranger(rendezvous);
        rendezvous_serve(rendezvous, 0);
    }
    Joining joining[WORLD];
    pthread_t threads[WORLD];
    for (int rank = 0; rank < WORLD; rank++) {
        joining[rank] = (Joining){.rendezvous = rendezvous, .rank = rank};
        cr_assert(pthread_create(&threads[rank], NULL, join, &joining[rank]) == 0);
    }
    cr_expect(serve_until_done(rendezvous));
    for (int rank = 0; rank < WORLD; rank++) {
        pthread_join(threads[rank], NULL);
        cr_expect(joining[rank].request && strstr(joining[rank].request, "request"), "rank %d got none", rank);
        free(joining[rank].request);
    }
    cr_expect(rendezvous->first_lost < 0);
    for (int i = 0; i < STRANGERS; i++) {
        close(strangers[i]);
    }
    rendezvous_close(rendezvous);
}

Test(rendezvous, a_wrong_token_ends_the_connection_and_no_rank_came) {
    Rendezvous *rendezvous = rendezvous_here();
    const int fd = stranger(rendezvous);
    const RendezvousFrame frame = {.kind = RENDEZVOUS_HELLO, .bytes = sizeof(RendezvousHello)};
    const RendezvousHello hello = {.token = "0123", .row_bytes = sizeof(ProgressRow)};
    cr_assert(send(fd, &frame, sizeof frame, 0) == sizeof frame && send(fd, &hello, sizeof hello, 0) == sizeof hello);
    for (int i = 0; i < 10; i++) {
        rendezvous_serve(rendezvous, 0.02);
    }
    char answer;
    cr_expect(recv(fd, &answer, 1, 0) <= 0);
    cr_expect(!rendezvous->ranks[0].came);
    close(fd);
    rendezvous_close(rendezvous);
}

// A rank that is stopped before its first row is already identified.
Test(rendezvous, who_said_hello_has_a_host_and_a_process) {
    Rendezvous *rendezvous = rendezvous_here();
    Joining joining[WORLD];
    pthread_t threads[WORLD];
    char host[PROGRESS_HOST_BYTES] = "";
    cr_assert(gethostname(host, sizeof host - 1) == 0);
    for (int rank = 0; rank < WORLD; rank++) {
        joining[rank] = (Joining){.rendezvous = rendezvous, .rank = rank};
        cr_assert(pthread_create(&threads[rank], NULL, join, &joining[rank]) == 0);
    }
    cr_expect(serve_until_done(rendezvous));
    for (int rank = 0; rank < WORLD; rank++) {
        pthread_join(threads[rank], NULL);
        free(joining[rank].request);
        cr_expect_str_eq(rendezvous->table[rank].host, host);
        cr_expect(atomic_load(&rendezvous->table[rank].process) == (int)getpid());
    }
    rendezvous_close(rendezvous);
}

Test(rendezvous, listens_on_the_one_address_that_leads_to_its_hosts) {
    cr_expect(rendezvous_address("") == RENDEZVOUS_HERE);
    cr_expect(rendezvous_address("localhost:4,127.0.0.1") == RENDEZVOUS_HERE);
    cr_expect(rendezvous_address("no-such-host.invalid") == RENDEZVOUS_EVERYWHERE);
    cr_expect(rendezvous_address("localhost,no-such-host.invalid") == RENDEZVOUS_EVERYWHERE);
}
