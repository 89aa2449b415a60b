// Verdicts on hand-made jobs: four ranks, dp 2 x tp 2, that do the same steps; then one does something else.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/blame/verdict.h"

enum { RANKS = 4, MOST = 400 };

static const int64_t SECOND = 1000000000, BEGIN = 1700000000LL * 1000000000;

static Arena arena;
static Dump dumps[RANKS];
static int64_t clock_ns[RANKS], seqs[RANKS][3];
static Job job;
static Verdict verdict;

enum { WORLD, DP, TP };

static const int dp_of[2][2] = {{0, 2}, {1, 3}}, tp_of[2][2] = {{0, 1}, {2, 3}}, all[4] = {0, 1, 2, 3};

static void begin(void) {
    static const char *const dp_names[] = {"1", "2"}, *const tp_names[] = {"3", "4"};
    for (int rank = 0; rank < RANKS; rank++) {
        DumpGroup *groups = ARENA_ARRAY(&arena, DumpGroup, 3);
        groups[WORLD] = (DumpGroup){"0", "default_pg", all, 4};
        groups[DP] = (DumpGroup){dp_names[rank % 2], "mesh_dp", dp_of[rank % 2], 2};
        groups[TP] = (DumpGroup){tp_names[rank / 2], "mesh_tp", tp_of[rank / 2], 2};
        dumps[rank] = (Dump){.rank = rank,
                             .path = "x",
                             .groups = groups,
                             .group_count = 3,
                             .entries = ARENA_ARRAY(&arena, DumpEntry, MOST),
                             .says_complete = true};
        clock_ns[rank] = BEGIN;
        memset(seqs[rank], 0, sizeof seqs[rank]);
    }
}

static void end(void) {
    arena_free(&arena);
}

TestSuite(verdict, .init = begin, .fini = end);

static DumpEntry *issue(int rank, int group, DumpOp op, int64_t elements) {
    Dump *dump = &dumps[rank];
    DumpEntry *entry = &dump->entries[dump->entry_count++];
    clock_ns[rank] += SECOND / 100;
    *entry = (DumpEntry){.group = group,
                         .seq = ++seqs[rank][group],
                         .op = op,
                         .name = "nccl:x",
                         .in = elements,
                         .out = elements,
                         .bytes = 4 * elements,
                         .dtype = "Float",
                         .completed = true,
                         .created_ns = clock_ns[rank],
                         .completed_ns = clock_ns[rank] + SECOND / 200,
                         .duration_ms = -1,
                         .timeout_ms = 600000};
    return entry;
}

// The six collectives of a step, from the `from`-th to the one before `to`.
static void step(int rank, int from, int to) {
    static const struct {
        int group;
        DumpOp op;
        int64_t elements;
    } parts[] = {{DP, DUMP_ALL_GATHER, 500},     {TP, DUMP_ALL_REDUCE, 100},  {TP, DUMP_ALL_REDUCE, 100},
                 {DP, DUMP_REDUCE_SCATTER, 500}, {WORLD, DUMP_ALL_REDUCE, 1}, {WORLD, DUMP_BROADCAST, 7}};
    for (int i = from; i < to; i++) {
        issue(rank, parts[i].group, parts[i].op, parts[i].elements);
    }
}

static void steps(int rank, int count) {
    for (int i = 0; i < count; i++) {
        step(rank, 0, 6);
    }
}

static void pend(int rank) {  // in its last
    DumpEntry *last = &dumps[rank].entries[dumps[rank].entry_count - 1];
    last->completed = false;
    last->completed_ns = 0;
}

static void judge(double after_s) {
    Error error = {0};
    for (int rank = 0; rank < RANKS; rank++) {
        dumps[rank].written_ns = BEGIN + 5 * SECOND + (int64_t)(after_s * (double)SECOND);
    }
    cr_assert_eq(job_of_dumps(dumps, RANKS, 0, &arena, &job, &error), STATUS_OK);
    verdict_find(&job, 0, &arena, &verdict);
}

static void blames(VerdictKind kind, int rank) {
    cr_assert_eq(verdict.kind, kind, "%s", verdict_kinds[verdict.kind].name);
    cr_assert_eq(verdict.rank_count, 1);
    cr_expect_eq(verdict.ranks[0], rank, "rank %d", verdict.ranks[0]);
}

Test(verdict, a_job_whose_ranks_do_the_same_is_healthy) {
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 5);
    }
    judge(3600);
    cr_expect_eq(verdict.kind, VERDICT_HEALTHY);
    cr_expect_eq(verdict.rank_count, 0);
}

// Rank 3 stopped before the second all-reduce of its tp group; 2 waits for it, 0 and 1 for 2 and 3 further on.
Test(verdict, the_rank_that_waits_for_nobody_is_missing) {
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 3);
        step(rank, 0, rank == 3 ? 2 : rank == 2 ? 3 : 4);
        if (rank != 3) {
            pend(rank);
        }
    }
    judge(700);
    blames(VERDICT_MISSING, 3);
    cr_expect_eq(verdict.due.op, DUMP_ALL_REDUCE);
    cr_expect_eq(verdict.due.seq, 8);
    cr_assert_eq(verdict.waiting_count, 1);
    cr_expect_eq(verdict.waiting[0], 2);
    cr_expect_eq(verdict.held_count, 2);
}

Test(verdict, a_wait_that_is_not_long_blames_nobody) {
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 3);
        step(rank, 0, rank == 3 ? 2 : rank == 2 ? 3 : 4);
        if (rank != 3) {
            pend(rank);
        }
    }
    judge(2);
    cr_expect_eq(verdict.kind, VERDICT_HEALTHY);
    cr_expect_gt(verdict.longest_wait_s, 1);
}

Test(verdict, a_rank_without_a_dump_that_all_wait_for_is_missing) {
    Error error = {0};
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 3);
        step(rank, 0, 5);
        pend(rank);
        dumps[rank].written_ns = BEGIN + 700 * SECOND;
    }
    cr_assert_eq(job_of_dumps(dumps, 3, 0, &arena, &job, &error), STATUS_OK);
    cr_assert_eq(job.world, RANKS);
    verdict_find(&job, 0, &arena, &verdict);
    blames(VERDICT_MISSING, 3);
    cr_expect_not_null(strstr(verdict.unknown[0], "where rank 3 stands: it left no dump"));
}

Test(verdict, ranks_without_a_dump_are_named_in_one_sentence) {
    Error error = {0};
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 3);
    }
    cr_assert_eq(job_of_dumps(dumps, RANKS, 512, &arena, &job, &error), STATUS_OK);
    verdict_find(&job, 0, &arena, &verdict);
    cr_expect_not_null(strstr(verdict.unknown[0], "where ranks 4 to 511 stand: they left no dump"), "%s",
                       verdict.unknown[0]);
    cr_expect(verdict.unknown_count < 2 || !strstr(verdict.unknown[1], "no dump"));
}

// Everything else is as it was: the reduce-scatter of the step meets the all-gather of the group.
Test(verdict, a_rank_whose_group_is_one_behind_skipped_a_collective) {
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 3);
        step(rank, rank == 1 ? 1 : 0, 4);
        if (rank % 2 == 1) {
            pend(rank);
        }
    }
    judge(700);
    blames(VERDICT_SKIPPED, 1);
    cr_expect_eq(verdict.due.op, DUMP_ALL_GATHER);
    cr_expect_eq(verdict.due.seq, 7);
}

// Two all-reduces of tp look alike: the group goes on, one collective behind, and all wait at the end.
Test(verdict, a_skipped_collective_that_looks_like_the_next_is_found_by_the_other_groups) {
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 3);
        step(rank, 0, 2);
        step(rank, rank == 1 ? 3 : 2, 6);
        steps(rank, 2);
    }
    step(0, 0, 3);
    pend(0);
    judge(700);
    blames(VERDICT_SKIPPED, 1);
    cr_expect_eq(verdict.due.op, DUMP_ALL_REDUCE);
    cr_expect_eq(verdict.due.seq, 8);
}

Test(verdict, another_operation_is_a_mismatch) {
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 2);
        if (rank == 2) {
            issue(rank, DP, DUMP_BROADCAST, 33);
        } else {
            step(rank, 0, 1);
        }
        pend(rank);
    }
    judge(700);
    blames(VERDICT_MISMATCH, 2);
    cr_expect_eq(verdict.did.op, DUMP_BROADCAST);
    cr_expect_eq(verdict.due.op, DUMP_ALL_GATHER);
}

Test(verdict, two_collectives_of_a_group_in_the_other_order_are_named) {
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 2);
        step(rank, 0, 4);
        if (rank == 3) {
            step(rank, 5, 6);
            step(rank, 4, 5);
        } else {
            step(rank, 4, 6);
        }
        pend(rank);
    }
    judge(700);
    blames(VERDICT_ORDER, 3);
}

Test(verdict, another_size_is_named_by_the_groups_that_agree) {
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 2);
        issue(rank, DP, DUMP_ALL_GATHER, rank == 2 ? 600 : 500);
        pend(rank);
    }
    judge(700);
    blames(VERDICT_SIZE, 2);
    cr_expect_eq(verdict.did.in, 600);
    cr_expect_eq(verdict.due.in, 500);
}

Test(verdict, uneven_sizes_that_all_leave_behind_are_nobodys_fault) {
    for (int rank = 0; rank < RANKS; rank++) {
        issue(rank, DP, DUMP_ALL_GATHER, 500 + rank);
        steps(rank, 2);
    }
    judge(3600);
    cr_expect_eq(verdict.kind, VERDICT_HEALTHY);
}

Test(verdict, a_collective_that_all_are_in_and_nobody_leaves_is_stuck) {
    for (int rank = 0; rank < RANKS; rank++) {
        steps(rank, 2);
        step(rank, 0, 5);
        pend(rank);
    }
    judge(700);
    cr_expect_eq(verdict.kind, VERDICT_STUCK);
    cr_expect_eq(verdict.rank_count, 0);
}

// Everybody leaves a collective when the last has come.
static void step_together(const double compute_s[RANKS]) {
    for (int part = 0; part < 6; part++) {
        int64_t last = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            clock_ns[rank] += (int64_t)(compute_s[rank] * (double)SECOND);
            step(rank, part, part + 1);
            last = clock_ns[rank] > last ? clock_ns[rank] : last;
        }
        for (int rank = 0; rank < RANKS && part >= 4; rank++) {
            clock_ns[rank] = last;
        }
    }
}

Test(verdict, a_rank_that_everybody_always_waits_for_is_slow) {
    for (int i = 0; i < 30; i++) {
        const double compute_s[RANKS] = {0.01, 0.01 + 0.001 * (i % 3), 0.05, 0.012};
        step_together(compute_s);
    }
    judge(1);
    blames(VERDICT_SLOW, 2);
    cr_expect_gt(verdict.excess, 0.3);
}

Test(verdict, ranks_that_are_late_in_turn_are_not_slow) {
    for (int i = 0; i < 30; i++) {
        double compute_s[RANKS] = {0.01, 0.01, 0.01, 0.01};
        compute_s[i % RANKS] = 0.05;
        step_together(compute_s);
    }
    judge(1);
    cr_expect_eq(verdict.kind, VERDICT_HEALTHY);
}

Test(verdict, a_clock_that_is_ahead_is_not_slowness) {
    for (int i = 0; i < 30; i++) {
        const double compute_s[RANKS] = {0.01, 0.01, 0.01, 0.01};
        step_together(compute_s);
    }
    for (int e = 0; e < dumps[1].entry_count; e++) {
        dumps[1].entries[e].created_ns += SECOND;
    }
    judge(10);
    cr_expect_eq(verdict.kind, VERDICT_HEALTHY);
    bool said = false;
    for (int i = 0; i < verdict.unknown_count; i++) {
        said |= strstr(verdict.unknown[i], "its clock is ahead") != NULL;
    }
    cr_expect(said);
}

Test(verdict, of_two_that_differ_and_have_no_past_nobody_can_tell) {
    Error error = {0};
    issue(0, TP, DUMP_ALL_REDUCE, 10);
    issue(1, TP, DUMP_ALL_REDUCE, 20);
    pend(0);
    pend(1);
    dumps[0].groups += TP;  // only this group
    dumps[1].groups += TP;
    dumps[0].group_count = dumps[1].group_count = 1;
    dumps[0].entries[0].group = dumps[1].entries[0].group = 0;
    cr_assert_eq(job_of_dumps(dumps, 2, 0, &arena, &job, &error), STATUS_OK);
    verdict_find(&job, 0, &arena, &verdict);
    cr_expect_eq(verdict.kind, VERDICT_SIZE);
    cr_expect(verdict.guilty_unknown);
    cr_expect_eq(verdict.rank_count, 2);
}

static bool says_unknown(const char *word) {
    bool says = false;
    for (int i = 0; i < verdict.unknown_count; i++) {
        says |= strstr(verdict.unknown[i], word) != NULL;
    }
    return says;
}

// Files that were written at the time-out are the recorder's own; a day later they are copies.
Test(verdict, files_that_are_older_than_a_time_out_explains_are_said_to_be_copies) {
    for (int day = 0; day < 2; day++) {
        begin();
        job = (Job){0};
        for (int rank = 0; rank < RANKS; rank++) {
            steps(rank, 3);
            step(rank, 0, rank == 3 ? 2 : rank == 2 ? 3 : 4);
            if (rank != 3) {
                pend(rank);
            }
        }
        judge(day ? 86400 : 600);
        blames(VERDICT_MISSING, 3);
        cr_expect_eq(says_unknown("which a copy changes"), day == 1);
    }
}
