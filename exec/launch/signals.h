// Signals while children run: those that would end this process are blocked, so that it can first end its children and
// clean up. Private to exec/launch.

#pragma once

#include <signal.h>
#include <spawn.h>
#include <stdbool.h>

typedef struct HeldSignals {
    sigset_t waited, before;
    struct sigaction child;  // previous SIGCHLD disposition
} HeldSignals;

// Blocks SIGINT, SIGTERM and SIGHUP, except those this process ignores: under nohup it survives the terminal. SIGCHLD
// is delivered even if this process was started with it ignored.
void signals_hold(HeldSignals *held);

// Sleeps at most wait_s, less when a child ends. Returns the signal that asks this process to end; 0 = none.
int signals_wait(const HeldSignals *held, double wait_s);

// Restores the state before signals_hold; `caught` (0 = none) is delivered now.
void signals_release(const HeldSignals *held, int caught);

// For posix_spawn: a child in which the usual signals work, whatever is blocked or ignored here; with `group`, in a
// process group of its own. Returns 0, or the errno of what failed.
int signals_of_child(bool group, posix_spawnattr_t *attributes);
