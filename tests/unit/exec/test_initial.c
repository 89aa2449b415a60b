// Random numbers, initial parameters and data: functions of (seed, global index), never of the mesh.

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "exec/data/chain.h"
#include "exec/device/initial.h"
#include "kernels/philox.h"

// Known answers of the authors' library (Random123, kat_vectors, philox4x32 10 rounds).
Test(philox, gives_the_authors_known_answers) {
    const Philox zero = philox(0, 0, 0);
    const uint32_t zero_answer[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    cr_assert(memcmp(zero.word, zero_answer, sizeof zero_answer) == 0);
    const Philox ones = philox(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    const uint32_t ones_answer[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    cr_assert(memcmp(ones.word, ones_answer, sizeof ones_answer) == 0);
    const Philox pi = philox(UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e), UINT64_C(0x85a308d3243f6a88));
    const uint32_t pi_answer[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    cr_assert(memcmp(pi.word, pi_answer, sizeof pi_answer) == 0);
}

// Mean 0, standard deviation 65536, kurtosis 3 - 6/5/12 = 2.9. 100,000 draws: the errors of the estimates are 0.003,
// 0.002 and 0.015.
Test(philox, normal_has_the_moments_of_twelve_uniforms) {
    double sum = 0, square = 0, fourth = 0;
    const int draws = 100000;
    for (int i = 0; i < draws; i++) {
        const double x = philox_normal(5, 6, (uint64_t)i) / 65536.0;
        sum += x;
        square += x * x;
        fourth += x * x * x * x;
    }
    cr_assert(fabs(sum / draws) < 0.015);
    cr_assert(fabs(square / draws - 1) < 0.015);
    cr_assert(fabs(fourth / draws - 2.9) < 0.1);
}

// ---------------------------------------------------------------------------------------------- parameters

enum { ROWS = 8, COLS = 12, WHOLE = COLS + 2 * ROWS * COLS };

// norm[12], rows[8,12] split by rows, cols[8,12] split by columns, on tp ranks.
typedef struct ToyUnit {
    ParamSlice slices[3];
    Unit unit;
    StepProgram program;
} ToyUnit;

static void toy_begin(ToyUnit *toy, int tp) {
    toy->slices[0] = (ParamSlice){
        .tensor = 0, .global_rows = 1, .global_cols = COLS, .local_rows = 1, .local_cols = COLS, .init_value = 1};
    toy->slices[1] = (ParamSlice){.tensor = 1,
                                  .split = SPLIT_ROWS,
                                  .global_rows = ROWS,
                                  .global_cols = COLS,
                                  .local_rows = ROWS / tp,
                                  .local_cols = COLS,
                                  .offset_elements = COLS,
                                  .init_std = 0.02};
    toy->slices[2] = (ParamSlice){.tensor = 2,
                                  .split = SPLIT_COLS,
                                  .global_rows = ROWS,
                                  .global_cols = COLS,
                                  .local_rows = ROWS,
                                  .local_cols = COLS / tp,
                                  .offset_elements = COLS + ROWS * COLS / tp,
                                  .init_std = 0.02};
    for (int i = 0; i < 3; i++) {
        toy->slices[i].blocks = 1;
        toy->slices[i].block_rows = toy->slices[i].global_rows;
    }
    toy->unit = (Unit){.instances = 1, .slice_count = 3, .elements = COLS + 2 * ROWS * COLS / tp};
    toy->program = (StepProgram){.units = &toy->unit, .unit_count = 1, .slices = toy->slices, .slice_count = 3};
}

static void toy_fill(const ToyUnit *toy, int tp_index, int64_t first, int64_t count, float *out) {
    const InitialStretch stretch = {.unit = &toy->unit, .tp_index = tp_index, .first = first, .count = count};
    initial_parameters(&toy->program, 11, &stretch, out);
}

Test(initial, tensor_parallel_ranks_hold_pieces_of_the_same_matrices) {
    ToyUnit whole, half;
    toy_begin(&whole, 1);
    toy_begin(&half, 2);
    float all[WHOLE], part[WHOLE];
    toy_fill(&whole, 0, 0, whole.unit.elements, all);
    for (int rank = 0; rank < 2; rank++) {
        toy_fill(&half, rank, 0, half.unit.elements, part);
        for (int i = 0; i < COLS; i++) {
            cr_assert_eq(part[i], 1);
        }
        for (int row = 0; row < ROWS / 2; row++) {
            const float *want = all + COLS + (rank * ROWS / 2 + row) * COLS;
            cr_assert(memcmp(part + COLS + row * COLS, want, COLS * 4) == 0, "row %d of rank %d", row, rank);
        }
        for (int row = 0; row < ROWS; row++) {
            const float *want = all + COLS + ROWS * COLS + row * COLS + rank * COLS / 2;
            const float *got = part + COLS + ROWS * COLS / 2 + row * COLS / 2;
            cr_assert(memcmp(got, want, COLS / 2 * 4) == 0, "columns of row %d of rank %d", row, rank);
        }
    }
}

// Four blocks of six rows; two ep ranks have two of them each, and two tp ranks three rows of each of these.
Test(initial, ranks_of_experts_hold_their_blocks_and_of_each_their_rows) {
    enum { BLOCKS = 4, OF_BLOCK = 6, ALL = BLOCKS * OF_BLOCK, RANKS = 2, HERE = ALL / RANKS / RANKS };
    ParamSlice slice = {.split = SPLIT_ROWS,
                        .global_rows = ALL,
                        .global_cols = COLS,
                        .local_rows = HERE,
                        .local_cols = COLS,
                        .blocks = BLOCKS / RANKS,
                        .block_rows = OF_BLOCK,
                        .spread = true,
                        .init_std = 0.02};
    ParamSlice undivided = slice;
    undivided.local_rows = ALL;
    undivided.blocks = BLOCKS;
    undivided.spread = false;
    const Unit unit = {.instances = 1, .slice_count = 1, .elements = HERE * COLS};
    const Unit whole = {.instances = 1, .slice_count = 1, .elements = ALL * COLS};
    const StepProgram program = {.slices = &slice, .slice_count = 1}, of_all = {.slices = &undivided, .slice_count = 1};
    float all[ALL * COLS], part[HERE * COLS];
    initial_parameters(&of_all, 11, &(InitialStretch){.unit = &whole, .count = ALL * COLS}, all);
    for (int rank = 0; rank < RANKS * RANKS; rank++) {
        const int ep = rank / RANKS, tp = rank % RANKS;
        const InitialStretch stretch = {.unit = &unit, .ep_index = ep, .tp_index = tp, .count = HERE * COLS};
        initial_parameters(&program, 11, &stretch, part);
        for (int row = 0; row < HERE; row++) {
            const int block = ep * BLOCKS / RANKS + row / (OF_BLOCK / RANKS);
            const int64_t want = block * OF_BLOCK + tp * OF_BLOCK / RANKS + row % (OF_BLOCK / RANKS);
            const SliceRow back = slice_row_of(&slice, want);
            cr_assert_eq(slice_global_row(&slice, &(SliceRow){tp, ep, row}), want);
            cr_assert(back.tp_index == tp && back.ep_index == ep && back.local == row);
            cr_assert(memcmp(part + row * COLS, all + want * COLS, COLS * 4) == 0, "row %d of rank %d", row, rank);
        }
    }
}

Test(initial, shards_are_stretches_of_the_whole_and_padding_is_zero) {
    ToyUnit toy;
    toy_begin(&toy, 1);
    enum { SHARD = 55, SHARDS = 4 };
    float all[WHOLE], shard[SHARD];
    toy_fill(&toy, 0, 0, WHOLE, all);
    for (int s = 0; s < SHARDS; s++) {
        toy_fill(&toy, 0, s * SHARD, SHARD, shard);
        for (int i = 0; i < SHARD; i++) {
            const int at = s * SHARD + i;
            cr_assert_eq(shard[i], at < WHOLE ? all[at] : 0, "element %d", at);
        }
    }
}

Test(initial, instances_and_seeds_differ) {
    ToyUnit toy;
    toy_begin(&toy, 1);
    float a[WHOLE], b[WHOLE], c[WHOLE];
    toy_fill(&toy, 0, 0, WHOLE, a);
    const InitialStretch next = {.unit = &toy.unit, .instance = 1, .count = WHOLE};
    initial_parameters(&toy.program, 11, &next, b);
    const InitialStretch same = {.unit = &toy.unit, .count = WHOLE};
    initial_parameters(&toy.program, 12, &same, c);
    cr_assert(memcmp(a, b, sizeof a) != 0 && memcmp(a, c, sizeof a) != 0);
}

// ---------------------------------------------------------------------------------------------- data

Test(data, a_sequence_is_a_function_of_seed_step_and_index) {
    const TokenChain chain = token_chain(3, 1000);
    int32_t a[33], b[33];
    chain_sequence(&chain, 4, 5, 33, a);
    chain_sequence(&chain, 4, 5, 17, b);
    cr_assert(memcmp(a, b, 17 * sizeof *a) == 0, "a shorter sequence is not a prefix");
    chain_sequence(&chain, 4, 6, 33, b);
    cr_assert(memcmp(a, b, sizeof a) != 0, "sequences are equal");
    chain_sequence(&chain, 5, 5, 33, b);
    cr_assert(memcmp(a, b, sizeof a) != 0, "steps are equal");
}

Test(data, tokens_lie_in_the_vocabulary_and_reach_its_last_eighth) {
    const int vocabularies[] = {5, 64, 1000, 32000};
    for (int v = 0; v < 4; v++) {
        const TokenChain chain = token_chain(9, vocabularies[v]);
        int32_t tokens[2000], highest = 0;
        chain_sequence(&chain, 0, 0, 2000, tokens);
        for (int i = 0; i < 2000; i++) {
            cr_assert(tokens[i] >= 0 && tokens[i] < vocabularies[v]);
            highest = tokens[i] > highest ? tokens[i] : highest;
        }
        cr_assert(highest >= vocabularies[v] * 7 / 8 - 1, "vocabulary %d: highest %d", vocabularies[v], highest);
    }
}

// 12 of 16 moves go to one successor, so the most frequent follower of a token takes about three quarters of its
// visits.
Test(data, the_next_token_can_mostly_be_told_from_the_last) {
    const TokenChain chain = token_chain(2, 64);
    enum { LENGTH = 20000 };
    static int32_t tokens[LENGTH];
    static int followers[64][64];
    chain_sequence(&chain, 0, 0, LENGTH, tokens);
    for (int i = 0; i + 1 < LENGTH; i++) {
        followers[tokens[i]][tokens[i + 1]]++;
    }
    int likely = 0;
    for (int a = 0; a < 64; a++) {
        int most = 0;
        for (int b = 0; b < 64; b++) {
            most = followers[a][b] > most ? followers[a][b] : most;
        }
        likely += most;
    }
    cr_assert(likely > LENGTH * 0.7 && likely < LENGTH * 0.85, "%d of %d", likely, LENGTH);
}
