// Signals while children run: those that would end this process are held back, so that it can end its children and
// clean up first. Private to exec/launch.

#pragma once

#include <signal.h>
#include <spawn.h>
#include <stdbool.h>

typedef struct HeldSignals {
    sigset_t waited, before;
    struct sigaction child;  // what SIGCHLD did before
} HeldSignals;

// SIGINT, SIGTERM and SIGHUP, less those that this process ignores: under nohup it goes on when the terminal goes. The
// ends of children come too, also where whoever started this process had it ignore them.
void signals_hold(HeldSignals *held);

// Sleeps at most wait_s, less when a child ends. The signal that asks this process to end; 0 = none.
int signals_wait(const HeldSignals *held, double wait_s);

// As before signals_hold; `caught` (0 = none) is delivered now.
void signals_release(const HeldSignals *held, int caught);

// For posix_spawn: a child in which the usual signals work, whatever is held or ignored here; with `group` in a process
// group of its own. 0, or the errno of what failed.
int signals_of_child(bool group, posix_spawnattr_t *attributes);
