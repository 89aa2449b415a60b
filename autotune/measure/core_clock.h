// How much of the machine's cores other processes used while ranks ran here.

#pragma once

#include "autotune/run_record.h"

// Reads who uses the cores of this machine: once before something is measured, once after.
typedef struct CoreClock {
    double all_s, idle_s, own_s;  // of all cores; of this program and the children that it waited for
} CoreClock;
CoreClock core_clock_now(void);
CoreUse core_clock_use(const CoreClock *begin, int ranks);
