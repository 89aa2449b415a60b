// The post where ranks meet: who connects and says nothing keeps nobody out, and it listens no wider than its hosts
// need.

#define _GNU_SOURCE  // gethostname

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/launch/post.h"
#include "exec/launch/post_address.h"
#include "exec/transport/clock.h"
#include "exec/worker/post_client.h"

enum { STRANGERS = 200, WORLD = 2 };

static Arena arena;

static void end(void) {
    arena_free(&arena);
}

TestSuite(post, .fini = end);

static Post *post_here(void) {
    Post *post;
    Error error = {0};
    cr_assert(post_open(WORLD, post_address(""), "{\"request\": 1}", &arena, &post, &error) == STATUS_OK, "%s",
              error.message);
    return post;
}

static int stranger(const Post *post) {
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)strtol(post_setting(post), NULL, 10)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

typedef struct Joining {
    const Post *post;
    int rank;
    char *request;
} Joining;

static void *join(void *context) {
    Joining *joining = context;
    PostClient client;
    Error error = {0};
    if (post_join(&client, post_setting(joining->post), joining->rank, &joining->request, &error) == STATUS_OK) {
        post_leave(&client);
    }
    return NULL;
}

static bool serve_until_done(Post *post) {
    const double end_s = clock_s() + 30;
    while (clock_s() < end_s && !(post_rank(post, 0)->done && post_rank(post, 1)->done)) {
        post_serve(post, 0.02);
    }
    return post_rank(post, 0)->done && post_rank(post, 1)->done;
}

Test(post, strangers_that_connect_first_and_stay_silent_keep_no_rank_out) {
    Post *post = post_here();
    int strangers[STRANGERS];
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = stranger(post);
        post_serve(post, 0);
    }
    Joining joining[WORLD];
    pthread_t threads[WORLD];
    for (int rank = 0; rank < WORLD; rank++) {
        joining[rank] = (Joining){.post = post, .rank = rank};
        cr_assert(pthread_create(&threads[rank], NULL, join, &joining[rank]) == 0);
    }
    cr_expect(serve_until_done(post));
    for (int rank = 0; rank < WORLD; rank++) {
        pthread_join(threads[rank], NULL);
        cr_expect(joining[rank].request && strstr(joining[rank].request, "request"), "rank %d got none", rank);
        free(joining[rank].request);
    }
    cr_expect(post_first_lost(post) < 0);
    for (int i = 0; i < STRANGERS; i++) {
        close(strangers[i]);
    }
    post_close(post);
}

Test(post, a_wrong_token_ends_the_connection_and_no_rank_came) {
    Post *post = post_here();
    const int fd = stranger(post);
    const PostFrame frame = {.kind = POST_HELLO, .bytes = sizeof(PostHello)};
    const PostHello hello = {.token = "0123", .row_bytes = sizeof(BoardRank)};
    cr_assert(send(fd, &frame, sizeof frame, 0) == sizeof frame && send(fd, &hello, sizeof hello, 0) == sizeof hello);
    for (int i = 0; i < 10; i++) {
        post_serve(post, 0.02);
    }
    char answer;
    cr_expect(recv(fd, &answer, 1, 0) <= 0);
    cr_expect(!post_rank(post, 0)->came);
    close(fd);
    post_close(post);
}

// A rank that is stopped before its first row has a name already.
Test(post, who_said_hello_has_a_host_and_a_process) {
    Post *post = post_here();
    Joining joining[WORLD];
    pthread_t threads[WORLD];
    char host[BOARD_HOST_BYTES] = "";
    cr_assert(gethostname(host, sizeof host - 1) == 0);
    for (int rank = 0; rank < WORLD; rank++) {
        joining[rank] = (Joining){.post = post, .rank = rank};
        cr_assert(pthread_create(&threads[rank], NULL, join, &joining[rank]) == 0);
    }
    cr_expect(serve_until_done(post));
    for (int rank = 0; rank < WORLD; rank++) {
        pthread_join(threads[rank], NULL);
        free(joining[rank].request);
        cr_expect_str_eq(post_board(post)[rank].host, host);
        cr_expect(atomic_load(&post_board(post)[rank].process) == (int)getpid());
    }
    post_close(post);
}

Test(post, listens_on_the_one_address_that_leads_to_its_hosts) {
    cr_expect(post_address("") == POST_HERE);
    cr_expect(post_address("localhost:4,127.0.0.1") == POST_HERE);
    cr_expect(post_address("no-such-host.invalid") == POST_EVERYWHERE);
    cr_expect(post_address("localhost,no-such-host.invalid") == POST_EVERYWHERE);
}
