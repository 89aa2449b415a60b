// A blocked signal stays pending even where it is ignored, and sigtimedwait would take it: ignored signals must not be
// blocked. With SIGCHLD ignored the kernel discards exit statuses, so it is reset to default while children run.

#define _GNU_SOURCE  // sigtimedwait in strict C

#include "exec/launch/signals.h"

#include <pthread.h>
#include <stddef.h>

static void add_unless_ignored(sigset_t *set, int number) {
    struct sigaction now;
    if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
        sigaddset(set, number);
    }
}

void signals_hold(HeldSignals *held) {
    sigemptyset(&held->waited);
    add_unless_ignored(&held->waited, SIGINT);
    add_unless_ignored(&held->waited, SIGTERM);
    add_unless_ignored(&held->waited, SIGHUP);
    sigaddset(&held->waited, SIGCHLD);
    sigaction(SIGCHLD, NULL, &held->child);
    if (held->child.sa_handler == SIG_IGN) {
        signal(SIGCHLD, SIG_DFL);
    }
    pthread_sigmask(SIG_BLOCK, &held->waited, &held->before);
}

int signals_wait(const HeldSignals *held, double wait_s) {
    const struct timespec nap = {.tv_sec = (time_t)wait_s, .tv_nsec = (long)((wait_s - (double)(time_t)wait_s) * 1e9)};
    const int caught = sigtimedwait(&held->waited, NULL, &nap);
    return caught > 0 && caught != SIGCHLD ? caught : 0;
}

void signals_release(const HeldSignals *held, int caught) {
    if (held->child.sa_handler == SIG_IGN) {
        signal(SIGCHLD, SIG_IGN);
    }
    const struct timespec at_once = {0};
    while (caught && sigtimedwait(&held->waited, NULL, &at_once) > 0) {
        // another one meanwhile: the same request
    }
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    if (caught) {
        raise(caught);
    }
}

int signals_of_child(bool group, posix_spawnattr_t *attributes) {
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGTERM);
    sigaddset(&usual, SIGPIPE);
    int failed = posix_spawnattr_init(attributes);
    failed = failed ? failed : posix_spawnattr_setsigmask(attributes, &none);
    failed = failed ? failed : posix_spawnattr_setsigdefault(attributes, &usual);
    const short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    return failed ? failed
                  : posix_spawnattr_setflags(attributes, group ? (short)(flags | POSIX_SPAWN_SETPGROUP) : flags);
}
