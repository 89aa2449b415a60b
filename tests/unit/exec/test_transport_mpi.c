// The mpi transport under mpirun: the same table of checks as shm's, over groups of every mask, and lanes in threads.

#include <criterion/criterion.h>

#include "tests/support/run_program.h"

static void ranks_find_no_fault(const char *count, const char *mesh, const char *what) {
    const char *const words[] = {"/usr/bin/env", "mpirun", "-n", count, "--oversubscribe", "--bind-to", "none",
                                 TRANSPORT_RANK, mesh,     what, NULL};
    const char *const environment[] = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", NULL};
    ProgramRun run = program_run(words, environment, 200);
    cr_expect(run.exit_code == 0 && !run.timed_out, "%s: code %d: %s", mesh, run.exit_code, run.err);
    program_run_free(&run);
}

Test(transport_mpi, every_mask_of_2_ranks_moves_and_sums_exactly) {
    ranks_find_no_fault("2", "dp_shard=2", "all");
}

Test(transport_mpi, every_mask_of_3_ranks_moves_and_sums_exactly) {
    ranks_find_no_fault("3", "cp=3", "all");
}

Test(transport_mpi, every_mask_of_4_ranks_moves_and_sums_exactly) {
    ranks_find_no_fault("4", "dp_replicate=2,tp=2", "all");
}

Test(transport_mpi, every_mask_of_6_ranks_moves_and_sums_exactly) {
    ranks_find_no_fault("6", "dp_shard=3,tp=2", "all");
}

Test(transport_mpi, communicators_do_not_disturb_each_other) {
    ranks_find_no_fault("4", "dp_shard=2,tp=2", "lanes");
}

Test(transport_mpi, messages_go_along_a_line_and_round_a_ring) {
    ranks_find_no_fault("2", "tp=2", "links");
    ranks_find_no_fault("5", "dp_shard=5", "links");
}

Test(transport_mpi, messages_are_sent_and_received_by_different_threads) {
    ranks_find_no_fault("3", "dp_shard=3", "link-lanes");
}
