// No false alarm: a thousand steps over either transport, with more ranks than cores.

#include <criterion/criterion.h>

#include "tests/fault/exec/launched.h"

static void a_thousand_steps(const char *transport) {
    Arena arena = {0};
    Error error = {0};
    const Launched launched = {transport, NULL, 5, 1000, NULL};
    cr_expect(launched_run(&launched, &arena, &error) == STATUS_OK, "%s", error.message);
    arena_free(&arena);
}

Test(watchdog_quiet, no_false_alarm_in_1000_steps_over_shm) {
    a_thousand_steps("shm");
}

Test(watchdog_quiet, no_false_alarm_in_1000_steps_over_mpi) {
    a_thousand_steps("mpi");
}
